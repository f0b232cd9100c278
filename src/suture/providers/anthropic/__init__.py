"""Anthropic's Messages API."""

from suture.profiles import GUESTS, IdForm, Profile, rules

__all__ = ["ANTHROPIC"]

ANTHROPIC = Profile(
    name="anthropic",
    wires=("anthropic", *GUESTS),
    ids=IdForm(pattern="[a-zA-Z0-9_-]+", scope="history", prefix="toolu_", length=30),
    reads_compacted=False,  # "Compaction": the API drops all content blocks before a compaction block
    rules=rules(
        "anthropic",
        answered="400: 'tool_use ids were found without tool_result blocks immediately after'",
        has_call="400: 'unexpected tool_use_id found in tool_result blocks'",
        same_id="400: 'unexpected tool_use_id found in tool_result blocks'",
        one_turn="neighbours are joined; then 400 as if the result were missing, or 'Expected thinking, but found tool_use'",
        thinking_signed="400: 'Invalid signature in thinking block' (pydantic-ai#7601), 'thinking.signature: Field required' (goclaw#566)",
        thinking_not_last="400: 'The final block in an assistant message cannot be thinking' (forgecode#2107, #3073, hermes#16921)",
        text_errors="400: 'all content must be type text if is_error is true' (vellum#18387)",
        server_tools="400: a server_tool_use without its result in the same message (claude-code#92509)",
        server_tools_end="400: 'tool use with id … was found without a corresponding web_search_tool_result block' (lisette#108, langchainjs#11407)",
        sendable="400: 'no low surrogate in string' (claude-code#68325, #69927)",
        single_result="400: 'each tool_use must have a single result'",
        adjacent="400: 'Each tool_use block must have a corresponding tool_result block in the next message'",
        one_result_message="400: 'must have a corresponding tool_result block in the next message'",
        results_first="400 as if the result were missing (qwen-code#8165, seen live)",
        calls_last="400 as if the result were missing (recorded 2026-05-05)",
        id_form="400: 'tool_use.id: String should match pattern ^[a-zA-Z0-9_-]+$'",
        id_unique=("An id is used once in a request.", "400: 'tool_use ids must be unique'"),
        arguments="400: tool_use.input 'Input should be a valid dictionary'",
        call_named="400: tool_use.name 'String should have at least 1 character'",
        text_not_blank="400: 'text content blocks must be non-empty'",
        error_told="400: 'tool_result: content cannot be empty if is_error is true'",
        not_empty="400: 'all messages must have non-empty content'",
    ),
)
