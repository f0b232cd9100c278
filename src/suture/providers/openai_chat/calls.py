"""Calls of tools in a reply of Chat Completions, put right where servers glue them together or number them."""

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any

from suture.codecs.replies import objects_in
from suture.wires.fields import is_list, is_map, map_of, parse_json, text_of


def id_of(call: Mapping[str, Any]) -> str:
    """Return the id of a call; some servers count their calls instead.

    >>> id_of({"id": 7}), id_of({"id": "call_1"}), id_of({})
    ('7', 'call_1', '')
    """
    found = call.get("id")
    return str(found) if type(found) is int else text_of(call, "id")


def joined_choice(choices: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the first choice; without numbers they are one: Copilot gives text and call as two (nanobot#1555).

    >>> joined_choice([{"message": {"content": "I look."}}, {"message": {"tool_calls": [{"id": "a"}]}}])["message"]
    {'content': 'I look.', 'tool_calls': [{'id': 'a'}]}
    """
    first, *others = choices or [{}]
    messages = [map_of(choice, "message") for choice in choices]
    if not others or any(choice.get("index") for choice in choices):
        return first
    message: dict[str, Any] = {}
    for each in messages:
        message |= {name: value for name, value in each.items() if value and not message.get(name)}
    return {**first, "message": message}


def separate_calls(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the message of a reply, in which each call has a text as its id, and arguments of its own.

    Gemini's compatible endpoint gives the arguments of parallel calls as one (hermes-agent#62940). Some servers send
    an empty object first (openai-agents-js#712), or all the arguments again at the end (cline/kanban#339).

    >>> call = {"id": "a", "function": {"name": "f", "arguments": '{"x": 1}{"x": 2}'}}
    >>> [each["function"]["arguments"] for each in separate_calls({"tool_calls": [call]})["tool_calls"]]
    ['{"x": 1}', '{"x": 2}']
    """
    calls = message.get("tool_calls")
    if not calls or not is_list(calls) or not all(map(is_map, calls)):
        return message
    separate = [one for call in calls for one in _separate(call)]
    if len(separate) > 1:  # one that comes again, under its own id, is the same (LocalAI#9722)
        separate = [call for place, call in enumerate(separate) if not call.get("id") or call not in separate[:place]]
    is_same = len(separate) == len(calls) and all(map(is_, separate, calls))
    return message if is_same else {**message, "tool_calls": separate}


def _separate(call: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    if type(call.get("id")) is int:
        call = {**call, "id": id_of(call)}
    function = map_of(call, "function")
    arguments = function.get("arguments")
    if arguments == "null":
        return ({**call, "function": {**function, "arguments": "{}"}},)
    if not isinstance(arguments, str) or arguments.count("{") < 2 or parse_json(arguments) is not None:
        return (call,)
    texts = objects_in(arguments)
    if not texts:
        return (call,)
    calls = [{**call, "function": {**function, "arguments": text}} for text in texts]
    return [calls[0], *[{**other, "id": ""} for other in calls[1:]]]
