"""Server-sent events: the bytes of a stream, in whatever pieces, into the JSON objects that they carry."""

from collections.abc import Mapping
from typing import Any

import msgspec

from suture.errors import ModelError

__all__ = ["MAX_EVENT", "ServerSentEvents", "write_event"]

MAX_EVENT = 64 * 1024 * 1024
"""The longest event that is taken, in bytes: an image may come in one."""
_DONE = b"[DONE]"
_decode = msgspec.json.Decoder().decode


class ServerSentEvents:
    r"""Collects lines until an event is whole. Comments, and fields other than `data`, are passed over.

    >>> events = ServerSentEvents("openai-chat")
    >>> events.feed(b': ping\n\ndata: {"a"'), events.feed(b': 1}\r\n\r\n')
    ([], [{'a': 1}])
    >>> events.feed(b'data: [DONE]\n\n')
    []
    """

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._rest: list[bytes] = []
        self._data: list[bytes] = []
        self._held = 0

    def feed(self, chunk: bytes) -> list[dict[str, Any]]:
        """Return the events that are whole by now."""
        self._held += len(chunk)
        if self._held > MAX_EVENT:
            raise ModelError(f"{self._provider} sent an event of more than {MAX_EVENT} bytes", provider=self._provider)
        if b"\n" not in chunk and b"\r" not in chunk:
            self._rest.append(chunk)
            return []
        text = b"".join([*self._rest, chunk])
        # A line may end in \r\n, and the \n may be still to come.
        ends_open = text.endswith(b"\r")
        lines = text.splitlines(keepends=True)
        whole = lines[-1].endswith((b"\n", b"\r")) and not ends_open
        self._rest = [] if whole else [lines.pop()]
        return self._take(lines)

    def _take(self, lines: list[bytes]) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = []
        for line in lines:
            said = line.rstrip(b"\r\n")
            if said.startswith(b"data:"):
                self._data.append(said[5:].removeprefix(b" "))
            elif not said and self._data:
                data, self._data = b"\n".join(self._data), []
                if data.strip() != _DONE:
                    events.append(_read(data, self._provider))
        self._held = sum(map(len, self._rest)) + sum(map(len, self._data))
        return events


def write_event(event: Mapping[str, Any]) -> bytes:
    r"""Return one event as bytes; its `type`, where it has one, is its name.

    >>> write_event({"type": "ping"})
    b'event: ping\ndata: {"type":"ping"}\n\n'
    """
    kind = event.get("type")
    name = b"event: %s\n" % kind.encode() if isinstance(kind, str) else b""
    return b"%sdata: %s\n\n" % (name, msgspec.json.encode(event))


def _read(data: bytes, provider: str) -> dict[str, Any]:
    try:
        event: Any = _decode(data)
        if event.__class__ is dict:
            return event
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    told = data[:80].decode(errors="replace")
    raise ModelError(f"an event that is no JSON object came: {told!r}", provider=provider, retryable=True)
