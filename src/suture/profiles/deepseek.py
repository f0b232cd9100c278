"""DeepSeek: Chat Completions, and a Responses endpoint that wants results right behind their calls."""

from suture.profiles._profile import NEUTRAL, IdForm, Profile
from suture.profiles._rules import rules

__all__ = ["DEEPSEEK"]

DEEPSEEK = Profile(
    name="deepseek",
    wires=("openai-chat", "openai-responses", *NEUTRAL),
    ids=IdForm(pattern=r"[^\x00-\x1f\x7f]+", limit=64, scope="turn"),
    field="reasoning_content",
    rules=rules(
        "deepseek",
        answered="400: 'insufficient tool messages following tool_calls message'",
        has_call="400: \"Messages with role 'tool' must be a response to a preceding message with 'tool_calls'\"",
        single_result="strict servers refuse a second tool message for one id",
        adjacent="400: 'No tool output found for tool call' although it comes later (recorded)",
        calls_together="400: 'No tool output found for tool call' with a message between two calls (recorded)",
        id_form=("A call has an id.", "as Chat Completions"),
        id_unique="as Chat Completions",
        call_named="as Chat Completions",
        arguments="as Chat Completions",
        results_first="as Chat Completions",
        text_results="as Chat Completions",
        result_content="as Chat Completions",
        not_empty="an empty assistant message breaks the pair (billion-context#766)",
        reasoning_field="400: 'Missing reasoning_content field in the assistant message' (continue#11285)",
    ),
)
