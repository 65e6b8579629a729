import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ronid.export.report import ReportData, write_report

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Browser, report_data: ReportData, tmp_path: Path) -> Iterator[Page]:
    """Open the report; any dialog, console message, error or request fails the test."""
    path = write_report(tmp_path / "report.html", report_data)
    context = browser.new_context(viewport={"width": 1200, "height": 900}, reduced_motion="reduce")
    opened = context.new_page()
    trouble: list[str] = []
    opened.on("dialog", lambda dialog: (trouble.append(dialog.message), dialog.dismiss()))
    opened.on("console", lambda message: trouble.append(message.text))
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    opened.on("request", lambda request: trouble.append(request.url))
    opened.goto(path.as_uri())
    expect(opened.locator("#rows tr")).to_have_count(5)
    yield opened
    assert trouble == [path.as_uri()]
    context.close()


def test_an_updated_run_shows_what_was_added_and_what_is_collected(
    browser: Browser, report_data: ReportData, tmp_path: Path
) -> None:
    grown = replace(report_data, version=2, collected=7, added={3: 2})
    opened = browser.new_page()
    opened.goto(write_report(tmp_path / "grown.html", grown).as_uri())
    expect(opened.locator("#rows .added")).to_have_text(["since version 2"])
    expect(opened.locator("#figures")).to_contain_text("Collected")
    expect(opened.locator("#lead")).to_contain_text("7 more utterances fit none of them so far")
    opened.close()


def names(page: Page) -> list[str]:
    return page.locator("#rows .name").all_text_contents()


def place_of(page: Page, row: int) -> tuple[float, float]:
    """Where one utterance lies in the window."""
    page.locator("#map").scroll_into_view_if_needed()
    box = page.locator("#map").bounding_box()
    assert box is not None
    x, y = page.evaluate(f"toScreen(fit(), points.x[{row}], points.y[{row}])")
    return box["x"] + x, box["y"] + y


def test_hostile_text_is_shown_as_text(page: Page) -> None:
    assert "<b>bold</b>" in names(page)
    assert page.locator("h1").text_content() == "Shop <chat> & co"
    page.locator("#rows details summary").first.click()
    assert page.get_by_text("<script>alert(1)</script>").first.is_visible()
    assert page.locator("#rows img, #rows script, #rows b > *, #settings script").count() == 0


def test_new_intents_come_first_and_the_table_sorts(page: Page) -> None:
    assert names(page)[3:] == ["<b>bold</b>", "track_order"]
    page.get_by_role("button", name="Confidence").click()
    head = page.get_by_role("columnheader", name="Confidence")
    expect(head).to_have_attribute("aria-sort", "descending")
    assert names(page)[-1] == "<b>bold</b>"
    page.get_by_role("button", name="Confidence").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    assert names(page)[0] == "<b>bold</b>"


@pytest.mark.parametrize("row", [0, 2, 4, 6])
def test_hover_shows_utterance_intent_and_confidence(
    page: Page, report_data: ReportData, row: int
) -> None:
    page.get_by_label("Search utterances").fill(report_data.texts[row])
    page.mouse.move(*place_of(page, row))
    tip = page.locator("#tip")
    expect(tip.locator("p")).to_have_text(report_data.texts[row])
    expect(tip).to_contain_text(report_data.intents[row % 4].name)
    expect(tip).to_contain_text("confidence")


def test_search_counts_hits_and_lists_them(page: Page) -> None:
    page.get_by_label("Search utterances").fill("REFUND order 1")
    expect(page.locator("#hits")).to_have_text("11 of 69 utterances")
    page.locator("#list-summary").click()
    expect(page.locator("#list-items li")).to_have_count(11)
    page.get_by_label("Search utterances").fill("")
    expect(page.locator("#hits")).to_have_text("")


def test_toggles_hide_a_kind(page: Page) -> None:
    page.get_by_label("Search utterances").fill("refund")
    expect(page.locator("#hits")).to_contain_text("60 of 69")
    page.get_by_label("Known").uncheck()
    expect(page.locator("#hits")).to_contain_text("30 of 69")


def test_choosing_an_intent_highlights_it_and_can_be_cleared(page: Page) -> None:
    page.get_by_role("button", name="gift_card", exact=True).click()
    expect(page.locator("#chosen")).to_contain_text("gift_card")
    assert page.evaluate("matches().count") == 17
    page.get_by_role("button", name="Stop highlighting gift_card").click()
    expect(page.locator("#chosen")).to_be_hidden()
    assert page.evaluate("matches().count") == 69


def test_map_is_usable_by_keyboard(page: Page) -> None:
    page.locator("#map").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tip")).to_be_visible()
    first = page.locator("#tip").text_content()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#tip")).not_to_have_text(first or "")
    expect(page.locator("#spoken")).to_contain_text("confidence")
    page.keyboard.press("Enter")
    expect(page.locator("#chosen")).to_be_visible()
    page.keyboard.press("+")
    assert page.evaluate("view.zoom") > 1
    page.keyboard.press("Escape")
    expect(page.locator("#chosen")).to_be_hidden()


def test_marks_are_drawn_and_pan_with_the_pointer(page: Page) -> None:
    painted = "pen.getImageData(0, 0, canvas.width, canvas.height).data.filter(v => v).length"
    page.wait_for_function(f"{painted} > 1000")
    before = page.evaluate("toScreen(fit(), 0, 0)")
    x, y = place_of(page, 0)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y + 20, steps=4)
    page.mouse.up()
    after = page.evaluate("toScreen(fit(), 0, 0)")
    assert after[0] - before[0] > 30


def test_curves_and_prior_are_drawn(page: Page) -> None:
    assert page.locator("#curves svg path.curve").count() == 2
    assert page.locator("#prior g").count() == 5


def test_page_says_nothing_of_a_prior_that_was_not_estimated(
    browser: Browser, report_data: ReportData, tmp_path: Path
) -> None:
    path = write_report(tmp_path / "sizes.html", replace(report_data, prior=False))
    page = browser.new_page()
    page.goto(path.as_uri())
    expect(page.locator("#prior-heading")).to_have_text("Sizes found")
    assert page.locator("#prior g").count() == 5
    assert page.locator("#prior .tick, #rows u").count() == 0
    assert "prior" not in page.locator("main, body").first.inner_text().lower()
    page.close()


def test_every_control_has_a_name(page: Page) -> None:
    nameless = page.evaluate(
        "[...document.querySelectorAll('button, input, canvas, summary')].filter(e => "
        "!(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length)).length"
    )
    assert nameless == 0


def test_narrow_screens_do_not_scroll_sideways(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_intent_panel_shows_description_borderline_and_nearest_known(
    page: Page, report_data: ReportData
) -> None:
    row = page.locator("#rows tr").filter(has_text="gift_card").first
    expect(row.locator(".description")).to_have_text("</p><script>alert(5)</script>")
    expect(row.locator(".nearest")).to_have_text(
        "Nearest known: <b>bold</b> 0.75, إلغاء_الطلب 0.50"
    )
    row.locator("summary", has_text="3 borderline utterances").click()
    expect(row.locator("details[open] li")).to_have_text(list(report_data.texts[4:7]))
    other = page.locator("#rows tr").filter(has_text="track_order").first
    expect(other.locator(".description")).to_have_count(0)
    page.get_by_role("button", name="gift_card", exact=True).click()
    expect(page.locator("#chosen .description")).to_be_visible()


def test_every_utterance_shown_takes_the_direction_of_its_own_text(
    page: Page, report_data: ReportData
) -> None:
    page.get_by_role("button", name="gift_card", exact=True).click()
    page.locator("#list-summary").click()
    for shown in ("#rows details li", "#list-items li span", "#rows .description", "#rows .name"):
        expect(page.locator(shown)).not_to_have_count(0)
        assert page.locator(f"{shown}:not([dir=auto])").count() == 0
    arabic = page.locator("#rows details li", has_text=report_data.texts[5]).first
    assert arabic.evaluate("e => getComputedStyle(e).direction") == "rtl"
