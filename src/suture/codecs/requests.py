"""Everything in a request but its messages: tools, which of them to call, options, the schema of the answer.

A table of each provider says where these are. It serves for writing and for reading.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar

from suture.codecs.codec import CODECS, Request
from suture.codecs.contents import overlay, read_each, rest_of
from suture.codecs.losses import Losses, Lost
from suture.errors import ConfigError, InputError
from suture.messages import FrozenMap, ToolInfo
from suture.messages.values import JSON_TYPES
from suture.wires.fields import expect, given, is_list, is_map, listed, map_of, object_of, text_of

Body = dict[str, Any]
_TYPE_KEYWORDS = ("type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref")
_OPEN_KEYWORDS = ("prefixItems", "patternProperties", "definitions")
_KEPT_KEYWORDS = (
    *("type", "enum", "const", "anyOf", "allOf", "$ref", "$defs", "properties", "required", "items"),
    *("description", "title", "default"),
)
"""The keywords that a closed schema keeps; each schema in it also needs one of `_TYPE_KEYWORDS`."""
SCHEMA: Any = object()
"""Takes the place of the schema in `RequestForm.answer`."""
_CHOICES = ("auto", "none", "required")
_REMOVED = "This tool is no longer there; do not call it."
_TOOL_FIELDS = "tool"
"""The key for the fields of a tool that are beside the function in it."""


def put_at(body: dict[str, Any], path: str, value: Any) -> None:
    """Put a value at a path of names.

    >>> body = {"config": {"seed": 3}}
    >>> put_at(body, "config.topK", 5), body
    (None, {'config': {'seed': 3, 'topK': 5}})
    """
    name, _, inside = path.partition(".")
    if not inside:
        body[name] = value
        return
    body[name] = dict(map_of(body, name))
    put_at(body[name], inside, value)


def look_at(body: Any, path: str) -> Any:
    """Return the value at a path of names, or `None`.

    >>> look_at({"config": {"seed": 3}}, "config.seed"), look_at({}, "config.seed")
    (3, None)
    """
    name, _, inside = path.partition(".")
    return look_at(object_of(body, name, optional=True), inside) if inside else body.get(name)


def take_out(body: dict[str, Any], path: str) -> Any:
    """Remove the value at a path, and objects that are empty without it; return the value.

    >>> body = {"config": {"seed": 3}, "stop": ["END"]}
    >>> take_out(body, "config.seed"), body
    (3, {'stop': ['END']})
    """
    found = look_at(body, path)
    if found is not None:
        name, _, inside = path.partition(".")
        held = dict(map_of(body, name))
        if inside:
            take_out(held, inside)
        if inside and held:
            body[name] = held
        else:
            del body[name]
    return found


def _leaves(form: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value in `form` that is no object, with its path."""
    for name, value in form.items():
        yield from _leaves(value, f"{above}{name}.") if is_map(value) else [(f"{above}{name}", value)]


def _texts_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inside = value.values() if is_map(value) else value if is_list(value) else ()
    return [text for item in inside for text in _texts_in(item)]


def close_schema(schema: Any) -> dict[str, Any] | None:
    """Return a schema whose objects have no other fields, for providers that demand it; `None` if some need them.

    Keywords that such a provider does not take, such as the length of a text, are left out.

    >>> close_schema({"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}})
    {'type': 'object', 'properties': {'age': {'type': 'integer'}}, 'additionalProperties': False}
    >>> close_schema({"type": "object", "additionalProperties": {"type": "integer"}}) is None
    True
    """
    if not is_map(schema) or schema.keys().isdisjoint(_TYPE_KEYWORDS) or not schema.keys().isdisjoint(_OPEN_KEYWORDS):
        return None
    types: Any = schema.get("type")
    is_object = types == "object" or (is_list(types) and "object" in types)
    if is_object and (schema.get("additionalProperties") not in (None, False) or "properties" not in schema):
        return None
    is_free = False
    closed: dict[str, Any] = {}
    for name, value in {"anyOf": schema.get("oneOf"), **schema}.items():
        inner: Any = value
        if name in ("properties", "$defs") and is_map(value):
            inner = {key: close_schema(held) for key, held in value.items()}
            is_free = is_free or None in inner.values()
        elif name in ("anyOf", "allOf") and is_list(value):
            inner = [close_schema(held) for held in value]
            is_free = is_free or None in inner
        elif name == "items":
            inner = close_schema(value)
            is_free = is_free or inner is None
        if name in _KEPT_KEYWORDS and (inner is not None or name == "default"):
            closed[name] = inner
    if is_object:
        closed["additionalProperties"] = False
    return None if is_free else closed


_LIMITS = {"properties": 5_000, "choices": 1_000, "depth": 10}
"""How much a strict schema may hold, as OpenAI documents it."""


def make_strict(schema: Any) -> dict[str, Any] | None:
    """Return a schema for OpenAI's strict mode that takes the same values; `None` if there is none.

    All fields of all objects are required there. One that may be left out must be given its default instead, so it
    needs one. `default` and what `close_schema` leaves out cannot be said.

    >>> make_strict({"type": "object", "properties": {"age": {"type": "integer", "default": 3}}})
    {'type': 'object', 'additionalProperties': False, 'properties': {'age': {'type': 'integer'}}, 'required': ['age']}
    >>> make_strict({"type": "object", "properties": {"age": {"type": "integer"}}}) is None
    True
    """
    closed = close_schema(schema)
    counts = dict.fromkeys(_LIMITS, 0)
    if closed is None or closed.get("type") != "object" or "anyOf" in closed:
        return None
    strict = _require_all(closed, 1, counts)
    return None if any(counts[name] > limit for name, limit in _LIMITS.items()) else strict


def _require_all(node: Body, depth: int, counts: dict[str, int]) -> Body | None:
    """Return a closed schema in which all fields are required; `None` if that would change what it means."""
    if "$ref" in node:
        return {"$ref": node["$ref"]}  # nothing may stand beside it
    if "allOf" in node:
        return None
    made: Body = {name: value for name, value in node.items() if name not in ("default", "properties", "$defs")}
    choices: list[Any] = [node["const"]] if "const" in node else node.get("enum", [])
    counts["choices"] += len(choices)
    if choices and "type" not in node:
        types = list(dict.fromkeys(JSON_TYPES.get(choice.__class__, "") for choice in choices))
        made["type"] = types[0] if len(types) == 1 else types
    fields: Body = node.get("properties", {})
    required = set(node.get("required", ()))
    if any(name not in required and "default" not in field for name, field in fields.items()):
        return None
    counts["properties"] += len(fields)
    counts["depth"] = max(counts["depth"], depth)
    inner: list[Body | None] = []
    for name in ("properties", "$defs"):
        if name in node:
            made[name] = {key: _require_all(each, depth + 1, counts) for key, each in node[name].items()}
            inner += made[name].values()
    if "anyOf" in node:
        made["anyOf"] = [_require_all(each, depth, counts) for each in node["anyOf"]]
        inner += made["anyOf"]
    if "items" in node:
        made["items"] = _require_all(node["items"], depth, counts)
        inner.append(made["items"])
    if node.get("type") == "object":
        made["required"] = list(fields)
    return None if None in inner else made


class RequestForm:
    """How one provider's requests express everything but the messages.

    Where the table of attributes is not enough, a provider overrides a method.
    """

    wire: ClassVar[str]
    paths: ClassVar[Mapping[str, str]] = {}
    """The path of each option that this provider does not have under its shared name; `stop` is always a list."""
    without: ClassVar[Sequence[str]] = ()
    """The options that this provider does not have; they are reported as lost."""
    tools: ClassVar[str] = "tools"
    choice: ClassVar[str] = "tool_choice"
    choices: ClassVar[Mapping[str, Any]] = {word: word for word in _CHOICES}
    """The provider's form of each value of `tool_choice` that is not the name of a tool."""
    answer: ClassVar[Mapping[str, Any]]
    """The fields that ask for an answer by a schema, with `SCHEMA` for it; a `name` in them may differ when read."""
    function: ClassVar[str] = ""
    """The field of a tool that holds its function; empty if the tool itself is the function."""
    head: ClassVar[Mapping[str, Any]] = {}
    """Further fields of a tool that is a function."""
    kind: ClassVar[str] = "function"
    """The type of such a tool, which may be missing."""
    parameters: ClassVar[str] = "parameters"
    """The path of the schema of a function's arguments."""
    no_arguments: ClassVar[Mapping[str, Any] | None] = {"type": "object", "properties": {}}
    """The schema of a function without arguments; `None` if it is left out."""

    def write(self, request: Request, losses: Losses, body: dict[str, Any]) -> dict[str, Any]:
        """Return `body` with the tools and options of a request; options of the provider are put in as they are."""
        tools = self.write_tools(request.tools, losses)
        if tools:
            put_at(body, self.tools, tools)
        left = rest_of(request.options)
        for name, path in self.paths.items():
            if name in left:
                value = [left[name]] if name == "stop" and isinstance(left[name], str) else left[name]
                if name == "stop" and not is_list(value):
                    raise ConfigError(f"stop is a text or a list of texts, not {type(value).__name__}")
                put_at(body, path, value)
                del left[name]
        self.put_choice(body, left, request.tools, losses)
        if "output_schema" in left:
            schema = self.write_schema(left.pop("output_schema"))
            for path, value in _leaves(self.answer):
                put_at(body, path, schema if value is SCHEMA else value)
        for name in self.without:
            if left.pop(name, None) is not None:
                losses.add(Lost.OPTION, name)
        return overlay(body, left)

    def read(self, body: Mapping[str, Any], *known: str) -> tuple[tuple[ToolInfo, ...], dict[str, Any]]:
        """Return the tools and options of a request without `known` fields, under shared names if possible."""
        options = rest_of(body, *known)
        found = look_at(options, self.tools)
        tools = self.read_tools([] if found is None else listed(found, None, self.tools))
        if found is not None:
            take_out(options, self.tools)
        for name, path in self.paths.items():
            if (value := take_out(options, path)) is not None:
                options[name] = [value] if name == "stop" and isinstance(value, str) else value
        self.take_choice(options, tools)
        fixed = dict(_leaves(self.answer))
        place = next(path for path, value in fixed.items() if value is SCHEMA)
        is_asked = all(look_at(options, path) == fixed[path] for path in fixed if not path.endswith((place, ".name")))
        schema = self.read_schema(look_at(options, place)) if is_asked else None
        if is_map(schema):
            for path, value in fixed.items():
                if path == place or look_at(options, path) == value:
                    take_out(options, path)
            options["output_schema"] = schema
        return tuple(tools), options

    def write_schema(self, schema: Any) -> Any:
        """Return the schema of an answer in the provider's form."""
        return schema

    def read_schema(self, said: Any) -> Any:
        """Return the schema of an answer from the provider's form."""
        return said

    # Which tools to call

    def write_choice(self, choice: Any, tools: Sequence[ToolInfo]) -> Any:
        """Return a shared word, or the name of a tool, in the provider's form; an object of the provider as it is."""
        if is_map(choice):
            return dict(choice)
        if not isinstance(choice, str):
            raise ConfigError(f"tool_choice is a text or {self.wire}'s own object, not {type(choice).__name__}")
        return deepcopy(self.choices[choice]) if choice in self.choices else self.write_name(choice, tools)

    def write_name(self, name: str, tools: Sequence[ToolInfo]) -> Any:
        """Return the choice of one tool in the provider's form."""
        raise NotImplementedError

    def put_choice(self, body: Body, options: Body, tools: Sequence[ToolInfo], losses: Losses) -> None:
        """Move the choice of a tool from `options` into `body`."""
        del losses
        if "tool_choice" in options:
            put_at(body, self.choice, self.write_choice(options.pop("tool_choice"), tools))

    def take_choice(self, options: dict[str, Any], tools: Sequence[ToolInfo]) -> None:
        """Put the choice of a tool under its shared name if a shared word or the name of a tool expresses it."""
        choice = look_at(options, self.choice)
        if choice is not None:
            expect(choice, (str, Mapping), "an object", self.choice)
        words = (*_CHOICES, *_texts_in(choice))
        word = next((word for word in words if self.write_choice(word, tools) == choice), None)
        if word is not None:
            take_out(options, self.choice)
            options["tool_choice"] = word

    # Tools

    def write_tools(self, tools: Sequence[ToolInfo], losses: Losses) -> list[dict[str, Any]]:
        """Return `tools` in the provider's form; tools and fields of another provider are reported."""
        made: list[dict[str, Any]] = []
        for place, tool in enumerate(tools):
            path = f"tools[{place}]"
            foreign = {name: value for name, value in tool.extra.items() if name != self.wire or not is_map(value)}
            is_bare = tool.parameters is None and not tool.description
            if is_bare and self.wire not in tool.extra and any(name in CODECS for name in foreign):
                losses.add(Lost.TOOL, f"{tool.name}, a tool that another provider runs", path)
                continue
            for name, value in foreign.items():
                fields = [f"{name} {field}" for field in rest_of(value)] if is_map(value) and name in CODECS else []
                for what in fields or [f"extra {name!r}"]:
                    losses.add(Lost.TOOL, f"{what} of {tool.name}", path)
            own = map_of(tool.extra, self.wire)
            is_function = tool.parameters is not None or self.is_function(own)
            made.append(self.write_function(tool, own) if is_function else dict(own))
        return made

    def is_function(self, tool: Mapping[str, Any]) -> bool:
        """Return whether a tool, or what was kept of one, is a function; any other tool is kept whole."""
        return tool.get("type", self.kind) == self.kind

    def write_function(self, tool: ToolInfo, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return a tool that is a function, with what was kept of it."""
        function = {"name": tool.name, **given(description=tool.description or None)}
        schema = self.no_arguments if tool.parameters is None else tool.parameters
        if schema is not None:
            put_at(function, self.parameters, dict(schema))
        function = overlay(function, {name: value for name, value in own.items() if name != _TOOL_FIELDS})
        return {**self.head, **({self.function: function} if self.function else function), **map_of(own, _TOOL_FIELDS)}

    def name_tools(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Return tools with these names, for a provider that demands all tools that a history calls."""
        return [self.write_function(ToolInfo(name, _REMOVED), {}) for name in dict.fromkeys(names) if name]

    def read_tools(self, tools: Sequence[Mapping[str, Any]]) -> list[ToolInfo]:
        """Return the tools of a request."""
        return read_each(tools, self.read_tool, self.tools)

    def read_tool(self, tool: Mapping[str, Any]) -> ToolInfo:
        """Return one tool; if it is no function, it is kept whole."""
        if self.is_function(tool):
            if not self.function:
                return self.read_function(rest_of(tool, *self.head))
            beside = rest_of(tool, self.function, *self.head)
            return self.read_function(object_of(tool, self.function), {_TOOL_FIELDS: beside} if beside else {})
        held = next((value for value in tool.values() if is_map(value) and "name" in value), tool)
        name = text_of(held, "name") or text_of(tool, "type") or next(iter(tool), "tool")
        return ToolInfo(name, text_of(held, "description"), extra={self.wire: dict(tool)})

    def read_function(self, function: Mapping[str, Any], marks: Mapping[str, Any] = FrozenMap()) -> ToolInfo:
        """Return a function as a tool that keeps `marks` beside its unknown fields."""
        if not text_of(function, "name"):
            raise InputError("expected a tool with a name")
        rest = rest_of(function, "name", "description")
        schema = take_out(rest, self.parameters)
        if schema is None and self.no_arguments is not None:
            rest[self.parameters.partition(".")[0]] = None
        schema = None if schema is None else object_of({self.parameters: schema}, self.parameters)
        extra = {**rest, **marks}
        named = text_of(function, "name"), text_of(function, "description")
        return ToolInfo(*named, schema, extra={self.wire: extra} if extra else {})
