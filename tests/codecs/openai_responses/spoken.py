"""What the model said, thought and called: its items, each beside the native blocks."""

from typing import Any

from suture.messages import AssistantGenText, ContentBlock, FunctionToolCall, Reasoning
from tests.codecs.openai_responses.marks import WIRE, kept, part, says, unknown

SEARCH = '{"query":"tides"}'
CITED = {"type": "url_citation", "url": "https://example.com", "title": "t", "start_index": 0, "end_index": 2}

SPOKEN: dict[str, tuple[list[dict[str, Any]], list[ContentBlock]]] = {
    "two texts of one message": (
        [
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "a"}, {"type": "output_text", "text": "b"}],
            }
        ],
        [AssistantGenText("a"), AssistantGenText("b")],
    ),
    "two messages": (
        [says("a"), says("b")],
        [AssistantGenText("a"), AssistantGenText("b", extra=kept(item={}))],
    ),
    "a message of the service": (
        [
            {
                "type": "message",
                "id": "msg_9f",
                "role": "assistant",
                "status": "completed",
                "phase": "final_answer",
                "content": [{"type": "output_text", "text": "hi", "annotations": [CITED]}],
            }
        ],
        [AssistantGenText("hi", extra=kept(annotations=[CITED]))],
    ),
    "two messages of the service": (
        [
            {**says("a"), "phase": "commentary"},
            {**says("b"), "phase": "final_answer"},
        ],
        [
            AssistantGenText("a", extension={"aside": True}),
            AssistantGenText("b", extra=kept(item={"phase": "final_answer"})),
        ],
    ),
    "a refusal": (
        [{"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "I can't."}]}],
        [AssistantGenText("I can't.", extension={"refusal": True})],
    ),
    "an unknown part": (
        [
            {
                "type": "message",
                "id": "msg_9f",
                "role": "assistant",
                "content": [{"type": "output_hologram"}, {"type": "output_text", "text": "see", "annotations": []}],
            }
        ],
        [part({"type": "output_hologram"}), AssistantGenText("see")],
    ),
    "a call": (
        [{"type": "function_call", "call_id": "a", "name": "search", "arguments": SEARCH}],
        [FunctionToolCall("a", "search", SEARCH)],
    ),
    "a call of the service": (
        [
            {
                "type": "function_call",
                "id": "fc_9f",
                "call_id": "a",
                "name": "search",
                "arguments": SEARCH,
                "status": "completed",
                "namespace": "web",
            }
        ],
        [FunctionToolCall("a", "search", SEARCH, extra=kept(id="fc_9f", status="completed", namespace="web"))],
    ),
    "a cut call": (
        [{"type": "function_call", "call_id": "a", "name": "search", "arguments": '{"query":'}],
        [FunctionToolCall("a", "search", '{"query":')],
    ),
    "text between calls": (
        [
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
            says("and"),
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        ],
        [FunctionToolCall("a", "f", "{}"), AssistantGenText("and"), FunctionToolCall("c", "f", "{}")],
    ),
    "encrypted reasoning": (
        [{"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}],
        [Reasoning("", "gAAA", extension={"wire": WIRE})],
    ),
    "reasoning and what it produced": (
        [
            {"type": "reasoning", "id": "rs_9f", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "function_call", "id": "fc_9f", "call_id": "a", "name": "f", "arguments": "{}"},
            {
                "type": "message",
                "id": "msg_9f",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "b", "annotations": []}],
            },
        ],
        [
            Reasoning("hm", extension={"wire": WIRE, "id": "rs_9f"}),
            FunctionToolCall("a", "f", "{}", extra=kept(id="fc_9f", reasoning="rs_9f")),
            AssistantGenText("b"),
        ],
    ),
    "reasoning that repeats itself": (
        [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "a"}] * 2}],
        [Reasoning("a\n\na", extension={"wire": WIRE, "summary": [{"type": "summary_text", "text": "a"}] * 2})],
    ),
    "reasoning in several parts": (
        [
            {
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}],
                "content": [{"type": "reasoning_text", "text": "c"}],
            }
        ],
        [
            Reasoning(
                "a\n\nb\n\nc",
                extension={
                    "wire": WIRE,
                    "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}],
                    "content": [{"type": "reasoning_text", "text": "c"}],
                },
            )
        ],
    ),
    "a custom tool": (
        [{"type": "custom_tool_call", "id": "ctc_9f", "call_id": "a", "name": "sql", "input": 'SELECT "x"'}],
        [
            FunctionToolCall(
                "a", "sql", '{"input":"SELECT \\"x\\""}', extra=kept("custom", type="custom_tool_call", id="ctc_9f")
            )
        ],
    ),
    "the local shell": (
        [
            {
                "type": "local_shell_call",
                "id": "lsh_9f",
                "call_id": "a",
                "status": "completed",
                "action": {"type": "exec", "command": ["ls"], "env": {}},
            }
        ],
        [
            FunctionToolCall(
                "a",
                "local_shell",
                '{"type":"exec","command":["ls"],"env":{}}',
                extra=kept("local_shell", id="lsh_9f", status="completed"),
            )
        ],
    ),
    "the shell": (
        [{"type": "shell_call", "call_id": "a", "action": {"commands": ["ls"]}}],
        [FunctionToolCall("a", "shell", '{"commands":["ls"]}', extra=kept("shell"))],
    ),
    "a patch": (
        [
            {
                "type": "apply_patch_call",
                "call_id": "a",
                "status": "completed",
                "operation": {"type": "delete_file", "path": "a.txt"},
            }
        ],
        [
            FunctionToolCall(
                "a",
                "apply_patch",
                '{"type":"delete_file","path":"a.txt"}',
                extra=kept("apply_patch", status="completed"),
            )
        ],
    ),
    "an unknown item": (
        [{"type": "compaction", "id": "cmp_9f", "encrypted_content": "gAAA"}],
        [unknown({"type": "compaction", "id": "cmp_9f", "encrypted_content": "gAAA"})],
    ),
}
"""What the model said, thought and called."""

HEADS: dict[str, dict[str, Any]] = {
    "a message of the service": {"id": "msg_9f", "status": "completed", "phase": "final_answer"},
    "two messages of the service": {"phase": "commentary"},
    "an unknown part": {"id": "msg_9f"},
    "reasoning and what it produced": {"id": "msg_9f", "reasoning": "rs_9f"},
}
"""What the first message item among these has beside its content."""
