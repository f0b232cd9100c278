"""Where an MCP server is, and what it is called in texts. Values, checked when they are made."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO, cast
from urllib.parse import urlsplit

from msgspec import Struct

from suture.errors import ConfigError

__all__ = ["Http", "Stdio", "Target"]

_SHORTEST = 8
"""How many characters a secret has: what is shorter is a setting."""


class Stdio(Struct, frozen=True, kw_only=True):
    """A server that is started as a child process, and spoken to over its stdin and stdout.

    >>> from suture.integrations._mcp_targets import Stdio
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

    >>> from suture.integrations._mcp_targets import Http
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
