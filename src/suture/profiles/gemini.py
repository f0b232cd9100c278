"""Google Gemini, `contents` of generateContent."""

from suture.profiles import _shared as shared
from suture.profiles._profile import NATIVE, Operation, Profile, Rule, structure

__all__ = ["GEMINI"]

GEMINI = Profile(
    name="gemini",
    wires=("gemini", *NATIVE),
    rules=(
        *structure(
            "gemini",
            answered="400: 'the number of function response parts is equal to the number of function call parts'",
            orphaned="400: 'function response turn comes immediately after a function call turn'",
            single="400: 'the number of function response parts is equal to the number of function call parts'",
            adjacent="400: 'function response turn comes immediately after a function call turn' (gemini-cli#28407)",
        ),
        shared.roles_alternate(
            "gemini",
            "400: 'function call turn comes immediately after a user turn or after a function response turn'",
        ),
        shared.starts_with_user(
            "gemini",
            "400: 'function call turn comes immediately after a user turn' (Antigravity-Manager#3396)",
        ),
        shared.results_first(
            "gemini",
            "the function response turn is the one right after the call turn (gemini-cli history hardening)",
        ),
        shared.arguments_object("gemini", "args is a Struct"),
        shared.call_named("gemini", "functionCall.name is required"),
        Rule(
            id="gemini.result-named",
            problems=("result-name",),
            says="A response carries the name of its call.",
            source="responses are matched by name and order; name is required",
            operation=Operation.NAME_RESULT,
        ),
        shared.empty_message("gemini", "400: 'contents.parts must not be empty'"),
    ),
)
