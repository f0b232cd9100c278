"""Where output is kept: names made of call ids, which anybody may have chosen."""

import re
from collections.abc import Container
from hashlib import sha256

__all__ = ["folded", "free_path", "offload_path", "safe_name"]

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]|^\.+")
_LONGEST = 64


def safe_name(text: str) -> str:
    """Return `text` as one segment of a path: itself where it is safe, else cleaned and followed by a digest.

    >>> safe_name("call_1"), safe_name("../../etc/x"), safe_name("a/b") == safe_name("a_b")
    ('call_1', '__.._etc_x-56da1a2ef2df', False)
    """
    if text and len(text) <= _LONGEST and _UNSAFE.search(text) is None:
        return text
    return f"{_UNSAFE.sub('_', text[:_LONGEST]) or 'call'}-{_digest(text)}"


def offload_path(root: str, phase: str, call_id: str) -> str:
    """Return where the output of a call is kept in one phase, `trunc` or `clear`.

    >>> offload_path("/tmp", "trunc", "12345")
    '/tmp/trunc/12345'
    """
    return f"{root.rstrip('/')}/{phase}/{safe_name(call_id)}"


def free_path(path: str, taken: Container[str]) -> str:
    """Return `path`, or where it is taken the next free one; upper and lower case are the same here.

    >>> free_path("/tmp/clear/a", {"/tmp/clear/b"})
    '/tmp/clear/a'
    >>> free_path("/tmp/clear/A", {"/tmp/clear/a"}).startswith("/tmp/clear/A-")
    True
    """
    found, number = path, 1
    while folded(found) in taken:
        number += 1
        found = f"{path}-{_digest(f'{path}#{number}')}"
    return found


def folded(path: str) -> str:
    """Return what two paths have in common that a file system may take for one.

    >>> folded("/tmp/clear/A") == folded("tmp/clear/a")
    True
    """
    return "/" + path.lstrip("/").casefold()


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
