"""langchain: `ClearToolUsesEdit`, and the `ContextEditingMiddleware` around it.

- `choose`: which results the edit clears, before each reply of a run. It is called as the middleware calls it, on the
  whole history each time, with its defaults but for the limit, and a counter that says what the benchmark's own says.
- `check`: what the middleware costs where there is nothing to do: its `wrap_model_call`, which copies and counts all
  messages, with its own counter. The handler that it calls returns at once.
"""

import gc
import json
import sys
import time
from importlib.metadata import version
from typing import Any

from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware
from langchain.agents.middleware.types import ModelRequest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

_LEAST_SAMPLE = 0.005
_NEVER = 10**12


def _message(data: dict[str, Any], tokens: int = 0) -> AnyMessage:
    text, extra = data["content"] or "", {"tokens": tokens}
    match data["role"]:
        case "assistant":
            calls = [
                {"name": call["function"]["name"], "args": {}, "id": call["id"], "type": "tool_call"}
                for call in data.get("tool_calls") or ()
            ]
            for made, call in zip(calls, data.get("tool_calls") or (), strict=True):
                made["args"] = json.loads(call["function"]["arguments"])
            return AIMessage(text, tool_calls=calls, additional_kwargs=extra)
        case "tool":
            return ToolMessage(text, tool_call_id=data["tool_call_id"], additional_kwargs=extra)
        case "system":
            return SystemMessage(text, additional_kwargs=extra)
        case _:
            return HumanMessage(text, additional_kwargs=extra)


def _choose(messages: list[dict[str, Any]], tokens: list[int], limits: list[int]) -> dict[str, Any]:
    """Return the places of the cleared results, for each limit and each reply."""
    history = [_message(data, count) for data, count in zip(messages, tokens, strict=True)]
    replies = [place for place, message in enumerate(history) if isinstance(message, AIMessage)]
    return {"chosen": [[_cleared(history[:place], limit) for place in replies] for limit in limits]}


def _cleared(history: list[AnyMessage], limit: int) -> list[int]:
    edited = list(history)
    edit = ClearToolUsesEdit(trigger=limit)
    edit.apply(edited, count_tokens=lambda seen: sum(one.additional_kwargs["tokens"] for one in seen))
    changed = [place for place, (now, before) in enumerate(zip(edited, history, strict=True)) if now is not before]
    if any(edited[place].content != "[cleared]" for place in changed):
        raise SystemExit("the placeholder is not what the model of this class says")
    return changed


def _check(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the CPU seconds of one check of these messages."""
    middleware: Any = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=_NEVER)])
    model = FakeListChatModel(responses=[""])
    request = ModelRequest(model=model, messages=[_message(data) for data in messages])
    middleware.wrap_model_call(request, lambda _: None)
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        count, start = 0, time.process_time()
        while (spent := time.process_time() - start) < _LEAST_SAMPLE:
            middleware.wrap_model_call(request, lambda _: None)
            count += 1
    finally:
        gc.enable()
        gc.unfreeze()
    return {"seconds": spent / count}


_WORK = {"choose": _choose, "check": _check}


def _main() -> None:
    print(json.dumps({"name": "langchain", "version": version("langchain")}), flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        print(json.dumps(_WORK[question.pop("do")](**question)), flush=True)


if __name__ == "__main__":
    _main()
