"""Google Gemini, `contents` of generateContent."""

from suture.profiles import GUESTS, Profile, rules

__all__ = ["GEMINI"]

GEMINI = Profile(
    name="gemini",
    wires=("gemini", *GUESTS),
    system_outside=True,
    rules=rules(
        "gemini",
        answered="400: 'the number of function response parts is equal to the number of function call parts'",
        has_call="400: 'function response turn comes immediately after a function call turn'",
        same_id="responses are matched by id where there is one",
        results_in_order="responses are matched by name and order; 400 where they differ",
        response_object="response is a Struct (AstrBot#7216)",
        sendable="a request is UTF-8",
        single_result="400: 'the number of function response parts is equal to the number of function call parts'",
        adjacent="400: 'function response turn comes immediately after a function call turn' (gemini-cli#28407)",
        roles_alternate="400: 'function call turn comes immediately after a user turn or after a function response turn'",
        user_first="400: 'function call turn comes immediately after a user turn' (Antigravity-Manager#3396)",
        results_first="the function response turn is the one right after the call turn (gemini-cli history hardening)",
        arguments="args is a Struct",
        call_named="functionCall.name is required",
        result_named="responses are matched by name and order; name is required",
        text_not_blank="400: 'Unable to submit request because it has an empty text parameter' (Portkey#462, CLIProxyAPI#1292)",
        not_empty="400: 'contents.parts must not be empty'",
    ),
)
