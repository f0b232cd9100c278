"""Anthropic's Messages API."""

from suture.profiles import _shared as shared
from suture.profiles._profile import NATIVE, IdForm, Operation, Profile, Rule, structure

__all__ = ["ANTHROPIC"]

ANTHROPIC = Profile(
    name="anthropic",
    wires=("anthropic", *NATIVE),
    ids=IdForm(pattern="[a-zA-Z0-9_-]+", limit=128, scope="history", prefix="toolu_", length=30),
    rules=(
        *structure(
            "anthropic",
            answered="400: 'tool_use ids were found without tool_result blocks immediately after'",
            orphaned="400: 'unexpected tool_use_id found in tool_result blocks'",
            single="400: 'each tool_use must have a single result'",
            adjacent="400: 'Each tool_use block must have a corresponding tool_result block in the next message' ",
        ),
        Rule(
            id="anthropic.one-result-message",
            problems=("split-results",),
            says="All results of a turn are in the next message.",
            source="400: 'must have a corresponding tool_result block in the next message'",
            operation=Operation.MERGE,
            wires=("anthropic", "agentic"),
        ),
        shared.results_first("anthropic", "400 as if the result were missing (qwen-code#8165, seen live)"),
        shared.text_first("anthropic", "400 as if the result were missing (recorded 2026-05-05)"),
        shared.legal_id(
            "anthropic",
            "An id is made of letters, digits, _ and -.",
            "400: 'tool_use.id: String should match pattern ^[a-zA-Z0-9_-]+$'",
        ),
        shared.unique_id("anthropic", "An id is used once in a request.", "400: 'tool_use ids must be unique'"),
        shared.arguments_object("anthropic", "400: tool_use.input 'Input should be a valid dictionary'"),
        shared.call_named("anthropic", "400: tool_use.name 'String should have at least 1 character'"),
        shared.blank_text("anthropic", "400: 'text content blocks must be non-empty'"),
        shared.empty_error("anthropic", "400: 'tool_result: content cannot be empty if is_error is true'"),
        shared.empty_message("anthropic", "400: 'all messages must have non-empty content'"),
    ),
)
