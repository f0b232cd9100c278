"""Names for the tools of a server that every provider accepts."""

import re
from collections.abc import Iterable
from hashlib import blake2b

__all__ = ["LONGEST", "safe_names"]

LONGEST = 64
"""How many characters the name of a tool may have."""

_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")
_MARK = 6
"""How many characters tell two names apart that would be alike."""


def safe_names(names: Iterable[str], prefix: str = "") -> dict[str, str]:
    """Return a name of its own for each of `names`: as it is where that will do, else as near as can be.

    What others are called decides, never the order, so that a name stays the same from one run to the next.

    >>> from suture.integrations._mcp_names import safe_names
    >>> safe_names(["search", "files.read"], "web_")
    {'search': 'web_search', 'files.read': 'web_files_read'}
    >>> safe_names(["read_file", "read.file"])
    {'read_file': 'read_file', 'read.file': 'read_file_6e8969'}
    """
    given = list(dict.fromkeys(names))
    wanted = {name: _REFUSED.sub("_", prefix + name) for name in given}
    sound = {name for name in given if wanted[name] == prefix + name and 0 < len(wanted[name]) <= LONGEST}
    counts: dict[str, int] = {}
    for name in given:
        counts[wanted[name]] = counts.get(wanted[name], 0) + (name not in sound)
    taken = {wanted[name] for name in sound}
    made: dict[str, str] = {}
    for name in given:
        near = wanted[name]
        if name not in sound:
            if counts[near] > 1 or near in taken or not 0 < len(near) <= LONGEST:
                near = _marked(near, name, taken)
            taken.add(near)
        made[name] = near
    return made


def _marked(near: str, name: str, taken: set[str]) -> str:
    """Return `near` with a mark that is made from `name`; a longer mark where even that is taken."""
    digest = blake2b(name.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    for length in range(_MARK, len(digest)):
        found = f"{near[: LONGEST - length - 1]}_{digest[:length]}"
        if found not in taken:
            return found
    raise AssertionError  # pragma: no cover - as many names cannot be had
