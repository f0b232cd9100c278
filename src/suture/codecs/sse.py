"""Server-sent events: the bytes of a stream, in whatever pieces, into the JSON objects that they carry."""

from typing import Any

from suture.errors import ModelError
from suture.wires.fields import parse_json

MAX_EVENT = 64 * 1024 * 1024
"""The longest event that is taken, in bytes: an image may come in one."""
_DONE = b"[DONE]"
_MARK = b"\xef\xbb\xbf"
"""What some servers begin a stream with, to say that it is UTF-8."""


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
        self._open = self._held = 0
        """How many bytes the open line has, and the open event: its lines, and one for the end of each."""
        self._begun = self._returned = False

    def feed(self, chunk: bytes) -> list[dict[str, Any]]:
        """Return the events that are whole by now."""
        if self._returned and chunk:  # a line may end in \r\n, and the \n comes late
            self._returned, chunk = False, chunk.removeprefix(b"\n")
        if self._open + self._held + len(chunk) > MAX_EVENT:
            raise ModelError(f"{self._provider} sent an event of more than {MAX_EVENT} bytes", provider=self._provider)
        if b"\n" not in chunk and b"\r" not in chunk:
            self._rest += [chunk] if chunk else []
            self._open += len(chunk)
            return []
        lines = b"".join([*self._rest, chunk]).splitlines(keepends=True)
        self._returned = chunk.endswith(b"\r")
        self._rest = [] if lines[-1].endswith((b"\n", b"\r")) else [lines.pop()]
        self._open = sum(map(len, self._rest))
        return self._take(lines)

    def _take(self, lines: list[bytes]) -> list[dict[str, Any]]:
        if not self._begun:
            self._begun, lines[0] = True, lines[0].removeprefix(_MARK)
        events: list[dict[str, Any]] = []
        for line in lines:
            said = line.rstrip(b"\r\n")
            if said.startswith(b"data:"):
                self._data.append(said[5:].removeprefix(b" "))
                self._held += len(self._data[-1]) + 1
            elif not said and self._data:
                data, self._data, self._held = b"\n".join(self._data), [], 0
                if data.strip() != _DONE:
                    events.append(_read(data, self._provider))
        return events


def _read(data: bytes, provider: str) -> dict[str, Any]:
    event = parse_json(data)
    if event.__class__ is dict:
        return event
    told = data[:80].decode(errors="replace")
    raise ModelError(f"an event that is no JSON object came: {told!r}", provider=provider, retryable=True)
