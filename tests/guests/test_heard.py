"""A repair is an event in the frameworks' own traces."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

from agents import Agent, RunConfig, Runner, set_trace_processors
from agents.tracing import TracingProcessor
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tracers.langchain import LangChainTracer, wait_for_all_tracers
from langsmith import Client

from suture.integrations.langchain import PatchToolCallsMiddleware
from suture.integrations.openai_agents import PatchToolCalls
from tests.guests.openai_agents.scripted import ScriptedModel, assistant_message

CALLS: Any = [{"id": "call_1", "name": "pay", "args": {}}]


class LangSmith(ThreadingHTTPServer):
    """Takes what is traced."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[dict[str, Any]] = []


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        cast("LangSmith", self.server).bodies.append(json.loads(body))
        self.send_response(202)
        self.end_headers()
        self.wfile.write(b"{}")

    do_PATCH = do_POST  # noqa: N815 - the name that the server has for it

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that the server has for it
        pass


def test_in_langchain_it_is_an_event_of_the_run_in_langsmith():
    with LangSmith() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        traced(LangChainTracer(client=Client(api_url=url, api_key="none", auto_batch_tracing=False)))
        server.shutdown()
    events = [event for body in server.bodies for event in body.get("events") or () if event["name"] == "suture.repair"]
    assert [event["kwargs"]["suture.problems"] for event in events][-1:] == [["dangling"]]


def traced(tracer: LangChainTracer) -> None:
    model = GenericFakeChatModel(messages=iter([AIMessage("Very well.")]))
    agent = create_agent(model, middleware=[PatchToolCallsMiddleware()])
    broken = [HumanMessage("Pay."), AIMessage("", tool_calls=CALLS), HumanMessage("And?")]
    agent.invoke({"messages": broken}, {"callbacks": [tracer]})
    wait_for_all_tracers()


class Spans(TracingProcessor):
    def __init__(self) -> None:
        self.ended: list[Any] = []

    def on_trace_start(self, trace: Any) -> None: ...
    def on_trace_end(self, trace: Any) -> None: ...
    def on_span_start(self, span: Any) -> None: ...
    def shutdown(self) -> None: ...
    def force_flush(self) -> None: ...

    def on_span_end(self, span: Any) -> None:
        self.ended.append(span.span_data)


def test_in_the_agents_sdk_it_is_a_span_of_the_trace():
    spans = Spans()
    set_trace_processors([spans])
    call = {"type": "function_call", "call_id": "call_1", "name": "pay", "arguments": "{}"}
    history: Any = [{"role": "user", "content": "Pay."}, call, {"role": "user", "content": "And?"}]
    agent = Agent(name="harbour", model=ScriptedModel([[assistant_message("Very well.")]]))
    asyncio.run(Runner.run(agent, history, run_config=RunConfig(call_model_input_filter=PatchToolCalls())))
    [data] = [data for data in spans.ended if getattr(data, "name", "") == "suture.repair"]
    assert data.data["suture.problems"] == ["dangling"]
    set_trace_processors([])
