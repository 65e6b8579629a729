"""Benchmarks, which are scripts, as modules whose functions tests can call."""

import importlib.util
import sys
from types import ModuleType

from tests.helpers import ROOT

BENCHMARKS = ROOT / "benchmarks"


def load_benchmark(name: str) -> ModuleType:
    """Return a benchmark, loaded beside those that it borrows from.

    Args:
        name: Its file without the ending.
    """
    called = f"{name}_benchmark"
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location(called, BENCHMARKS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[called] = module  # dataclasses look their module up
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(BENCHMARKS))
