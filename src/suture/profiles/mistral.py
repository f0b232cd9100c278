"""Mistral, whose own validator (mistral-common) the tests run on what is repaired."""

from suture.profiles import _shared as shared
from suture.profiles._profile import NATIVE, IdForm, Operation, Profile, Rule, structure

__all__ = ["MISTRAL"]

MISTRAL = Profile(
    name="mistral",
    wires=("openai-chat", *NATIVE),
    ids=IdForm(pattern="[a-zA-Z0-9]{9}", limit=9, scope="turn", prefix="", length=9),
    names="[a-zA-Z0-9_-]{1,64}",
    rules=(
        *structure(
            "mistral",
            answered="mistral-common: 'Not the same number of function calls and responses'",
            orphaned="mistral-common: 'Unexpected tool call id in tool results'; code 3230",
            single="mistral-common: 'Duplicate tool call id in tool results'",
            adjacent="code 3230: 'Unexpected role'",
        ),
        shared.legal_id(
            "mistral",
            "An id is nine letters and digits.",
            "mistral-common: 'Tool call id must be a-z, A-Z, 0-9, with a length of 9'",
        ),
        shared.unique_id(
            "mistral",
            "Ids differ within one message.",
            "mistral-common: 'Duplicate tool call id in assistant message'",
        ),
        shared.call_named("mistral", "mistral-common: function name pattern"),
        shared.name_form(
            "mistral",
            "A tool's name has 1 to 64 letters, digits, _ and -.",
            "mistral-common: function name pattern",
        ),
        shared.arguments_object("mistral", "mistral-common parses the arguments"),
        shared.results_first("mistral", "a tool message follows its call; code 3230"),
        shared.media_outside("mistral", "tool content is text before tokenizer v15"),
        shared.result_content("mistral", "mistral-common: tool content is required"),
        shared.empty_message("mistral", "mistral-common: 'Assistant message must have either content or tool_calls'"),
        shared.starts_with_user("mistral", "mistral-common does not count the calls of a first message as calls"),
        Rule(
            id="mistral.tool-then-user",
            problems=("tool-then-user",),
            says="A user message does not follow a tool message.",
            source="code 3230: \"Unexpected role 'user' after role 'tool'\" (avante#2562, LibreChat agents#54)",
            operation=Operation.BRIDGE,
        ),
        Rule(
            id="mistral.results-alone",
            problems=("trailing-text",),
            says="A tool message holds nothing but its result.",
            source="tool and user are different roles; code 3230",
            operation=Operation.SPLIT,
            wires=("agentic",),
        ),
        Rule(
            id="mistral.system-place",
            problems=("late-system",),
            says="A system message does not follow an assistant or tool message.",
            source="mistral-common: \"Unexpected role 'system' after role\"",
            operation=Operation.UNREPAIRABLE,
        ),
    ),
)
