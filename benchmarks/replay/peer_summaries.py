"""LangChain's and deepagents' `SummarizationMiddleware`, each with its defaults, on recorded runs.

One question is a run, its limit and who is to send it; the answer is what goes to the model before each reply: numbers
of recorded messages, and messages that were made. Both are given the benchmark's counter and its summary. The system
prompt is never theirs to summarise: it is taken off the limit.
"""

# ruff: noqa: SLF001 - what they send to a summariser is told by nothing public

import json
import sys
import tempfile
from importlib.metadata import version
from typing import Any

from deepagents.backends import FilesystemBackend
from deepagents.middleware.summarization import SummarizationMiddleware as DeepAgents
from langchain.agents.middleware import SummarizationMiddleware
from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse
from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

_ROLES = {"human": "user", "ai": "assistant", "tool": "tool"}


def _read(place: int, data: dict[str, Any]) -> AnyMessage:
    text, extra = data["content"] or "", {"place": place, "rest": 4 * data["tokens"] - len(data["content"] or "")}
    match data["role"]:
        case "assistant":
            made = [(call["id"], call["function"]) for call in data.get("tool_calls") or ()]
            calls = [
                {"name": one["name"], "args": json.loads(one["arguments"]), "id": name, "type": "tool_call"}
                for name, one in made
            ]
            return AIMessage(text, tool_calls=calls, additional_kwargs=extra, id=str(place))
        case "tool":
            return ToolMessage(text, tool_call_id=data["tool_call_id"], additional_kwargs=extra, id=str(place))
        case _:
            return HumanMessage(text, additional_kwargs=extra, id=str(place))


def _count(messages: Any) -> int:
    """Count what is left of a recorded message as the benchmark counted it, and others by their characters."""
    return sum((one.additional_kwargs.get("rest", 6) + len(str(one.content))) // 4 for one in messages)


class _Talk:
    """One run: what is in the state, what was sent, and what summaries were asked for."""

    def __init__(self, messages: list[dict[str, Any]], limit: int, summary: str) -> None:
        self.recorded = [_read(place, data) for place, data in enumerate(messages)]
        self.state: dict[str, Any] = {"messages": []}
        self.limit, self.summary = limit, summary
        self.sent: list[dict[str, Any]] = []
        self.asked = 0
        self.form: Any = None

    def summarize(self, messages: list[AnyMessage]) -> str:
        self.asked += len(self.form(messages)) // 4
        return self.summary

    def note(self, messages: list[AnyMessage], *, refused: bool = False) -> None:
        shown = [self._show(one) for one in messages]
        self.sent.append({"messages": shown, "asked": self.asked, "refused": refused})
        self.asked = 0

    def _show(self, message: AnyMessage) -> Any:
        place = message.additional_kwargs.get("place")
        if place is not None and message.content == self.recorded[place].content:
            return place
        made = {"role": _ROLES[message.type], "content": str(message.content)}
        return made | ({"tool_call_id": message.tool_call_id} if isinstance(message, ToolMessage) else {})


def _langchain(talk: _Talk) -> None:
    middleware: Any = SummarizationMiddleware(
        FakeListChatModel(responses=[""]),
        trigger=("tokens", talk.limit),
        token_counter=_count,
        summarizer=talk.summarize,
    )
    talk.form = middleware._format_summary_prompt
    for message in talk.recorded:
        if isinstance(message, AIMessage):
            update = middleware.before_model(talk.state, None)
            if update is not None:
                talk.state["messages"] = update["messages"][1:]
            talk.note(talk.state["messages"])
        talk.state["messages"].append(message)


def _deepagents(talk: _Talk) -> None:
    model = FakeListChatModel(responses=[""], profile={"max_input_tokens": talk.limit})
    part = {"trigger": ("fraction", 0.85), "keep": ("fraction", 0.10)}  # what create_deep_agent gives it
    with tempfile.TemporaryDirectory() as folder:
        middleware: Any = DeepAgents(
            model,
            backend=FilesystemBackend(root_dir=folder, virtual_mode=True),
            token_counter=_count,
            trim_tokens_to_summarize=None,
            truncate_args_settings=part,
            summarizer=talk.summarize,
            **part,
        )
        talk.form = middleware._lc_helper._format_summary_prompt
        for message in talk.recorded:
            if isinstance(message, AIMessage):
                _turn(middleware, model, talk)
            talk.state["messages"] = [*talk.state["messages"], message]


def _turn(middleware: Any, model: Any, talk: _Talk) -> None:
    def handler(request: Any) -> ModelResponse[Any]:
        talk.note(request.messages)
        return ModelResponse(result=[AIMessage("")])

    request: Any = ModelRequest(model=model, messages=list(talk.state["messages"]), state=dict(talk.state))
    try:
        made = middleware.wrap_model_call(request, handler)
    except ContextOverflowError:  # an agent would end here
        talk.note(middleware._get_effective_messages(request), refused=True)
        return
    if isinstance(made, ExtendedModelResponse) and made.command is not None:
        update = dict(made.command.update)
        replaced = {one.id: one for one in update.pop("messages", ())}
        talk.state.update(update)
        talk.state["messages"] = [replaced.get(one.id, one) for one in talk.state["messages"]]


_WHO = {"langchain": _langchain, "deepagents": _deepagents}


def _main() -> None:
    named = {"version": f"{version('langchain')}, deepagents {version('deepagents')}"}
    print(json.dumps(named), flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        talk = _Talk(question["messages"], question["limit"], question["summary"])
        _WHO[question["who"]](talk)
        print(json.dumps({"sent": talk.sent}), flush=True)


if __name__ == "__main__":
    _main()
