"""The interface of wires, which read, change and make messages of one type.

All other code touches messages only through this interface, so it is written once for all types. Two methods are hot:
`glance`, if a wire has it, and `view`. Everything else runs only when something is wrong.

A wire never changes its arguments, never recurses into values that it does not know, and keeps unknown fields and
blocks as they are.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from msgspec import Struct

from suture.errors import InputError
from suture.messages import Delta, Part, TokenUsage, ToolResult
from suture.wires import values
from suture.wires.fields import get, is_list, is_object_text, sendable, sound_arguments, word
from suture.wires.parts import Form, RawPart, Telling, Words

_GENERIC = frozenset(
    (
        *("dangling", "orphan", "duplicate", "late", "early", "out-of-order", "result-in-model-message"),
        *("illegal-id", "missing-id", "wrong-id", "repeated-id", "missing-name", "illegal-name", "bad-arguments"),
        *("empty-error", "empty-message", "model-first", "tool-then-user"),
        *("late-system", "lone-surrogate"),
    )
)
"""The problems that can be repaired on every wire."""


class Wire(ABC):
    """One shape of messages. Subclasses are stateless; there is one instance of each.

    `native`: its messages are Suture's own type. `marks`: extra data can be attached to its messages.
    `set_like`: a result may be anywhere after its call.
    `named_results`: a result carries the name of its tool.
    `bundled`: all results of a turn are in one message. `text_arguments`: arguments are the text of a JSON
    object, not the object. `glances_at_rules`: a glance checks the rules of a profile, not only the structure.
    `has_fields`: its messages are dicts, or objects of an SDK that have the same fields.
    `alternates`: which role may come next depends on the role before.

    >>> from suture.wires import get_wire
    >>> get_wire("openai-chat").name
    'openai-chat'
    """

    name: str
    native = False
    marks = False
    set_like = False
    bundled = False
    glances_at_rules = False
    has_fields = False
    alternates = True
    text_arguments = False
    named_results = True
    form: Form
    """The form of a result's content, on wires that are not native."""

    kinds: ClassVar[Mapping[str, str]] = {}
    """The kind of block for each type, on wires whose blocks have a type."""

    arranges: frozenset[str] = frozenset()
    """The problems of groups or neighbours that only some wires can repair, and this one can."""

    overlooks: frozenset[str] = frozenset()
    """The problems that a glance does not see, because no profile of a provider has them."""

    @cached_property
    def operations(self) -> frozenset[str]:
        """The problems that can be repaired on this wire."""
        named = {"result-name", "illegal-result-name"} if self.named_results else set[str]()
        return _GENERIC | self.arranges | self.mends.keys() | named

    @cached_property
    def mends(self) -> Mapping[str, Callable[[Any, values.View], Any]]:
        """The repairs within one message: for each problem, a function of the message and its view.

        It returns the repaired message, the same object if nothing is wrong, or `None` if the problem cannot be
        repaired.
        """
        return {}

    def glances(self, problems: Iterable[str], *, fits: bool) -> bool:
        """Return whether `glance` can be used; if a profile is to be fitted too, it must see all these problems."""
        return not fits or (self.glances_at_rules and self.overlooks.isdisjoint(problems))

    def glance(self, messages: Sequence[Any], start: int, demands: values.Demands) -> int:
        """Return the index up to which all messages from `start` on are acceptable at a glance.

        They are if they need no second look for any rule that this wire can break, and if each turn is followed by just
        its results. Anything unusual ends the glance before its turn.
        """
        return start

    def call_ids(self, messages: Sequence[Any], start: int, stop: int) -> list[values.Key]:
        """Return the ids of the calls in `messages[start:stop]`, which passed a glance."""
        calls = [call for message in values.iterate(messages, start, stop) for call in self.view(message).calls]
        return [self.key(call) for call in calls if call.id]

    def item_ids(self, messages: Sequence[Any], start: int, stop: int) -> list[values.Key]:
        """Return the ids of items in `messages[start:stop]`, which passed a glance; an item may be a call."""
        return []

    def key(self, thing: values.Call | values.Result) -> values.Key:
        """Return the key that a call and its result share on this wire: the id, or the name if there is no id."""
        return thing.id or ("", thing.name)

    def refers(self, message: Any) -> bool:
        """Return whether `message` refers to what the service keeps; then a later result may have its call there."""
        return False

    def made_by_model(self, message: Any, index: int | None = None) -> bool:
        """Return whether the model wrote `message`; on most wires, whether its role is assistant."""
        return self.view(message, index).role == "assistant"

    def sendable(self, message: Any) -> Any:
        """Return `message` with each lone surrogate replaced by U+FFFD; itself if there is none."""
        return sendable(message)

    def arguments_ok(self, call: values.Call) -> bool:
        """Return whether the arguments of `call` are an object, as every strict provider demands."""
        if self.text_arguments:
            return isinstance(call.arguments, str) and is_object_text(call.arguments)
        return isinstance(call.arguments, Mapping)

    def sound_arguments(self, call: values.Call) -> Any:
        """Return the call's arguments converted into this wire's form if they are an object, else an empty object."""
        return sound_arguments(call.arguments, as_text=self.text_arguments)

    def can_answer(self, call: values.Call) -> bool:
        """Return whether a placeholder can be made for `call`; it cannot if the result must be a screenshot."""
        return True

    def family(self, thing: values.Call | values.Result) -> str:
        """Return the form of a call or result; a result answers only calls of the same form."""
        return ""

    def is_malformed(self, call: values.Call) -> bool:
        """Return whether the arguments of `call` are cut off, or are no object; missing ones are fine."""
        arguments = call.arguments
        if self.arguments_ok(call) or arguments is None or (isinstance(arguments, str) and not arguments.strip()):
            return False
        return self.sound_arguments(call) in ({}, "{}")

    def steps(self, message: Any) -> list[Any]:
        """Split a message that holds several steps of calls and results into one message for each step."""
        return [message]

    def has_id(self, call: values.Call) -> bool:
        """Return whether a call of this form carries an id at all."""
        return True

    @abstractmethod
    def claims(self, message: Any) -> bool | None:
        """Return whether `message` is of this wire; `None` if it may be."""

    @abstractmethod
    def view(self, message: Any, index: int | None = None) -> values.View:
        """Return what pairing and fit need to know about `message`; raise `InputError` if it is malformed."""

    def result_text(self, result: values.Result) -> tuple[str, bool]:
        """Return the text of a result, and whether the result holds nothing else."""
        content = result.content
        if content is None or isinstance(content, str):
            return content or "", True
        texts = [text for block in content if (text := self.form.find(block)) is not None]
        return "\n".join(texts), len(texts) == len(content)

    @abstractmethod
    def edit(self, message: Any, calls: Mapping[int, values.CallEdit], results: Mapping[int, values.ResultEdit]) -> Any:
        """Return `message` with the calls and results at these positions changed."""

    @abstractmethod
    def carry(self, pieces: Sequence[values.Piece]) -> list[Any]:
        """Return the messages that carry these results, in this order."""

    @abstractmethod
    def rest(self, message: Any, texts: Mapping[int, str]) -> Any | None:
        """Return `message` without its results, but with `texts` in place of some; `None` if nothing is left."""

    @abstractmethod
    def speak(self, role: str, text: str) -> Any:
        """Return a new message of `role` (user or assistant) that says `text`."""

    # The words of a message, and the content of a result

    def words(self, message: Any) -> Words:
        """Return all that a model reads in `message`: role, reasoning, text, calls and results; and count its media."""
        view = self.view(message)
        telling = Telling(view.role)
        self.tell(message, telling)
        for call in view.calls:
            telling.say(call.name)
            telling.write(call.arguments)
        for result in view.results:
            parts = self.result_parts(result)
            if parts is None:
                self.tell_content(result.content, telling)
                continue
            for part in parts:
                if isinstance(part, RawPart):
                    self.tell_block(part.raw, telling)
                else:
                    telling.tell(part)
        return telling.words()

    @abstractmethod
    def tell(self, message: Any, telling: Telling) -> None:
        """Tell the words of `message`, without its calls and results."""

    def tell_content(self, content: Any, telling: Telling) -> None:
        """Tell a text, or a list of blocks."""
        if is_list(content):
            for block in content:
                self.tell_block(block, telling)
        elif content is None or isinstance(content, str):
            telling.say(content)
        else:
            self.tell_block(content, telling)

    def tell_block(self, block: Any, telling: Telling) -> None:
        """Tell the words of one block; count a medium, and show anything else as JSON."""
        kind = self.kind(block)
        if kind in {values.TEXT, values.THINKING}:
            telling.say(self.block_words(block))
        elif kind == values.MEDIA:
            telling.media += 1
        else:
            telling.show(block)

    def kind(self, block: Any) -> str:
        """Return the kind of `block`: call, result, text, thinking, media or other."""
        return self.kinds.get(word(block, "type") or "", values.OTHER)

    def block_words(self, block: Any) -> Any:
        """Return the words of a text or thinking block, whatever value is there."""
        return get(block, "text")

    def contents(self, message: Any) -> Sequence[Any]:
        """Return the blocks of `message`, on wires of other frameworks."""
        raise NotImplementedError

    def is_system(self, block: Any) -> bool:
        """Return whether a block of a user message is the system's, on wires of other frameworks."""
        return False

    def result_parts(self, result: values.Result) -> tuple[Part, ...] | None:
        """Return the content of a result as native parts in order; `None` if it could not be joined again.

        A block that is neither a text nor native becomes a `RawPart` with the user's own object.
        """
        return self.form.split(result.content)

    def content_after(self, edit: values.ResultEdit, content: Any) -> Any:
        """Return the `content` of a result after `edit`; `None` if it does not change."""
        if edit.parts is not None:
            return self.form.join(edit.parts, content)
        return None if edit.text is None else self.form.write_text(edit.text)

    def extra_of(self, message: Any) -> Mapping[str, Any]:
        """Return the extra data of `message`; empty on a wire without marks."""
        return values.NO_EXTRA

    def with_extra(self, message: Any, extra: Mapping[str, Any]) -> Any:
        """Return `message` with `extra` added to its extra data; unchanged on a wire without marks."""
        return message

    # What only some wires can do; profiles demand it only on those.

    def as_role(self, message: Any, role: str) -> Any:
        """Return a message of `role` with the words of `message`."""
        return self.speak(role, "\n".join(self.words(message).texts[1:]))

    def show_media(self, media: Sequence[tuple[str, Sequence[Any]]]) -> Any:
        """Return a user message that shows media, each after a text that says where they come from."""
        raise NotImplementedError

    def fill(self, message: Any, field: str) -> Any:
        """Return `message` with an empty text in `field` if that is missing."""
        return message

    def begins_step(self, message: Any) -> bool:
        """Return whether a message of the model cannot be in one step with calls before it."""
        return False

    def without_trailing_thinking(self, message: Any) -> Any | None:
        """Return `message` without the thoughts at its end; `None` if nothing is left."""
        return message

    def server_tools(self, message: Any) -> tuple[set[Any], set[Any]]:
        """Return the ids of uses of a server's tools in `message`, and of results whose use is not before them."""
        return set(), set()

    def without_open_uses(self, message: Any) -> Any | None:
        """Return `message` without uses of server tools that have no result in it; `None` if nothing is left."""
        return message

    def without_thinking(self, message: Any) -> Any | None:
        """Return `message` without the model's thoughts; `None` if nothing is left."""
        return message

    def with_text(self, message: Any, text: str) -> Any:
        """Return `message` with `text` in place of its texts; unchanged if calls or results would be lost."""
        view = self.view(message)
        return message if view.calls or view.results else self.speak(view.role, text)

    def compacted_by(self, message: Any) -> str:
        """Return the name of the profile whose provider wrote a compaction into `message`, or an empty text."""
        del message
        return ""

    def name_documents(self, message: Any, names: MutableMapping[str, None]) -> Any:
        """Return `message` with names for its documents that are not in `names` yet, and add them there."""
        return message

    def is_empty_error(self, result: values.Result) -> bool:
        """Return whether a result reports an error without any text."""
        if not result.failed:
            return False
        text, complete = self.result_text(result)
        return complete and not text.strip()

    def item_id(self, message: Any) -> str:
        """Return the id that the service gave the item itself, not the call in it."""
        return ""

    def without_item_id(self, message: Any) -> Any:
        """Return the item without that id, as one that the service has not stored."""
        return message

    def wants_follower(self, message: Any) -> bool:
        """Return whether the item must be followed by the item that came of it."""
        return False

    def can_follow(self, message: Any) -> bool:
        """Return whether this item can be such a follower."""
        return True

    def fault(self, index: int | None, path: str, reason: str) -> InputError:
        """Return the error for the message at `index`."""
        return InputError(f"{reason} ({self.name})", index=index, path=path)


class ItemWire(Wire):
    """A wire on which each result is a separate message, which moves as a whole or not at all."""

    def speak(self, role: str, text: str) -> Any:
        """Return a new message that says `text`."""
        return {"role": role, "content": text}

    def block_words(self, block: Any) -> Any:
        """Return the words of a text or of a refusal."""
        return get(block, "refusal" if word(block, "type") == "refusal" else "text")

    @abstractmethod
    def placeholder(self, piece: values.Piece) -> Any:
        """Return a new message with a result for the call of `piece`, with its text."""

    def carry(self, pieces: Sequence[values.Piece]) -> list[Any]:
        """Return these results, each of which is a message."""
        return [self.placeholder(piece) if piece.message is None else piece.message for piece in pieces]

    def rest(self, message: Any, texts: Mapping[int, str]) -> Any | None:
        """Return the text for a result as a user message; `None` if there is none."""
        return self.speak("user", texts[0]) if 0 in texts else None


# What agents need in addition. An agent uses only this interface, so it is written once for all message types.

THOUGHT, SAID, CALLED = "thought", "said", "called"


class ChatWire(Wire):
    """A wire that an agent can run on: it makes messages, joins them from pieces, reads them, dumps and loads them.

    >>> from suture.messages import Delta
    >>> from suture.wires import get_chat_wire
    >>> wire = get_chat_wire("openai-chat")
    >>> wire.user("hi")
    {'role': 'user', 'content': 'hi'}
    >>> wire.join([Delta("Let me "), Delta("see.")])
    {'role': 'assistant', 'content': 'Let me see.'}
    """

    @abstractmethod
    def user(self, content: str | Sequence[Any]) -> Any:
        """Return a user message with a text or with parts; raise `InputError` for parts that this wire cannot hold."""

    @abstractmethod
    def result(self, call: values.Call, result: ToolResult) -> Any:
        """Return the message that answers `call` with `result`; parts that have no form on this wire become text."""

    @abstractmethod
    def join(self, deltas: Sequence[Delta]) -> Any | None:
        """Return the assistant message that these pieces make; `None` if they say nothing.

        Calls come in the order of `call_index`, with their arguments as they are, complete or not.
        """

    @abstractmethod
    def deltas(self, message: Any) -> list[Delta]:
        """Return the pieces of an assistant message: its reasoning, text, calls and usage."""

    def is_cut(self, message: Any) -> bool:
        """Return whether `message` is a reply that was cut off; not all wires can tell."""
        return False

    def early_end(self, message: Any) -> tuple[str, str]:
        """Return why a reply ended before its answer, `refusal`, `content_filter` or `length`, and the provider's word.

        Two empty texts if it did not; not all wires can tell.
        """
        return "", ""

    def is_paused(self, message: Any) -> bool:
        """Return whether the provider continues `message` if it is sent back as it is; not all wires can tell."""
        return False

    @abstractmethod
    def text(self, message: Any) -> str:
        """Return the text of `message`, empty if it has none."""

    @abstractmethod
    def usage(self, message: Any) -> TokenUsage | None:
        """Return the token usage of `message`; `None` if it does not carry that."""

    @abstractmethod
    def dump(self, message: Any) -> Any:
        """Return `message` as plain dicts and lists; raise `InputError` if `load` could not restore it."""

    @abstractmethod
    def load(self, value: Any) -> Any:
        """Return the message that `dump` turned into `value`."""

    @abstractmethod
    def calls(self, message: Any) -> tuple[values.Call, ...]:
        """Return the calls of `message` in order, which is faster than `view(message).calls`."""

    def wants_assistant(self, role: str) -> None:
        """Raise `InputError` if `role` is not assistant."""
        if role != "assistant":
            raise InputError(f"only an assistant's message has pieces, this one is the {role}'s ({self.name})")


class Reply(Struct, frozen=True):
    """A reply made of its pieces: thoughts, texts and calls in order, and its usage."""

    runs: tuple[tuple[str, Any], ...]
    usage: TokenUsage | None = None

    def words(self, kind: str) -> str:
        """Return all of the reply's text, or all of its thoughts."""
        return "".join([words for found, words in self.runs if found == kind])

    def calls(self) -> list[values.Call]:
        """Return the calls in order."""
        return [call for found, call in self.runs if found == CALLED]


def gather(deltas: Sequence[Delta]) -> Reply:
    """Return the reply that `deltas` make."""
    runs: list[tuple[str, list[str]]] = []
    calls: dict[int, list[Delta]] = {}
    usage = None
    for delta in deltas:
        for kind, words in ((THOUGHT, delta.reasoning), (SAID, delta.text)):
            if words:
                if not runs or runs[-1][0] != kind:
                    runs.append((kind, []))
                runs[-1][1].append(words)
        if delta.call_index is not None:
            if delta.call_index not in calls:
                runs.append((CALLED, []))
            calls.setdefault(delta.call_index, []).append(delta)
        usage = delta.usage or usage
    # Calls keep the places where calls began, but come in the order of their index; the first id and name count.
    closed = iter(
        [
            values.Call(
                next((piece.call_id for piece in pieces if piece.call_id), ""),
                next((piece.name for piece in pieces if piece.name), ""),
                "".join([piece.arguments for piece in pieces]),
            )
            for _, pieces in sorted(calls.items())
        ]
    )
    return Reply(tuple([(kind, next(closed) if kind == CALLED else "".join(words)) for kind, words in runs]), usage)
