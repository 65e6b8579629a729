"""Judging a run without truth: is it stable, is it clear, and which intents look wrong?"""

from ronid.judge.evidence import Evidence, read_evidence
from ronid.judge.findings import Finding, list_findings
from ronid.judge.judgement import JudgedIntent, Judgement, Parts, judge

__all__ = [
    "Evidence",
    "Finding",
    "JudgedIntent",
    "Judgement",
    "Parts",
    "judge",
    "list_findings",
    "read_evidence",
]
