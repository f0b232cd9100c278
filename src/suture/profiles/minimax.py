"""MiniMax: Chat Completions and an Anthropic-style endpoint; code 2013 for anything out of place."""

from suture.profiles import _shared as shared
from suture.profiles._profile import NATIVE, IdForm, Operation, Profile, Rule, structure

__all__ = ["MINIMAX"]

MINIMAX = Profile(
    name="minimax",
    wires=("openai-chat", "anthropic", *NATIVE),
    ids=IdForm(pattern="[a-zA-Z0-9_-]+", limit=64, scope="history"),
    rules=(
        *structure(
            "minimax",
            answered="2013: 'tool call and result not match'",
            orphaned='2013: "tool result\'s tool id not found" (opencode#32609, seen live)',
            single="2013: 'tool call and result not match'",
            adjacent="2013: 'tool call result does not follow tool call'",
        ),
        Rule(
            id="minimax.one-result-message",
            problems=("split-results",),
            says="All results of a turn are in the next message.",
            source="2013: 'tool call result does not follow tool call'",
            operation=Operation.MERGE,
            wires=("anthropic", "agentic"),
        ),
        Rule(
            id="minimax.results-alone",
            problems=("trailing-text",),
            says="A message with tool results holds nothing else.",
            source="2013 with text behind the result, 200 with it in the next message (opencode#32609, seen live)",
            operation=Operation.SPLIT,
            wires=("anthropic", "agentic"),
        ),
        shared.results_first("minimax", "as Anthropic"),
        shared.text_first("minimax", "as Anthropic"),
        shared.legal_id("minimax", "An id is made of letters, digits, _ and -.", "2013: 'tool call id is invalid'"),
        shared.unique_id(
            "minimax",
            "An id is used once in a request.",
            "2013: 'tool call result does not follow tool call' (oh-my-pi#2055)",
        ),
        shared.call_named("minimax", "as Chat Completions"),
        shared.arguments_object("minimax", "2013: 'invalid function arguments json string'"),
        shared.media_outside("minimax", "as Chat Completions"),
        shared.blank_text("minimax", "as Anthropic"),
        shared.empty_error("minimax", "as Anthropic"),
        shared.result_content("minimax", "as Chat Completions"),
        shared.empty_message("minimax", "as Chat Completions"),
    ),
)
