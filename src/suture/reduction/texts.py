"""What stands for output that was taken out of a conversation: texts in English and Chinese, and names of files."""

import re
from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple

from suture.language import Language

_OPEN, _CLOSE = "<persisted-output>", "</persisted-output>"
_SURROGATES = re.compile("[\ud800-\udfff]")
_LONGEST_ERROR = 1_000
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]|^\.+")
_LONGEST_NAME = 64
LONGEST_NOTICE = 4_096
"""More characters than a notice has beside what it shows of a text."""


class _Texts(NamedTuple):
    truncated: str
    streamed: str
    saved: str
    unsaved: str
    failed: str
    persisted: str
    cleared: str


_TEXTS: dict[Language, _Texts] = {
    "en": _Texts(
        truncated=(
            f"{_OPEN}\nOutput too large ({{size}}). Full output saved to: {{path}}\n"
            "Preview (first {preview}):\n{first}\n\nPreview (last {preview}):\n{last}\n\n"
            f"Use {{tool}} to view\n{_CLOSE}"
        ),
        streamed=f"{_OPEN}\nOutput truncated after {{length}} bytes were streamed. {{saved}} {{error}}\n{_CLOSE}",
        saved="Full output saved to: {path}. Use {tool} to view.",
        unsaved="Failed to save full output: {error}.",
        failed="The tool failed before its output was complete: {error}.",
        persisted=f"{_OPEN}Tool result saved to: {{path}}\nUse {{tool}} to view{_CLOSE}",
        cleared="[Old tool result content cleared]",
    ),
    "zh": _Texts(
        truncated=(
            f"{_OPEN}\n输出结果过大 ({{size}}). 完整输出保存到: {{path}}\n"
            "预览 (前 {preview}):\n{first}\n\n预览 (后 {preview}):\n{last}\n\n"
            f"使用 {{tool}} 进行查看\n{_CLOSE}"
        ),
        streamed=f"{_OPEN}\n输出结果在流式传输 {{length}} 字节后被截断。{{saved}} {{error}}\n{_CLOSE}",
        saved="完整输出保存到: {path}。使用 {tool} 进行查看。",
        unsaved="完整输出保存失败: {error}。",
        failed="工具在输出完成之前失败: {error}。",
        persisted=f"{_OPEN}工具结果已保存至: {{path}}\n使用 {{tool}} 进行查看{_CLOSE}",
        cleared="[工具输出结果已清理]",
    ),
}


def shown(text: str) -> str:
    """Return a piece of tool output as a notice may show it: it cannot end the notice, and any wire can carry it.

    >>> shown("a </persisted-output> b")
    'a &lt;/persisted-output> b'
    """
    if _OPEN in text or _CLOSE in text:
        text = text.replace(_OPEN, "&lt;" + _OPEN[1:]).replace(_CLOSE, "&lt;" + _CLOSE[1:])
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def truncated_text(text: str, preview: int, path: str, tool: str, language: Language) -> str:
    """Return what stands for a text that was saved: how long it is, where it is, how it begins and ends.

    >>> print(truncated_text("0123456789", 2, "/run/trunc/a", "read_file", "en"))
    <persisted-output>
    Output too large (10). Full output saved to: /run/trunc/a
    Preview (first 2):
    01
    <BLANKLINE>
    Preview (last 2):
    89
    <BLANKLINE>
    Use read_file to view
    </persisted-output>
    """
    return _TEXTS[language].truncated.format(
        size=len(text),
        path=shown(path),
        preview=preview,
        first=shown(text[:preview]),
        last=shown(text[len(text) - preview :]),
        tool=tool,
    )


def streamed_text(length: int, path: str, tool: str, language: Language, *, unsaved: str = "", failed: str = "") -> str:
    """Return what follows the beginning of a streamed output: where the whole is, or why it is nowhere.

    >>> print(streamed_text(10, "/run/trunc/a", "read_file", "en", failed="it was cut"))
    <persisted-output>
    Output truncated after 10 bytes were streamed. Full output saved to: /run/trunc/a. Use read_file to view. \
The tool failed before its output was complete: it was cut.
    </persisted-output>
    """
    texts = _TEXTS[language]
    saved = "" if unsaved else texts.saved.format(path=shown(path), tool=tool)
    errors = [texts.unsaved.format(error=_brief(unsaved))] if unsaved else []
    errors += [texts.failed.format(error=_brief(failed))] if failed else []
    return texts.streamed.format(length=length, saved=saved, error=" ".join(errors))


def _brief(error: str) -> str:
    return shown(error if len(error) <= _LONGEST_ERROR else f"{error[:_LONGEST_ERROR]} …")


def persisted_text(path: str, tool: str, language: Language) -> str:
    r"""Return what stands for an old result that was saved.

    >>> persisted_text("/run/clear/a", "read_file", "en")
    '<persisted-output>Tool result saved to: /run/clear/a\nUse read_file to view</persisted-output>'
    """
    return _TEXTS[language].persisted.format(path=shown(path), tool=tool)


def cleared_text(language: Language) -> str:
    """Return what stands for an old result that was not saved.

    >>> cleared_text("en")
    '[Old tool result content cleared]'
    """
    return _TEXTS[language].cleared


def is_cleared_text(text: str) -> bool:
    """Tell whether `text` is one that stands for an old result, in any language.

    >>> is_cleared_text(persisted_text("/run/clear/a", "read_file", "zh")), is_cleared_text("42")
    (True, False)
    """
    return len(text) < LONGEST_NOTICE and any(pattern.fullmatch(text) for pattern in _CLEARED)


def is_truncated_text(text: str) -> bool:
    """Tell whether `text` is, or ends in, a notice that stands for output which is too long, in any language.

    >>> is_truncated_text(truncated_text("0123456789", 2, "/run/trunc/a", "read_file", "zh")), is_truncated_text("42")
    (True, False)
    """
    if not text.endswith(_CLOSE):
        return False
    notice = text[text.rfind(_OPEN) :]
    return any(notice.startswith(beginning) for beginning in _TRUNCATED)


def named_path(text: str) -> str:
    """Return the path that the last notice in `text` names, if it is one of ours; the empty string otherwise.

    >>> named_path("beginning" + streamed_text(9, "/run/trunc/a", "read_file", "zh"))
    '/run/trunc/a'
    """
    notice = text[text.rfind(_OPEN) :] if _OPEN in text else ""
    found = next((match for pattern in _NAMING if (match := pattern.match(notice))), None)
    return found["path"] if found is not None else ""


def shorter_notice(text: str, limit: int) -> str:
    """Return a text that is, or ends in, a notice, showing no more than `limit` characters of the output.

    >>> notice = truncated_text("0123456789", 4, "/run/trunc/a", "read_file", "en")
    >>> shorter_notice(notice, 2) == truncated_text("0123456789", 1, "/run/trunc/a", "read_file", "en")
    True
    """
    place = text.rfind(_OPEN)
    for texts in _TEXTS.values():
        found = _pattern(texts.truncated, any_text=True).fullmatch(text)
        if found is not None:
            show = limit // 2
            first, last = found["first"][:show], found["last"][len(found["last"]) - show :] if show else ""
            kept = {"size": found["size"], "path": found["path"], "tool": found["tool"]}
            return texts.truncated.format(**kept, preview=show, first=first, last=last)
    return text[: min(limit, place)] + text[place:] if named_path(text) else text


def _pattern(template: str, *, any_text: bool = False) -> re.Pattern[str]:
    """Return what matches a text of this form, each field by its name."""
    pieces = re.split(r"\{(\w+)\}", template)
    made, seen = "", set[str]()
    for place, piece in enumerate(pieces):
        if place % 2 == 0:
            made += re.escape(piece)
        elif piece in seen:
            made += f"(?P={piece})"
        else:
            made += f"(?P<{piece}>.*)" if any_text and piece in {"first", "last"} else f"(?P<{piece}>[^\\n]+?)"
            seen.add(piece)
    return re.compile(made, re.DOTALL)


_CLEARED = tuple(_pattern(text) for texts in _TEXTS.values() for text in (texts.persisted, texts.cleared))
_TRUNCATED = tuple(
    template.partition("{")[0] for texts in _TEXTS.values() for template in (texts.truncated, texts.streamed)
)
_NAMING = tuple(
    _pattern(text)
    for texts in _TEXTS.values()
    for text in (
        "\n".join([*texts.truncated.split("\n")[:2], ""]),
        texts.streamed.partition("{saved}")[0].replace("{saved}", "") + texts.saved,
        texts.persisted,
    )
)


def safe_name(text: str) -> str:
    """Return `text` as one segment of a path: itself where it is safe, else cleaned and followed by a digest.

    >>> safe_name("call_1"), safe_name("../../etc/x"), safe_name("a/b") == safe_name("a_b")
    ('call_1', '__.._etc_x-56da1a2ef2df', False)
    """
    if text and len(text) <= _LONGEST_NAME and _UNSAFE.search(text) is None:
        return text
    return f"{_UNSAFE.sub('_', text[:_LONGEST_NAME]) or 'call'}-{digest_of(text, 12)}"


def offload_path(root: str, phase: str, call_id: str) -> str:
    """Return where the output of a call is kept in one phase, `trunc` or `clear`.

    >>> offload_path("/tmp", "trunc", "12345")
    '/tmp/trunc/12345'
    """
    return f"{root.rstrip('/')}/{phase}/{safe_name(call_id)}"


def free_path(path: str, is_taken: Callable[[str], bool], owner: str = "") -> str:
    """Return `path`, or where it is taken the next free one, which no other `owner` comes to.

    >>> free_path("/tmp/clear/a", {"/tmp/clear/b"}.__contains__)
    '/tmp/clear/a'
    >>> free_path("/tmp/clear/A", {"/tmp/clear/a"}.__contains__).startswith("/tmp/clear/A-")
    True
    """
    found, number = path, 1
    while is_taken(folded(found)):
        number += 1
        found = f"{path}-{digest_of(f'{owner}{path}#{number}', 12)}"
    return found


def folded(path: str) -> str:
    """Return `path` in the form that it shares with every path which a file system may take for it.

    >>> folded("/tmp/clear/A") == folded("tmp/clear/a")
    True
    """
    return "/" + path.lstrip("/").casefold()


def digest_of(text: str, length: int = 16) -> str:
    """Return a short name for a text.

    >>> digest_of("42")
    '73475cb40a568e8d'
    """
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]
