"""Mistral, whose own validator (mistral-common) the tests run on what is repaired."""

from suture.profiles._profile import NEUTRAL, IdForm, Profile
from suture.profiles._rules import rules

__all__ = ["MISTRAL"]

MISTRAL = Profile(
    name="mistral",
    wires=("openai-chat", *NEUTRAL),
    ids=IdForm(pattern="[a-zA-Z0-9]{9}", limit=9, scope="turn", prefix="", length=9),
    names="[a-zA-Z0-9_-]{1,64}",
    rules=rules(
        "mistral",
        answered="mistral-common: 'Not the same number of function calls and responses'",
        has_call="mistral-common: 'Unexpected tool call id in tool results'; code 3230",
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
