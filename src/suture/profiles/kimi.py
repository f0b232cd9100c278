"""Kimi (Moonshot): ids restart each round by design."""

from suture.profiles import _shared as shared
from suture.profiles._profile import NATIVE, IdForm, Profile, structure

__all__ = ["KIMI"]

KIMI = Profile(
    name="kimi",
    wires=("openai-chat", *NATIVE),
    ids=IdForm(pattern=r"[^\x00-\x1f\x7f]+", limit=64, scope="turn"),
    field="reasoning_content",
    rules=(
        *structure(
            "kimi",
            answered="400 as Chat Completions",
            orphaned="400: 'tool_call_id does not match any tool call in the preceding assistant messages'",
            single="as Chat Completions",
            adjacent="as Chat Completions",
        ),
        shared.legal_id("kimi", "A call has an id.", "the K3 template resolves a result by its call"),
        shared.unique_id("kimi", "Ids differ within one message.", "ids are name:index within a round"),
        shared.call_named("kimi", "K3 template: 'tool messages need a resolvable tool name'"),
        shared.arguments_object("kimi", "K3 template: 'arguments must be a mapping or a JSON object string'"),
        shared.results_first("kimi", "as Chat Completions"),
        shared.media_outside("kimi", "as Chat Completions"),
        shared.result_content("kimi", "as Chat Completions"),
        shared.empty_message("kimi", "as Chat Completions"),
        shared.reasoning_field(
            "kimi",
            "400: 'thinking is enabled but reasoning_content is missing in assistant tool call message'",
        ),
    ),
)
