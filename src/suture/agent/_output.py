"""Structured answers: what the model is told to give, and how it is read."""

from typing import Any

import msgspec

from suture.errors import ConfigError
from suture.kernel import OutputRule
from suture.messages import FrozenMap

__all__ = ["make_output_rule"]


def make_output_rule(output_type: Any) -> OutputRule | None:
    """Return the rule for answers of `output_type`; none where any text will do."""
    if output_type is None or output_type is str:
        return None
    if hasattr(output_type, "model_validate_json"):
        schema, read = output_type.model_json_schema(), output_type.model_validate_json
    else:
        try:
            schema = _rooted(msgspec.json.schema(output_type))
            read = msgspec.json.Decoder(output_type).decode
        except TypeError as error:
            raise ConfigError(f"output_type {output_type!r} has no JSON form: {error}") from None
    text = msgspec.json.encode(schema).decode()
    instruction = f"Give the final answer as one JSON value of this schema and nothing else: {text}"

    def read_answer(answer: str) -> Any:
        body = answer.strip()
        if body.startswith("```"):
            body = body.partition("\n")[2].removesuffix("```").strip()
        try:
            return read(body)
        except (msgspec.DecodeError, ValueError) as error:
            raise ValueError(f"The answer does not fit: {error}") from None

    return OutputRule(instruction, FrozenMap(schema), read_answer)


def _rooted(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose root is the thing itself, not a reference to it: providers want an object there."""
    reference = schema.get("$ref", "")
    definitions = dict(schema.get("$defs", {}))
    root = definitions.get(reference.removeprefix("#/$defs/"))
    if root is None:
        return schema
    if reference not in str(root):
        del definitions[reference.removeprefix("#/$defs/")]
    return {**root, "$defs": definitions} if definitions else root
