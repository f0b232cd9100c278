"""A streamed Converse reply: its events are folded into the body of a plain response, and cut from one."""

from binascii import Error as NotBase64
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from suture.codecs._contents import as_json
from suture.errors import InputError, StreamCutError
from suture.messages import AgenticMessage, Delta
from suture.providers.bedrock.json import Where, is_map, only
from suture.providers.bedrock.reply import failure, nonsense, read_reply, read_usage

__all__ = ["BedrockReader", "cut"]

_PADDING = "p"
_STARTED = ("toolUse", "toolResult", "image")
_decode = msgspec.json.Decoder().decode


class _Block:
    """A block that is still being said: what it began with, and its pieces by what they are of."""

    __slots__ = ("call_index", "head", "kind", "pieces", "stopped")

    def __init__(self, kind: str, head: Mapping[str, Any], call_index: int | None = None) -> None:
        self.kind, self.head, self.call_index = kind, head, call_index
        self.pieces: dict[str, list[Any]] = {}
        self.stopped = False

    def add(self, name: str, piece: Any) -> None:
        self.pieces.setdefault(name, []).append(piece)

    def whole(self) -> dict[str, Any] | None:
        """Return the block as a plain response has it; `None` where nothing was said."""
        match self.kind:
            case "toolUse":
                said = "".join(self.pieces.get("input", []))
                return {"toolUse": {**self.head, "input": _arguments(said, any_json=self.call_index is None)}}
            case "toolResult":
                content = [part for parts in self.pieces.get("toolResult", []) for part in parts]
                return {"toolResult": {**self.head, "content": content}}
            case "image":
                return {"image": self._image()}
            case "":
                return None
            case _ if self.head:
                return {self.kind: self.head}
            case "reasoningContent":
                return {"reasoningContent": self._reasoning()}
            case _:
                return self._text()

    def _text(self) -> dict[str, Any]:
        text, citations = "".join(self.pieces.get("text", [])), self.pieces.get("citation")
        if citations is None:
            return {"text": text}
        content = {"content": [{"text": text}]} if text else {}
        return {"citationsContent": {**content, "citations": citations}}

    def _reasoning(self) -> dict[str, Any]:
        if "redactedContent" in self.pieces:
            return {"redactedContent": _joined(self.pieces["redactedContent"])}
        said = {"text": "".join(self.pieces.get("text", []))}
        signature = "".join(self.pieces.get("signature", []))
        return {"reasoningText": {**said, "signature": signature} if signature else said}

    def _image(self) -> dict[str, Any]:
        image = dict(self.head)
        for source in self.pieces.get("source", []):
            image["source"] = source
        if "bytes" in self.pieces:
            image["source"] = {"bytes": _joined(self.pieces["bytes"])}
        for error in self.pieces.get("error", []):
            image["error"] = error
        return image


class BedrockReader:
    """Reads the events of `ConverseStream`, from boto3 or from the bytes.

    >>> reader = BedrockReader()
    >>> reader.feed({"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "hi"}}})
    [Delta(text='hi')]
    >>> reader.finish()
    Traceback (most recent call last):
        ...
    suture.errors.StreamCutError: bedrock: the stream ended before the message did; try again
    """

    def __init__(self) -> None:
        self._message: dict[str, Any] = {"role": "assistant"}
        self._blocks: dict[int, _Block] = {}
        self._calls = 0
        self._rest: dict[str, Any] = {}
        self._ended = False

    def feed(self, event: Mapping[str, Any]) -> list[Delta]:
        """Return what `event` adds."""
        try:
            said: Mapping[str, Any] = as_json(dict(event))
            return [delta for kind, payload in said.items() for delta in self._take(kind, payload)]
        except InputError as error:
            raise nonsense(str(error)) from None

    def finish(self) -> AgenticMessage:
        """Return the whole message."""
        if not self._ended:
            raise StreamCutError("bedrock: the stream ended before the message did; try again")
        blocks = [self._blocks[index].whole() for index in sorted(self._blocks)]
        content = [block for block in blocks if block is not None]
        return read_reply({**self._rest, "output": {"message": {**self._message, "content": content}}})

    def _take(self, kind: str, payload: Any) -> Iterator[Delta]:
        match kind:
            case "messageStart":
                self._message |= _facts(kind, payload)
            case "contentBlockStart":
                yield from self._start(_facts(kind, payload))
            case "contentBlockDelta":
                yield from self._add(_facts(kind, payload))
            case "contentBlockStop":
                block = self._blocks.get(_index(_facts(kind, payload)))
                if block is not None:
                    block.stopped = True
            case "messageStop":
                self._stop(_facts(kind, payload))
            case "metadata":
                facts = _facts(kind, payload)
                usage = facts.get("usage")
                if usage is not None:
                    yield Delta(usage=read_usage(usage))
                self._rest |= facts
            case _ if kind.endswith(("Exception", "Error")) or only(payload, "message"):
                raise failure(kind, payload)
            case _:
                pass

    def _stop(self, facts: Mapping[str, Any]) -> None:
        if not isinstance(facts.get("stopReason"), str):
            raise nonsense("a messageStop without its reason")
        self._rest |= facts
        self._ended = True

    def _start(self, facts: Mapping[str, Any]) -> Iterator[Delta]:
        index = _index(facts)
        start = Where("", None, "contentBlockStart.start").map(facts.get("start"))
        if index in self._blocks or len(start) > 1 or self._ended:
            raise nonsense(f"block {index} begins where it cannot")
        [(kind, held)] = list[tuple[str, Any]](start.items()) or [("", {})]
        if kind not in _STARTED and not (is_map(held) and held):
            kind, held = "", {}
        head = Where("", None, f"contentBlockStart.start.{kind}").map(held)
        call_id, name = head.get("toolUseId"), head.get("name")
        if kind == "toolUse" and not (isinstance(call_id, str) and isinstance(name, str)):
            raise nonsense("a call without its id or its name")
        is_call = kind == "toolUse" and head.get("type") != "server_tool_use"
        self._blocks[index] = _Block(kind, head, self._calls if is_call else None)
        if is_call:
            yield Delta(call_index=self._calls, call_id=str(call_id), name=str(name))
            self._calls += 1

    def _add(self, facts: Mapping[str, Any]) -> Iterator[Delta]:
        index = _index(facts)
        delta = Where("", None, "contentBlockDelta.delta").map(facts.get("delta"))
        for kind, held in delta.items():
            if held is None:
                continue
            block = self._opened(index, "text" if kind == "citation" else kind)
            if block is None:
                continue
            where = Where("", None, f"delta.{kind}")
            match kind:
                case "text":
                    text = where.text({kind: held}, kind)
                    block.add("text", text)
                    yield from [Delta(text)] if text else []
                case "toolUse":
                    piece = where.text(where.map(held), "input")
                    block.add("input", piece)
                    if block.call_index is not None and piece:
                        yield Delta(call_index=block.call_index, arguments=piece)
                case "reasoningContent":
                    yield from _think(block, where.map(held), where)
                case "toolResult":
                    block.add(kind, where.list(held))
                case "citation":
                    block.add(kind, where.map(held))
                case _:
                    _show(block, where.map(held), where)

    def _opened(self, index: int, kind: str) -> _Block | None:
        """Return the block that a delta belongs to; text and thought begin one, unknown kinds are passed over."""
        block = self._blocks.get(index)
        if kind not in {"text", "reasoningContent", *_STARTED}:
            return None
        if self._ended or (block is not None and block.stopped):
            raise nonsense(f"a delta for block {index}, which has ended")
        if block is None or not block.kind:
            if kind in _STARTED:
                raise nonsense(f"a delta of {kind} for block {index}, which never began")
            block = self._blocks[index] = _Block(kind, {})
        if block.kind != kind:
            raise nonsense(f"a delta of {kind} for block {index}, which is {block.kind}")
        return block


def _think(block: _Block, held: Mapping[str, Any], where: Where) -> Iterator[Delta]:
    for name in ("text", "signature", "redactedContent"):
        piece = where.text(held, name)
        if piece or name in held:
            block.add(name, piece)
        if piece and name == "text":
            yield Delta(reasoning=piece)


def _show(block: _Block, held: Mapping[str, Any], where: Where) -> None:
    source = held.get("source")
    if source is not None:
        data = where.at(".source").map(source).get("bytes")
        block.add("bytes" if isinstance(data, str) else "source", data if isinstance(data, str) else source)
    if held.get("error") is not None:
        block.add("error", held["error"])


def _facts(kind: str, payload: Any) -> dict[str, Any]:
    """Return what an event says, without what only makes it longer."""
    facts = Where("", None, kind).map(payload)
    return {name: value for name, value in facts.items() if name != _PADDING and value is not None}


def _index(facts: Mapping[str, Any]) -> int:
    index = facts.get("contentBlockIndex")
    if type(index) is not int or index < 0:
        raise nonsense(f"a block without an index: {index!r}")
    return index


def _arguments(text: str, *, any_json: bool) -> Any:
    """Return what was said of a call's arguments: an object, or the text where it is none, or not yet."""
    if not text.strip():
        return {}
    try:
        found: Any = _decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return found if any_json or found.__class__ is dict else text


def _joined(pieces: Sequence[str]) -> str:
    """Return base64 that came in pieces, each whole in itself."""
    if len(pieces) == 1:
        return pieces[0]
    try:
        return b2a_base64(b"".join([a2b_base64(piece) for piece in pieces]), newline=False).decode()
    except (NotBase64, ValueError):
        raise nonsense("bytes that are no base64") from None


# Writing


def cut(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a stream that says what `body`, a plain response, says.

    >>> message = {"role": "assistant", "content": [{"text": "hi"}]}
    >>> [kind for event in cut({"output": {"message": message}, "stopReason": "end_turn"}) for kind in event]
    ['messageStart', 'contentBlockDelta', 'contentBlockStop', 'messageStop']
    """
    rest = dict(body)
    message = dict(rest.pop("output")["message"])
    events: list[dict[str, Any]] = []
    for index, block in enumerate(message.pop("content")):
        place = {"contentBlockIndex": index}
        start, deltas = _pieces(block)
        events += [{"contentBlockStart": {**place, "start": start}}] if start else []
        events += [{"contentBlockDelta": {**place, "delta": delta}} for delta in deltas]
        events.append({"contentBlockStop": place})
    stop = {name: rest.pop(name) for name in ("stopReason", "additionalModelResponseFields") if name in rest}
    told = [{"metadata": rest}] if rest else []
    return [{"messageStart": message}, *events, {"messageStop": stop}, *told]


def _pieces(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what a block begins with and its deltas; one that streams have no form for begins with all of it."""
    if len(block) != 1:
        return dict(block), []
    [(kind, held)] = block.items()
    rest = dict(held) if is_map(held) else {}
    match kind:
        case "text":
            return {}, [{kind: held}]
        case "toolUse":
            return {kind: rest}, [{kind: {"input": msgspec.json.encode(rest.pop("input", {})).decode()}}]
        case "toolResult":
            return {kind: rest}, [{kind: rest.pop("content", [])}]
        case "image" if "source" in rest:
            return {kind: rest}, [{kind: {"source": rest.pop("source")}}]
        case "citationsContent" if _is_cited_text(rest):
            return {}, [*rest["content"], *({"citation": citation} for citation in rest["citations"])]
        case "reasoningContent" if _is_plain_thought(rest):
            said = rest.get("reasoningText", rest)
            return {}, [{kind: {name: piece}} for name, piece in said.items()]
        case _:
            return dict(block), []


def _is_cited_text(cited: Mapping[str, Any]) -> bool:
    """Tell whether deltas can say this text and its citations as they are."""
    content, citations = _listed(cited.get("content")), _listed(cited.get("citations"))
    if not only(cited, "content", "citations") or len(content) != 1 or not citations:
        return False
    return only(content[0], "text") and bool(content[0].get("text")) and all(is_map(citation) for citation in citations)


def _listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _is_plain_thought(reasoning: Mapping[str, Any]) -> bool:
    """Tell whether deltas can say this reasoning as it is."""
    said = reasoning.get("reasoningText")
    return only(reasoning, "redactedContent") or (only(said, "text", "signature") and said.get("signature") != "")
