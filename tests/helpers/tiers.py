"""Tiers of tests: `pytest --tier NAME` runs one tier, counts it and shows its time.

Every test belongs to exactly one tier: that of its marker, or `fast` if it has none of them.
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest

TIERS = {
    "fast": "units and short flows; everything that guards against data loss",
    "slow": "every method and every format, whole fits on real sentences",
    "browser": "pages in a real Chromium",
    "service": "servers in processes of their own, and PostgreSQL",
    "claims": "figures in the documentation against the stored benchmark rows",
}
"""Name of each tier, and what it holds."""

BUDGET_S = {"fast": 480}
"""Seconds that a tier may take on two cores, with the linters before it, installation excluded."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tiers")
    group.addoption(
        "--tier", choices=TIERS, help="Run one tier only; fail if no test of it passes."
    )
    group.addoption(
        "--started",
        type=float,
        default=time.time(),
        help="Unix time from which to count the seconds of the tier. Default: now.",
    )


def pytest_configure(config: pytest.Config) -> None:
    for name, content in TIERS.items():
        if name != "fast":
            config.addinivalue_line("markers", f"{name}: {content}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("tier")
    chosen: list[pytest.Item] = []
    dropped: list[pytest.Item] = []
    for item in items:
        (chosen if wanted in (None, tier_of(item)) else dropped).append(item)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = chosen


def tier_of(item: pytest.Item) -> str:
    """Return the tier that a test belongs to."""
    marked = sorted({mark.name for mark in item.iter_markers() if mark.name in TIERS})
    if len(marked) > 1:
        raise pytest.UsageError(f"{item.nodeid} is in several tiers: {', '.join(marked)}")
    return marked[0] if marked else "fast"


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    yield
    config: Any = session.config
    if config.getoption("tier") and not hasattr(config, "workerinput") and not _count(config):
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    tier = config.getoption("tier")
    if tier:
        terminalreporter.write_line(
            summary(tier, _count(config), time.time() - config.getoption("started"))
        )


def _count(config: Any) -> int:
    """Return how many tests passed."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return len(reporter.stats.get("passed", ()))


def summary(tier: str, passed: int, seconds: float) -> str:
    """Return the line that tells how many tests passed and how long they took.

    >>> summary("fast", 2310, 401.2)
    'fast tier: 2,310 tests passed in 6 min 41 s, within its budget of 8 min 0 s'
    """
    line = f"{tier} tier: {passed:,} tests passed in {_minutes(seconds)}"
    if tier in BUDGET_S:
        place = "within" if seconds <= BUDGET_S[tier] else "OVER"
        line += f", {place} its budget of {_minutes(BUDGET_S[tier])}"
    return line if passed else f"{line}: a tier without a passed test counts as failed"


def _minutes(seconds: float) -> str:
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
