"""The texts that stand for missing results, as the design's table prints them."""

import re
from typing import Any

from tests.shapes.notation import Result, result

CAUSES = ("interrupted", "malformed", "rejected", "stopped", "unknown", "compacted")

ENGLISH = {
    "interrupted": "Tool call {name} with id {id} was canceled - another message came in before it could be completed.",
    "malformed": "Tool call {name} with id {id} was not run - its arguments were malformed or cut off.",
    "rejected": "Tool call {name} with id {id} was not run - it was rejected.",
    "stopped": "Tool call {name} with id {id} was stopped before it finished - the run was canceled.",
    "unknown": "Tool call {name} with id {id} has no recorded result - it may or may not have run. "
    "Check before running it again.",
    "compacted": "The result of tool call {name} with id {id} was removed to save context.",
}

CHINESE = {
    "interrupted": "工具调用 {name}(ID 为 {id})已被取消——在其完成之前收到了另一条消息。",
    "malformed": "工具调用 {name}(ID 为 {id})未执行——其参数格式错误或不完整。",
    "rejected": "工具调用 {name}(ID 为 {id})未执行——已被拒绝。",
    "stopped": "工具调用 {name}(ID 为 {id})在完成前被停止——运行已取消。",
    "unknown": "工具调用 {name}(ID 为 {id})没有记录到结果——它可能已执行,也可能未执行。再次执行前请先确认。",
    "compacted": "工具调用 {name}(ID 为 {id})的结果已为节省上下文而移除。",
}

TEXTS = {"en": ENGLISH, "zh": CHINESE}


def placeholder(cause: str, id_: Any, name: str = "search", language: str = "en") -> str:
    text = TEXTS[language][cause] if id_ else without_id(TEXTS[language][cause])
    return text.format(name=name, id=id_)


def without_id(text: str) -> str:
    """A call without an id is told without one."""
    return text.replace(" with id {id}", "").replace("(ID 为 {id})", "")


def answered(cause: str, id_: Any, name: str = "search", *, language: str = "en") -> Result:
    """The step that stands for a missing result; it has error status where the wire has one."""
    return result(id_, placeholder(cause, id_, name, language), name, error=True)


class Placeheld:
    """A placeholder's text of one cause, for a call whose id is not known beforehand."""

    def __init__(self, cause: str, name: str = "search", language: str = "en") -> None:
        self.cause = cause
        template = re.escape(TEXTS[language][cause]).replace(r"\{name\}", re.escape(name))
        self.pattern = re.compile(template.replace(r"\{id\}", r"[\w()-]*"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.pattern.fullmatch(other) is not None

    def __hash__(self) -> int:
        return hash(self.cause)

    def __repr__(self) -> str:
        return f"Placeheld({self.cause!r})"
