"""From anything that holds utterances to a `Corpus`, and from a `Corpus` to a `Split`."""

from ronid.data.corpus import corpus_from, format_report
from ronid.data.readers import load
from ronid.data.splits import benchmark_cell, benchmark_problem, split_corpus

__all__ = [
    "benchmark_cell",
    "benchmark_problem",
    "corpus_from",
    "format_report",
    "load",
    "split_corpus",
]
