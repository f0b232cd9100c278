"""Reads the message objects of other frameworks as native messages, through their wires.

A framework has no format that a provider would take, so there is no codec. Texts, media, calls and results are read;
thoughts, which only their provider could read again, and anything else are reported as lost.
"""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import Any

from suture import messages as native
from suture.codecs.losses import Losses, Lost
from suture.wires import Call, RawPart, Result, Wire, argument_json
from suture.wires.fields import get, word
from suture.wires.parts import as_block
from suture.wires.values import CALL, RESULT, TEXT, THINKING

_MEDIA: dict[str, Any] = {
    "image": native.UserInputImage,
    "audio": native.UserInputAudio,
    "video": native.UserInputVideo,
}
"""The block of each kind of medium, by the beginning of its type; any other is a file."""


def read_guests(wire: Wire, messages: Sequence[Any], losses: Losses) -> list[native.AgenticMessage]:
    """Return the messages of another framework as native ones."""
    made: list[native.AgenticMessage] = []
    names: dict[str, str] = {}
    for losses.index, message in enumerate(messages):
        wire.view(message, losses.index)
        for step in wire.steps(message):
            made += _read_step(wire, step, names, losses)
    losses.index = None
    return made


def _read_step(wire: Wire, message: Any, names: dict[str, str], losses: Losses) -> Iterable[native.AgenticMessage]:
    """Yield what is the system's, the results, and the rest of a message, each as a message.

    `names` has the tools' names by the ids of their calls, for results that do not say them.
    """
    view = wire.view(message)
    names |= {call.id: call.name for call in view.calls}
    blocks = wire.contents(message)
    system = [block for block in blocks if view.role == "system" or wire.is_system(block)]
    said = [] if view.role == "system" else [block for block in blocks if not wire.is_system(block)]
    if system:
        yield native.AgenticMessage.system("\n\n".join(str(wire.block_words(block) or "") for block in system))
    results = [_read_result(wire, result, names.get(result.id, ""), losses) for result in view.results]
    if results:
        yield native.AgenticMessage("user", tuple(results))
    content = [made for block in said if (made := _read_block(wire, block, view.role, losses)) is not None]
    calls = list(map(_read_call, view.calls))
    if content or calls or not (system or results):
        role = "assistant" if view.role == "assistant" else "user"
        yield native.AgenticMessage(role, (*content, *calls))


def _read_call(call: Call) -> native.FunctionToolCall:
    return native.FunctionToolCall(call.id, call.name, argument_json(call.arguments))


def _read_result(wire: Wire, result: Result, name: str, losses: Losses) -> native.FunctionToolResult:
    parts = wire.result_parts(result)
    if parts is None:
        parts = (native.TextPart(wire.result_text(result)[0]),)
    content: list[Any] = []
    for part in parts:
        made = _read_medium(part.raw) if isinstance(part, RawPart) else as_block(part)
        if made is None:
            losses.add(Lost.BLOCK, f"a part of the result of {result.name or result.id}")
        else:
            content.append(made)
    return native.FunctionToolResult(result.id, result.name or name, tuple(content), result.failed)


def _read_block(wire: Wire, block: Any, role: str, losses: Losses) -> Any:
    """Return a block that is neither a call nor a result; `None` if it is one, or has no native form."""
    kind = wire.kind(block)
    if kind in (CALL, RESULT):
        return None
    if kind == TEXT:
        text = wire.block_words(block) or ""
        return native.AssistantGenText(text) if role == "assistant" else native.UserInputText(text)
    if kind == THINKING:
        losses.add(Lost.REASONING, "a thought")
        return None
    made = _read_medium(block)
    if made is None or role == "assistant":
        named = word(block, "type") or type(block).__name__
        losses.add(Lost.BLOCK if made is None else Lost.MEDIA, f"a block of the type {named}")
        return None
    return made


def _read_medium(block: Any) -> Any:
    """Return an image, audio, a video or a file, by the fields that frameworks have for them; `None` if it is none."""
    url, data = get(block, "url") or get(block, "uri") or "", get(block, "base64") or get(block, "data") or ""
    mime = get(block, "mime_type") or get(block, "media_type") or ""
    if isinstance(url, str) and url.startswith("data:") and ";base64," in url:
        head, _, data = url.partition(";base64,")
        url, mime = "", mime or head.removeprefix("data:")
    if isinstance(data, bytes):
        data = b64encode(data).decode()
    if not (isinstance(url, str) and isinstance(data, str) and isinstance(mime, str)) or not (url or data):
        return None
    named = mime.partition("/")[0] if mime else (word(block, "type") or word(block, "kind") or "").partition("-")[0]
    return _MEDIA.get(named, native.UserInputFile)(url=url, base64_data=data, mime_type=mime)
