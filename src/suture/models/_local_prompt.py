"""What a local model is told: a history in the words of system, user and assistant, and questions about its tools.

Small models follow examples better than rules, and read slowly. So a tool is an example (its description, then its
name), shown only when one is to be chosen. Its parameters are named when it has been.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from suture.messages import ToolInfo
from suture.wires import Call, ChatWire, Result

__all__ = ["Told", "answer_word", "ask_arguments", "ask_tool", "grammar_of", "tell"]

_GREETING = "Hello, how is it going?"
_GO_ON = "Go on."
_SHORT, _SHORTER = 300, 120


class Told(NamedTuple):
    """A history in words: the system's, then those of user and assistant in turns. The last is the user's.

    >>> Told("Be brief.", (("user", "Hi."),)).messages()
    [{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': 'Hi.'}]
    """

    system: str
    turns: tuple[tuple[str, str], ...]
    after_results: bool = False
    """Whether the results of tools came last, so that there is something to answer with."""

    def messages(self, examples: Sequence[tuple[str, str]] = (), more: Sequence[tuple[str, str]] = ()) -> list[Any]:
        """Return it as messages, with examples before the last turn, and more turns behind it."""
        system = [("system", self.system)] if self.system else []
        turns = [*system, *self.turns[:-1], *examples, self.turns[-1], *more]
        return [{"role": role, "content": _harmless(text)} for role, text in turns]


def _harmless(text: str) -> str:
    """Return a text that is nothing but text to the engine.

    The words that begin and end a turn for the model are broken up, so that no message can begin another. Half a
    character, as a cut-off tool result may hold, is replaced.

    >>> _harmless("<|im_end|>")
    '< |im_end|>'
    """
    return text.encode("utf-8", "replace").decode().replace("<|", "< |")


def tell(wire: ChatWire, instruction: str, messages: Sequence[Any]) -> Told:
    """Return a history in words. Reasoning is left out; what is neither text nor JSON is only mentioned.

    >>> from suture.messages import Message, ToolCall
    >>> from suture.wires import get_chat_wire
    >>> call = ToolCall("call_1", "tides", '{"port": "Dover"}')
    >>> history = [Message.user("High tide?"), Message.assistant(tool_calls=[call]), Message.tool("06:12", "call_1")]
    >>> print(tell(get_chat_wire("message"), "", history).turns[0][1])
    High tide?
    <BLANKLINE>
    tides {"port": "Dover"} gave: 06:12
    <BLANKLINE>
    Answer with this.
    """
    system = [instruction] if instruction else []
    turns: list[tuple[str, str]] = []
    calls: dict[Any, Call] = {}
    answers = False
    for message in messages:
        view = wire.view(message)
        calls.update((wire.key(call), call) for call in view.calls)
        given = [_result(wire, result, calls.get(wire.key(result))) for result in view.results]
        said = _text(wire, wire.rest(message, {}) if given else message)
        if view.role == "system":
            system.append(said)
            continue
        role = "assistant" if view.role == "assistant" else "user"
        if answers and said and role == "assistant":
            _add(turns, "user", "Answer with this.")
        for text in given:
            _add(turns, "user", text)
        if said:
            _add(turns, role, said)
        if given or said or not view.calls:
            answers = bool(given) and not said
    if answers:
        _add(turns, "user", "Answer with this.")
    if not turns or turns[-1][0] != "user":
        _add(turns, "user", _GO_ON)
    return Told("\n\n".join(text for text in system if text), tuple(turns), answers)


def _add(turns: list[tuple[str, str]], role: str, text: str) -> None:
    """Add to the last turn if it is of the same role: many models want roles to alternate."""
    if turns and turns[-1][0] == role:
        text = f"{turns.pop()[1]}\n\n{text}"
    turns.append((role, text))


def _text(wire: ChatWire, message: Any) -> str:
    if message is None:
        return ""
    media = wire.words(message).media
    note = f"({media} media that you cannot see)" if media else ""
    return "\n".join(part for part in (wire.text(message), note) if part)


def _result(wire: ChatWire, result: Result, call: Call | None) -> str:
    text, whole = wire.result_text(result)
    note = "" if whole else "\n(and media that you cannot see)"
    named = result.name if call is None else f"{call.name} {_cut(str(call.arguments), _SHORT)}"
    return f"{named} {'failed' if result.failed else 'gave'}: {text}{note}"


def answer_word(tools: Sequence[ToolInfo]) -> str:
    """Return what the model says if it wants no tool; no tool is called that.

    >>> answer_word([ToolInfo("tides")]), answer_word([ToolInfo("answer")])
    ('answer', 'answer_in_words')
    """
    word = "answer"
    while any(info.name == word for info in tools):
        word += "_in_words"
    return word


def ask_tool(told: Told, tools: Sequence[ToolInfo], answer: str = "") -> list[Any]:
    """Return messages that ask for the name of a tool, or for the word `answer` where that is given.

    >>> told = Told("", (("user", "High tide in Dover?"),))
    >>> [message["content"] for message in ask_tool(told, [ToolInfo("tides", "Look up tides.")])]
    ['Look up tides.', 'tides', 'High tide in Dover?']
    """
    return told.messages(_examples(tools, answer))


def ask_arguments(told: Told, tools: Sequence[ToolInfo], chosen: ToolInfo, answer: str = "") -> list[Any]:
    """Return messages that ask for the arguments of a tool, after those that asked for its name.

    >>> told = Told("", (("user", "High tide in Dover?"),))
    >>> info = ToolInfo("tides", "", {"properties": {"port": {"description": "The harbour."}}})
    >>> ask_arguments(told, [info], info)[-1]["content"]
    'Write the JSON of port (The harbour.) for: High tide in Dover?'
    """
    asked = told.turns[-1][1]
    known: Mapping[str, Any] = (chosen.parameters or {}).get("properties") or {}
    names = [_parameter(name, schema) for name, schema in known.items()]
    of = f" of {', '.join(names)}" if names else ""
    what = f": {asked}" if len(asked) <= _SHORT else " the message."
    more = [("assistant", chosen.name), ("user", f"Write the JSON{of} for{what}")]
    return told.messages(_examples(tools, answer), more)


def _examples(tools: Sequence[ToolInfo], answer: str) -> list[tuple[str, str]]:
    turns: list[tuple[str, str]] = []
    for info in tools:
        shown = _cut(_first_line(info.description), _SHORT) or info.name.replace("_", " ")
        turns += [("user", shown), ("assistant", info.name)]
    return [*turns, ("user", _GREETING), ("assistant", answer)] if answer else turns


def _parameter(name: str, schema: Any) -> str:
    described = schema.get("description") if isinstance(schema, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    shown = _cut(_first_line(described), _SHORTER) if isinstance(described, str) else ""
    return f"{name} ({shown})" if shown else name


def grammar_of(words: Sequence[str]) -> str:
    """Return the grammar of a text that is one of `words`.

    >>> print(grammar_of(["tides", "answer"]))
    root ::= "tides" | "answer"
    """
    return "root ::= " + " | ".join('"{}"'.format(word.replace("\\", "\\\\").replace('"', '\\"')) for word in words)


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].strip()


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}…"
