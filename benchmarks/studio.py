"""Measure the studio in a real browser, on a made run of any size, and store what was found.

    python benchmarks/studio.py --rows 100000 --intents 500 --out benchmarks/results/studio.jsonl
    python benchmarks/studio.py --run RUN --shots docs/images

With `--shots` it only makes screenshots of every page, of a copy of a run. The machine should do
nothing else meanwhile. Chromium draws by software here: on a graphics card the map is quicker.
"""

import argparse
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

from ronid.data.corpus import corpus_from
from ronid.export.card import write_card
from ronid.files import write_json
from ronid.intents_file import write_intents
from ronid.presets import preset
from ronid.run import Job, RunFolder
from ronid.types import Discovery, Intent

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-unsafe-swiftshader",
]
PACKAGES = ("nicegui", "fastapi", "uvicorn", "numpy", "torch")
ACTIONS = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--intents", type=int, default=500)
    parser.add_argument("--run", type=Path, help="a run to take instead; a copy is used")
    parser.add_argument("--shots", type=Path, help="folder for screenshots")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/studio.jsonl"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        if options.run:
            shutil.copytree(options.run, path, ignore=shutil.ignore_patterns("review.sqlite*"))
        else:
            make_run(path, options.rows, options.intents)
        with serving(path) as (url, process), browsing() as browser:
            if options.shots:
                take_shots(browser, url, options.shots)
                return
            row = measure(browser, url, process.pid)
    row = {"format_version": 1, "rows": options.rows, "intents": options.intents} | row
    row |= {"device": f"{platform.machine()}, {os.cpu_count()} cores, software rendering"}
    row |= {"versions": {name: version(name) for name in PACKAGES}}
    with options.out.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    print(json.dumps(row, indent=2))


def make_run(path: Path, rows: int, intents: int, dim: int = 384) -> None:
    """Write a finished run of random utterances whose vectors lie around their intents."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, intents, rows)
    prototypes = rng.normal(size=(intents, dim)).astype(np.float32)
    prototypes /= np.linalg.norm(prototypes, axis=1, keepdims=True)
    vectors = prototypes[labels] + rng.normal(size=(rows, dim)).astype(np.float32) / dim**0.5
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    words = np.array([f"word{number}" for number in range(5_000)])
    texts = [
        f"about {words[label]} {' '.join(some)}"
        for label, some in zip(labels, words[rng.integers(0, 5_000, (rows, 8))], strict=True)
    ]
    known = intents // 2
    names = [f"intent {words[k]}" for k in range(intents)]
    given = [names[k] if k < known and rng.random() < 0.1 else None for k in labels]
    sizes = np.bincount(labels, minlength=intents)
    found = tuple(
        Intent(k, names[k], k < known, int(sizes[k]), sizes[k] / rows, 1 / intents, 0.5)
        for k in range(intents)
    )
    discovery = Discovery(
        labels=labels,
        confidence=rng.random(rows).astype(np.float32),
        embeddings=vectors.astype(np.float32),
        prototypes=prototypes,
        prior=np.full(intents, 1 / intents),
        temperature=0.1,
        known=tuple(names[:known]),
    )
    corpus = corpus_from(texts, given)
    job = Job(corpus, None, intents, preset("fast"), 0, "cpu")
    run = RunFolder.create(path, job, "made.csv")
    places = rng.normal(size=(intents, 2))[labels] * 3 + rng.normal(size=(rows, 2)) * 0.2
    write_json(path / "model.json", {"format_version": 1, "rule": "cosine"})
    write_intents(path, found)
    run.write_results(corpus, discovery, found, places.astype(np.float32))
    run.write_metrics(corpus, discovery, {})
    write_card(run)
    run.finish()


@contextmanager
def serving(path: Path) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """Serve a run; gives its address and process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "ronid", "review", str(path), "--port", str(port)]
    process = subprocess.Popen([*command, "--no-browser", "--quiet"])
    url = f"http://localhost:{port}"
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{url}/enter", timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        yield url, process
    finally:
        process.terminate()
        process.wait()


@contextmanager
def browsing() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=ARGUMENTS
        )
        yield browser
        browser.close()


def come_in(browser: Browser, url: str, name: str, **settings: Any) -> Page:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, **settings)
    page = context.new_page()
    page.goto(f"{url}/enter?next=/")
    page.get_by_label("Your name").fill(name)
    page.get_by_role("button", name="Come in").click()
    page.locator(".intents tbody tr").first.wait_for()
    return page


def measure(browser: Browser, url: str, pid: int) -> dict[str, Any]:
    """Return times as a person sees them, in seconds, and the memory of the server."""
    page = come_in(browser, url, "reviewer")
    first = max(_cold_view(browser, url) for _ in range(3))
    again = max(_goto(page, url, ".intents tbody tr") for _ in range(3))
    keys = [_key(page, "l") for _ in range(ACTIONS)]
    page.get_by_label("Search all utterances").fill("word17 word4")
    search = _timed(page, lambda: page.keyboard.press("Enter"), ".rows .list li")
    intent = _goto(page, f"{url}/intent/i7", ".rows .list li")
    split = _timed(page, lambda: page.keyboard.press("s"), ".parts section")
    page.keyboard.press("Escape")
    drawn = _goto(page, f"{url}/map", ".plane canvas")
    page.wait_for_timeout(2_000)
    zooms = [_zoom(page) for _ in range(8)]
    other = come_in(browser, url, "colleague")
    seen = _seen_by(page, other, url)
    return {
        "first_view_s": round(first, 3),
        "view_again_s": round(again, 3),
        "action_p50_s": round(float(np.quantile(keys, 0.5)), 3),
        "action_p95_s": round(float(np.quantile(keys, 0.95)), 3),
        "search_s": round(search, 3),
        "intent_page_s": round(intent, 3),
        "split_s": round(split, 3),
        "map_s": round(drawn, 3),
        "map_redraw_p50_s": round(float(np.quantile(zooms, 0.5)), 3),
        "others_see_s": round(seen, 3),
        "server_mib": round(_memory_mib(pid)),
    }


def _cold_view(browser: Browser, url: str) -> float:
    """Return how long the first view takes in a browser that has seen nothing of it before."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.goto(f"{url}/enter?next=/")
    page.get_by_label("Your name").fill("Cold")
    taken = _timed(page, lambda: page.keyboard.press("Enter"), ".intents tbody tr")
    page.context.close()
    return taken


def _goto(page: Page, url: str, selector: str) -> float:
    started = time.perf_counter()
    page.goto(url, wait_until="commit")
    page.locator(selector).first.wait_for()
    return time.perf_counter() - started


def _timed(page: Page, work: Any, selector: str) -> float:
    started = time.perf_counter()
    work()
    page.locator(selector).first.wait_for()
    return time.perf_counter() - started


def _key(page: Page, key: str) -> float:
    """Return how long it takes from a key to the page that shows what it did."""
    taken = page.evaluate(
        """(key) => new Promise((done) => {
            const row = document.querySelector("tr.at td.name");
            const before = row.textContent, started = performance.now();
            const look = () => document.querySelector("tr.at td.name").textContent !== before
                ? done(performance.now() - started) : requestAnimationFrame(look);
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
            requestAnimationFrame(look);
        })""",
        key,
    )
    page.wait_for_timeout(50)
    return float(taken) / 1000


def _zoom(page: Page) -> float:
    """Return how long the page is busy when the wheel is turned over the map."""
    page.mouse.move(500, 500)
    started = time.perf_counter()
    page.mouse.wheel(0, -240)
    page.wait_for_timeout(120)  # a redraw waits for the wheel to rest
    page.evaluate("() => new Promise((d) => requestAnimationFrame(() => requestAnimationFrame(d)))")
    return time.perf_counter() - started


def _seen_by(page: Page, other: Page, url: str) -> float:
    """Return how long it takes until another person sees an action."""
    page.goto(f"{url}/intent/i3")
    other.goto(f"{url}/intent/i3")
    for each in (page, other):
        each.locator(".rows .list li").first.wait_for()
    return _timed(other, lambda: page.keyboard.press("a"), ".head .state.accepted")


def _memory_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def take_shots(browser: Browser, url: str, folder: Path) -> None:
    """Write a picture of every page, in light and dark colours."""
    folder.mkdir(parents=True, exist_ok=True)
    for scheme in ("light", "dark"):
        page = come_in(browser, url, "reviewer", color_scheme=scheme)
        page.locator(".suggestion").first.wait_for(timeout=120_000)
        if scheme == "light":
            _work(page)
        pages = {"overview": "/", "intent": "/intent/i20", "map": "/map", "history": "/history"}
        for name, path in pages.items():
            _shoot(page, url + path, folder / f"studio-{name}-{scheme}.png")
        page.goto(url)
        page.locator(".intents tbody tr").first.wait_for()
        page.keyboard.press("s")
        page.locator(".parts section").first.wait_for()
        page.wait_for_timeout(500)
        page.screenshot(path=folder / f"studio-split-{scheme}.png")
        page.keyboard.press("Escape")
        if scheme == "light":
            _decide(page)
            _shoot(page, f"{url}/learn", folder / f"studio-before-learning-{scheme}.png")
            _teach(page, folder / f"studio-learning-{scheme}.png")
        for name in ("learn", "export"):
            _shoot(page, f"{url}/{name}", folder / f"studio-{name}-{scheme}.png")


def _shoot(page: Page, url: str, path: Path) -> None:
    page.goto(url)
    page.locator(".page, .plane canvas").first.wait_for()
    page.wait_for_timeout(2_500)
    page.screenshot(path=path)


def _decide(page: Page) -> None:
    """Decide a little more, so that there is something to learn."""
    page.keyboard.press("1")
    page.get_by_role("link", name="student", exact=True).click()
    page.get_by_role("option").first.wait_for()
    for key in ("e", "a", "j", "j", "o"):
        page.keyboard.press(key)
        if key == "e":
            page.get_by_label("Name", exact=True).fill("student discount?")
            page.keyboard.press("Enter")
        page.wait_for_timeout(700)
    page.keyboard.press("1")
    page.get_by_role("button", name="See the parts").first.click()
    page.get_by_role("button", name="Split into").click()
    page.wait_for_timeout(1_000)


def _teach(page: Page, path: Path) -> None:
    """Train on, with a picture on the way."""
    page.get_by_role("button", name="Train on").click()
    page.locator('[role="progressbar"]:not([aria-valuenow="0"])').wait_for(timeout=300_000)
    page.screenshot(path=path)
    page.get_by_role("heading", name="Before and after").wait_for(timeout=300_000)
    page.wait_for_timeout(6_000)  # until the messages are gone


def _work(page: Page) -> None:
    """Do a little of everything, so that there is something to see."""
    for key in ("a", "j", "a", "j", "a", "l", "j", "r"):
        page.keyboard.press(key)
        page.wait_for_timeout(700)
    page.keyboard.press("z")
    page.wait_for_timeout(1_000)


if __name__ == "__main__":
    main()
