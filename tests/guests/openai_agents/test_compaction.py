"""Sessions that compact go on doing so with Suture in place."""

import asyncio
from typing import Any

import pytest
from agents import Agent, OpenAIResponsesCompactionSession, SQLiteSession
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from agents.tool import function_tool
from openai import AsyncOpenAI
from openai.types.responses import CompactedResponse

from suture.integrations.openai_agents import PatchedSession, PatchToolCalls
from tests.guests.openai_agents.running import arun, scripted
from tests.guests.openai_agents.scripted import assistant_message, function_call
from tests.guests.openai_agents.test_properties import mended
from tests.guests.openai_agents.written import asks, gives, says, user

BROKEN = [user("ask"), asks("a"), user("stop"), says("ok")]
TURNS = 20


class Compacting:
    """Stands for the service that compacts: it keeps what it was sent."""

    def __init__(self) -> None:
        self.asked: list[list[Any]] = []
        self.responses = self

    async def compact(self, **sent: Any) -> Any:
        self.asked.append(list(sent.get("input") or ()))
        item = {"type": "compaction", "id": f"cmp_{len(self.asked)}", "encrypted_content": "…"}
        usage = {
            "input_tokens": 1,
            "output_tokens": 1,
            "total_tokens": 2,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        made = {"id": "resp", "created_at": 1, "object": "response.compaction", "output": [item], "usage": usage}
        return CompactedResponse.model_validate(made)


def talked(history: list[Any], *, patched: bool, arguments: str = "{}", **choices: Any) -> tuple[Compacting, int]:
    """Let a session of a few turns grow; return the service that compacts it, and how many items are left."""

    @function_tool
    def look() -> str:
        """Look."""
        return "seen"

    async def main() -> tuple[Compacting, int]:
        service, store = Compacting(), SQLiteSession("conversation")
        await store.add_items(history)
        session: Any = OpenAIResponsesCompactionSession("conversation", store, client=service, compaction_mode="input")  # pyright: ignore[reportArgumentType]
        session = PatchedSession(session) if patched else session
        for turn in range(TURNS):
            model = scripted([function_call("look", arguments, call_id=f"call_{turn}")], [assistant_message("well")])
            await arun(Agent(name="assistant", model=model, tools=[look]), "next", session=session, **choices)
        return service, len(await store.get_items())

    return asyncio.run(main())


def test_a_patched_session_with_a_call_without_a_result_is_compacted():
    plain, left_without = talked(BROKEN, patched=False)
    service, left = talked(BROKEN, patched=True)
    assert len(service.asked) >= len(plain.asked) > 0
    assert left <= left_without
    outputs = {item["call_id"] for sent in service.asked for item in sent if item.get("type") == "function_call_output"}
    calls = {item["call_id"] for sent in service.asked for item in sent if item.get("type") == "function_call"}
    assert "a" in calls <= outputs


@pytest.mark.parametrize("patched", [False, True], ids=["filter", "filter and session"])
def test_blank_arguments_do_not_end_compaction(patched: bool):
    without, _ = talked([], patched=False, arguments="")
    service, _ = talked([], patched=patched, arguments="", model_filter=PatchToolCalls())
    assert len(service.asked) == len(without.asked) > 0


def test_for_chat_completions_blank_arguments_are_an_empty_object():
    history = [user("ask"), {**asks("a"), "arguments": ""}, gives("a", "42")]
    client = AsyncOpenAI(api_key="none")
    model = OpenAIChatCompletionsModel("m", client)
    assert [item["arguments"] for item in mended(history, model=model) if "arguments" in item] == ["{}"]
    assert mended(history) == history
    asyncio.run(client.close())
