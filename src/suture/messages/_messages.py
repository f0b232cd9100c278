"""The two message types: `Message`, the chat shape, and `AgenticMessage`, made of content blocks.

Neither is checked for sense beyond its types: a history may be broken, and mending it is not this room's
work.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, TypeAlias

from suture.messages._blocks import (
    AssistantGenText,
    ContentBlock,
    FunctionToolResult,
    UserInputBlock,
    UserInputText,
)
from suture.messages._frozen import EMPTY
from suture.messages._meta import ResponseMeta
from suture.messages._parts import Part
from suture.messages._shapes import Streamed
from suture.messages._value import Value

__all__ = ["AgenticMessage", "AgenticRole", "AnyMessage", "Message", "Role", "ToolCall"]

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
"""Who speaks in a `Message`."""

AgenticRole: TypeAlias = Literal["system", "user", "assistant"]
"""Who speaks in an `AgenticMessage`; tool results are blocks of user messages."""


class ToolCall(Streamed):
    """A call of a tool, in an assistant `Message`; `arguments` is JSON text.

    >>> from suture.messages import ToolCall
    >>> ToolCall("call_1", "search", '{"query": "pairing"}').name
    'search'
    """

    id: str = ""
    name: str = ""
    arguments: str = ""
    type: str = "function"


class _Turn(Value, tag_field="kind", kw_only=True):
    """What both message types carry."""

    response_meta: ResponseMeta | None = None
    extra: Mapping[str, Any] = EMPTY


class _ChatTurn(_Turn, kw_only=True):
    """The fields of a `Message` that are given by keyword."""

    user_input_multi_content: Sequence[Part] = ()
    assistant_gen_multi_content: Sequence[Part] = ()
    name: str = ""
    tool_calls: Sequence[ToolCall] = ()
    tool_call_id: str = ""
    tool_name: str = ""
    is_error: bool = False
    reasoning_content: str = ""


class Message(_ChatTurn, tag="message"):
    """A message of the chat shape: a role, a text, and what else that role may carry.

    Multimodal input is in `user_input_multi_content` (of user and tool messages), multimodal output in
    `assistant_gen_multi_content`. An assistant message carries `tool_calls`; a tool message answers the call
    `tool_call_id`. Lists become tuples and mappings read-only. To change a message, make another with
    `msgspec.structs.replace`.

    >>> from suture.messages import Message, ToolCall
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
    def user(cls, content: str | Sequence[Part]) -> Self:
        """Return a user message of a text, or of parts.

        >>> Message.user("hello")
        Message(role='user', content='hello')
        """
        if isinstance(content, str):
            return cls("user", content)
        return cls("user", user_input_multi_content=content)

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


class AgenticMessage(_Turn, tag="agentic"):
    """A message made of content blocks, as providers with server-side tools and reasoning speak.

    There is no tool role: a tool's result is a block of a user message.

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
        """Return a user message of a text, or of blocks.

        >>> AgenticMessage.user("hello").content_blocks
        (UserInputText(text='hello'),)
        """
        blocks = (UserInputText(content),) if isinstance(content, str) else content
        return cls("user", blocks)

    @classmethod
    def assistant(cls, content: str | Sequence[ContentBlock]) -> Self:
        """Return an assistant message of a text, or of blocks.

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
