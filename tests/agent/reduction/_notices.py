"""The texts of truncation, written from the documents and not from the code under test."""

import re

EN = """<persisted-output>
Output too large ({size}). Full output saved to: {path}
Preview (first {shown}):
{first}

Preview (last {shown}):
{last}

Use {reader} to view
</persisted-output>"""

ZH = """<persisted-output>
输出结果过大 ({size}). 完整输出保存到: {path}
预览 (前 {shown}):
{first}

预览 (后 {shown}):
{last}

使用 {reader} 进行查看
</persisted-output>"""

STREAM_EN = """<persisted-output>
Output truncated after {limit} bytes were streamed. {saved} {failed}
</persisted-output>"""

STREAM_ZH = """<persisted-output>
输出结果在流式传输 {limit} 字节后被截断。{saved} {failed}
</persisted-output>"""

SAVED = {"en": "Full output saved to: {}. Use {} to view.", "zh": "完整输出保存到: {}。使用 {} 进行查看。"}
FAILED = {"en": "Failed to save full output: {}.", "zh": "完整输出保存失败: {}。"}
TAG, END = "<persisted-output>", "</persisted-output>"


def notice(text: str, path: str, share: int, *, reader: str = "read_file", language: str = "en") -> str:
    """Return what stands for a text that came at once."""
    shown = share // 2
    first, last = text[:shown], text[len(text) - shown :]
    form = {"en": EN, "zh": ZH}[language]
    return form.format(size=len(text), path=path, shown=shown, first=first, last=last, reader=reader)


def stream_notice(limit: int, path: str, *, reader: str = "read_file", language: str = "en") -> str:
    """Return what stands at the end of a stream that was cut and saved."""
    form = {"en": STREAM_EN, "zh": STREAM_ZH}[language]
    return form.format(limit=limit, saved=SAVED[language].format(path, reader), failed="")


def failed_notice(limit: int, why: str, *, language: str = "en") -> str:
    """Return what stands at the end of a stream that was cut and could not be saved."""
    form = {"en": STREAM_EN, "zh": STREAM_ZH}[language]
    return form.format(limit=limit, saved="", failed=FAILED[language].format(why))


def path_in(text: str) -> str:
    """Return the path that a notice names."""
    (path,) = paths_in(text)
    return path


def paths_in(text: str) -> list[str]:
    """Return the paths that notices name."""
    return re.findall(r"Full output saved to: (.*?)(?:\. Use [\w-]+ to view\.|\n)", text)
