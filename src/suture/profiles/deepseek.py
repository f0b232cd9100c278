"""DeepSeek: Chat Completions, and a Responses endpoint that wants results right behind their calls."""

from suture.profiles import _shared as shared
from suture.profiles._profile import NATIVE, IdForm, Operation, Profile, Rule, structure

__all__ = ["DEEPSEEK"]

DEEPSEEK = Profile(
    name="deepseek",
    wires=("openai-chat", "openai-responses", *NATIVE),
    ids=IdForm(pattern=r"[^\x00-\x1f\x7f]+", limit=64, scope="turn"),
    field="reasoning_content",
    rules=(
        *structure(
            "deepseek",
            answered="400: 'insufficient tool messages following tool_calls message'",
            orphaned="400: \"Messages with role 'tool' must be a response to a preceding message with 'tool_calls'\"",
            single="strict servers refuse a second tool message for one id",
            adjacent="400: 'No tool output found for tool call' although it comes later (recorded)",
        ),
        Rule(
            id="deepseek.calls-together",
            problems=("text-between-calls",),
            says="The calls of one turn stand together.",
            source="400: 'No tool output found for tool call' with a message between two calls (recorded)",
            operation=Operation.TEXT_FIRST,
            wires=("openai-responses",),
        ),
        shared.legal_id("deepseek", "A call has an id.", "as Chat Completions"),
        shared.unique_id("deepseek", "Ids differ within one message.", "as Chat Completions"),
        shared.call_named("deepseek", "as Chat Completions"),
        shared.arguments_object("deepseek", "as Chat Completions"),
        shared.results_first("deepseek", "as Chat Completions"),
        shared.media_outside("deepseek", "as Chat Completions"),
        shared.result_content("deepseek", "as Chat Completions"),
        shared.empty_message("deepseek", "an empty assistant message breaks the pair (billion-context#766)"),
        shared.reasoning_field(
            "deepseek", "400: 'Missing reasoning_content field in the assistant message' (continue#11285)"
        ),
    ),
)
