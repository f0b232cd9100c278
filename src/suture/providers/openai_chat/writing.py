"""What the model said, and what its tools gave, as messages of Chat Completions."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from suture.codecs._contents import custom_input, data_of, media_in_words, report_address
from suture.codecs._kept import KIND, origin_of, report_extension, report_extra, unwrap
from suture.codecs._values import Losses, Lost
from suture.messages import (
    AgenticMessage,
    AssistantGenAudio,
    AssistantGenImage,
    AssistantGenText,
    AssistantGenVideo,
    FunctionToolCall,
    FunctionToolResult,
    Opaque,
    Reasoning,
    ToolSearchResult,
    UserInputAudio,
    UserInputFile,
    UserInputImage,
    UserInputText,
    UserInputVideo,
)
from suture.providers.openai_chat.parts import (
    LISTED,
    WIRE,
    block_type,
    inside,
    is_list,
    join_parts,
    only_texts,
    own,
    restored,
    write_media,
    write_part,
    write_words,
)
from suture.providers.openai_chat.reading import CALL, DETAILS, OLD_CALL, THOUGHT

__all__ = ["NAMED", "is_result", "write_result", "write_turn"]

NAMED = "named"
"""A mark in what is kept of a result: it carried the name of its tool, which the format does not ask for."""


def is_result(block: Any) -> bool:
    """Tell whether `block` is a message of its own here: a result, or one of the older form."""
    if isinstance(block, Opaque):
        held = block.data.get("value")
        return block.type == f"{WIRE}.block" and isinstance(held, Mapping) and "role" in held
    return isinstance(block, FunctionToolResult | ToolSearchResult)


def write_result(block: Any, losses: Losses, path: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the message that a result is, and the media to show after the last result of the turn."""
    if isinstance(block, Opaque):
        return dict(block.data["value"]), []
    shown: list[dict[str, Any]] = []
    if isinstance(block, ToolSearchResult):
        losses.add(Lost.BLOCK, "that a result names tools; it is told as text", path)
        content: Any = msgspec.json.encode(block.tools).decode()
    else:
        if block.is_error:
            losses.add(Lost.ERROR, f"the error flag of {block.call_id or 'a result'}", path)
        parts: list[dict[str, Any]] = []
        for place, held in enumerate(block.content):
            parts += _write_held(held, shown, losses, f"{path}.content[{place}]")
        content = join_parts(parts, listed=LISTED in own(block.extra))
    made: dict[str, Any] = {"role": "tool", "tool_call_id": block.call_id, "content": content}
    if NAMED in own(block.extra):
        made["name"] = block.name
    return restored(made, block.extra, losses, path), shown


def _write_held(held: Any, shown: list[dict[str, Any]], losses: Losses, path: str) -> list[dict[str, Any]]:
    """Return what a result says of something in it: media are named, and shown later."""
    media = write_media(held, losses, path)
    if media is not None:
        shown.append(media)
        return [{"type": "text", "text": media_in_words(held)}]
    part = write_part(held, losses, path)
    return [] if part is None else [part]


def write_turn(message: AgenticMessage, losses: Losses, *, field: str = "", reply: bool = False) -> dict[str, Any]:
    """Return the assistant message that says `message`: for a request, or for a reply, where it may say more."""
    turn = _Turn(losses, field, listed=LISTED in own(message.extra), reply=reply)
    for place, block in enumerate(message.content_blocks):
        if not is_result(block):
            turn.add(block, f"content_blocks[{place}]")
        elif reply:
            losses.add(Lost.BLOCK, f"a block of type {block_type(block)}", f"content_blocks[{place}]")
    return turn.finish()


class _Turn:
    """An assistant message while it is written, block by block."""

    def __init__(self, losses: Losses, field: str, *, listed: bool, reply: bool) -> None:
        self.losses, self.field, self.listed, self.reply = losses, field, listed, reply
        self.parts: list[dict[str, Any]] = []
        self.refusals: list[dict[str, Any]] = []
        self.thoughts: dict[str, list[str]] = {}
        self.fields: dict[str, Any] = {}
        self.calls: list[Any] = []
        self.goes_on = self.said = False
        self.glue: list[str] = []

    def add(self, block: Any, path: str) -> None:
        """Write one block."""
        said = isinstance(block, AssistantGenText)
        self.goes_on, self.said = said and self.said, said
        writer = _WRITERS.get(type(block))
        if writer is None:
            self.losses.add(Lost.BLOCK, f"a block of type {block_type(block)}", path)
        else:
            writer(self, block, path)

    def finish(self) -> dict[str, Any]:
        """Return the message."""
        fields = self.fields
        if len(self.refusals) == 1 and len(self.refusals[0]) == 2:
            fields["refusal"] = self.refusals[0]["refusal"]
        else:
            self.parts += self.refusals
        content: Any = self.parts
        if not self.listed and only_texts(self.parts):
            pieces = zip(self.glue, self.parts, strict=True)
            content = "".join([piece for glue, part in pieces for piece in (glue, part["text"])])
        if not content and not self.listed and (self.calls or any(name in fields for name in _INSTEAD)):
            content = None
        made: dict[str, Any] = {"role": "assistant", "content": content}
        made |= {name: "\n".join(texts) for name, texts in self.thoughts.items()}
        made |= fields
        if self.calls:
            made["tool_calls"] = self.calls
            if self.field:
                made.setdefault(self.field, "")
        return made

    def part(self, part: dict[str, Any]) -> None:
        """Add a part of the content; a text right behind another goes on with it, should they become one."""
        self.glue.append("" if self.goes_on or not self.parts else "\n")
        self.parts.append(part)

    def text(self, block: Any, path: str) -> None:
        extension: Mapping[str, Any] = getattr(block, "extension", {})
        self._report(extension, path)
        if extension.get("refusal"):
            self.refusals.append(restored({"type": "refusal", "refusal": block.text}, block.extra, self.losses, path))
            return
        self.part(restored({"type": "text", "text": block.text}, block.extra, self.losses, path))

    def _report(self, extension: Mapping[str, Any], path: str) -> None:
        """Report what a text carries that has no field, in a request or at all."""
        for name, value in extension.items():
            if name == "annotations" and self.reply and is_list(value):
                self.fields[name] = [*self.fields.get(name, ()), *value]
            elif name not in {"wire", "refusal"}:
                self.losses.add(Lost.FIELD, f"extension {name!r}", path)

    def thought(self, block: Reasoning, path: str) -> None:
        """Write a thought where it came from; a server that demands one is told any."""
        mine = origin_of(block) == WIRE
        details = block.extension.get("details", ()) if mine else ()
        if not (mine or ((self.reply or self.field) and block.text)):
            self.losses.add(Lost.REASONING, "a thought that was not made here", path)
            return
        if mine:
            report_extension(block, ("field", "details"), self.losses, path)
        name = self.field or (block.extension.get("field", THOUGHT) if mine else THOUGHT)
        if name == "thinking":
            part = {"type": name, name: [{"type": "text", "text": block.text}]}
            self.part(restored(part, block.extra, self.losses, path))
            return
        for other, value in block.extra.items():
            report_extra(other, value, self.losses, path)
        if details and not self.field:
            self.fields[DETAILS] = [*self.fields.get(DETAILS, ()), *details]
        elif details or block.signature:
            self.losses.add(Lost.FIELD, "the signature of a thought", path)
        if name != DETAILS and block.text:
            self.thoughts.setdefault(name, []).append(block.text)

    def sound(self, block: AssistantGenAudio, path: str) -> None:
        """Write a sound: whole in a reply, by its id in a request."""
        kept, data = own(block.extra), data_of(block)
        if self.reply and "audio" not in self.fields and (data or (kept and not block.url)):
            report_address(block, self.losses, path)
            held = {"data": data.base64} if data else {}
            self.fields["audio"] = restored(held, block.extra, self.losses, path)
        elif "id" in kept and "audio" not in self.fields:
            self.fields["audio"] = {"id": kept["id"]}
        else:
            self.losses.add(Lost.MEDIA, media_in_words(block), path)
            for name, value in block.extra.items():
                report_extra(name, {**kept, "transcript": None} if name == WIRE and kept else value, self.losses, path)
            said = kept.get("transcript") or media_in_words(block)
            self.part({"type": "text", "text": said})

    def image(self, block: AssistantGenImage, path: str) -> None:
        """Write an image beside the text if it came so; another's is told in words."""
        made = write_media(block, self.losses, path) if self.reply or WIRE in block.extra else None
        if made is None:
            self.words(block, path)
        else:
            self.fields["images"] = [*self.fields.get("images", ()), made]

    def words(self, block: Any, path: str) -> None:
        """Write words in place of media."""
        part = write_words(block, self.losses, path)
        if part is not None:
            self.part(part)

    def call(self, block: FunctionToolCall, path: str) -> None:
        """Write a call, of a function or of a custom tool."""
        given = custom_input(block)
        if given is None:
            function = {"name": block.name, "arguments": block.arguments}
            made = {"id": block.call_id, "type": "function", "function": function}
            self.calls.append(restored(made, block.extra, self.losses, path))
            return
        made = {"id": block.call_id, "type": "custom", "custom": {"name": block.name, "input": given}}
        self.calls.append(restored(made, _without_kind(block.extra), self.losses, path))

    def unknown(self, block: Opaque, path: str) -> None:
        """Write what was kept whole, where it stood: among the calls, beside them, or among the parts."""
        kept = unwrap(WIRE, block, self.losses, path)
        if kept is None:
            return
        if kept.keys() == {CALL}:
            self.calls.append(kept[CALL])
        elif kept.keys() == {OLD_CALL}:
            self.fields[OLD_CALL] = kept[OLD_CALL]
        else:
            self.part(kept)


def _without_kind(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `extra` of a custom call without what says that it is one."""
    kept = {name: value for name, value in extra.items() if name != KIND}
    theirs = inside(extra, "openai-responses")
    rest = {"openai-responses": {name: value for name, value in theirs.items() if name != "type"}} if theirs else {}
    return {**kept, **rest}


_INSTEAD = ("refusal", "audio", "images", OLD_CALL)
"""What a message may hold instead of a text."""
_WRITERS: Mapping[Any, Callable[[_Turn, Any, str], None]] = {
    AssistantGenText: _Turn.text,
    UserInputText: _Turn.text,
    Reasoning: _Turn.thought,
    AssistantGenAudio: _Turn.sound,
    AssistantGenImage: _Turn.image,
    AssistantGenVideo: _Turn.words,
    UserInputImage: _Turn.words,
    UserInputAudio: _Turn.words,
    UserInputVideo: _Turn.words,
    UserInputFile: _Turn.words,
    FunctionToolCall: _Turn.call,
    Opaque: _Turn.unknown,
}
