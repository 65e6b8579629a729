"""The `ronid` command: one file per verb, one place that turns errors into one line."""

import os
import sys
import warnings


def main() -> None:
    """Run the command line; bad input ends with one line and exit code 2."""
    # Threads that wait must not burn the core that the slowest one needs: on a busy machine that
    # made training many times as slow. Read when torch is loaded, so it is said before.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        from ronid.cli.app import app
        from ronid.cli.console import error, show_warning
        from ronid.cli.interrupt import UNCHANGED, StoppedError, on_interrupt
        from ronid.errors import RonidError
    except KeyboardInterrupt:
        print("ronid: interrupted before anything was done", file=sys.stderr)
        sys.exit(130)

    warnings.showwarning = show_warning
    try:
        with on_interrupt(UNCHANGED):
            code = app(prog_name="ronid", standalone_mode=False)
            if code == StoppedError.exit_code:  # the parser has swallowed an interrupt
                raise KeyboardInterrupt
    except RonidError as problem:
        error(str(problem))
        sys.exit(problem.exit_code)
    except BrokenPipeError:
        # The reader of our output, such as `head`, has gone; there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as problem:
        code = _click_exit(problem)
        if code is not None:
            sys.exit(code)
        if isinstance(problem, OSError) and problem.filename is not None:
            # A full disk or a missing permission: the machine's matter, not a fault of ours.
            error(f"'{problem.filename}' cannot be read or written: {problem.strerror}")
            sys.exit(1)
        if os.environ.get("RONID_DEBUG"):
            raise
        text = str(problem).strip().splitlines()
        error(
            f"unexpected {type(problem).__name__}: {text[0] if text else 'no message'}; "
            "set RONID_DEBUG=1 to see where, and please report it"
        )
        sys.exit(1)
    # Outside its own mode the parser returns the code of `typer.Exit` instead of exiting with it.
    sys.exit(code if isinstance(code, int) else 0)


def _click_exit(problem: Exception) -> int | None:
    """Return the exit code of an error of the option parser, after showing it."""
    if problem.__class__.__name__ in {"Exit", "Abort"}:
        return int(getattr(problem, "exit_code", 1))
    if hasattr(problem, "format_message") and hasattr(problem, "exit_code"):
        from ronid.cli.console import error

        context = getattr(problem, "ctx", None)
        where = f" (see: {context.command_path} --help)" if context is not None else ""
        message = problem.format_message()
        if message:  # empty when the help was shown because nothing was asked
            error(f"{message}{where}")
        return int(problem.exit_code)
    return None
