"""Google's `contents`: `functionCall` parts in model contents, `functionResponse` parts in the next user content.

Ids are optional here: without them, calls and responses pair by name and order. Fields may be in camel case (REST) or
in snake case (the SDK); both are read, and a changed part keeps its style.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, cast

from suture.messages import Part, TextPart
from suture.wires import values
from suture.wires.blocks import BlockWire, Fields
from suture.wires.fields import get, has, is_list, is_map, json_text, put, text_of, without
from suture.wires.parts import RawPart, in_words, same_parts

_TEXT_FIELDS = frozenset(("text", "thought", "thoughtSignature"))
_CALL_FIELDS = frozenset(("functionCall", "thoughtSignature"))


def _read_calls(parts: list[Any], demands: values.Demands) -> list[dict[str, Any]] | None:
    """Return the calls among the parts of a plain model content; `None` if it needs a second look."""
    calls: list[dict[str, Any]] = []
    says = False
    for part in parts:
        if part.__class__ is not dict:
            return None
        if "functionCall" in part:
            call = part["functionCall"]
            if call.__class__ is not dict or (len(part) != 1 and not part.keys() <= _CALL_FIELDS):
                return None
            if not demands.accepts(call.get("id", "_"), call["name"]) or not values.is_plain_object(call["args"]):
                return None
            calls.append(call)
        else:
            text = part["text"]
            if text.__class__ is not str or not (text.isascii() or values.is_sendable(text)):
                return None
            if len(part) != 1 and not part.keys() <= _TEXT_FIELDS:
                return None
            if not text and "thoughtSignature" not in part:
                return None
            says = says or text.strip() != ""
    if len(calls) > 1:
        ids = [call.get("id") for call in calls]
        if (None in ids and set(ids) != {None}) or (None not in ids and len(set(ids)) != len(ids)):
            return None
    return calls if calls or says else None


def _are_answered(calls: list[dict[str, Any]], content: Any, demands: values.Demands) -> bool:
    """Return whether `content` holds just the responses to `calls`, in order."""
    if content.__class__ is not dict or content["role"] != "user":
        return False
    parts = content["parts"]
    if parts.__class__ is not list or len(parts) != len(calls):
        return False
    rest = iter(parts)
    for call in calls:
        part = next(rest)
        response = part["functionResponse"]
        if response.__class__ is not dict or response["name"] != call["name"] or len(part) != 1:
            return False
        if (
            response.get("id") != call.get("id")
            or "parts" in response
            or not values.is_plain_object(response["response"])
        ):
            return False
    if demands.used is not None:
        demands.use([call["id"] for call in calls if "id" in call])
    return True


_TURNS = values.Turns("model", "user", "role", "parts", _read_calls, _are_answered)


class GeminiWire(BlockWire):
    """Contents as the `google-genai` package and the REST API take and return them.

    >>> from suture.wires import get_wire
    >>> get_wire("gemini").view({"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}).calls
    (Call(id='', name='f', arguments={}, kind='', alias=''),)
    """

    name = "gemini"
    glances_at_rules = True
    has_fields = True
    field = "parts"
    roles: ClassVar = {"user": "user", "model": "assistant", "function": "user", "tool": "user", None: "user"}
    model = "model"
    call_fields = Fields("functionCall", "id", "name", "args")
    result_fields = Fields("functionResponse", "id", "name", "response")

    arranges = frozenset(("same-role", "results-order"))

    def glance(self, messages: Sequence[Any], start: int, demands: values.Demands) -> int:
        return values.glance_at_turns(messages, start, demands, _TURNS)

    def call_ids(self, messages: Sequence[Any], start: int, stop: int) -> list[values.Key]:
        said = [message["parts"] for message in values.iterate(messages, start, stop) if message["role"] == "model"]
        calls = [part["functionCall"] for parts in said for part in parts if "functionCall" in part]
        return [call["id"] for call in calls if call.get("id")]

    def claims(self, message: Any) -> bool | None:
        """Return whether `message` is a content: nothing else has parts."""
        if is_map(message):
            return "parts" in message
        return has(message, "parts") and has(message, "role")

    def blocks(self, message: Any, index: int | None = None) -> Sequence[Any]:
        is_bare = get(message, "parts") is None and has(message, "parts")
        return [] if is_bare else super().blocks(message, index)

    def kind(self, block: Any) -> str:
        if self._get(block, "functionCall") is not None:
            return values.CALL
        if self._get(block, "functionResponse") is not None:
            return values.RESULT
        if get(block, "thought"):
            return values.THINKING
        if isinstance(get(block, "text"), str):
            return values.TEXT
        media = self._get(block, "inlineData") is not None or self._get(block, "fileData") is not None
        return values.MEDIA if media else values.OTHER

    @cached_property
    def mends(self) -> Mapping[str, Callable[[Any, values.View], Any]]:
        return {"bad-response": self._with_structs, **super().mends}

    def _without_blank_text(self, message: Any, view: values.View) -> Any:
        """Leave out empty texts; a lone line break stays, because a stream is recorded piece by piece."""
        del view
        return self._with_some(
            message,
            lambda block: self.kind(block) != values.TEXT or self.is_signed(block) or self.block_text(block) != "",
        )

    def _with_structs(self, message: Any, view: values.View) -> Any:
        """Turn a response that is a text, or missing, into an object."""

        def wrap(block: Any) -> Any:
            response = get(self._get(block, "functionResponse"), "response")
            made = {} if response is None else {"result": response}
            return block if is_map(response) else self.rewrite(block, self.result_fields, {"response": made})

        return self.with_results(message, view, wrap)

    def begins_step(self, message: Any) -> bool:
        """Return whether the first call of a content is signed, which means that it begins another step."""
        calls = [block for block in self.blocks(message) if self.kind(block) == values.CALL]
        return bool(calls) and self.is_signed(calls[0])

    def is_signed(self, block: Any) -> bool:
        return bool(self._get(block, "thoughtSignature"))

    def arguments_ok(self, call: values.Call) -> bool:
        """Return whether the arguments are an object, or missing, which is fine here."""
        return call.arguments is None or is_map(call.arguments)

    def own_name(self, block: Any, field: str) -> str:
        if get(block, field) is not None:
            return field
        return "".join([f"_{letter.lower()}" if letter.isupper() else letter for letter in field])

    def _get(self, block: Any, field: str) -> Any:
        return get(block, self.own_name(block, field))

    def read_result(self, block: Any, index: int | None = None) -> values.Result:
        response = self._open(block, self.result_fields, index)
        return values.Result(text_of(response, "id", index), text_of(response, "name", index), response)

    def result_text(self, result: values.Result) -> tuple[str, bool]:
        return _response_text(get(result.content, "response")), not get(result.content, "parts")

    def result_parts(self, result: values.Result) -> tuple[Part, ...] | None:
        """Return the response as one text, then the parts beside it as they are."""
        return _parts_of(result.content)

    def write_result(self, block: Any, edit: values.ResultEdit) -> Any:
        response = None if edit.text is None or edit.parts is not None else {"result": edit.text}
        block = self.rewrite(block, self.result_fields, {"id": edit.id, "name": edit.name, "response": response})
        if edit.parts is None:
            return block
        own = self.own_name(block, "functionResponse")
        return put(block, **{own: _with_parts(get(block, own), edit.parts)})

    def make_result(self, piece: values.Piece) -> Any:
        call = piece.call or values.Call("", "")
        response: dict[str, Any] = {"id": call.id} if call.id else {}
        return {"functionResponse": {**response, "name": call.name, "response": {"error": piece.text}}}

    def make_text(self, role: str, text: str) -> Any:
        return {"text": text}

    def with_blocks(self, message: Any, blocks: Sequence[Any]) -> Any:
        """Return `message` with these parts; a content of the SDK gets parts of the SDK's type."""
        if not is_map(message):
            own: Any = next((part for part in self.blocks(message) if not is_map(part)), None)
            if own is not None:
                made = cast("Any", type(own))
                try:
                    blocks = [made.model_validate(part) if is_map(part) else part for part in blocks]
                except ValueError:  # the SDK does not know some field; plain data lose nothing
                    plain = [part if is_map(part) else part.model_dump(exclude_none=True) for part in blocks]
                    return {"role": get(message, "role"), "parts": plain}
        return put(message, parts=list(blocks))


def _parts_of(response: Any) -> tuple[Part, ...] | None:
    """Return a `functionResponse` as parts; its response becomes one text."""
    beside = get(response, "parts")
    if beside is not None and not is_list(beside):
        return None
    text = _response_text(get(response, "response"))
    return (*([TextPart(text)] if text else ()), *[RawPart(part) for part in beside or ()])


def _response_text(response: Any) -> str:
    """Return the text of a response: a single text as it is, anything else as JSON."""
    if is_map(response) and len(response) == 1:
        value = next(iter(response.values()))
        if isinstance(value, str):
            return value
    return "" if response is None or response == {} else json_text(response)


def _with_parts(inside: Any, parts: Sequence[Part]) -> Any:
    """Return a `functionResponse` with `parts`: texts in its response, under their old name, the rest beside it."""
    if same_parts(parts, _parts_of(inside)):
        return inside
    texts = [in_words(part) for part in parts if not isinstance(part, RawPart)]
    beside = [part.raw for part in parts if isinstance(part, RawPart)]
    text, response = "\n".join(texts), get(inside, "response")
    if text != _response_text(response):
        names = list(response) if is_map(response) else []
        name = names[0] if len(names) == 1 else "error" if "error" in names else "result"
        inside = put(inside, response={name: text} if texts else {})
    if beside:
        return put(inside, parts=beside)
    return without(inside, "parts") if get(inside, "parts") is not None else inside


WIRE = GeminiWire()
