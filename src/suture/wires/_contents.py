"""What a tool gave, taken apart into native parts and put together again, on wires that are not Suture's own.

A wire says how it writes a text (`Form`); the rest is written here once. What is put together keeps as much of what was
there as it can: content that says the same stays the very same, and a text that was changed keeps its own block.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from suture.messages import Part, TextPart
from suture.wires._fields import get, is_list, put, word
from suture.wires._parts import RawPart, in_words

__all__ = ["Form", "apart", "same_parts", "text_block", "together", "typed_text"]


def _has_no_form(part: Part) -> Any:
    del part


class Form(NamedTuple):
    """How a wire writes the content of a result.

    `find` returns the text that a block says, `None` of a block that is no text. `make` returns the block of a text.
    `media` returns a native part in the wire's form, where it has one. `lone`: a text may stand without a block.

    >>> Form(typed_text("text"), text_block("text")).make("hi")
    {'type': 'text', 'text': 'hi'}
    """

    find: Callable[[Any], str | None]
    make: Callable[[str], Mapping[str, Any]]
    media: Callable[[Part], Any] = _has_no_form
    lone: bool = True

    def alone(self, text: str) -> Any:
        """Return the content that says `text` and nothing else."""
        return text if self.lone else [self.make(text)]


def typed_text(*types: str) -> Callable[[Any], str | None]:
    """Return a function that finds the text in a block of one of these types.

    >>> typed_text("text")({"type": "text", "text": "hi"})
    'hi'
    """

    def find(block: Any) -> str | None:
        text = get(block, "text") if word(block, "type") in types else None
        return text if isinstance(text, str) else None

    return find


def text_block(type: str) -> Callable[[str], dict[str, Any]]:  # noqa: A002 - the field's name
    """Return a function that makes a text a block of this type.

    >>> text_block("input_text")("hi")
    {'type': 'input_text', 'text': 'hi'}
    """

    def make(text: str) -> dict[str, Any]:
        return {"type": type, "text": text}

    return make


def apart(form: Form, content: Any) -> tuple[Part, ...] | None:
    """Return content as parts: texts as native ones, all else as it is; `None` where it is no list of blocks.

    >>> form = Form(typed_text("text"), text_block("text"))
    >>> apart(form, [{"type": "text", "text": "hi"}, {"type": "image", "source": {}}])
    (TextPart(text='hi'), RawPart(data={'type': 'image', 'source': {}}))
    >>> apart(form, "hi"), apart(form, None)
    ((TextPart(text='hi'),), ())
    """
    if content is None or isinstance(content, str):
        return (TextPart(content),) if content else ()
    if not is_list(content):
        return None
    found = [(block, form.find(block)) for block in content]
    return tuple([RawPart(block) if text is None else TextPart(text) for block, text in found])


def together(form: Form, parts: Sequence[Part], content: Any) -> Any:
    """Return the content that says `parts` in the place of `content`.

    >>> form = Form(typed_text("text"), text_block("text"))
    >>> together(form, [TextPart("bye")], "hi")
    'bye'
    >>> together(form, [TextPart("bye")], [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}])
    [{'type': 'text', 'text': 'bye', 'cache_control': {'type': 'ephemeral'}}]
    """
    if same_parts(parts, apart(form, content)):
        return content
    blocks = _blocks(form, parts, content)
    if form.lone and (len(blocks) < 2 or not is_list(content)):
        texts = [form.find(block) for block in blocks]
        if all(text is not None and block == form.make(text) for text, block in zip(texts, blocks, strict=True)):
            return "\n".join([text for text in texts if text])
    return blocks


def same_parts(parts: Sequence[Part], others: Sequence[Part] | None) -> bool:
    """Tell whether both are the same parts: wrapped objects the very same, all else equal.

    >>> same_parts([TextPart("hi")], (TextPart("hi"),)), same_parts([RawPart({})], [RawPart({})])
    (True, False)
    """
    if others is None or len(parts) != len(others):
        return False
    return all(
        one.raw is other.raw if isinstance(one, RawPart) and isinstance(other, RawPart) else one == other
        for one, other in zip(parts, others, strict=True)
    )


def _blocks(form: Form, parts: Sequence[Part], content: Any) -> list[Any]:
    """Return the blocks of `parts`; with as many texts as before, each takes its block over."""
    held = [block for block in content if form.find(block) is not None] if is_list(content) else []
    texts = sum(isinstance(part, TextPart) for part in parts)
    own = iter(held if len(held) == texts else ())
    return [_block(form, part, next(own, None) if isinstance(part, TextPart) else None) for part in parts]


def _block(form: Form, part: Part, own: Any) -> Any:
    if isinstance(part, RawPart):
        return part.raw
    if isinstance(part, TextPart) and own is not None:
        if form.find(own) == part.text:
            return own
        if get(own, "text") is not None:
            return put(own, text=part.text)
    return form.media(part) or form.make(in_words(part))
