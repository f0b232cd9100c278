"""What the GenAI conventions of OpenTelemetry call things: a model, its options, replies, usage, and what was said."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from suture.kernel import ModelWrapper
from suture.messages import Delta, ResponseMeta, TokenUsage
from suture.wires import ChatWire

_PROVIDERS = {
    "anthropic": "anthropic",
    "bedrock": "aws.bedrock",
    "deepseek": "deepseek",
    "gemini": "gcp.gemini",
    "kimi": "moonshot_ai",
    "minimax": "minimax",
    "mistral": "mistral_ai",
    "openai-chat": "openai",
    "openai-responses": "openai",
}
"""The conventions' name for whoever a profile is of."""

_OPTIONS: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("frequency_penalty", "presence_penalty", "temperature", "top_k", "top_p"), (int, float)),
    **dict.fromkeys(("max_tokens", "seed"), int),
}


def innermost(model: Any) -> Any:
    """Return the model inside all wrappers."""
    while isinstance(model, ModelWrapper):
        model = cast("ModelWrapper[Any]", model).inner
    return model


def model_name(model: Any) -> str:
    """Return the name by which a model is asked for: what it says itself, or the name of its class.

    >>> from suture.testing import ScriptedModel
    >>> model_name(ScriptedModel([]))
    'ScriptedModel'
    """
    model = innermost(model)
    said = [getattr(model, "model", ""), getattr(model, "name", "")]
    return next((name for name in said if isinstance(name, str) and name), type(model).__name__)


def provider_name(model: Any) -> str:
    """Return whose model it is: what it says itself, or whom its profile is of; `suture` where nobody is known.

    >>> from suture.testing import ScriptedModel
    >>> provider_name(ScriptedModel([], "openai-chat")), provider_name(ScriptedModel([]))
    ('openai', 'suture')
    """
    said = getattr(innermost(model), "provider", "")
    profile = getattr(model.profile, "name", model.profile)
    return said if isinstance(said, str) and said else _PROVIDERS.get(profile, "suture")


def request_attributes(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the conventions have a name for among the options of a request.

    >>> request_attributes({"temperature": 0.2, "user": "ada"})
    {'gen_ai.request.temperature': 0.2}
    """
    found = {
        f"gen_ai.request.{name}": options[name]
        for name, kinds in _OPTIONS.items()
        if isinstance(options.get(name), kinds) and not isinstance(options[name], bool)
    }
    if "output_schema" in options:
        found["gen_ai.output.type"] = "json"
    return found


def response_attributes(message: Any) -> dict[str, Any]:
    """Return what a reply says of itself: its id, the model that gave it, why it ended.

    >>> from suture.messages import Message, ResponseMeta
    >>> meta = ResponseMeta(finish_reason="stop", extension={"id": "r1", "model": "m-1"})
    >>> response_attributes(Message("assistant", "hi", response_meta=meta))
    {'gen_ai.response.id': 'r1', 'gen_ai.response.model': 'm-1', 'gen_ai.response.finish_reasons': ('stop',)}
    """
    meta = getattr(message, "response_meta", None)
    if not isinstance(meta, ResponseMeta):
        return {}
    found: dict[str, Any] = {}
    for key in ("id", "model"):
        said = meta.extension.get(key)
        if isinstance(said, str) and said:
            found[f"gen_ai.response.{key}"] = said
    if meta.finish_reason:
        found["gen_ai.response.finish_reasons"] = (meta.finish_reason,)
    return found


def usage_attributes(usage: TokenUsage) -> dict[str, int]:
    """Return what was used.

    >>> usage_attributes(TokenUsage(prompt_tokens=9, completion_tokens=4, cached_tokens=8))
    {'gen_ai.usage.input_tokens': 9, 'gen_ai.usage.output_tokens': 4, 'gen_ai.usage.cache_read.input_tokens': 8}
    """
    found = {"gen_ai.usage.input_tokens": usage.prompt_tokens, "gen_ai.usage.output_tokens": usage.completion_tokens}
    special = {
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    return found | {name: count for name, count in special.items() if count}


# --- what was said ---------------------------------------------------------------------------------


def as_messages(wire: ChatWire, messages: Sequence[Any], shown: Callable[[Any], Any], finish: str = "") -> str:
    """Return messages of any wire as the conventions write them; pictures and other media are left out.

    `shown` is asked what of each message may be shown, and `finish` is why the last one ended.

    >>> from suture.messages import Message
    >>> from suture.wires import get_chat_wire
    >>> as_messages(get_chat_wire("message"), [Message.user("hi")], lambda message: message)
    '[{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]'
    """
    told = [each for message in messages for each in _told(wire, shown(message))]
    if finish and told:
        told[-1]["finish_reason"] = finish
    return json.dumps(told, ensure_ascii=False)


def as_instruction(text: str) -> str:
    """Return what a model is told before everything else.

    >>> as_instruction("Be brief.")
    '[{"type": "text", "content": "Be brief."}]'
    """
    return json.dumps([{"type": "text", "content": text}], ensure_ascii=False)


def _told(wire: ChatWire, message: Any) -> list[dict[str, Any]]:
    """Return a message; one that has both results and text as two, for the results are of another role."""
    view = wire.view(message)
    if view.role == "assistant":
        return [{"role": "assistant", "parts": [_piece(delta) for delta in wire.deltas(message) if _says(delta)]}]
    if not view.results:
        return [{"role": view.role, "parts": [{"type": "text", "content": wire.text(message)}]}]
    found = [(result.id, wire.result_text(result)[0]) for result in view.results]
    parts = [{"type": "tool_call_response", "id": call, "result": text} for call, text in found]
    rest = wire.rest(message, {})
    beside = _told(wire, rest) if rest is not None and wire.text(rest) else []
    return [{"role": "tool", "parts": parts}, *beside]


def _says(delta: Delta) -> bool:
    return bool(delta.text or delta.reasoning or delta.call_index is not None)


def _piece(delta: Delta) -> dict[str, Any]:
    if delta.call_index is not None:
        return {"type": "tool_call", "id": delta.call_id, "name": delta.name, "arguments": _value(delta.arguments)}
    if delta.reasoning:
        return {"type": "reasoning", "content": delta.reasoning}
    return {"type": "text", "content": delta.text}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
