"""Why a call has no result, and the texts that say so.

A pure function cannot know the cause; whoever knows says so. The texts are fixed: they are recognised
again, in both languages, so that a real result can take a placeholder's place later.
"""

from enum import StrEnum

from suture.language import Language

__all__ = ["UNKNOWN_TOOL", "Cause", "is_builtin_text", "label", "placeholder_text", "visible"]

UNKNOWN_TOOL = "unknown_tool"
"""The name given to a call that has none."""

_LABEL_LIMIT = 64


class Cause(StrEnum):
    """Why a tool call has no result of its own.

    >>> Cause("rejected") is Cause.REJECTED
    True
    """

    INTERRUPTED = "interrupted"
    MALFORMED = "malformed"
    REJECTED = "rejected"
    STOPPED = "stopped"
    UNKNOWN = "unknown"
    COMPACTED = "compacted"


_TEXTS: dict[Language, dict[Cause, str]] = {
    "en": {
        Cause.INTERRUPTED: "Tool call {name} with id {id} was canceled - "
        "another message came in before it could be completed.",
        Cause.MALFORMED: "Tool call {name} with id {id} was not run - its arguments were malformed or cut off.",
        Cause.REJECTED: "Tool call {name} with id {id} was not run - it was rejected.",
        Cause.STOPPED: "Tool call {name} with id {id} was stopped before it finished - the run was canceled.",
        Cause.UNKNOWN: "Tool call {name} with id {id} has no recorded result - it may or may not have run. "
        "Check before running it again.",
        Cause.COMPACTED: "The result of tool call {name} with id {id} was removed to save context.",
    },
    "zh": {
        Cause.INTERRUPTED: "工具调用 {name}(ID 为 {id})已被取消——在其完成之前收到了另一条消息。",
        Cause.MALFORMED: "工具调用 {name}(ID 为 {id})未执行——其参数格式错误或不完整。",
        Cause.REJECTED: "工具调用 {name}(ID 为 {id})未执行——已被拒绝。",
        Cause.STOPPED: "工具调用 {name}(ID 为 {id})在完成前被停止——运行已取消。",
        Cause.UNKNOWN: "工具调用 {name}(ID 为 {id})没有记录到结果——它可能已执行,也可能未执行。再次执行前请先确认。",
        Cause.COMPACTED: "工具调用 {name}(ID 为 {id})的结果已为节省上下文而移除。",
    },
}
_OPENINGS = ("Tool call ", "The result of tool call ", "工具调用 ")
_SPELLINGS = str.maketrans({"（": "(", "）": ")", "，": ","})


def visible(text: str) -> str:
    """Return `text` without characters that a terminal would act on.

    >>> visible("a" + chr(27) + "[31mb")
    'a[31mb'
    """
    return text if text.isprintable() else "".join(letter for letter in text if letter.isprintable())


def label(text: str) -> str:
    """Return a name or id as it may stand in a text: no control characters, at most 64 characters.

    >>> label("a" + chr(27) + "[31mb")
    'a[31mb'
    """
    return visible(text)[:_LABEL_LIMIT]


def placeholder_text(cause: Cause, name: str, call_id: str, language: Language) -> str:
    """Return the text that stands for a missing result.

    >>> placeholder_text(Cause.REJECTED, "delete", "call_1", "en")
    'Tool call delete with id call_1 was not run - it was rejected.'
    """
    before, _, rest = _TEXTS[language][cause].partition("{name}")
    between, _, after = rest.partition("{id}")
    return f"{before}{label(name) or UNKNOWN_TOOL}{between}{label(call_id)}{after}"


def is_builtin_text(text: str, name: str | None, call_id: str) -> Cause | None:
    """Return the cause that `text` tells of this call, in any language; `None` if it is no text of ours.

    Without a name (a result whose call is gone), any name will do.

    >>> is_builtin_text("Tool call f with id a was not run - it was rejected.", "f", "a")
    <Cause.REJECTED: 'rejected'>
    >>> is_builtin_text("42", "f", "a") is None
    True
    """
    if not text.startswith(_OPENINGS):
        return None
    told = _normal(text)
    for language, texts in _TEXTS.items():
        for cause, template in texts.items():
            if name is not None:
                if told == _normal(placeholder_text(cause, name, call_id, language)):
                    return cause
                continue
            opening, _, ending = template.partition("{name}")
            if told.startswith(opening) and told.endswith(_normal(ending.replace("{id}", label(call_id)))):
                return cause
    return None


def _normal(text: str) -> str:
    return text.translate(_SPELLINGS).replace("was cancelled", "was canceled")
