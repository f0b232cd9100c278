"""Providers that use another provider's wire, with their own rules."""

from suture.profiles import GUESTS, PRINTABLE, IdForm, Profile, rules

_ALWAYS = {"a request is UTF-8": "sendable", "a function message is known by its name": "function_named"}

DEEPSEEK = Profile(
    name="deepseek",
    wires=("openai-chat", "openai-responses", *GUESTS),
    ids=IdForm(pattern=PRINTABLE, limit=64, scope="turn"),
    field="reasoning_content",
    rules=rules(
        "deepseek",
        {
            **_ALWAYS,
            "as Chat Completions": "same_id own_results id_unique call_named arguments results_first text_results result_content",
        },
        answered="400: 'insufficient tool messages following tool_calls message'",
        has_call="400: \"Messages with role 'tool' must be a response to a preceding message with 'tool_calls'\"",
        no_developer="400: unknown variant developer (9router#773)",
        single_result="strict servers refuse a second tool message for one id",
        adjacent="400: 'No tool output found for tool call' although it comes later (recorded)",
        calls_together="400: 'No tool output found for tool call' with a message between two calls (recorded)",
        id_form=("A call has an id.", "as Chat Completions"),
        not_empty="an empty assistant message breaks the pair (billion-context#766)",
        reasoning_field="400: 'Missing reasoning_content field in the assistant message' (continue#11285); of each message of the turn (experiential#890, kimi-cli#2141)",
    ),
)
"""DeepSeek: Chat Completions, and a Responses endpoint that wants results right after their calls."""

GROQ = Profile(
    name="groq",
    wires=("openai-chat", *GUESTS),
    ids=IdForm(pattern=PRINTABLE, limit=40, scope="turn"),
    names="[a-zA-Z0-9_-]{1,64}",
    rules=rules(
        "groq",
        {
            **_ALWAYS,
            "as Chat Completions": "answered has_call same_id own_results single_result adjacent id_unique call_named name_form arguments results_first text_results result_content not_empty",
        },
        id_form=("An id has 1 to 40 characters.", "as Chat Completions"),
        no_thought_fields="400: \"property 'reasoning_content' is unsupported\" (janhq/jan#8136, freellmapi#1070); both (agentjido/req_llm#772)",
    ),
)
"""Groq: Chat Completions without the fields in which other servers keep thoughts."""

KIMI = Profile(
    name="kimi",
    wires=("openai-chat", *GUESTS),
    ids=IdForm(pattern=PRINTABLE, limit=64, scope="turn"),
    field="reasoning_content",
    rules=rules(
        "kimi",
        {
            **_ALWAYS,
            "as Chat Completions": "same_id own_results single_result adjacent results_first text_results result_content not_empty",
        },
        answered="400 as Chat Completions",
        has_call="400: 'tool_call_id does not match any tool call in the preceding assistant messages'",
        id_form=("A call has an id.", "the K3 template resolves a result by its call"),
        id_unique="ids are name:index within a round",
        call_named="K3 template: 'tool messages need a resolvable tool name'",
        arguments="K3 template: 'arguments must be a mapping or a JSON object string'",
        reasoning_field="400: 'thinking is enabled but reasoning_content is missing in assistant tool call message'",
    ),
)
"""Kimi (Moonshot): ids restart each round by design."""

MINIMAX = Profile(
    name="minimax",
    wires=("openai-chat", "anthropic", *GUESTS),
    ids=IdForm(pattern="[a-zA-Z0-9_-]+", limit=64, scope="history"),
    rules=rules(
        "minimax",
        {
            **_ALWAYS,
            "as Chat Completions": "own_results call_named text_results result_content not_empty",
            "as Anthropic": "one_turn results_first calls_last text_not_blank error_told",
        },
        answered="2013: 'tool call and result not match'",
        has_call='2013: "tool result\'s tool id not found" (opencode#32609, seen live)',
        same_id='2013: "tool result\'s tool id not found"',
        single_result="2013: 'tool call and result not match'",
        adjacent="2013: 'tool call result does not follow tool call'",
        one_result_message="2013: 'tool call result does not follow tool call'",
        results_alone=(
            "A message with tool results holds nothing else.",
            "2013 with text behind the result, 200 with it in the next message (opencode#32609, seen live)",
        ),
        id_form="2013: 'tool call id is invalid'",
        id_unique=(
            "An id is used once in a request.",
            "2013: 'tool call result does not follow tool call' (oh-my-pi#2055)",
        ),
        arguments="2013: 'invalid function arguments json string'",
    ),
)
"""MiniMax: Chat Completions and an Anthropic-style endpoint; code 2013 for anything out of place."""

MISTRAL = Profile(
    name="mistral",
    wires=("openai-chat", *GUESTS),
    ids=IdForm(pattern="[a-zA-Z0-9]{9}", limit=9, scope="turn", prefix="", length=9),
    names="[a-zA-Z0-9_-]{1,64}",
    field="thinking",
    rules=rules(
        "mistral",
        {
            **_ALWAYS,
        },
        answered="mistral-common: 'Not the same number of function calls and responses'",
        has_call="mistral-common: 'Unexpected tool call id in tool results'; code 3230",
        same_id="mistral-common: 'Unexpected tool call id in tool results'",
        own_results="as Chat Completions",
        no_developer="mistral-common: 'Unknown message role: developer'",
        functions_only="mistral-common knows no custom calls",
        result_name_form="mistral-common: InvalidToolMessageException",
        single_result="mistral-common: 'Duplicate tool call id in tool results'",
        adjacent="code 3230: 'Unexpected role'",
        id_form=(
            "An id is nine letters and digits.",
            "mistral-common: 'Tool call id must be a-z, A-Z, 0-9, with a length of 9'",
        ),
        id_unique="mistral-common: 'Duplicate tool call id in assistant message'",
        call_named="mistral-common: function name pattern",
        name_form="mistral-common: function name pattern",
        arguments="mistral-common parses the arguments",
        results_first="a tool message follows its call; code 3230",
        text_results="tool content is text before tokenizer v15",
        result_content="mistral-common: tool content is required",
        not_empty="mistral-common: 'Assistant message must have either content or tool_calls'",
        user_first="mistral-common does not count the calls of a first message as calls",
        tool_then_user="code 3230: \"Unexpected role 'user' after role 'tool'\" (avante#2562, LibreChat agents#54)",
        results_alone="tool and user are different roles; code 3230",
        system_place="mistral-common: \"Unexpected role 'system' after role\"",
    ),
)
"""Mistral; the tests run its own validator, mistral-common, on repaired histories."""
