"""The whole path of a newcomer, in Chromium: review, learn again, export, and find it all there."""

import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="the studio's packages are not installed")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
from playwright.sync_api import Browser, Page, expect, sync_playwright

from ronid.export.formats import load_format
from tests.helpers.cli_corpus import ok
from tests.helpers.studio_server import ARGUMENTS, CHROMIUM, Server, Trouble, come_in, serving

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine"),
]
expect.set_options(timeout=30_000)
HOSTILE = "<img src=x onerror=alert(9)> & {{ 7 * 7 }}"
TRAINED_MS = 300_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture
def trouble() -> Iterator[Trouble]:
    found = Trouble()
    yield found
    assert found.said == []


def person(browser: Browser, server: Server, trouble: Trouble, name: str, path: str = "/") -> Page:
    context = browser.new_context(
        viewport={"width": 1400, "height": 900}, reduced_motion="reduce", accept_downloads=True
    )
    context.on("page", lambda page: trouble.watch(page, server.url))
    page: Page = come_in(context, server, name, path)
    return page


def row(page: Page, name: str) -> Any:
    return page.locator(".intents tbody tr", has=page.get_by_role("link", name=name, exact=True))


def said(page: Page, words: str) -> None:
    expect(page.locator(".toast", has_text=words).first).to_be_visible()


def rename(page: Page, name: str) -> None:
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("e")
    page.get_by_label("Name", exact=True).fill(name)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(name)


def train(page: Page) -> None:
    """Press the one button, and wait for what it did."""
    page.keyboard.press("5")
    expect(page.get_by_role("heading", level=1)).to_have_text("Learn")
    page.get_by_role("button", name="Train on").click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel the training")).to_be_enabled()
    heading = page.get_by_role("heading", name=re.compile("^Before and after"))
    expect(heading).to_be_visible(timeout=TRAINED_MS)


def open_intent(page: Page, name: str) -> None:
    page.keyboard.press("1")
    row(page, name).get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)


def review(page: Page) -> list[str]:
    """Find new intents, rename one, merge two, split one, undo and redo; return the new ones."""
    expect(page.locator(".intents tbody tr")).to_have_count(24)
    page.get_by_role("button", name=re.compile("^New")).click()
    expect(page.locator(".intents tbody tr")).to_have_count(8)
    new = page.locator(".intents td.name a").all_text_contents()

    row(page, new[0]).get_by_role("link").click()
    rename(page, "what_people_ask_for")
    page.keyboard.press("a")
    said(page, "Accepted")

    open_intent(page, new[1])
    page.keyboard.press("m")
    page.get_by_role("combobox").fill(new[2])
    page.keyboard.press("Enter")
    said(page, "Merged")
    page.keyboard.press("1")
    expect(page.locator(".intents tbody tr")).to_have_count(23)

    open_intent(page, "app_crash")
    page.keyboard.press("s")
    page.get_by_role("button", name="2 parts").click()
    expect(page.locator(".parts section")).to_have_count(2)
    page.get_by_label("Name of part 2").fill("the_other_part")
    page.get_by_role("button", name="Split into 2").click()
    said(page, "Split “the_other_part”")
    page.keyboard.press("1")
    expect(page.locator(".intents tbody tr")).to_have_count(24)
    page.keyboard.press("z")
    said(page, "Took back #4")
    expect(page.locator(".intents tbody tr")).to_have_count(23)
    page.keyboard.press("Shift+Z")
    expect(row(page, "the_other_part")).to_be_visible()
    open_intent(page, "the_other_part")
    page.keyboard.press("a")
    expect(page.locator(".head .state")).to_have_text("accepted")
    return new


def export_to_rasa(page: Page, folder: Path) -> set[str]:
    """Download what was accepted; return the names in it."""
    page.keyboard.press("6")
    page.get_by_role("radio", name=re.compile("^Rasa 3")).check()
    page.get_by_role("radio", name=re.compile("^Only accepted")).check()
    expect(page.locator(".export .right")).to_contain_text("not accepted yet and left out")
    with page.expect_download() as downloading:
        page.get_by_role("link", name="Download for Rasa 3").click()
    assert downloading.value.suggested_filename == "export-rasa.zip"
    downloading.value.save_as(folder / "rasa.zip")
    with zipfile.ZipFile(folder / "rasa.zip") as archive:
        archive.extractall(folder / "out")
    assert (folder / "out" / "export-rasa" / "audit.jsonl").is_file()
    return {intent for _, intent in load_format("rasa").read(folder / "out" / "export-rasa")}


def test_a_newcomer_reviews_learns_and_exports(
    browser: Browser, trouble: Trouble, tmp_path: Path
) -> None:
    run = tmp_path / "demo-run"
    ok("demo", "--out", run, "--quiet")
    with serving(run) as server:
        page = person(browser, server, trouble, "newcomer")
        new = review(page)
        other = person(browser, server, trouble, "colleague", "/history")
        train(page)
        expect(page.locator(".verdicts")).to_contain_text("the_other_part")
        expect(other.locator(".events .dot.learn")).to_have_count(1)
        names = export_to_rasa(page, tmp_path)
        assert {"what_people_ask_for", "the_other_part", "app_crash"} <= names
        assert not set(new) & names

        page.reload()
        expect(page.get_by_role("link", name="Download for Rasa 3")).to_be_visible()
        page.keyboard.press("5")
        page.reload()
        expect(page.locator(".verdicts")).to_contain_text("what_people_ask_for")
        page.goto(server.url)
        expect(page.locator(".intents tbody tr")).to_have_count(24)
        for name in ("what_people_ask_for", "the_other_part"):
            expect(row(page, name).locator(".status")).to_contain_text("accepted")
        page.keyboard.press("4")
        seqs = [f"#{number}" for number in range(8, -1, -1)]
        expect(page.locator(".events li .seq")).to_have_text(seqs)
        for each in (page, other):
            each.context.close()


@pytest.fixture
def run(fitted: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(fitted, tmp_path / "run"))


def serious(page: Page) -> list[Any]:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page.wait_for_timeout(200)
    return [
        (each["id"], [node["html"][:160] for node in each["nodes"][:3]])
        for each in axe.run(page).response["violations"]
        if each["impact"] in ("serious", "critical")
    ]


def reached(page: Page, presses: int) -> set[str]:
    """Return what Tab leads to."""
    page.locator("body").click(position={"x": 2, "y": 890})
    found = set()
    for _ in range(presses):
        page.keyboard.press("Tab")
        found.add(
            page.evaluate(
                "() => { const e = document.activeElement; return (e.ariaLabel || e.innerText"
                " || e.labels?.[0]?.innerText || e.placeholder || '').split('\\n')[0].trim() }"
            )
        )
    return found


def test_the_new_pages_show_names_as_text_and_are_for_everybody(
    browser: Browser, trouble: Trouble, run: Path
) -> None:
    with serving(run) as server:
        page = person(browser, server, trouble, "<b>Eve</b>", "/learn")
        expect(page.get_by_role("button", name="Train on")).to_be_disabled()
        expect(
            page.get_by_text("Nothing was decided, so there is nothing to learn.")
        ).to_be_visible()
        assert serious(page) == []
        page.goto(f"{server.url}/intent/i3")
        rename(page, HOSTILE)
        page.keyboard.press("a")
        said(page, "Accepted")
        page.keyboard.press("5")
        # A button that is still disabled, as the page has yet to count, cannot be reached.
        expect(page.get_by_role("button", name="Train on")).to_be_enabled()
        assert {"Train on", "Learn", "Export"} <= reached(page, 30)
        assert serious(page) == []
        page.get_by_role("button", name="Train on").focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("progressbar")).to_be_visible()
        assert serious(page) == []
        expect(page.locator(".bar .count.busy")).to_be_visible()
        page.reload()
        heading = page.get_by_role("heading", name=re.compile("^Before and after"))
        expect(heading).to_be_visible(timeout=TRAINED_MS)
        expect(page.locator(".verdicts")).to_contain_text(HOSTILE)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            for path in ("/learn", "/export"):
                page.goto(server.url + path)
                page.locator(".sheetbox .stat").first.wait_for()
                assert serious(page) == [], (path, scheme)
                assert page.locator("main img, main script, main b > b").count() == 0
        expect(page.locator("#renamed")).to_be_visible()
        expect(page.locator("table.plain")).to_contain_text(HOSTILE)
        found = reached(page, 40)
        assert any(each.startswith("Download for") for each in found), found
        assert any(each.startswith("Rasa 3") for each in found), found
        for to in ("Amazon Lex V2", "OpenAI fine-tuning", "Azure CLU"):
            page.get_by_role("radio", name=re.compile(f"^{to}")).check()
            page.get_by_role("link", name=f"Download for {to}").wait_for()
            assert serious(page) == [], to

        page.goto(f"{server.url}/learn")
        page.get_by_role("button", name="Take this training back").click()
        page.get_by_role("button", name="Take it back").click()
        said(page, "Took the training back")
        expect(page.get_by_role("button", name="Train on")).to_be_enabled()
        expect(heading).to_have_count(0)
        page.get_by_role("button", name="Train on").click()
        page.get_by_role("button", name="Cancel the training").click()
        expect(
            page.get_by_text("The last training was cancelled; nothing was changed.")
        ).to_be_visible()
        page.context.close()
