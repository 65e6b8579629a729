"""What `import ronid` offers, and how little it costs."""

import json
import resource
import subprocess
import sys

import pytest

import ronid

LIMIT_S = 0.5


def run(code: str) -> tuple[float, str]:
    """Run Python code in a new process; return the best of five times and the output.

    The time is that of the processor: a wall clock would also time the tests beside this one.
    """
    best, output = float("inf"), ""
    for _ in range(5):
        before = processor_seconds()
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        best, output = min(best, processor_seconds() - before), done.stdout
    return best, output


def processor_seconds() -> float:
    """Time that ended child processes have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_public_names() -> None:
    assert ronid.__all__ == [
        "Corpus",
        "Discovery",
        "Intent",
        "IntentDiscovery",
        "RoNID",
        "Scores",
        "Split",
        "__version__",
        "discover",
        "load_corpus",
        "score",
    ]


@pytest.mark.parametrize("name", ronid.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(ronid, name)
    assert name in dir(ronid)
    if name != "__version__":
        assert callable(value)
        assert value.__doc__


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'ronid' has no attribute 'nothing'"):
        _ = ronid.nothing


HEAVY = ("torch", "numpy", "sklearn", "pyarrow", "transformers", "scipy", "pandas")


def test_import_is_quick_and_light() -> None:
    seconds, output = run(
        f"import ronid, sys, json; print(json.dumps([m for m in {HEAVY} if m in sys.modules]))"
    )
    assert json.loads(output) == []
    assert seconds < LIMIT_S


def test_help_is_quick_and_needs_no_torch() -> None:
    code = (
        "import sys; sys.argv = ['ronid', '--help']\n"
        "from ronid.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        f"print([m for m in {HEAVY} if m in sys.modules])"
    )
    seconds, output = run(code)
    assert "Usage" in output
    assert "torch" not in output.splitlines()[-1]
    assert output.splitlines()[-1] == "[]"
    assert seconds < LIMIT_S
