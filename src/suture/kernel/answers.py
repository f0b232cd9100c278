"""Final answers: the form that is asked for, and what is read from a reply.

One JSON value counts. It is found past prose, code fences and thoughts in tags. Providers take only objects at the root
of a schema, so any other type is asked for inside of one, `{"answer": …}`; both forms are read.
"""

import re
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Union, cast

import msgspec

from suture._text import quote
from suture.errors import ConfigError
from suture.messages import FrozenMap
from suture.wires import ChatWire

if TYPE_CHECKING:
    from suture.tools.values import ValueReader
else:
    ValueReader = Any  # few agents have a typed answer

TAGS = ("<", "[")
"""What a thought in tags begins with."""
_FIELD = "answer"
_NAMES = "(?:[a-z]+:)?(?:think|thinking|thought|thoughts|reasoning|reflection|scratchpad)"
_OPENING = re.compile(rf"\s*(?:<({_NAMES})>|\[(THINK)\])", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(```+|~~~+)[^\n`]*\n", re.MULTILINE)
_CLOSING = re.compile(rf"</{_NAMES}>|\[/THINK\]", re.IGNORECASE)
_MARK = re.compile(
    rf"""(?P<closing>{_CLOSING.pattern})|(?P<opening><{_NAMES}>|\[THINK\])|\{{(?=\s*["}}])|\[(?=\s*[\[{{"\]\-\dtfn])""",
    re.IGNORECASE,
)
"""Where a thought ends or begins, or where an object or a list may begin."""
_MOST_WORDS = 300
_ENDINGS = {
    "refusal": "the model refused to answer; ask for something else, or ask another model",
    "content_filter": "the provider's content filter ended the reply; change the request, or ask another model",
    "length": "the reply was cut off before the answer was whole; raise the limit of its tokens, "
    'such as options={"max_tokens": …}, or ask for less',
}
"""What to do about a reply that ended for each of these reasons: asking for the form again would not help."""


Member_co = TypeVar("Member_co", covariant=True)


class TypeUnion(Protocol[Member_co]):
    """A union of types, such as `A | B`, whose members are `Any` for type checkers."""

    @property
    def __args__(self) -> tuple[Member_co, ...]:
        """The members of the union."""
        ...


class OutputRule(msgspec.Struct, frozen=True):
    """The required form of a final answer: the instruction for the model, the schema, and the parser."""

    instruction: str
    schema: FrozenMap
    read: Callable[[str, bool], Any]
    """Turns a text, which may have ended early, into the value; raises `ValueError` with what is wrong."""


def make_output_rule(output_type: Any) -> OutputRule | None:
    """Return the rule for answers of `output_type`; none if any text will do."""
    if output_type is None or output_type is str:
        return None
    from suture.tools.values import make_value_reader  # noqa: PLC0415 - as above

    if isinstance(output_type, list | tuple):
        several = tuple(cast("Sequence[Any]", output_type))
        if not several:
            raise ConfigError("output_type is an empty list; name one or more types, such as A | B")
        output_type = Union[several]  # noqa: UP007 - from a tuple
    reader = make_value_reader(output_type, _FIELD, where="output_type")
    schema = reader.schema if _is_object(reader) else _in_object(reader.schema)
    text = msgspec.json.encode(schema).decode()
    instruction = f"Give the final answer as one JSON value of this schema and nothing else: {text}"
    return OutputRule(instruction, FrozenMap(schema), _Answers(reader).read)


def _is_object(reader: ValueReader) -> bool:
    return reader.schema.get("type") == "object"


def _in_object(schema: dict[str, Any]) -> dict[str, Any]:
    inner = {key: each for key, each in schema.items() if key != "$defs"}
    definitions = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    fields = {"type": "object", "properties": {_FIELD: inner}, "required": [_FIELD]}
    return {**fields, "additionalProperties": False, **definitions}


def read_output(rule: OutputRule | None, wire: ChatWire, message: Any) -> Any:
    """Return the final text of a message, or the value in it; raise `ValueError` with what is wrong with its form.

    Thoughts in tags, at the beginning of what a model says, are no part of either.
    """
    text = wire.text(message)
    if rule is not None:
        return rule.read(text, wire.early_end(message)[0] != "")
    return past_thoughts(text) if wire.made_by_model(message) else text


def explain_ending(wire: ChatWire, message: Any) -> str:
    """Return why a reply that has no answer ended early, and what to do; an empty text if it did not."""
    reason, word = wire.early_end(message)
    if not reason:
        return ""
    text = past_thoughts(wire.text(message)).strip()
    said = f" It said: {quote(text, _MOST_WORDS)}." if text and reason == "refusal" else ""
    return f"{_ENDINGS[reason]} (the provider's word: {word}).{said}"


def past_thoughts(text: str) -> str:
    """Return a text without the thoughts in tags that it begins with; a thought that is not closed stays.

    >>> past_thoughts("<think>The tide, then.</think> 06:12")
    '06:12'
    """
    place = 0
    while (opening := _OPENING.match(text, place)) is not None:
        closing = re.escape(f"</{opening[1]}>" if opening[1] else "[/THINK]")
        end = re.compile(closing, re.IGNORECASE).search(text, opening.end())
        if end is None:
            break
        place = end.end()
    return text[place:].lstrip() if place else text


class _Answers:
    """Finds the value of a type in the text of a reply."""

    def __init__(self, reader: ValueReader) -> None:
        self._reader = reader
        self._is_object = _is_object(reader)
        self._takes_text = self._reads_any_text()

    def _reads_any_text(self) -> bool:
        """Return whether any text is a value of the type, as in `Item | str`."""
        try:
            return self._reader.read('"any \\u0000 text"') == "any \0 text"
        except ValueError:
            return False

    def read(self, text: str, cut: bool = False) -> Any:  # noqa: FBT001, FBT002 - see `OutputRule.read`
        """Return the last value of the type in a text; raise `ValueError` with what is wrong if there is none.

        Of a text that ended early only objects and lists count, since they show where they end.
        """
        from suture.tools.values import NotJSONError  # noqa: PLC0415 - as above

        rest = past_thoughts(text).strip()
        opening = _OPENING.match(rest)
        if opening is not None:
            raise NotJSONError(f"the {opening[0].strip()} at its beginning is not closed, and nothing follows it")
        fault: ValueError | None = None
        for candidate in (rest, *_candidates(rest)):
            if cut and not candidate.startswith(("{", "[")):
                continue
            try:
                value = self._value(candidate)
            except ValueError as error:
                if fault is None or (isinstance(fault, NotJSONError) and not isinstance(error, NotJSONError)):
                    fault = error
                continue
            if candidate is rest or not (self._takes_text and isinstance(value, str)):
                return value
        if not cut:
            words = rest if self._takes_text else _CLOSING.split(rest)[-1].strip()
            try:  # a text without its quotes: a word of a `Literal`, a date
                return self._reader.read(msgspec.json.encode(words))
            except (ValueError, UnicodeEncodeError):
                pass
        raise fault or NotJSONError("it ended before its JSON was whole")

    def _value(self, text: str) -> Any:
        """Read JSON that is the value, or the object around it; first in the form that was asked for."""
        try:
            fields = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        except (ValueError, RecursionError):
            fields = {}
        forms: list[str | bytes] = [text]
        if fields.keys() == {_FIELD}:
            forms.insert(1 if self._is_object else 0, bytes(fields[_FIELD]))
        fault: ValueError | None = None
        for form in forms:
            try:
                return self._reader.read(form)
            except ValueError as error:
                fault = fault or error
        raise cast("ValueError", fault)


def _candidates(text: str) -> Iterator[str]:
    """Yield the pieces of a text that may be its JSON value, the last one first.

    They are objects and lists, and what stands alone: in a fence, behind a thought, in the last line. What is inside of
    a thought, or of JSON that is broken or cut off, is a part of something else, and no candidate.
    """
    from json import JSONDecodeError, JSONDecoder  # noqa: PLC0415 - only for an answer with more than JSON in it

    pieces: list[tuple[int, str]] = []
    begin, thoughts = 0, list[tuple[int, int]]()
    scan, mark, end = JSONDecoder(strict=False).raw_decode, _MARK.search(text), 0
    if mark is None:
        pieces.append((len(text), text.rpartition("\n")[2].strip()))
    while mark is not None:
        start, end = mark.span()
        if mark["closing"]:  # its beginning was in the prompt
            begin = end
        elif mark["opening"]:
            closing = _CLOSING.search(text, end)
            end = len(text) if closing is None else closing.end()
            thoughts.append((start, end))
        else:
            try:
                _, end = scan(text, start)
                pieces.append((start, text[start:end]))
            except JSONDecodeError as error:
                end = len(text) if error.msg.startswith("Unterminated") else max(end, error.pos)
            except RecursionError:
                break
        mark = _MARK.search(text, end)
    if begin:
        pieces.append((begin, text[begin:].strip()))
    starts = [start for start, _ in thoughts]
    for place, inside in _fenced(text):
        last = bisect(starts, place) - 1
        if last < 0 or place >= thoughts[last][1]:
            pieces.append((place, inside))
    shown = sorted([each for each in pieces if each[0] >= begin], reverse=True)
    yield from dict.fromkeys(piece for _, piece in shown)


def _fenced(text: str) -> Iterator[tuple[int, str]]:
    """Yield where the content of each code fence begins, and the content."""
    unclosed = set[str]()  # a mark that has no end behind one place has none behind the next
    opening = _FENCE.search(text)
    while opening is not None:
        end, mark = opening.end(), opening[1]
        closing = None
        if mark not in unclosed:
            closing = re.compile(rf"^[ \t]*{mark}[`~]*[ \t]*$", re.MULTILINE).search(text, end)
        if closing is None:
            unclosed.add(mark)
        else:
            yield end, text[end : closing.start()].strip()
            end = closing.end()
        opening = _FENCE.search(text, end)
