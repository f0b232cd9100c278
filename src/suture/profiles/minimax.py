"""MiniMax: Chat Completions and an Anthropic-style endpoint; code 2013 for anything out of place."""

from suture.profiles._profile import NEUTRAL, IdForm, Profile
from suture.profiles._rules import rules

__all__ = ["MINIMAX"]

MINIMAX = Profile(
    name="minimax",
    wires=("openai-chat", "anthropic", *NEUTRAL),
    ids=IdForm(pattern="[a-zA-Z0-9_-]+", limit=64, scope="history"),
    rules=rules(
        "minimax",
        answered="2013: 'tool call and result not match'",
        has_call='2013: "tool result\'s tool id not found" (opencode#32609, seen live)',
        single_result="2013: 'tool call and result not match'",
        adjacent="2013: 'tool call result does not follow tool call'",
        one_result_message="2013: 'tool call result does not follow tool call'",
        results_alone=(
            "A message with tool results holds nothing else.",
            "2013 with text behind the result, 200 with it in the next message (opencode#32609, seen live)",
        ),
        results_first="as Anthropic",
        calls_last="as Anthropic",
        id_form="2013: 'tool call id is invalid'",
        id_unique=(
            "An id is used once in a request.",
            "2013: 'tool call result does not follow tool call' (oh-my-pi#2055)",
        ),
        call_named="as Chat Completions",
        arguments="2013: 'invalid function arguments json string'",
        text_results="as Chat Completions",
        text_not_blank="as Anthropic",
        error_told="as Anthropic",
        result_content="as Chat Completions",
        not_empty="as Chat Completions",
    ),
)
