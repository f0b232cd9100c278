"""`PatchToolCalls` in its forms."""

import asyncio

from suture import Cause, ChatModelAgent, Message, ToolCall
from suture.middleware import PatchToolCalls
from suture.testing import ScriptedModel

BROKEN = [
    Message.user("search"),
    Message.assistant(tool_calls=[ToolCall("call_1", "search", "{}")]),
    Message.user("never mind"),
]


def brief(name: str, call_id: str) -> str:
    return f"{name} {call_id}"


def why(name: str, call_id: str, cause: Cause) -> str:
    return f"{name} {call_id}: {cause}"


async def looked_up(name: str, call_id: str) -> str:
    await asyncio.sleep(0)
    return f"{name} {call_id} later"


async def looked_up_why(name: str, call_id: str, *, cause: Cause) -> str:
    return f"{name} {call_id}: {cause.value}"


class Texts:
    def text(self, name: str, call_id: str, *, cause: Cause = Cause.UNKNOWN) -> str:
        return f"{name} {cause}"


async def said(patch: PatchToolCalls) -> str:
    agent = ChatModelAgent(name="patched", model=ScriptedModel(["fine"]), middlewares=[patch])
    result = await agent.run(BROKEN)
    answer: Message = result.messages[2]
    return answer.content


async def main() -> None:
    assert "canceled" in await said(PatchToolCalls())
    assert await said(PatchToolCalls(brief)) == "search call_1"
    assert await said(PatchToolCalls(generator=why)) == "search call_1: interrupted"
    assert await said(PatchToolCalls(generator=looked_up)) == "search call_1 later"
    assert await said(PatchToolCalls(generator=looked_up_why)) == "search call_1: interrupted"
    assert await said(PatchToolCalls(generator=Texts().text)) == "search interrupted"
    assert await said(PatchToolCalls(generator=lambda name, call_id: name.upper() + call_id)) == "SEARCHcall_1"
    assert await said(PatchToolCalls(generator=lambda name, call_id, cause: f"{name} {call_id} {cause}"))
    await said(PatchToolCalls(tail="keep", orphans="drop", is_placeholder=lambda text: text.endswith("skipped")))
    assert await said(PatchToolCalls(persist=False)) == "never mind"


if __name__ == "__main__":
    asyncio.run(main())
