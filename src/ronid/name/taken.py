"""Names in use: two that differ in the forms or the order of their words only are the same."""

from collections.abc import Iterable

from ronid.name.slug import slug, unique
from ronid.name.words import stem


def name_stems(name: str) -> frozenset[str]:
    """Return what makes two names the same: their words without inflection.

    Args:
        name: A name, or the words of one.
    """
    return frozenset(stem(word) for word in slug(name).split("_") if word)


class Taken:
    """The names that nobody else can have.

    Args:
        names: Those of the beginning.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = {name.lower() for name in names}
        self._stems = {name_stems(name) for name in self._names}

    def has(self, name: str) -> bool:
        """Say whether a name, or the same words in other forms, is in use."""
        return name.lower() in self._names or name_stems(name) in self._stems

    def take(self, name: str) -> str:
        """Return the name, with a number where it is in use, and keep others from it."""
        found = unique(name, self._names)
        if found == name and name_stems(name) in self._stems:
            found = unique(name, self._names | {name.lower()})
        self._names.add(found.lower())
        self._stems.add(name_stems(found))
        return found
