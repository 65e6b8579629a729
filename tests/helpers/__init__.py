"""What tests share: corpora, encoders, run folders, servers and commands."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The root of the checkout."""
