"""What several codecs share: reading and writing blocks, and keeping fields that only one provider has."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, TypeVar

from suture import messages as native
from suture.codecs.codec import CODECS, Codec, located, report_meta
from suture.codecs.losses import Losses, Lost
from suture.errors import InputError
from suture.wires import parts
from suture.wires.fields import expect, is_map, json_text, list_of, map_of, parse_json
from suture.wires.values import KIND

T = TypeVar("T")
USER_MEDIA, MODEL_MEDIA = (
    {parts.MEDIA[block]: block for block in table.values() if block in parts.MEDIA}
    for table in (parts.USER_BLOCKS, parts.MODEL_BLOCKS)
)
"""The blocks for media by their kind: those for the model, and those that it made."""
MEDIA = parts.MEDIA
_DETAILS = {"detail": "image detail", "name": "file name", "mime_type": "type"}


def read_each(items: Iterable[Any], read: Callable[[Any], T], path: str) -> list[T]:
    """Return what `read` makes of each item; an error says at which item it was."""
    made: list[T] = []
    for place, item in enumerate(items):
        with located(f"{path}[{place}]"):
            made.append(read(item))
    return made


def read_url(url: str) -> dict[str, Any]:
    """Return the fields of media for a URL: the data and type in a data URL that has both, else the URL itself."""
    data = parts.split_data_url(url, "")
    if data is None or not data.mime_type:
        return {"url": url}
    return {"base64_data": data.base64, "mime_type": data.mime_type}


def custom_input(block: native.FunctionToolCall) -> str | None:
    """Return the input of a call of a custom tool; `None` for a call of a function."""
    if block.extra.get(KIND) != "custom":
        return None
    held: Any = block.extra.get("openai-responses")
    if not is_map(held) or held.get("type") != "custom_tool_call":
        return block.arguments
    given = parse_json(block.arguments)
    if given.__class__ is dict and given.keys() == {"input"} and isinstance(given["input"], str):
        return given["input"]
    return block.arguments


# Fields of a provider that a block has no attribute for are kept in `extra`, under the name of the wire. They come back
# when the block is written for that provider again, and are reported when it is written for another. A kept `None`
# says that the field was absent, so that it is removed if the codec has written it.


def rest_of(holder: Mapping[str, Any], *known: str) -> dict[str, Any]:
    """Return the fields that are neither `known` nor null."""
    return {name: value for name, value in holder.items() if name not in known and value is not None}


def keep(wire: str, holder: Mapping[str, Any], *known: str, absent: Iterable[str] = ()) -> dict[str, Any]:
    """Return the `extra` for what was read: its fields that are neither `known` nor null, and marks for those `absent`.

    >>> keep("anthropic", {"type": "text", "text": "hi", "citations": []}, "type", "text")
    {'anthropic': {'citations': []}}
    >>> keep("anthropic", {"type": "text"}, "type")
    {}
    """
    rest = rest_of(holder, *known) | dict.fromkeys(absent)
    return {wire: rest} if rest else {}


def overlay(made: Mapping[str, Any], kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return `made` with the fields in `kept`, also inside its objects; a kept `None` removes a field.

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
    """Maps an object of a provider to a block: the block's class, and the field for each attribute. The rest is kept.

    >>> from suture.messages import FunctionToolCall
    >>> call = Shape("anthropic", FunctionToolCall, call_id="id", name="name")
    >>> block = call.read({"type": "tool_use", "id": "a", "name": "add"}, "type")
    >>> block, call.write(block)
    (FunctionToolCall(call_id='a', name='add'), {'id': 'a', 'name': 'add'})
    """

    def __init__(self, wire: str, block: Any, **fields: str) -> None:
        self.block, self._wire, self._fields = block, wire, fields

    def read(self, thing: Mapping[str, Any], *known: str, **more: Any) -> Any:
        """Return the block for `thing`, with `more` attributes; the `known` fields need not be kept."""
        said = {name: thing[field] for name, field in self._fields.items() if thing.get(field) is not None}
        return self.block(**said, **more, extra=keep(self._wire, thing, *self._fields.values(), *known))

    def write(self, block: Any) -> dict[str, Any]:
        """Return the fields for the attributes of `block`, without those that are empty."""
        said = {field: getattr(block, name) for name, field in self._fields.items()}
        return {field: value for field, value in said.items() if value is not None and value != ""}


def without_kind(extra: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """Return `extra` without the kind of call if that is `kind`, because what is written shows it anyway."""
    return {name: value for name, value in extra.items() if name != KIND} if extra.get(KIND) == kind else extra


def origin_of(block: Any) -> str:
    """Return the wire that a block of reasoning was read from, or an empty text."""
    origin = block.extension.get("wire", "")
    return origin if isinstance(origin, str) else ""


# Reading blocks


class ContentReader:
    """Reads the blocks of one message of a provider, which the model made or receives."""

    wire: ClassVar[str]

    def __init__(self, *, by_model: bool = False) -> None:
        self.by_model = by_model
        self.text: Any = native.AssistantGenText if by_model else native.UserInputText
        """The class of block for a text."""

    def read_content(self, holder: Mapping[str, Any], field: str = "content") -> list[Any]:
        """Return the blocks in a field; a text becomes one block."""
        content = holder.get(field)
        if isinstance(content, str):
            return [self.text(content)]
        return read_each(list_of(holder, field), self.read, field)

    def read(self, block: Mapping[str, Any]) -> Any:
        """Return a block of the provider as a native one."""
        raise NotImplementedError

    def keep(self, holder: Mapping[str, Any], *known: str, absent: Iterable[str] = ()) -> dict[str, Any]:
        """Return the `extra` for what was read: fields that are not `known`, and marks for those `absent`."""
        return keep(self.wire, holder, *known, absent=absent)

    def unknown(self, block: Mapping[str, Any]) -> native.Opaque:
        """Return a block of an unknown type, kept whole."""
        return native.Opaque({"type": f"{self.wire}.block", "value": dict(block)})


# Writing blocks


class BlockWriter:
    """Writes the blocks of one message for one provider, and reports what has no form there."""

    wire: ClassVar[str]
    writers: ClassVar[Mapping[Any, Callable[[Any, Any], dict[str, Any] | None]]]
    """The method that writes each kind of block; it reports a block that has no form, and returns `None`."""

    def __init__(self, losses: Losses) -> None:
        self.losses = losses
        self.path = ""
        """The path of the block that is being written."""

    def write_each(
        self, blocks: Iterable[Any], path: str = "content_blocks", writers: Mapping[Any, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Return `blocks`, which are at `path`, as the provider has them."""
        outer, table, made = self.path, writers or self.writers, list[dict[str, Any]]()
        for place, block in enumerate(blocks):
            self.path = f"{outer}.{path}[{place}]" if outer else f"{path}[{place}]"
            write = table.get(block.__class__)
            if write is None:
                block = self.tell_found_tools(block)  # noqa: PLW2901 - the same block, in a form that has a writer
                write = table.get(block.__class__, BlockWriter.lose_block)
            written = write(self, block)
            if written is not None:
                made.append(written)
        self.path = outer
        return made

    def write_system(self, message: native.AgenticMessage) -> list[dict[str, Any]]:
        """Return the blocks of a system message without blank texts; media are described in words."""
        blocks = self.write_each(message.content_blocks, writers=self.system_writers)
        return [block for block in blocks if "text" not in block or str(block["text"]).strip()]

    def say(self, text: str) -> dict[str, Any]:
        """Return the provider's block for a text."""
        raise NotImplementedError

    def write_text(self, block: Any) -> dict[str, Any] | None:
        """Return a text block with the fields that were kept."""
        if getattr(block, "extension", None):
            self.report_extension(block)
        return self.put_back(self.say(block.text), block.extra) if block.extra else self.say(block.text)

    def write_words(self, block: Any) -> dict[str, Any] | None:
        """Return a text in place of media that have no form here."""
        return self.say(self.tell_media(block))

    def tell_found_tools(self, block: Any) -> Any:
        """Return the result of a tool search as one with the tools as text; any other block as it is.

        A reference to a tool works only if the request declares the tool.
        """
        if not isinstance(block, native.ToolSearchResult):
            return block
        self.lose(Lost.BLOCK, "the form of tools that were found; they are told as text")
        told = native.UserInputText(json_text(block.tools))
        return native.FunctionToolResult(block.call_id, block.name, (told,), extra=block.extra)

    def put_back(self, made: dict[str, Any], extra: Mapping[str, Any], inside: str = "") -> dict[str, Any]:
        """Return `made` with what was kept of its block in `extra`; report what has no use here."""
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
        """Return the arguments of a call as an object, of nothing or null an empty one; report any other text."""
        found: Any = {} if arguments.strip() in {"", "null"} else parse_json(arguments)
        if found.__class__ is dict:
            return found
        self.lose(Lost.ARGUMENTS, f"arguments {arguments[:40]!r}", inside)
        return {}

    def is_own_thought(self, block: native.Reasoning, *known: str) -> bool:
        """Return whether a thought was read from this wire; report it if not, else the fields that are not `known`."""
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
    """The methods that write the blocks of a system message."""

    # Reporting losses

    def lose(self, name: Lost, what: str, inside: str = "") -> None:
        """Report a loss at this block, or at the path `inside` it."""
        self.losses.add(name, what, f"{self.path}.{inside}" if self.path and inside else self.path or inside)

    def lose_block(self, block: Any) -> None:
        """Report a block that has no form here."""
        self.lose(Lost.BLOCK, f"a block of type {block.__struct_config__.tag}")

    def tell_media(self, block: Any) -> str:
        """Return a text that says what media are, or where, and report that it replaces them."""
        words = parts.media_in_words(block)
        self.lose(Lost.MEDIA, f"{MEDIA[type(block)]} {words[:80]}")
        self.report_extras(block.extra)
        return words

    def report_media(self, block: Any, *said: str) -> None:
        """Report the URL of media that are written as data, and their attributes that are not `said`."""
        if block.base64_data and block.url:
            self.lose(Lost.DETAIL, f"address {block.url[:80]}")
        for name, word in _DETAILS.items():
            if name not in said and (value := getattr(block, name, "")):
                self.lose(Lost.DETAIL, f"{word} {value[:80]}")

    def report_extension(self, block: Any, *known: str) -> None:
        """Report the fields in the `extension` of a text or a thought that are not `known`."""
        for name in getattr(block, "extension", ()):
            if name != "wire" and name not in known:
                self.lose(Lost.FIELD, f"{name} of a {'thought' if isinstance(block, native.Reasoning) else 'text'}")

    def report_extras(self, extra: Mapping[str, Any], inside: str = "") -> None:
        """Report that an `extra` is lost: each field of another provider, and any other data by its key."""
        for name, value in extra.items():
            if name not in CODECS or not is_map(value):
                self.lose(Lost.EXTRA, f"extra {name!r}", inside)
                continue
            for field, kept in rest_of(value).items():
                if not is_map(kept) or not kept or rest_of(kept):  # else it only marks fields as absent
                    self.lose(Lost.FIELD, f"{name} {field}", inside)


# Messages of blocks


class BlockCodec(Codec):
    """A codec for messages with a role and a list of blocks, and a system instruction outside of their list."""

    field_of_blocks: ClassVar[str] = "content"
    roles: ClassVar[Mapping[Any, native.AgenticRole]] = {"user": "user", "assistant": "assistant", "system": "system"}
    model_role: ClassVar[str] = "assistant"
    content_reader: ClassVar[type[ContentReader]]

    def write_message(self, message: native.AgenticMessage, losses: Losses) -> list[dict[str, Any]]:
        """Return the message, or nothing if it would be empty; a system message in the middle is sent as the user's."""
        report_meta(message, losses)
        if self.is_outside(message):
            losses.add(Lost.SYSTEM, "that this message is the system's; it is sent as the user's")
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
        """Return whether `message` is a system message, but not one that this codec read from the list."""
        return message.role == "system" and map_of(message.extra, self.name).get("role") != "system"

    def read_system(self, body: Mapping[str, Any]) -> tuple[str, list[native.AgenticMessage]]:
        """Return the system instruction outside the list: as a plain text if it is just that, else as a message."""
        blocks = self.content_reader().read_content(body, self.system_field)
        if len(blocks) == 1 and isinstance(blocks[0], native.UserInputText) and not blocks[0].extra:
            return blocks[0].text, []
        return "", [native.AgenticMessage("system", tuple(blocks))] if blocks else []
