"""The message types `Message` and `AgenticMessage`, the pieces of streamed replies, and the values of tools.

Only the types of a message's fields are checked: a history may be broken, and is repaired elsewhere.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, cast

from msgspec.structs import force_setattr

from suture.errors import InputError
from suture.messages.blocks import (
    AssistantGenText,
    ContentBlock,
    FunctionToolResult,
    Part,
    Streamed,
    TextPart,
    UserInputBlock,
    UserInputText,
)
from suture.messages.values import EMPTY, ResponseMeta, TokenUsage, Value

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
"""The roles of a `Message`."""

AgenticRole: TypeAlias = Literal["system", "user", "assistant"]
"""The roles of an `AgenticMessage`, whose tool results are blocks of user messages."""


class ToolCall(Streamed):
    """A call of a tool, in an assistant `Message`; `arguments` is JSON text.

    >>> ToolCall("call_1", "search", '{"query": "pairing"}').name
    'search'
    """

    id: str = ""
    name: str = ""
    arguments: str = ""
    type: str = "function"


class _CommonFields(Value, tag_field="kind", kw_only=True):
    """The fields that both message types have."""

    response_meta: ResponseMeta | None = None
    extra: Mapping[str, Any] = EMPTY


class _KeywordFields(_CommonFields, kw_only=True):
    """The fields of a `Message` that only keywords can set."""

    user_input_multi_content: Sequence[Part] = ()
    assistant_gen_multi_content: Sequence[Part] = ()
    name: str = ""
    tool_calls: Sequence[ToolCall] = ()
    tool_call_id: str = ""
    tool_name: str = ""
    is_error: bool = False
    reasoning_content: str = ""


class Message(_KeywordFields, tag="message"):
    """A chat message: a role, a text, and the other fields that this role may have.

    Multimodal input is in `user_input_multi_content` (of user and tool messages), multimodal output in
    `assistant_gen_multi_content`: `content` is the whole text of a reply, and texts there that have an `index` are what
    it consists of, for a provider that wants them back one by one. An assistant message carries `tool_calls`; a tool
    message answers the call `tool_call_id`. Lists become tuples, and mappings become read-only. To change a message,
    make another with `msgspec.structs.replace`.

    >>> Message.assistant(tool_calls=[ToolCall("call_1", "search")]).tool_calls[0].id
    'call_1'
    >>> Message("tool", "3 pages", tool_call_id="call_1") == Message.tool("3 pages", "call_1")
    True
    >>> Message("user", 7)
    Traceback (most recent call last):
        ...
    suture.errors.InputError: content: Message takes a string here, not int
    """

    role: Role
    content: str = ""

    @classmethod
    def system(cls, text: str) -> Self:
        """Return a system message.

        >>> Message.system("Answer briefly.").role
        'system'
        """
        return cls("system", text)

    @classmethod
    def user(cls, content: str | Sequence[Part], *, name: str = "") -> Self:
        """Return a user message with a text, or with parts, and the speaker's name, if that matters.

        >>> Message.user("hello")
        Message(role='user', content='hello')
        """
        if isinstance(content, str):
            return cls("user", content, name=name)
        return cls("user", user_input_multi_content=content, name=name)

    @classmethod
    def assistant(cls, text: str = "", tool_calls: Sequence[ToolCall] = ()) -> Self:
        """Return an assistant message.

        >>> Message.assistant("done").content
        'done'
        """
        return cls("assistant", text, tool_calls=tool_calls)

    @classmethod
    def tool(
        cls, content: str | Sequence[Part], tool_call_id: str, tool_name: str = "", *, is_error: bool = False
    ) -> Self:
        """Return a tool message that answers the call `tool_call_id` with a text, or with parts.

        >>> Message.tool("no such page", "call_1", "search", is_error=True).is_error
        True
        """
        text, parts = (content, ()) if isinstance(content, str) else ("", content)
        return cls(
            "tool",
            text,
            user_input_multi_content=parts,
            tool_call_id=tool_call_id,
            tool_name=tool_name,
            is_error=is_error,
        )


class AgenticMessage(_CommonFields, tag="agentic"):
    """A message made of content blocks, for providers with reasoning and tools that they run themselves.

    There is no tool role: a tool's result is a block in a user message.

    >>> from suture.messages import AgenticMessage, FunctionToolCall
    >>> AgenticMessage.assistant([FunctionToolCall("call_1", "search")]).content_blocks[0].call_id
    'call_1'
    >>> AgenticMessage.tool_result("call_1", "search", "3 pages").role
    'user'
    """

    role: AgenticRole
    content_blocks: Sequence[ContentBlock] = ()

    @classmethod
    def system(cls, text: str) -> Self:
        """Return a system message.

        >>> AgenticMessage.system("Answer briefly.").content_blocks
        (UserInputText(text='Answer briefly.'),)
        """
        return cls("system", (UserInputText(text),))

    @classmethod
    def user(cls, content: str | Sequence[ContentBlock]) -> Self:
        """Return a user message with a text, or with blocks.

        >>> AgenticMessage.user("hello").content_blocks
        (UserInputText(text='hello'),)
        """
        blocks = (UserInputText(content),) if isinstance(content, str) else content
        return cls("user", blocks)

    @classmethod
    def assistant(cls, content: str | Sequence[ContentBlock]) -> Self:
        """Return an assistant message with a text, or with blocks.

        >>> AgenticMessage.assistant("done").content_blocks
        (AssistantGenText(text='done'),)
        """
        blocks = (AssistantGenText(content),) if isinstance(content, str) else content
        return cls("assistant", blocks)

    @classmethod
    def tool_result(
        cls, call_id: str, name: str, content: str | Sequence[UserInputBlock], *, is_error: bool = False
    ) -> Self:
        """Return a user message with the result of one call: a text, or blocks.

        >>> AgenticMessage.tool_result("call_1", "search", "3 pages").content_blocks[0].content
        (UserInputText(text='3 pages'),)
        """
        blocks = (UserInputText(content),) if isinstance(content, str) else content
        result = FunctionToolResult(call_id, name, blocks, is_error)
        return cls("user", (result,))


AnyMessage: TypeAlias = Message | AgenticMessage
"""A message of either native type."""

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # type checkers bring it; before Python 3.13 `typing` has no default

    M = TypeVar("M", default=Any)
    NativeM = TypeVar("NativeM", default=Message)
else:
    from typing import TypeVar

    M = TypeVar("M")
    """The type of any message; its default is `Any`, so that `RunResult` alone is a type, too."""
    NativeM = TypeVar("NativeM")
    """The type of a native message; its default is `Message`."""


class Delta(Value):
    """One piece of a streamed reply, on any wire.

    Pieces of `text` and of `reasoning` are joined in order. The pieces of one call share its `call_index`: its
    id and name come with the first, `arguments` are joined. `usage`, if it comes, counts the whole reply.

    >>> Delta("Let me ")
    Delta(text='Let me ')
    >>> Delta(call_index=0, call_id="call_1", name="search", arguments='{"query"').name
    'search'
    """

    text: str = ""
    reasoning: str = ""
    call_index: int | None = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    usage: TokenUsage | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.call_index is None and (self.call_id or self.name or self.arguments):
            raise InputError("a piece of a call says which: give the call's place in the reply", path="call_index")


class ToolArgument(Value):
    """The arguments of a call as the model wrote them: JSON text that is not parsed, and may not be valid.

    >>> ToolArgument('{"query": "pairing"}').text
    '{"query": "pairing"}'
    """

    text: str

    def __post_init__(self) -> None:
        if type(self.text) is not str:
            super().__post_init__()


class ToolContext(Value):
    """The call that a tool runs for: the tool's name and the call's id.

    >>> ToolContext("search", "call_1").call_id
    'call_1'
    """

    name: str
    call_id: str

    def __post_init__(self) -> None:
        if type(self.name) is not str or type(self.call_id) is not str:
            super().__post_init__()


def _read_parts(given: Any) -> Any:
    """Return a text, a part or a list of both as a tuple of parts; anything else as it is, to be refused."""
    several: Any = given
    if isinstance(given, (str, Value)):
        several = cast("Any", (given,))
    if type(several) not in {list, tuple}:
        return given
    return tuple([TextPart(part) if isinstance(part, str) else part for part in several])


class ToolResult(Value):
    """The result of a tool: its parts, whether it failed, and whether it ends the run.

    A text stands for a part with that text, alone or among the parts; a single part needs no list.

    >>> from suture.messages import TextPart, ToolResult
    >>> ToolResult("no such page", is_error=True)
    ToolResult(parts=(TextPart(text='no such page'),), is_error=True)
    """

    parts: Sequence[Part] = ()
    is_error: bool = False
    return_directly: bool = False
    extra: Mapping[str, Any] = EMPTY

    if TYPE_CHECKING:

        def __init__(
            self,
            parts: str | Part | Sequence[str | Part] = (),
            is_error: bool = False,  # noqa: FBT001, FBT002 - as the fields are
            return_directly: bool = False,  # noqa: FBT001, FBT002
            extra: Mapping[str, Any] = EMPTY,
        ) -> None: ...

    def __post_init__(self) -> None:
        parts: Any = self.parts
        is_one_text = type(parts) is tuple and len(parts) == 1 and type(parts[0]) is TextPart  # pyright: ignore[reportUnknownArgumentType]
        if not is_one_text:
            force_setattr(self, "parts", _read_parts(parts))
        if not is_one_text or self.is_error or self.return_directly or self.extra is not EMPTY:
            super().__post_init__()

    @property
    def text(self) -> str:
        r"""Its texts, joined by line breaks.

        >>> ToolResult([TextPart("two"), TextPart("lines")]).text
        'two\nlines'
        """
        return "\n".join([part.text for part in self.parts if isinstance(part, TextPart)])
