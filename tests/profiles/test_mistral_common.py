"""An independent judge: what is repaired for Mistral passes the validator that Mistral publishes."""

from collections.abc import Callable
from itertools import product
from typing import Any

from hypothesis import given
from mistral_common.exceptions import MistralCommonException
from mistral_common.protocol.instruct.messages import (
    AssistantMessage,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.tool_calls import FunctionCall, ToolCall
from mistral_common.protocol.instruct.validator import (
    MistralRequestValidatorV5,
    MistralRequestValidatorV11,
    MistralRequestValidatorV13,
    ValidationMode,
)

import suture
from tests.histories import Step, write
from tests.repair.test_properties import all_histories

FINAL: Step = ("user", "go on")
ALPHABET: tuple[Step, ...] = (
    ("user", "u"),
    ("say", "s"),
    ("say", ""),
    ("turn", [("a", "f", "{}")]),
    ("turn", [("b", "f", "{}")]),
    ("turn", [("a", "f", "{}"), ("b", "g", "{}")]),
    ("turn", [("a", "f", "{}"), ("a", "f", "{}")]),
    ("turn", [("", "f", "{}")]),
    ("result", "a", "", "r"),
    ("result", "b", "", "r"),
    ("result", "", "", "r"),
    ("result", "z", "", "r"),
)


def convert(message: dict[str, Any]) -> Any:
    """Return a chat message as the judge's own type."""
    content = message.get("content") or ""
    match message["role"]:
        case "system":
            return SystemMessage(content=content)
        case "user":
            return UserMessage(content=content)
        case "tool":
            return ToolMessage(content=content, tool_call_id=message["tool_call_id"])
    calls = [
        ToolCall(
            id=call["id"],
            function=FunctionCall(name=call["function"]["name"], arguments=call["function"]["arguments"]),
        )
        for call in message.get("tool_calls") or ()
    ]
    return AssistantMessage(content=content or None, tool_calls=calls or None)


def verdict(messages: list[dict[str, Any]]) -> str:
    """Return what Mistral's validator says in serving mode; nothing if it accepts."""
    request = ChatCompletionRequest[Any](model="m", messages=[convert(message) for message in messages])
    for validator in (MistralRequestValidatorV5, MistralRequestValidatorV11, MistralRequestValidatorV13):
        try:
            validator(ValidationMode.serving).validate_request(request)
        except MistralCommonException as refusal:
            return f"{validator.__name__}: {refusal}"
    return ""


def test_the_judge_refuses_what_is_broken() -> None:
    """Otherwise its approval would mean nothing."""
    assert verdict(write("openai-chat", [("user", "hi"), ("turn", [("a", "f", "{}")]), FINAL]))


def test_every_small_history_passes_after_repair(covered: Callable[[str], None]) -> None:
    """All histories of up to three messages, followed by what the user says next."""
    count = 0
    for length in range(4):
        for symbols in product(ALPHABET, repeat=length):
            fixed = suture.repair(write("openai-chat", [*symbols, FINAL]), wire="openai-chat", profile="mistral")
            assert not verdict(list(fixed.messages)), symbols
            count += 1
    covered(f"mistral-common accepts {count} repaired histories of up to 3 messages and a question")
    assert count > len(ALPHABET) ** 3


@given(steps=all_histories)
def test_generated_histories_pass_after_repair(steps: list[Step]) -> None:
    """Illegal ids, broken arguments, missing names and all."""
    fixed = suture.repair(write("openai-chat", [*steps, FINAL]), wire="openai-chat", profile="mistral")
    assert not fixed.unresolved
    assert not verdict(list(fixed.messages))
