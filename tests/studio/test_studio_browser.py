"""The studio as people use it: Chromium, a server of its own, a run of five intents."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="the studio's packages are not installed")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.helpers.finished_run import make_run
from tests.helpers.studio_server import ARGUMENTS, CHROMIUM, Server, Trouble, come_in, serving

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine"),
]

expect.set_options(timeout=30_000)  # a busy machine is slow, not wrong

GROUPS = {
    "track_order": [f"where is my order number {n}" for n in range(14)],
    "lost": [f"I lost my card in {place}" for place in ("Rome", "Oslo", "Wien", "Kyōto", "Lima")]
    + ["<script>alert(1)</script> lost", "<img src=x onerror=alert(2)> lost card", "بطاقتي ضاعت"],
    "gift": [f"buy a gift card for {n} friends" for n in range(10)],
    "pause": [f"pause my membership for {n} weeks" for n in range(9)],
    "weather": [f"will it rain on day {n}" for n in range(8)],
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    make_run(tmp_path / "run", GROUPS, known=1)
    with serving(tmp_path / "run") as started:
        yield started


class Desk:
    """People at their own screens; whatever goes wrong on one of them fails the test."""

    def __init__(self, browser: Browser, server: Server) -> None:
        self.browser, self.server, self.trouble = browser, server, Trouble()
        self.contexts: list[Any] = []

    def person(self, name: str, path: str = "/") -> Page:
        context = self.browser.new_context(
            viewport={"width": 1400, "height": 900}, reduced_motion="reduce"
        )
        self.contexts.append(context)
        context.on("page", lambda page: self.trouble.watch(page, self.server.url))
        page: Page = come_in(context, self.server, name, path)
        return page


@pytest.fixture
def desk(browser: Browser, server: Server) -> Iterator[Desk]:
    made = Desk(browser, server)
    yield made
    for context in made.contexts:
        context.close()
    assert made.trouble.said == []


def row(page: Page, name: str) -> Any:
    return page.locator(".intents tbody tr", has=page.get_by_role("link", name=name, exact=True))


def said(page: Page, words: str) -> None:
    expect(page.locator(".toast", has_text=words).first).to_be_visible()


def names(page: Page) -> list[str]:
    return page.locator(".intents td.name a").all_text_contents()


def test_a_newcomer_renames_merges_splits_undoes_and_finds_it_all_again(desk: Desk) -> None:
    page = desk.person("Ann")
    expect(page.locator(".intents tbody tr")).to_have_count(5)
    page.get_by_role("button", name=re.compile("^New")).click()
    expect(page.locator(".intents tbody tr")).to_have_count(4)
    found = names(page)
    page.get_by_role("button", name=re.compile("^All")).click()
    pause = next(name for name in found if "membership" in name or "pause" in name)
    gift = next(name for name in found if "gift" in name)

    row(page, pause).get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(pause)
    page.keyboard.press("e")
    page.get_by_label("Name", exact=True).fill("pause_membership_please")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("pause_membership_please")

    page.keyboard.press("m")
    page.get_by_role("combobox").fill(gift[:6])
    page.keyboard.press("Enter")
    said(page, "Merged")
    page.goto(desk.server.url)
    expect(page.locator(".intents tbody tr")).to_have_count(4)

    big = next(name for name in names(page) if "gift" in name or "pause" in name)
    expect(row(page, big).locator(".size")).to_contain_text("19")
    row(page, big).get_by_role("link").click()
    expect(page.get_by_role("option")).to_have_count(19)
    page.keyboard.press("s")
    expect(page.locator(".parts section").first).to_be_visible()
    page.get_by_role("button", name="2 parts").click()
    expect(page.locator(".parts section")).to_have_count(2)
    page.get_by_label("Name of part 2").fill("the other half")
    page.get_by_role("button", name="Split into 2").click()
    said(page, "Split “the other half”")
    page.keyboard.press("1")
    expect(page.locator(".intents tbody tr")).to_have_count(5)
    expect(row(page, "the other half")).to_be_visible()

    page.keyboard.press("z")
    said(page, "Took back #3")
    expect(page.locator(".intents tbody tr")).to_have_count(4)
    page.reload()
    expect(page.locator(".intents tbody tr")).to_have_count(4)
    page.keyboard.press("Shift+Z")
    expect(row(page, "the other half")).to_be_visible()
    page.keyboard.press("4")
    expect(page.locator(".events li .seq")).to_have_text(["#5", "#4", "#3", "#2", "#1", "#0"])


def test_two_people_see_each_other_and_conflicts_are_shown(desk: Desk) -> None:
    ann, bob = desk.person("Ann"), desk.person("Bob", "/intent/i2")
    # What is worked out once at the start would only measure the machine.
    expect(ann.get_by_text("Looking for intents to merge")).to_have_count(0)
    name = bob.get_by_role("heading", level=1).inner_text()
    row(ann, name).click()
    ann.keyboard.press("a")
    expect(bob.locator(".head .state")).to_have_text("accepted")
    said(bob, "Ann accepted")

    # Bob acts on what he saw before Ann's last decision reached him.
    bob.route("**/api/state*", lambda route: route.abort())
    bob.route("**/api/intent/*", lambda route: route.abort())
    row(ann, name).click()
    ann.keyboard.press("r")
    said(ann, "Rejected")
    bob.keyboard.press("l")
    expect(bob.get_by_role("dialog")).to_contain_text("Ann rejected")
    bob.unroute("**/api/state*")
    bob.unroute("**/api/intent/*")
    desk.trouble.said.clear()  # the requests that were cut
    bob.get_by_role("button", name="Do it all the same").click()
    expect(row(ann, name).locator(".tag.lock")).to_be_visible()


def test_utterances_are_moved_by_keys_and_by_search(desk: Desk) -> None:
    page = desk.person("Ann", "/intent/i1")
    expect(page.get_by_role("option")).to_have_count(8)
    for key in ("x", "j", "x", "j", "X"):
        page.keyboard.press(key)
    expect(page.get_by_text("3 utterances chosen")).to_be_visible()
    page.keyboard.press("v")
    page.get_by_role("combobox").fill("track")
    page.keyboard.press("Enter")
    said(page, "Moved 3 utterances to “track_order”")
    expect(page.get_by_role("option")).to_have_count(5)

    page.keyboard.press("/")
    page.keyboard.type("RAIN day")
    page.keyboard.press("Enter")
    expect(page.get_by_role("option")).to_have_count(8)
    page.get_by_label("Choose all").check()
    page.keyboard.press("o")
    said(page, "Marked 8 utterances as out of scope")
    page.get_by_label("Search all utterances").fill("kyoto")
    page.keyboard.press("Enter")
    expect(page.get_by_role("option")).to_have_count(1)
    page.goto(f"{desk.server.url}/out")
    expect(page.get_by_role("option")).to_have_count(8)
    page.get_by_role("option").first.click()
    page.keyboard.press("n")
    page.get_by_label("Name", exact=True).fill("rain after all")
    page.keyboard.press("Enter")
    expect(page.get_by_role("option")).to_have_count(7)


def test_hostile_texts_and_names_are_shown_as_text(desk: Desk) -> None:
    page = desk.person("<b>Eve</b>", "/intent/i1")
    expect(page.get_by_text("<script>alert(1)</script> lost")).to_be_visible()
    expect(page.get_by_text("<img src=x onerror=alert(2)> lost card")).to_be_visible()
    page.keyboard.press("e")
    page.get_by_label("Name", exact=True).fill("<img src=x onerror=alert(3)>")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("<img src=x onerror=alert(3)>")
    page.keyboard.press("d")
    page.get_by_label("What it is about").fill("<script>alert(4)</script>{{ 7 * 7 }}")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("<script>alert(4)</script>{{ 7 * 7 }}")).to_be_visible()
    for path in (
        "/",
        "/history",
        "/map",
        "/?q=%3Cscript%3E%7B%7B7*7%7D%7D",
        "/intent/%3Cscript%3E",
    ):
        page.goto(desk.server.url + path)
        page.locator(".studio main .page, .studio .map").first.wait_for()
        page.wait_for_timeout(300)
        assert page.locator("main img, main script, main b > b").count() == 0
    desk.trouble.said = [words for words in desk.trouble.said if "422" not in words]


def test_earlier_versions_are_looked_at_and_returned_to(desk: Desk) -> None:
    page = desk.person("Ann")
    page.keyboard.press("a")
    said(page, "Accepted")
    page.keyboard.press("a")
    expect(page.locator(".stat.good b")).to_have_text("2")
    page.keyboard.press("4")
    page.get_by_role("button", name="Look at version 1").click()
    expect(page.get_by_text("You are looking at version 1 of 2")).to_be_visible()
    expect(page.locator(".stat.good b")).to_have_text("1")
    page.keyboard.press("a")
    expect(page.locator(".stat.good b")).to_have_text("1")
    page.get_by_role("button", name="Return to this version").click()
    said(page, "Returned to version 1")
    expect(page.locator(".banner")).to_have_count(0)
    expect(page.locator(".stat.good b")).to_have_text("1")
    page.keyboard.press("z")
    expect(page.locator(".stat.good b")).to_have_text("2")


def test_a_line_is_drawn_on_the_map_and_what_is_inside_moves(desk: Desk) -> None:
    page = desk.person("Ann", "/map")
    page.locator(".plane canvas").first.wait_for()
    expect(page.get_by_text("49 points")).to_be_visible()
    page.get_by_role("button", name="Draw around").click()
    box = page.locator(".plane").bounding_box()
    assert box is not None
    left, top = box["x"] + 4, box["y"] + 60
    right, bottom = box["x"] + box["width"] - 4, box["y"] + box["height"] - 4
    page.mouse.move(left, top)
    page.mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom), (left, top)):
        page.mouse.move(x, y, steps=6)
    page.mouse.up()
    expect(page.get_by_text("Drawn around")).to_be_visible()
    total = page.locator(".side .acts").inner_text()
    assert int(re.findall(r"\d+", total)[0]) >= 40
    page.locator(".side .list li").first.click()
    page.keyboard.press("o")
    said(page, "Marked 1 utterance as out of scope")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(desk: Desk, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = desk.person("Ann")
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.reload()
    expect(page.locator(".intents tbody tr")).to_have_count(5)
    page.keyboard.press("a")
    said(page, "Accepted")

    def check(where: str) -> None:
        page.wait_for_timeout(200)
        wrong = [
            (each["id"], [node["html"][:160] for node in each["nodes"][:3]])
            for each in axe.run(page).response["violations"]
            if each["impact"] in ("serious", "critical")
        ]
        assert wrong == [], where

    check("overview")
    page.get_by_role("button", name="Cards").click()
    check("cards")
    page.goto(f"{desk.server.url}/intent/i1")
    page.get_by_role("option").first.click()
    check("intent")
    for key, what in (("e", "rename"), ("m", "merge"), ("s", "split"), ("?", "help")):
        page.keyboard.press(key)
        page.get_by_role("dialog").wait_for()
        check(what)
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
    for path in ("/history", "/doubts", "/?q=lost", "/map", "/enter"):
        page.goto(desk.server.url + path)
        page.wait_for_timeout(400)
        check(path)


def test_everything_on_the_overview_is_reached_by_tab(desk: Desk) -> None:
    page = desk.person("Ann")
    page.locator("body").click(position={"x": 2, "y": 890})
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "() => { const e = document.activeElement;"
                " return e.ariaLabel || e.placeholder || e.innerText.split('\\n')[0].trim() }"
            )
        )
    for wanted in ("Map", "History", "Search all utterances", "Filter by name", "Cards", "Intent"):
        assert any(wanted in each for each in reached), (wanted, reached)
