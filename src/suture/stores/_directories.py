"""Making directories that belong to the user alone."""

import stat
from contextlib import suppress
from pathlib import Path

__all__ = ["make_directory"]


def make_directory(path: Path) -> list[Path]:
    """Make a directory and those above it, as far as they are missing; return those that were, the outermost first.

    >>> make_directory(Path("/"))
    []
    """
    if path.is_dir():
        return []
    missing = [*make_directory(path.parent), path]
    with suppress(FileExistsError):
        path.mkdir(0o700)
        if stat.S_IMODE(path.lstat().st_mode) != 0o700:  # a umask that takes from the user as well
            path.chmod(0o700)
    return missing
