"""Numbers with their nouns."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural where there is not one."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
