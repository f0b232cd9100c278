"""Calls of the turn at hand that another model made, as Gemini 3 takes them."""

from typing import Any

from suture.models.gemini import sign_foreign_calls

SKIP = "skip_thought_signature_validator"


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": text}]}


def asks(*names: str, signature: str = "") -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"functionCall": {"name": name}} for name in names]
    if signature:
        parts[0]["thoughtSignature"] = signature
    return {"role": "model", "parts": [{"text": "Let me see."}, *parts]}


def answers(name: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"functionResponse": {"name": name, "response": {}}}]}


def signatures(contents: list[Any]) -> list[list[str | None]]:
    return [
        [part.get("thoughtSignature") for part in content["parts"] if "functionCall" in part] for content in contents
    ]


def test_only_the_first_call_of_each_step_of_the_last_turn_is_marked():
    contents = [user("a"), asks("f"), answers("f"), user("b"), asks("f", "g"), answers("f"), asks("h"), answers("h")]
    found = signatures(sign_foreign_calls("gemini-3-pro", contents))
    assert [each for each in found if each] == [[None], [SKIP, None], [SKIP]]


def test_a_signature_of_its_own_stays():
    contents = [user("a"), asks("f", "g", signature="own"), answers("f")]
    assert signatures(sign_foreign_calls("models/gemini-3-pro", contents))[1] == ["own", None]


def test_what_was_given_is_not_changed():
    contents = [user("a"), asks("f"), answers("f")]
    before = repr(contents)
    sign_foreign_calls("gemini-3-flash", contents)
    assert repr(contents) == before


def test_a_model_that_demands_none_is_sent_none():
    contents = [user("a"), asks("f"), answers("f")]
    assert sign_foreign_calls("gemini-2.5-pro", contents) == contents
