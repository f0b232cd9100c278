"""Item 2: the same conversation, checked by deepagents on its own objects and by us on ours."""

from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from _histories import history, langchain_history
from _measure import Goal, Row, Section, Settings, interleave, say

import suture

__all__ = ["deepagents_version", "measure_peer"]

_THEIRS = "deepagents"
_TITLE = "2. Against deepagents' PatchToolCallsMiddleware.before_agent (ratio: its time over ours)"
_NOTES = (
    "Theirs, on its LangChain objects: is the id of each call among the ids of all results of the history?",
    "Ours, on the same conversation: does each turn have just its own results, right behind it, none twice,",
    "none without a call, whatever ids other turns used? So late, early, repeated and stray results and",
    "reused ids are found as well. The full check adds ids, names, parsed arguments, media, empty messages.",
)


def deepagents_version() -> str:
    """Return the version of deepagents, empty where it is not installed."""
    try:
        return version("deepagents")
    except PackageNotFoundError:
        return ""


def measure_peer(settings: Settings) -> list[Section]:
    """Measure the peer, where it is installed."""
    if not deepagents_version():
        return [Section(_TITLE, [Row(what="deepagents: not installed")], _NOTES)]
    say("importing deepagents")
    rows = [row for size in settings.sizes for row in _measure(size, settings)]
    return [Section(_TITLE, rows, _NOTES)]


def _measure(size: int, settings: Settings) -> list[Row]:
    from deepagents.middleware.patch_tool_calls import PatchToolCallsMiddleware

    say(f"deepagents: {size:,} messages")
    patch: Any = PatchToolCallsMiddleware()
    state = {"messages": langchain_history(size)}
    chat, native = history("openai-chat", size), history("message", size)
    if patch.before_agent(state, None) is not None:
        raise SystemExit("deepagents found fault with a valid history")
    theirs = partial(patch.before_agent, state, None)
    pairing = {
        "message": partial(suture.check, native, wire="message", profile="pairing"),
        "openai-chat": partial(suture.check, chat, wire="openai-chat", profile="pairing"),
    }
    full = {"openai-chat, full check": partial(suture.check, chat, wire="openai-chat")}
    rows: list[Row] = []
    for ours, goal in ((pairing, Goal(2, at_least=True)), (full, None)):
        timings = interleave({_THEIRS: theirs, **ours}, settings)
        rows += [timings.row(name, name, _THEIRS, messages=size, goal=goal, speed=True) for name in ours]
    return rows
