"""Histories, checked and repaired, whole and as they grow."""

from collections.abc import Sequence
from typing import Any, assert_type

import suture
from suture import (
    AgenticMessage,
    AmbiguousWireError,
    Cause,
    Displaced,
    Finding,
    History,
    InputError,
    Message,
    Pending,
    Repaired,
    Repairer,
    Report,
    ToolCall,
    check,
    repair,
)
from suture.messages import AgenticRole, FunctionToolCall


def plain() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "tides", "arguments": "{}"}}
    history: list[dict[str, Any]] = [
        {"role": "user", "content": "When is high tide?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": "And the weather?"},
    ]
    fixed = suture.repair(history)
    print(fixed.messages[2]["content"])
    print(fixed.report)
    assert not suture.check(history).acceptable
    assert suture.check(fixed.messages, profile="mistral", tail="keep").wire == "openai-chat"


def without_annotations() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "tides", "arguments": "{}"}}
    history = [
        {"role": "user", "content": "When is high tide?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    fixed = suture.repair(history)
    assert fixed.messages[2]["role"] == "tool"
    objects: list[object] = list(history)
    assert_type(repair(objects), Repaired[Any])


def typed_dicts(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    fixed = repair(history, wire="openai-chat", profile="openai-chat", tail="keep", orphans="drop", language="zh")
    assert_type(fixed, Repaired[dict[str, Any]])
    assert_type(fixed.messages, list[dict[str, Any]])
    assert_type(fixed.pending, tuple[Pending, ...])
    return list(fixed.messages)


def native() -> None:
    history = [
        Message.user("search"),
        Message.assistant(tool_calls=[ToolCall("call_1", "search", "{}"), ToolCall("call_2", "search", "{}")]),
        Message.tool("3 pages", "call_1", "search"),
        Message.user("stop"),
    ]
    fixed = repair(
        history,
        generator=lambda name, call_id: name + " was skipped: " + call_id,
        causes={(1, 1): Cause.STOPPED},
        is_placeholder=lambda text: text.startswith("skipped"),
    )
    assert_type(fixed, Repaired[Message])
    assert_type(fixed.messages[0], Message)
    assert_type(fixed.unresolved, tuple[Finding, ...])
    assert fixed.messages[3].content == "search was skipped: call_2"
    told = repair(history, generator=explain, causes={(1, 1): "rejected"})
    assert told.messages[3].content == "search was rejected (call_2)"
    assert_type(repair(History(history)).messages, list[Message])
    assert_type(repair([*history, Message.user("go on")]), Repaired[Message])
    blocks = [AgenticMessage.assistant([FunctionToolCall("call_1", "search")])]
    assert_type(repair(blocks).messages[0].role, AgenticRole)


def explain(name: str, call_id: str, cause: Cause) -> str:
    return f"{name} was {cause} ({call_id})"


def reported(report: Report) -> dict[str, Any]:
    assert_type(report.findings, tuple[Finding, ...])
    assert_type(report.displaced, tuple[Displaced, ...])
    for finding in report.findings:
        print(finding.index, finding.problem, finding.mended, finding.rule)
    assert_type(report.to_json(content=True), str)
    return report.to_dict()


def growing() -> None:
    conversation = Repairer(wire="openai-chat")
    conversation.extend([{"role": "user", "content": "hi"}])
    conversation.extend([{"role": "assistant", "content": "hello"}]).extend([])
    send = list(conversation.messages)
    print([message["role"] for message in send])

    repairer = Repairer([Message.user("hi")], tail="keep", generator=lambda name, call_id: f"{name} {call_id}")
    assert_type(repairer, Repairer[Message])
    assert_type(repairer.messages, Sequence[Message])
    assert_type(repairer.changed, bool)
    repairer.reset()
    assert not repairer.unresolved


def refused(messages: list[Any]) -> str:
    try:
        return str(check(messages).acceptable)
    except AmbiguousWireError as error:
        return ", ".join(error.candidates)
    except InputError as error:
        return f"{error.index} {error.path} {error.reason}"


def main() -> None:
    plain()
    without_annotations()
    assert typed_dicts([{"role": "user", "content": "hi"}]) == [{"role": "user", "content": "hi"}]
    native()
    reported(check([Message.tool("42", "call_1")]))
    growing()
    assert refused([{"role": "nobody"}])
    with suture.using_language("zh"):
        plain()
    suture.set_language("en")


if __name__ == "__main__":
    main()
