"""A trace goes on in the MCP server whose tool is called."""

import asyncio
import json

from suture import ChatModelAgent
from tests.integrations.mcp.calling import model_that, odd
from tests.integrations.otel.recording import Recorder


def test_the_server_is_told_the_span_of_the_call():
    recorder = Recorder()

    async def main() -> str:
        async with odd("meta") as server:
            model = model_that(("echo", "{}"))
            agent = ChatModelAgent(model=model, tools=server.tools, middlewares=[recorder.telemetry])
            return (await agent.run("hi")).messages[2].content

    _, trace_id, span_id, _ = json.loads(asyncio.run(main()))["traceparent"].split("-")
    span = recorder.one("execute_tool echo").context
    assert span is not None
    assert (int(trace_id, 16), int(span_id, 16)) == (span.trace_id, span.span_id)
