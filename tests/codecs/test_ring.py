"""A conversation of ten tool turns, handed round all five providers and back."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

import pytest

import suture
from suture.codecs import CODECS, Loss, Lost, Request, get_codec
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    FunctionToolCall,
    FunctionToolResult,
    Reasoning,
    ResponseMeta,
    TokenUsage,
    UserInputImage,
    UserInputText,
)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PICTURE = "image/png"


def image(number: int) -> UserInputImage:
    return UserInputImage(base64_data=PIXEL, mime_type=PICTURE, extra={} if number % 2 else {"mine": number})


def conversation() -> list[AgenticMessage]:
    """Return ten turns: parallel calls, images in questions and results, thought signed by each provider, an error."""
    history: list[AgenticMessage] = []
    for turn in range(10):
        wire = CODECS[turn % len(CODECS)]
        asked = [UserInputText(f"Question {turn}")]
        history.append(AgenticMessage("user", [*asked, image(turn)] if turn % 3 == 0 else asked))
        calls = [
            FunctionToolCall(f"call_{turn}_{number}", ("search", "look")[number % 2], f'{{"number":{number}}}')
            for number in range(1 + turn % 3)
        ]
        signature = "" if wire == "openai-chat" else f"c2ln{turn:04}"
        thought = Reasoning(f"Thought {turn}", signature, extension={"wire": wire})
        meta = ResponseMeta(finish_reason="tool_calls", usage=TokenUsage(prompt_tokens=turn, total_tokens=turn))
        history.append(
            AgenticMessage("assistant", [thought, AssistantGenText(f"Turn {turn}."), *calls], response_meta=meta)
        )
        for number, call in enumerate(calls):
            content: list[Any] = [UserInputText(f"Result {turn}.{number}")]
            if number == 1:
                content.append(image(turn))
            failed = turn == 4 and number == 0
            result = FunctionToolResult(call.call_id, call.name, content, is_error=failed)
            history.append(AgenticMessage("user", [result]))
        history.append(AgenticMessage.assistant(f"Answer {turn}"))
    return history


def atoms(messages: Sequence[AgenticMessage]) -> Counter[tuple[str, ...]]:
    """Return everything that a conversation says, each thing counted, however it is laid out in messages."""
    return Counter(_atoms(messages))


def _atoms(messages: Sequence[AgenticMessage]) -> Iterator[tuple[str, ...]]:
    for message in messages:
        if message.response_meta is not None:
            yield ("meta",)
        for block in message.content_blocks:
            yield from _of(block, message.role)


def _of(block: Any, role: str) -> Iterator[tuple[str, ...]]:
    if isinstance(block, UserInputText | AssistantGenText):
        yield ("text", role, block.text)
    elif isinstance(block, UserInputImage):
        yield ("image", block.base64_data)
        if block.extra.get("mine") is not None:
            yield ("extra",)
    elif isinstance(block, FunctionToolCall):
        yield ("call", block.call_id, block.name, block.arguments)
    elif isinstance(block, Reasoning):
        yield ("thought", block.text, block.signature)
    elif isinstance(block, FunctionToolResult):
        if block.is_error:
            yield ("error", block.call_id)
        texts = [held.text for held in block.content if isinstance(held, UserInputText)]
        yield ("result", block.call_id, texts[0].split("\n")[0] if texts else "")
        for held in block.content:
            if isinstance(held, UserInputImage):
                yield from _of(held, role)


KINDS = {
    "thought": Lost.REASONING,
    "meta": Lost.META,
    "error": Lost.ERROR,
    "extra": Lost.EXTRA,
    "image": Lost.MEDIA,
}


def hand_over(history: Sequence[AgenticMessage], wire: str) -> tuple[list[AgenticMessage], tuple[Loss, ...]]:
    """Encode a conversation and repair the payload, as an agent does, see that it is acceptable, and read it back."""
    codec = get_codec(wire)
    payload, losses = codec.encode_request(Request(history))
    field = next(name for name in ("messages", "input", "contents") if name in payload)
    fixed = suture.repair(payload[field], wire=wire, profile=wire)
    report = suture.check(fixed.messages, wire=wire, profile=wire)
    assert report.acceptable, report
    return list(codec.decode_request({**payload, field: fixed.messages}).messages), losses


@pytest.mark.parametrize("ring", [CODECS, CODECS[::-1], *list(permutations(CODECS))[7::23]], ids=" ".join)
def test_a_conversation_goes_round_all_providers_and_what_is_missing_was_reported(ring: tuple[str, ...]):
    history = conversation()
    for wire in (*ring, ring[0]):
        before = atoms(history)
        history, losses = hand_over(history, wire)
        after = atoms(history)
        missing = before - after
        told = Counter(loss.name for loss in losses)
        for kind, name in KINDS.items():
            gone = sum(count for atom, count in missing.items() if atom[0] == kind)
            assert gone <= told[name], (wire, kind, gone, told)
        silent = {atom for atom in missing if atom[0] not in KINDS}
        assert silent == set(), (wire, silent)


@pytest.mark.parametrize("wire", CODECS)
def test_what_a_provider_signed_itself_comes_back_signed(wire: str):
    own = {block for block in _atoms(conversation()) if block[0] == "thought" and _signed_by(block, wire)}
    history, _ = hand_over(conversation(), wire)
    kept = {atom for atom in _atoms(history) if atom[0] == "thought"}
    assert kept == own
    assert own


def _signed_by(atom: tuple[str, ...], wire: str) -> bool:
    return CODECS[int(atom[1].split()[-1]) % len(CODECS)] == wire


@pytest.mark.parametrize("wire", CODECS)
def test_a_second_time_nothing_more_is_lost(wire: str):
    once, _ = hand_over(conversation(), wire)
    twice, losses = hand_over(once, wire)
    assert atoms(twice) == atoms(once)
    assert losses == ()
