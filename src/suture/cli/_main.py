"""The entry: which command, and what becomes of its errors. Every error is one line, never a traceback."""

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from typing import Any, NoReturn, TextIO

from suture.cli._arguments import parse
from suture.cli._refusal import Refusal
from suture.cli._streams import complain
from suture.cli._visible import visible

__all__ = ["main"]

_UNREADABLE = 2
_INTERRUPTED = 128 + signal.SIGINT
_TERMINATED = 128 + signal.SIGTERM
_NOBODY_READS = 141
_LONGEST_LINE = 500


def main(argv: Sequence[str] | None = None) -> int:
    """Run `suture` with these arguments (the program's own, if not given) and return its exit status.

    >>> main(["check", "--wire", "nonsense", "-"])
    2
    """
    if argv is None:
        _prepare()
    try:
        return _run(argv)
    except Refusal as refusal:
        return _fail(str(refusal))
    except BrokenPipeError:
        _let_go(sys.stdout)
        return _NOBODY_READS
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last resort: a user never gets a traceback
        told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return _fail(f"internal error: {told}; please report")


def _prepare() -> None:
    """Set up what belongs to the whole process, which is ours."""
    signal.signal(signal.SIGTERM, _terminate)  # so that it cleans up after itself, as after Ctrl-C
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _run(argv: Sequence[str] | None) -> int:
    try:
        status = _command(argv)
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else 0
    if sys.stdout is not None:  # it is none where a shell closed it
        sys.stdout.flush()
    return status


def _command(argv: Sequence[str] | None) -> int:
    asked = parse(argv)
    if asked.command == "check":
        from suture.cli.check import run
    elif asked.command == "repair":
        from suture.cli.repair import run
    elif asked.command == "convert":
        from suture.cli.convert import run
    elif asked.command == "chat":
        from suture.cli.chat import run
    else:
        from suture.cli.reduce import run
    return run(asked)


def _fail(line: str) -> int:
    """Say what is wrong, on one line."""
    shown = visible(line)
    if len(shown) > _LONGEST_LINE:
        shown = shown[:_LONGEST_LINE] + "…"
    try:
        complain(f"suture: {shown}")
    except OSError:
        _let_go(sys.stderr)  # nobody listens there
    try:
        sys.stdout.flush()
    except (OSError, AttributeError):
        _let_go(sys.stdout)  # it was standard output that could not be written
    return _UNREADABLE


def _let_go(stream: TextIO) -> None:
    """Keep the interpreter from complaining, when it ends, about what it could not write to `stream`."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _terminate(*_: Any) -> NoReturn:
    sys.exit(_TERMINATED)
