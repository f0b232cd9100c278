"""The common part of codecs: reading and writing blocks, and keeping the fields of other providers."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, TypeVar

from suture import messages as native
from suture.codecs.codec import CODECS, Codec, Losses, Lost, located, report_meta
from suture.errors import InputError
from suture.wires import parts
from suture.wires.fields import expect, is_map, json_text, list_of, map_of, parse_json
from suture.wires.values import KIND

T = TypeVar("T")
USER_MEDIA, MODEL_MEDIA = (
    {parts.MEDIA[block]: block for block in table.values() if block in parts.MEDIA}
    for table in (parts.USER_BLOCKS, parts.MODEL_BLOCKS)
)
"""The blocks of media for the model, and those made by the model, by kind."""
MEDIA = parts.MEDIA
_DETAILS = {"detail": "image detail", "name": "file name", "mime_type": "type"}


def read_each(items: Iterable[Any], read: Callable[[Any], T], path: str) -> list[T]:
    """Return `read` applied to each of `items`; an error says which item it was."""
    made: list[T] = []
    for place, item in enumerate(items):
        with located(f"{path}[{place}]"):
            made.append(read(item))
    return made


def read_url(url: str) -> dict[str, Any]:
    """Return the fields for a URL: data and type of a data URL that has both, else the URL."""
    data = parts.split_data_url(url, "")
    if data is None or not data.mime_type:
        return {"url": url}
    return {"base64_data": data.base64, "mime_type": data.mime_type}


def custom_input(block: native.FunctionToolCall) -> str | None:
    """Return the input text of a call of a custom tool; `None` for a function call."""
    if block.extra.get(KIND) != "custom":
        return None
    held: Any = block.extra.get("openai-responses")
    if not is_map(held) or held.get("type") != "custom_tool_call":
        return block.arguments
    given = parse_json(block.arguments)
    if given.__class__ is dict and given.keys() == {"input"} and isinstance(given["input"], str):
        return given["input"]
    return block.arguments


# Fields of a provider that a block has no attribute for are kept in `extra`, under the name of the wire. So they come
# back when the block is written for that provider again, and are reported when it is written for another. A kept
# `None` means that the field was absent: the codec's own value for it is removed.


def rest_of(holder: Mapping[str, Any], *known: str) -> dict[str, Any]:
    """Return the fields that are neither `known` nor null."""
    return {name: value for name, value in holder.items() if name not in known and value is not None}


def keep(wire: str, holder: Mapping[str, Any], *known: str, absent: Iterable[str] = ()) -> dict[str, Any]:
    """Return the `extra` of an object: its fields that are neither `known` nor null, and `None` for `absent` ones.

    >>> keep("anthropic", {"type": "text", "text": "hi", "citations": []}, "type", "text")
    {'anthropic': {'citations': []}}
    >>> keep("anthropic", {"type": "text"}, "type")
    {}
    """
    rest = rest_of(holder, *known) | dict.fromkeys(absent)
    return {wire: rest} if rest else {}


def overlay(made: Mapping[str, Any], kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return `made` with the fields that were kept of it, and of the objects in it.

    >>> overlay({"type": "text", "text": "hi"}, {"citations": [], "text": None})
    {'type': 'text', 'citations': []}
    """
    whole = {**made, **kept}
    for name, value in kept.items():
        if value is None:
            del whole[name]
        elif is_map(value) and is_map(made.get(name)):
            whole[name] = overlay(made[name], value)
    return whole


class Shape:
    """Maps a provider's object to a block: the block's class, and the field of each attribute. The rest is kept.

    >>> from suture.messages import FunctionToolCall
    >>> call = Shape("anthropic", FunctionToolCall, call_id="id", name="name")
    >>> block = call.read({"type": "tool_use", "id": "a", "name": "add"}, "type")
    >>> block, call.write(block)
    (FunctionToolCall(call_id='a', name='add'), {'id': 'a', 'name': 'add'})
    """

    def __init__(self, wire: str, block: Any, **fields: str) -> None:
        self.block, self._wire, self._fields = block, wire, fields

    def read(self, thing: Mapping[str, Any], *known: str, **more: Any) -> Any:
        """Return `thing` as a block, with `more` attributes; `known` are the fields that these cover."""
        said = {name: thing[field] for name, field in self._fields.items() if thing.get(field) is not None}
        return self.block(**said, **more, extra=keep(self._wire, thing, *self._fields.values(), *known))

    def write(self, block: Any) -> dict[str, Any]:
        """Return the fields for the attributes of `block`, without empty ones."""
        said = {field: getattr(block, name) for name, field in self._fields.items()}
        return {field: value for field, value in said.items() if value is not None and value != ""}


def without_kind(extra: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """Return `extra` without the kind of call if that is `kind`, which the written form shows by itself."""
    return {name: value for name, value in extra.items() if name != KIND} if extra.get(KIND) == kind else extra


def origin_of(block: Any) -> str:
    """Return the wire that a block of reasoning was read from; the empty string if unknown."""
    origin = block.extension.get("wire", "")
    return origin if isinstance(origin, str) else ""


# Blocks read


class ContentReader:
    """Reads the blocks of one provider message, made by the model or for it."""

    wire: ClassVar[str]

    def __init__(self, *, by_model: bool = False) -> None:
        self.by_model = by_model
        self.text: Any = native.AssistantGenText if by_model else native.UserInputText
        """The class of block for a text."""

    def read_content(self, holder: Mapping[str, Any], field: str = "content") -> list[Any]:
        """Return the blocks in a field; a plain text is one block."""
        content = holder.get(field)
        if isinstance(content, str):
            return [self.text(content)]
        return read_each(list_of(holder, field), self.read, field)

    def read(self, block: Mapping[str, Any]) -> Any:
        """Return a provider's block as a native one."""
        raise NotImplementedError

    def keep(self, holder: Mapping[str, Any], *known: str, absent: Iterable[str] = ()) -> dict[str, Any]:
        """Return the `extra` of an object: the fields that are not `known`, and those that are `absent`."""
        return keep(self.wire, holder, *known, absent=absent)

    def unknown(self, block: Mapping[str, Any]) -> native.Opaque:
        """Return a block of unknown type, kept as a whole."""
        return native.Opaque({"type": f"{self.wire}.block", "value": dict(block)})


# Blocks written


class BlockWriter:
    """Writes the blocks of one message for one provider, and reports losses with their place."""

    wire: ClassVar[str]
    writers: ClassVar[Mapping[Any, Callable[[Any, Any], dict[str, Any] | None]]]
    """The method that writes each kind of block; it returns `None` and reports a loss if there is no form for it."""

    def __init__(self, losses: Losses) -> None:
        self.losses = losses
        self.path = ""
        """The place of the block that is being written."""

    def write_each(
        self, blocks: Iterable[Any], path: str = "content_blocks", writers: Mapping[Any, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Write the blocks at `path`."""
        outer, table, made = self.path, writers or self.writers, list[dict[str, Any]]()
        for place, block in enumerate(blocks):
            self.path = f"{outer}.{path}[{place}]" if outer else f"{path}[{place}]"
            write = table.get(block.__class__)
            if write is None:
                block = self.tell_found_tools(block)  # noqa: PLW2901 - it is the same one, in a form that has a writer
                write = table.get(block.__class__, BlockWriter.lose_block)
            written = write(self, block)
            if written is not None:
                made.append(written)
        self.path = outer
        return made

    def write_system(self, message: native.AgenticMessage) -> list[dict[str, Any]]:
        """Return the blocks of a system message: texts that are not blank; media become text."""
        blocks = self.write_each(message.content_blocks, writers=self.system_writers)
        return [block for block in blocks if "text" not in block or str(block["text"]).strip()]

    def say(self, text: str) -> dict[str, Any]:
        """Return the block of a text."""
        raise NotImplementedError

    def write_text(self, block: Any) -> dict[str, Any] | None:
        """Return the block of a text, with the fields that were kept of it."""
        if getattr(block, "extension", None):
            self.report_extension(block)
        return self.put_back(self.say(block.text), block.extra) if block.extra else self.say(block.text)

    def write_words(self, block: Any) -> dict[str, Any] | None:
        """Return the text that replaces media without a form."""
        return self.say(self.tell_media(block))

    def tell_found_tools(self, block: Any) -> Any:
        """Return the result of a tool search with the tools as text; any other block unchanged.

        References are only possible to tools that the request declares.
        """
        if not isinstance(block, native.ToolSearchResult):
            return block
        self.lose(Lost.BLOCK, "the form of tools that were found; they are told as text")
        told = native.UserInputText(json_text(block.tools))
        return native.FunctionToolResult(block.call_id, block.name, (told,), extra=block.extra)

    def put_back(self, made: dict[str, Any], extra: Mapping[str, Any], inside: str = "") -> dict[str, Any]:
        """Return `made`, a written block, with the fields that were kept of it; report those of no use here."""
        if not extra:
            return made
        own = extra.get(self.wire)
        self.report_extras(
            {name: value for name, value in extra.items() if name != self.wire or not is_map(own)}, inside
        )
        return overlay(made, own) if is_map(own) else made

    def unwrap(self, block: native.Opaque) -> dict[str, Any] | None:
        """Return the block that `unknown` kept for this wire; report any other."""
        held = block.data.get("value")
        if block.type == f"{self.wire}.block" and is_map(held):
            return dict(held)
        self.lose(Lost.BLOCK, f"a block of type {block.type}")
        return None

    def read_arguments(self, arguments: str, inside: str = "") -> dict[str, Any]:
        """Return the arguments of a call as an object; if they are not one, report it and return an empty one."""
        found: Any = parse_json(arguments) if arguments.strip() else {}
        if found.__class__ is dict:
            return found
        self.lose(Lost.ARGUMENTS, f"arguments {arguments[:40]!r}", inside)
        return {}

    def is_own_thought(self, block: native.Reasoning, *known: str) -> bool:
        """Return whether reasoning came from this provider; report the rest of its extension, or all if it did not."""
        if origin_of(block) == self.wire:
            self.report_extension(block, *known)
            return True
        self.lose(Lost.REASONING, f"thought {block.text[:40]!r}")
        return False

    system_writers: ClassVar[Mapping[Any, Callable[[Any, Any], dict[str, Any] | None]]] = {
        **dict.fromkeys((native.UserInputText, native.AssistantGenText), write_text),
        **dict.fromkeys(MEDIA, write_words),
        native.Opaque: unwrap,
    }
    """The writer for blocks of system messages."""

    # Losses

    def lose(self, name: Lost, what: str, inside: str = "") -> None:
        """Report a loss at the current place, or `inside` the block there."""
        self.losses.add(name, what, f"{self.path}.{inside}" if self.path and inside else self.path or inside)

    def lose_block(self, block: Any) -> None:
        """Report a block without a form."""
        self.lose(Lost.BLOCK, f"a block of type {block.__struct_config__.tag}")

    def tell_media(self, block: Any) -> str:
        """Return the text that replaces media (their address, or what they are), and report them."""
        words = parts.media_in_words(block)
        self.lose(Lost.MEDIA, f"{MEDIA[type(block)]} {words[:80]}")
        self.report_extras(block.extra)
        return words

    def report_media(self, block: Any, *said: str) -> None:
        """Report the address of media that are written by value, and the attributes that are not `said`."""
        if block.base64_data and block.url:
            self.lose(Lost.DETAIL, f"address {block.url[:80]}")
        for name, word in _DETAILS.items():
            if name not in said and (value := getattr(block, name, "")):
                self.lose(Lost.DETAIL, f"{word} {value[:80]}")

    def report_extension(self, block: Any, *known: str) -> None:
        """Report the fields in the extension of a text or reasoning that are not `known`."""
        for name in getattr(block, "extension", ()):
            if name != "wire" and name not in known:
                self.lose(Lost.FIELD, f"{name} of a {'thought' if isinstance(block, native.Reasoning) else 'text'}")

    def report_extras(self, extra: Mapping[str, Any], inside: str = "") -> None:
        """Report that an `extra` is lost: another provider's fields, and the user's own data, by their names."""
        for name, value in extra.items():
            if name not in CODECS or not is_map(value):
                self.lose(Lost.EXTRA, f"extra {name!r}", inside)
                continue
            for field, kept in rest_of(value).items():
                if not is_map(kept) or not kept or rest_of(kept):  # otherwise it only has absent fields
                    self.lose(Lost.FIELD, f"{name} {field}", inside)


# Messages of blocks


class BlockCodec(Codec):
    """A codec of messages that are a role and a list of blocks, with the system prompt outside of the list."""

    field_of_blocks: ClassVar[str] = "content"
    roles: ClassVar[Mapping[Any, native.AgenticRole]] = {"user": "user", "assistant": "assistant", "system": "system"}
    model_role: ClassVar[str] = "assistant"
    content_reader: ClassVar[type[ContentReader]]

    def write_message(self, message: native.AgenticMessage, losses: Losses) -> list[dict[str, Any]]:
        """Return `message` as the provider's, none if nothing is left; a foreign system message becomes a user's."""
        report_meta(message, losses)
        if self.is_outside(message):
            losses.add(Lost.SYSTEM, "that this message is the system's; it is told as the user's")
        writer = self.writer(losses)
        content = writer.write_each(message.content_blocks)
        role = self.model_role if message.role == "assistant" else "user"
        written = writer.put_back({"role": role, self.field_of_blocks: content}, message.extra, "extra")
        return [written] if content or written.keys() != {"role", self.field_of_blocks} else []

    def read_message(self, item: Any) -> native.AgenticMessage:
        """Return one of this provider's messages as a native one."""
        role = expect(item, Mapping, "a message", "").get("role")
        if not isinstance(role, str | None) or role not in self.roles:
            known = " or ".join(filter(None, self.roles))
            raise InputError(f"unknown role {role!r}; expected {known}", path="role")
        blocks = self.content_reader(by_model=role == self.model_role).read_content(item, self.field_of_blocks)
        absent = [self.field_of_blocks] if role == "system" and item.get(self.field_of_blocks) is None else ()
        extra = keep(self.name, item, self.field_of_blocks, "" if role == "system" else "role", absent=absent)
        return native.AgenticMessage(self.roles[role], tuple(blocks), extra=extra)

    def is_outside(self, message: native.AgenticMessage) -> bool:
        """Return whether `message` is a system message that was not read from the provider's list of messages."""
        return message.role == "system" and map_of(message.extra, self.name).get("role") != "system"

    def read_system(self, body: Mapping[str, Any]) -> tuple[str, list[native.AgenticMessage]]:
        """Return the system prompt outside of the list: a plain text, or messages if it is more than that."""
        blocks = self.content_reader().read_content(body, self.system_field)
        if len(blocks) == 1 and isinstance(blocks[0], native.UserInputText) and not blocks[0].extra:
            return blocks[0].text, []
        return "", [native.AgenticMessage("system", tuple(blocks))] if blocks else []
