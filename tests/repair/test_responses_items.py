"""What only a flat list of items has: references to items that the service keeps, and typed outputs."""

import suture


def test_an_output_whose_call_the_service_may_keep_is_left_alone() -> None:
    """A reference can stand for the call, so nobody here can say that it does not exist."""
    items = [
        {"role": "user", "content": "hi"},
        {"type": "item_reference", "id": "fc_1"},
        {"type": "function_call_output", "call_id": "call_1", "output": "42"},
    ]
    assert suture.repair(items).messages is items
    grown = suture.Repairer[dict[str, str]]()
    for item in items:
        grown.extend([item])
    assert grown.messages == items


def test_an_output_of_another_type_does_not_answer_a_call() -> None:
    """Each type of call pairs with its own type of output."""
    items = [
        {"type": "custom_tool_call", "call_id": "a", "name": "sql", "input": "select 1"},
        {"type": "function_call_output", "call_id": "a", "output": "42"},
    ]
    fixed = suture.repair(items)
    assert [item.get("type", item.get("role")) for item in fixed.messages] == [
        "custom_tool_call",
        "custom_tool_call_output",
        "user",
    ]


def test_a_named_output_without_a_call_id_is_an_event_from_outside() -> None:
    """It is legal as it is."""
    items = [{"type": "function_call_output", "name": "build_finished", "output": "ok"}]
    assert suture.repair(items).messages is items


def test_an_output_without_an_id_stays_with_the_call_that_has_none_beside_others_out_of_order():
    calls = [
        {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"} for call_id in ("a", "c", "")
    ]
    outputs = [
        {"type": "function_call_output", "call_id": call_id, "output": f"of {call_id or 'the third'}"}
        for call_id in ("c", "", "a")
    ]
    fixed = suture.repair([*calls, *outputs], wire="openai-responses")
    assert suture.check(fixed.messages, wire="openai-responses").acceptable
    told = {item["call_id"]: item["output"] for item in fixed.messages[3:]}
    assert told["a"] == "of a"
    assert told["c"] == "of c"
    assert told[fixed.messages[2]["call_id"]] == "of the third"


def test_what_a_turn_that_nothing_can_answer_said_last_does_not_hide_the_next_turn() -> None:
    """All that stood between them is dropped; the call behind it is given its id all the same."""
    screen = {"type": "computer_call", "id": "cu_1", "call_id": "a", "action": {"type": "screenshot"}}
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"}
    stray = {"type": "function_call_output", "call_id": "z", "output": "42"}
    call = {"type": "function_call", "call_id": "", "name": "f", "arguments": "{}"}
    fixed = suture.repair([screen, thought, stray, call], wire="openai-responses", orphans="drop")
    assert [finding.problem for finding in fixed.report.findings] == ["dangling", "orphan", "dangling", "missing-id"]
    assert fixed.messages[2]["call_id"] == fixed.messages[3]["call_id"] != ""


def test_a_result_behind_the_next_turn_is_late_where_a_provider_wants_results_before_it() -> None:
    """OpenAI takes an output anywhere behind its call; DeepSeek does not."""
    first, second, next_turn = [
        {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"} for call_id in "abc"
    ]
    a, b, c = [{"type": "function_call_output", "call_id": call_id, "output": call_id} for call_id in "abc"]
    items = [first, second, a, next_turn, c, b]
    assert suture.repair(items, wire="openai-responses").messages is items
    fixed = suture.repair(items, wire="openai-responses", profile="deepseek")
    assert fixed.messages == [first, second, a, b, next_turn, c]


def test_reasoning_goes_with_what_it_produced_if_that_goes_or_loses_its_id() -> None:
    ask = {"role": "user", "content": "hi"}
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
    said = {"type": "message", "role": "assistant", "id": "msg_1", "content": [{"type": "output_text", "text": "ok"}]}
    again = {key: value for key, value in said.items() if key != "id"}
    assert suture.repair([said, reasoning, said]).messages == [said, again]
    assert suture.repair([ask, reasoning, {**said, "content": []}]).messages == [ask]
