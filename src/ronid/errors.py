"""What can go wrong, said in one line: what is wrong, where, and what to do next."""


class RonidError(Exception):
    """Base of every error a user can cause or meet; the command line prints it as one line."""

    exit_code = 1


class UsageError(RonidError):
    """The user asked for something that cannot be done; exit code 2."""

    exit_code = 2


class DataError(UsageError):
    """A file or frame of utterances cannot be read as asked."""


class ConfigError(UsageError):
    """A configuration has an unknown key or an impossible value."""


class MissingExtraError(UsageError):
    """An optional package is not installed.

    Args:
        package: The package that could not be imported.
        extra: The extra of ronid that brings it.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f'{package} is not installed; run: pip install "ronid[{extra}]"')


class RonidWarning(UserWarning):
    """Something was dropped, cut, or did not converge; the message carries counts."""
