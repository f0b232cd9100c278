"""What comes in pieces in a stream of Chat Completions, and is put together at its end."""

from binascii import Error, a2b_base64, b2a_base64
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from suture.messages import Delta
from suture.providers.openai_chat.errors import nonsense
from suture.providers.openai_chat.parts import is_list, is_map, only_texts, others

__all__ = ["Content", "Details", "Sound", "absorb", "list_in", "map_in", "text_in"]

_JOINED = ("text", "summary", "data")
_WORDED = ("text", "refusal")


# What is there, of the type that it must have


def list_in(value: Any, name: str) -> Sequence[Any]:
    """Return a list, empty where there is none; raise `ModelError` where it is something else."""
    if value is None or is_list(value):
        return value or ()
    raise nonsense(f"{name} of the type {type(value).__name__} came in a stream")


def map_in(value: Any, name: str) -> Mapping[str, Any]:
    """Return an object, empty where there is none; raise `ModelError` where it is something else."""
    if value is None or is_map(value):
        return value or {}
    raise nonsense(f"{name} of the type {type(value).__name__} came in a stream")


def text_in(value: Any, name: str) -> str:
    """Return a text, empty where there is none; raise `ModelError` where it is something else."""
    if value is None or isinstance(value, str):
        return value or ""
    raise nonsense(f"{name} of the type {type(value).__name__} came in a stream")


def absorb(held: dict[str, Any], told: Mapping[str, Any], known: Collection[str], *, grow: bool = False) -> None:
    """Put what is told beside what is `known` into what is held: objects are merged, of all else the last counts.

    Lists `grow` where each chunk brings more of them.
    """
    for name, value in others(told, known).items():
        before: Any = held.get(name)
        if grow and before.__class__ is list and is_list(value):
            before.extend(value)
        elif before.__class__ is dict and is_map(value):
            before.update(value)
        else:
            held[name] = list(value) if is_list(value) else dict(value) if is_map(value) else value


# What is put together


class _Detail(NamedTuple):
    """One of the details of a thought, and the chunk in which it began."""

    chunk: int
    fields: dict[str, Any]
    texts: dict[str, list[str]]

    def take(self, detail: Mapping[str, Any]) -> None:
        """Add what another piece of it says."""
        for name, value in detail.items():
            if name in _JOINED and isinstance(value, str):
                self.texts.setdefault(name, []).append(value)
            elif value is not None or name not in self.fields:
                self.fields[name] = value

    def goes_on(self, detail: Mapping[str, Any], chunk: int) -> bool:
        """Tell whether `detail`, of the same type and index, may be a piece of this one."""
        mine, other = self.fields.get("id"), detail.get("id")
        return self.chunk < chunk and (mine == other or mine is None or other is None)


class Details:
    """The details of a thought, signed or encrypted: each is sent back whole, or it is refused.

    >>> details = Details()
    >>> details.take([{"type": "reasoning.text", "index": 0, "text": "Let me "}])
    >>> details.take([{"type": "reasoning.text", "index": 0, "text": "see.", "signature": "s"}])
    >>> details.whole()
    [{'type': 'reasoning.text', 'index': 0, 'signature': 's', 'text': 'Let me see.'}]
    """

    def __init__(self) -> None:
        self._all: list[_Detail] = []
        self._by_place: dict[tuple[str, str], _Detail] = {}
        self._chunk = 0

    def take(self, details: Sequence[Mapping[str, Any]]) -> None:
        """Add the details of one chunk; each goes on with one of an earlier chunk, or begins."""
        self._chunk += 1
        for detail in details:
            place = repr(detail.get("type")), repr(detail.get("index"))
            held = self._by_place.get(place)
            if held is not None and detail.get("index") is None:
                # Without an index, it can only be the last one, and a signature ends that.
                held = None if held is not self._all[-1] or held.fields.get("signature") else held
            if held is None or not held.goes_on(detail, self._chunk):
                held = self._by_place[place] = _Detail(self._chunk, {}, {})
                self._all.append(held)
            held.take(detail)

    def whole(self) -> list[dict[str, Any]]:
        """Return the details."""
        return [{**held.fields, **{name: "".join(pieces) for name, pieces in held.texts.items()}} for held in self._all]


class Content:
    """The content: a text in pieces or, of some servers, parts in pieces.

    >>> content = Content()
    >>> content.take("Let me "), content.take("see.")
    ([Delta(text='Let me ')], [Delta(text='see.')])
    >>> content.whole()
    'Let me see.'
    """

    def __init__(self) -> None:
        self._parts: list[tuple[dict[str, Any], list[str]]] = []
        self._listed = False

    def take(self, content: Any) -> list[Delta]:
        """Return what a chunk's content adds; the first part in it may go on with the last one so far."""
        if is_list(content):
            self._listed = True
            parts = [map_in(part, "content") for part in content]
        else:
            text = text_in(content, "content")
            parts = [{"type": "text", "text": text}] if text else []
        return [delta for place, part in enumerate(parts) for delta in self._take(part, goes_on=place == 0)]

    def _take(self, part: Mapping[str, Any], *, goes_on: bool) -> list[Delta]:
        text = _words(part)
        last, pieces = self._parts[-1] if self._parts else ({}, [])
        if text is None or not goes_on or not pieces or last.get("type") != part["type"]:
            last, pieces = dict(part), list[str]()
            self._parts.append((last, pieces))
        if text is not None:
            pieces.append(text)
        if not text:
            return []
        return [Delta(reasoning=text) if last["type"] == "thinking" else Delta(text)]

    def whole(self) -> Any:
        """Return the content, as a plain response has it."""
        whole: list[dict[str, Any]] = []
        for part, pieces in self._parts:
            kind, text = str(part.get("type")), "".join(pieces)
            said: Any = [{"type": "text", "text": text}] if kind == "thinking" else text
            whole.append({**part, kind: said} if pieces else part)
        if self._listed or not whole:
            return whole if self._listed else None
        return whole[0]["text"]


def _words(part: Mapping[str, Any]) -> str | None:
    """Return the words of a text, a refusal or a thought; `None` of any other part, which comes whole."""
    kind = part.get("type")
    if kind in _WORDED and isinstance(part.get(kind), str):
        return part[kind]
    pieces = part.get("thinking") if kind == "thinking" else None
    if is_list(pieces) and only_texts(pieces):
        return "".join([piece["text"] for piece in pieces])
    return None


class Sound:
    """A sound, and what is said in it.

    >>> sound = Sound()
    >>> sound.take({"id": "audio_1", "data": "QQ=="}), sound.take({"data": "Qg==", "transcript": "hi"})
    (None, None)
    >>> sound.whole()
    {'id': 'audio_1', 'data': 'QUI=', 'transcript': 'hi'}
    """

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}
        self._texts: dict[str, list[str]] = {}

    def take(self, audio: Mapping[str, Any]) -> None:
        """Add a piece."""
        absorb(self._fields, audio, ("data", "transcript"))
        for name in ("data", "transcript"):
            text = text_in(audio.get(name), "audio")
            if text:
                self._texts.setdefault(name, []).append(text)

    def whole(self) -> dict[str, Any]:
        """Return the sound; nothing where there was none."""
        made = {name: "".join(pieces) for name, pieces in self._texts.items()}
        if "data" in made:
            made["data"] = _base64(self._texts["data"])
        return {**self._fields, **made}


def _base64(pieces: Sequence[str]) -> str:
    """Return one text in base64 of pieces of it, or of pieces that were each encoded alone."""
    joined = "".join(pieces)
    if not any(piece.endswith("=") for piece in pieces[:-1]):
        return joined
    try:
        return b2a_base64(b"".join(map(a2b_base64, pieces)), newline=False).decode()
    except (Error, ValueError):
        return joined
