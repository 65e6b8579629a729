"""Utterances to vectors: a frozen part that runs once, and a part that is trained."""
