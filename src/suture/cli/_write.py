"""Where a command's output goes: nothing is seen of it before all of it is there.

A file is written beside its target and then put in its place, so that there is never a part of one; a pipe
or a terminal gets its bytes from a temporary file at the end. `finish` may fail, and then nothing has been
written; `publish` only puts in place.
"""

import os
import shutil
import stat
import sys
import tempfile
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import IO, BinaryIO

from suture.cli._refusal import Refusal
from suture.cli._streams import is_terminal
from suture.cli._visible import ascii_json

__all__ = ["FileOutput", "Output", "StreamOutput", "open_output"]

_IN_MEMORY = 8 * 1024 * 1024
_NEW_FILE = 0o666


class Output(ABC):
    """Something to write bytes to, that shows them only when it is told to."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.name = name
        self._file = file

    def write(self, data: bytes) -> None:
        """Keep `data`."""
        try:
            self._file.write(data)
        except OSError as error:
            raise _unwritable(error, self.name) from None

    @abstractmethod
    def finish(self) -> None:
        """Make sure that all is there; the last step that may fail for want of space."""

    @abstractmethod
    def publish(self) -> None:
        """Let the world see it."""

    @property
    @abstractmethod
    def published(self) -> bool:
        """Whether the world has seen it, until `discard`: also if `publish` was interrupted right behind that."""

    @abstractmethod
    def discard(self) -> None:
        """Leave no trace; after `publish`, do nothing."""


class FileOutput(Output):
    """A file that takes its target's place in one step."""

    def __init__(self, path: str) -> None:
        self._target = os.path.realpath(path)
        try:
            number, self._part = tempfile.mkstemp(
                prefix=".suture-",
                suffix=".part",
                dir=os.path.dirname(self._target),  # noqa: PTH120
            )
        except OSError as error:
            raise _unwritable(error, path) from None
        super().__init__(os.fdopen(number, "wb"), path)

    def finish(self) -> None:
        """Write everything to disk, with the rights that the target has or would have."""
        try:
            self._file.close()
            os.chmod(self._part, _rights(self._target))  # noqa: PTH101
        except OSError as error:
            raise _unwritable(error, self.name) from None

    def publish(self) -> None:
        """Put the file in its place."""
        try:
            os.replace(self._part, self._target)  # noqa: PTH105
        except OSError as error:
            raise _unwritable(error, self.name) from None

    @property
    def published(self) -> bool:
        """Whether the part has gone where the target is: the disk knows, whatever came in between."""
        return not os.path.lexists(self._part)

    def discard(self) -> None:
        """Remove what was written beside the target."""
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            os.unlink(self._part)  # noqa: PTH108


class StreamOutput(Output):
    """A pipe, a terminal or a device, which gets everything at the end."""

    def __init__(self, name: str) -> None:
        super().__init__(tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY), name)  # noqa: SIM115 - closed by `discard`
        self._published = False

    def finish(self) -> None:
        """Go back to the beginning."""
        try:
            self._file.seek(0)
        except OSError as error:
            raise _unwritable(error, self.name) from None

    def publish(self) -> None:
        """Copy everything out."""
        try:
            if self.name:
                with open(self.name, "wb") as device:  # noqa: PTH123 - a path from the command line
                    shutil.copyfileobj(self._file, device)
            else:
                self._copy_to_stdout()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise _unwritable(error, self.name or "standard output") from None
        self._published = True

    @property
    def published(self) -> bool:
        """Whether everything was copied out."""
        return self._published

    def _copy_to_stdout(self) -> None:
        if sys.stdout is None:  # so it is, where a shell closed it
            raise Refusal("is closed", "standard output")
        out: BinaryIO = sys.stdout.buffer
        if is_terminal(sys.stdout):
            out.writelines(ascii_json(line) for line in self._file)
        else:
            shutil.copyfileobj(self._file, out)
        out.flush()

    def discard(self) -> None:
        """Forget everything."""
        self._file.close()


def open_output(path: str | None) -> Output:
    """Return the output for `path`; standard output for none, and for `-`."""
    if path is None or path == "-":
        return StreamOutput("")
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except OSError:
        return FileOutput(path)  # it is not there yet, or cannot be: making it will tell
    except ValueError as error:
        raise Refusal(f"cannot be written: {error}", path) from None
    if stat.S_ISDIR(mode):
        raise Refusal("cannot be written: is a directory", path)
    return FileOutput(path) if stat.S_ISREG(mode) else StreamOutput(path)


def _rights(target: str) -> int:
    """Return the mode of a file that is replaced, and that of any new file where there is none."""
    try:
        return stat.S_IMODE(os.stat(target).st_mode)  # noqa: PTH116
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return _NEW_FILE & ~mask


def _unwritable(error: OSError, name: str) -> Refusal:
    return Refusal(f"cannot be written: {(error.strerror or str(error)).lower()}", name)
