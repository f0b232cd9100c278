"""The SDKs `openai` and `anthropic`, in the loop that their pages show."""

from collections.abc import Callable
from typing import Any

from _contest import Case, contest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

_PARAMETERS = {"type": "object", "properties": {}}


async def _chat(case: Case, pay: Callable[[], str]) -> str:
    client: Any = AsyncOpenAI(base_url=f"{case['url']}/v1")
    tools = [{"type": "function", "function": {"name": "pay", "parameters": _PARAMETERS}}]
    messages: list[Any] = [{"role": "user", "content": "go"}]
    while True:
        asked = {"model": case["model"], "messages": messages, "tools": tools}
        if case["streamed"]:
            async with client.chat.completions.stream(**asked) as stream:
                reply = (await stream.get_final_completion()).choices[0].message
        else:
            reply = (await client.chat.completions.create(**asked)).choices[0].message
        if not reply.tool_calls:
            return reply.content
        calls = [{"id": "call_1", "type": "function", "function": {"name": "pay", "arguments": "{}"}}]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages.append({"role": "tool", "tool_call_id": "call_1", "content": pay()})


async def _messages(case: Case, pay: Callable[[], str]) -> str:
    client: Any = AsyncAnthropic(base_url=case["url"])
    tools = [{"name": "pay", "input_schema": _PARAMETERS}]
    messages: list[Any] = [{"role": "user", "content": "go"}]
    while True:
        asked = {"model": case["model"], "messages": messages, "tools": tools, "max_tokens": 100}
        if case["streamed"]:
            async with client.messages.stream(**asked) as stream:
                reply = await stream.get_final_message()
        else:
            reply = await client.messages.create(**asked)
        if reply.stop_reason != "tool_use":
            return reply.content[0].text
        messages.append({"role": "assistant", "content": reply.content})
        result = {"type": "tool_result", "tool_use_id": reply.content[0].id, "content": pay()}
        messages.append({"role": "user", "content": [result]})


async def _ask(case: Case, pay: Callable[[], str]) -> str:
    return await (_messages if case["wire"] == "anthropic" else _chat)(case, pay)


if __name__ == "__main__":
    contest(_ask)
