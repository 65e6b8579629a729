"""The report of a run made by the command, opened in a real browser."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import cli_corpus

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
from playwright.sync_api import Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine"),
]


@pytest.fixture
def page(fitted: Path) -> Iterator[Page]:
    """Open the report; a console message, an error or a further request fails the test."""
    address = (fitted / "report.html").as_uri()
    trouble: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1200, "height": 900})
        opened.on("console", lambda message: trouble.append(message.text))
        opened.on("pageerror", lambda error: trouble.append(str(error)))
        opened.on("request", lambda request: trouble.append(request.url))
        opened.goto(address)
        yield opened
        browser.close()
    assert trouble == [address]


def test_report_of_a_run_shows_map_intents_and_scores(page: Page, fitted: Path) -> None:
    intents = json.loads((fitted / "intents.json").read_text())["intents"]
    expect(page.locator("h1")).to_have_text("Intents found in calls.csv")
    expect(page.locator("#rows tr")).to_have_count(cli_corpus.N_INTENTS)
    names = page.locator("#rows .name").all_text_contents()
    assert sorted(names) == sorted(intent["name"] for intent in intents)
    painted = "pen.getImageData(0, 0, canvas.width, canvas.height).data.filter(v => v).length"
    page.wait_for_function(f"{painted} > 1000")
    assert page.evaluate("points.x.length") == len(cli_corpus.rows())
    scores = json.loads((fitted / "metrics.json").read_text())["scores"]
    expect(page.locator("body")).to_contain_text(f"{scores['acc']:.1f}")
