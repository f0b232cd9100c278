"""Where an MCP server is, what it and its tools are called, and what goes wrong with it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, TextIO, cast
from urllib.parse import urlsplit

from msgspec import Struct

from suture.errors import ConfigError, SutureError


class MCPServerError(SutureError, ConnectionError):
    """An MCP server could not be reached, went away, or answered with what cannot be used; says which, and why.

    Raised where a server is entered. In a tool call it is told to the model, like every exception of a tool.

    >>> from suture.integrations.mcp import MCPServerError
    >>> issubclass(MCPServerError, ConnectionError)
    True
    """


LONGEST = 64
"""How many characters the name of a tool may have."""

_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")
_MARK = 6
"""How many characters tell two names apart that would be alike."""


def safe_names(names: Iterable[str], prefix: str = "") -> dict[str, str]:
    """Return a name of its own for each of `names`: as it is where that will do, else as near as can be.

    What others are called decides, never the order, so that a name stays the same from one run to the next.

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


_SHORTEST = 8
"""How many characters a secret has: what is shorter is a setting."""


class Stdio(Struct, frozen=True, kw_only=True):
    """A server that is started as a child process, and spoken to over its stdin and stdout.

    >>> Stdio(command="/usr/bin/npx", args=("-y", "server-files", "--token=x")).label
    'npx server-files'
    """

    command: str
    args: Sequence[str] = ()
    env: Mapping[str, str] | None = None
    cwd: str | Path | None = None
    stderr: TextIO | None = None

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.command), str) or not self.command:
            raise ConfigError(f"command is the program that is the server; got {self.command!r}")
        if isinstance(self.args, str) or not all(isinstance(cast("object", each), str) for each in self.args):
            raise ConfigError(f"args is a list of texts, one for each argument; got {self.args!r}")
        if self.env is not None:
            _check_texts("env", self.env)

    @property
    def label(self) -> str:
        """The program and what it is to run. No more of it: the rest may be secret, and a model may be told this."""
        first = next((each for each in self.args if not each.startswith("-")), "")
        return f"{Path(self.command).name} {Path(first).name}".strip()

    @property
    def secrets(self) -> Sequence[str]:
        """What no error may hold."""
        return ()


class Http(Struct, frozen=True, kw_only=True):
    """A server that is reached over streamable HTTP.

    >>> Http(url="https://me:secret@example.com/mcp?key=x").label
    'https://example.com/mcp'
    """

    url: str
    headers: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.url), str) or urlsplit(self.url).scheme not in {"http", "https"}:
            raise ConfigError(f"url is where the server is, as http://127.0.0.1:8000/mcp; got {self.url!r}")
        if self.headers is not None:
            _check_texts("headers", self.headers)

    @property
    def label(self) -> str:
        """The address, without what may be secret in it."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    @property
    def secrets(self) -> Sequence[str]:
        """What no error may hold, the longest first: what headers say, and the key in one that also says its kind.

        >>> Http(url="http://127.0.0.1/mcp", headers={"Authorization": "Bearer 0123456789"}).secrets
        ['Bearer 0123456789', '0123456789']
        """
        said = [value.strip() for value in (self.headers or {}).values()]
        held = {*said, *[value.rpartition(" ")[2] for value in said]}
        return sorted([value for value in held if len(value) >= _SHORTEST], key=len, reverse=True)


Target = Stdio | Http


def _check_texts(what: str, given: object) -> None:
    found = cast("Mapping[Any, Any]", given)
    if not isinstance(given, Mapping) or not all(isinstance(each, str) for pair in found.items() for each in pair):
        raise ConfigError(f"{what} maps names to texts")
