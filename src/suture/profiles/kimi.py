"""Kimi (Moonshot): ids restart each round by design."""

from suture.profiles._profile import NEUTRAL, IdForm, Profile
from suture.profiles._rules import rules

__all__ = ["KIMI"]

KIMI = Profile(
    name="kimi",
    wires=("openai-chat", *NEUTRAL),
    ids=IdForm(pattern=r"[^\x00-\x1f\x7f]+", limit=64, scope="turn"),
    field="reasoning_content",
    rules=rules(
        "kimi",
        answered="400 as Chat Completions",
        has_call="400: 'tool_call_id does not match any tool call in the preceding assistant messages'",
        single_result="as Chat Completions",
        adjacent="as Chat Completions",
        id_form=("A call has an id.", "the K3 template resolves a result by its call"),
        id_unique="ids are name:index within a round",
        call_named="K3 template: 'tool messages need a resolvable tool name'",
        arguments="K3 template: 'arguments must be a mapping or a JSON object string'",
        results_first="as Chat Completions",
        text_results="as Chat Completions",
        result_content="as Chat Completions",
        not_empty="as Chat Completions",
        reasoning_field="400: 'thinking is enabled but reasoning_content is missing in assistant tool call message'",
    ),
)
