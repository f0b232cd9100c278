"""OpenAI Responses: calls pair by id over the whole input; reasoning and what it produced belong together."""

from suture.profiles import GUESTS, PRINTABLE, IdForm, Profile, rules

__all__ = ["OPENAI_RESPONSES"]

OPENAI_RESPONSES = Profile(
    name="openai-responses",
    wires=("openai-responses", *GUESTS),
    ids=IdForm(pattern=PRINTABLE, limit=64, scope="history"),
    names="[a-zA-Z0-9_-]{1,64}",
    adjacent=False,
    rules=rules(
        "openai-responses",
        answered="400: 'No tool output found for function call'",
        has_call="400: 'No tool call found for function call output with call_id'",
        same_id="400: 'No tool call found for function call output with call_id'",
        item_id_form="400: 'Expected an ID that begins with fc' (nodetool#4252, langchainjs#11044); 'input[2].id: string too long. Expected a string with maximum length 64' (oh-my-pi#284, hermes-agent#10788)",
        name_form="400: name 'does not match pattern ^[a-zA-Z0-9_-]+$' (mcp-use#90)",
        sendable="a request is UTF-8",
        single_result="400: 'Duplicate function_call_output for call_id' (hermes-agent#111443)",
        adjacent="an output comes after its call",
        id_form=(
            "A call id has 1 to 64 characters.",
            "400: call_id 'string too long. Expected a string with maximum length 64'",
        ),
        id_unique=(
            "A call id is used once.",
            "400: 'Duplicate function_call_output for call_id', ids that recur across turns (hermes-agent#111443)",
        ),
        item_id="400: 'Duplicate item found with id' (copilot-cli#3560, agent-framework#3295)",
        reasoning_pair="400: 'Item of type reasoning was provided without its required following item' (recorded; codex#15542 drops it)",
        call_named="400: name 'empty string'",
        arguments="strict clones parse the arguments",
        not_empty="an assistant message without content says nothing (billion-context#766)",
    ),
)
