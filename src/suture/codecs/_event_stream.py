"""Amazon's binary event stream: frames with headers and two checksums, into the events that they carry."""

import struct
from collections.abc import Mapping
from typing import Any
from zlib import crc32

import msgspec

from suture.errors import ModelError

__all__ = ["EventStream", "write_frame"]

MAX_FRAME = 25 * 1024 * 1024
"""The longest frame that is taken: botocore allows 24 MB of payload, and its headers."""
_PROVIDER = "bedrock"
_PRELUDE = struct.Struct(">III")
_NUMBER = struct.Struct(">I")
_LENGTH = struct.Struct(">H")
_TEXT = 7
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""The types of header values that have a fixed size; those of 6 and 7 carry their length."""
_decode = msgspec.json.Decoder().decode


class EventStream:
    """Collects bytes until a frame is whole. An event is `{its type: its payload}`.

    >>> frame = write_frame({"messageStart": {"role": "assistant"}})
    >>> stream = EventStream()
    >>> stream.feed(frame[:20]), stream.feed(frame[20:])
    ([], [{'messageStart': {'role': 'assistant'}}])
    """

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, chunk: bytes) -> list[dict[str, Any]]:
        """Return the events that are whole by now."""
        held = self._held
        held += chunk
        events: list[dict[str, Any]] = []
        while len(held) >= _PRELUDE.size:
            length, headers, checksum = _PRELUDE.unpack_from(held)
            if crc32(held[:8]) != checksum or not _PRELUDE.size + 4 + headers <= length <= MAX_FRAME:
                raise _nonsense("a frame whose length is wrong")
            if len(held) < length:
                break
            frame = bytes(held[:length])
            del held[:length]
            events.append(_event(frame, headers))
        return events


def write_frame(event: Mapping[str, Any]) -> bytes:
    r"""Return one event as a frame.

    >>> write_frame({"messageStop": {"stopReason": "end_turn"}})[14:25]
    b'event-type\x07'
    """
    [(kind, payload)] = event.items()
    failed = kind.endswith("Exception")
    named = {
        ":exception-type" if failed else ":event-type": kind,
        ":content-type": "application/json",
        ":message-type": "exception" if failed else "event",
    }
    headers = b"".join([_header(name, value) for name, value in named.items()])
    body = msgspec.json.encode(payload)
    length = _PRELUDE.size + len(headers) + len(body) + 4
    prelude = length.to_bytes(4, "big") + len(headers).to_bytes(4, "big")
    frame = prelude + _NUMBER.pack(crc32(prelude)) + headers + body
    return frame + _NUMBER.pack(crc32(frame))


def _header(name: str, value: str) -> bytes:
    said = value.encode()
    return bytes([len(name)]) + name.encode() + bytes([_TEXT]) + _LENGTH.pack(len(said)) + said


def _event(frame: bytes, headers: int) -> dict[str, Any]:
    if crc32(frame[:-4]) != _NUMBER.unpack_from(frame, len(frame) - 4)[0]:
        raise _nonsense("a frame whose checksum is wrong")
    start = _PRELUDE.size
    named = _headers(frame[start : start + headers])
    kind = named.get(":event-type") or named.get(":exception-type") or named.get(":error-code", "")
    body = frame[start + headers : -4]
    try:
        payload: Any = _decode(body) if body else {}
    except (msgspec.DecodeError, RecursionError):
        raise _nonsense("a frame that holds no JSON") from None
    if named.get(":message-type") == "error":
        payload = {"message": named.get(":error-message", "")}
    return {kind: payload}


def _headers(block: bytes) -> dict[str, str]:
    """Return the headers that are texts."""
    found: dict[str, str] = {}
    place = 0
    try:
        while place < len(block):
            size = block[place]
            name = block[place + 1 : place + 1 + size].decode()
            kind = block[place + 1 + size]
            place += size + 2
            length = _SIZES.get(kind)
            if length is None:
                length = _LENGTH.unpack_from(block, place)[0]
                place += _LENGTH.size
            if kind == _TEXT:
                found[name] = block[place : place + length].decode()
            place += length
    except (IndexError, struct.error, ValueError):
        raise _nonsense("a frame whose headers make no sense") from None
    return found


def _nonsense(what: str) -> ModelError:
    return ModelError(f"the stream holds {what}", provider=_PROVIDER, retryable=True)
