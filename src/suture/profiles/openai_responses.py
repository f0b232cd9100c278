"""OpenAI Responses: pairing by call id over the whole input; reasoning and what it produced are one unit."""

from suture.profiles import _shared as shared
from suture.profiles._profile import NATIVE, IdForm, Operation, Profile, Rule, structure

__all__ = ["OPENAI_RESPONSES"]

OPENAI_RESPONSES = Profile(
    name="openai-responses",
    wires=("openai-responses", *NATIVE),
    ids=IdForm(pattern=r"[^\x00-\x1f\x7f]+", limit=64, scope="history"),
    adjacent=False,
    rules=(
        *structure(
            "openai-responses",
            answered="400: 'No tool output found for function call'",
            orphaned="400: 'No tool call found for function call output with call_id'",
            single="400: 'Duplicate function_call_output for call_id' (hermes-agent#111443)",
            adjacent="an output comes after its call",
        ),
        shared.legal_id(
            "openai-responses",
            "A call id has 1 to 64 characters.",
            "400: call_id 'string too long. Expected a string with maximum length 64'",
        ),
        shared.unique_id(
            "openai-responses",
            "A call id is used once.",
            "400: 'Duplicate function_call_output for call_id', ids that recur across turns (hermes-agent#111443)",
        ),
        Rule(
            id="openai-responses.item-id",
            problems=("repeated-item",),
            says="An item id is used once.",
            source="400: 'Duplicate item found with id' (copilot-cli#3560, agent-framework#3295)",
            operation=Operation.RENAME_ID,
            wires=("openai-responses",),
        ),
        Rule(
            id="openai-responses.reasoning-pair",
            problems=("lone-reasoning",),
            says="A reasoning item is followed by the item it produced.",
            source="400: 'Item of type reasoning was provided without its required following item' (recorded)",
            operation=Operation.UNREPAIRABLE,
            wires=("openai-responses",),
        ),
        shared.call_named("openai-responses", "400: name 'empty string'"),
        shared.arguments_object("openai-responses", "strict clones parse the arguments"),
        shared.empty_message(
            "openai-responses", "an assistant message without content says nothing (billion-context#766)"
        ),
    ),
)
