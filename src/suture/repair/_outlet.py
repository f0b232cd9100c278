"""Where fitted messages go out: what one neighbour means for the next is decided here, and only here."""

from collections.abc import Collection
from typing import Any, NamedTuple

from suture.language import Language
from suture.repair._blocks import merge
from suture.wires import BlockWire, View, Wire

__all__ = ["Outlet"]

_BRIDGES: dict[tuple[str, Language], str] = {
    ("assistant", "en"): "(tool results received)",
    ("assistant", "zh"): "(已收到工具结果)",
    ("user", "en"): "(start of the conversation)",
    ("user", "zh"): "(对话开始)",
}


class _Held(NamedTuple):
    """The last message put out; the next ones may still be merged into it."""

    message: Any
    role: str
    carries_results: bool
    signed: bool


class Outlet:
    """Puts messages out one by one: merges neighbours, bridges them, keeps the calls of a turn together.

    `problems` are those that the profile has a rule for; those met are in `noted`.

    >>> from suture.wires import get_wire
    >>> outlet = Outlet(get_wire("openai-chat"), ("tool-then-user",), "en")
    >>> tool = {"role": "tool", "tool_call_id": "a", "content": ""}
    >>> outlet.put(tool, get_wire("openai-chat").view(tool))
    >>> outlet.put({"role": "user", "content": "hi"}, View("user"))
    >>> [message["role"] for message in outlet.finish()]
    ['tool', 'assistant', 'user']
    """

    def __init__(
        self, wire: Wire, problems: Collection[str], language: Language, *, system_outside: bool = False
    ) -> None:
        self.wire, self.problems, self.system_outside = wire, problems, system_outside
        self.noted: list[tuple[str, str]] = []
        """What was met since somebody last looked: (problem, what was done)."""
        self.language: Language = language
        self.changed = False
        self.out: list[Any] = []
        self._held: _Held | None = None
        self._begun = False
        """Whether anybody has spoken; the system counts where it is not kept outside."""
        self._joined: list[Any] = []
        """What is to be merged into the held message, once it goes out."""
        self._calls: list[tuple[Any, View]] = []
        """Call items of the turn at hand, kept back until its other items are out."""

    def fork(self) -> "Outlet":
        """Return an outlet that goes on from here; it puts out the held message, which this one has not."""
        twin = Outlet(self.wire, self.problems, self.language, system_outside=self.system_outside)
        twin._held, twin._joined, twin._calls = self._held, list(self._joined), list(self._calls)
        twin._begun = self._begun
        return twin

    @property
    def holds_only_last(self) -> bool:
        """Whether all that is not out yet is the last message, as it came."""
        return not self._joined and not self._calls

    def put(self, message: Any, view: View) -> None:
        """Take the next message."""
        if "text-between-calls" not in self.problems:
            self._put(message, view)
        elif view.role != "assistant":
            self._release_calls()
            self._put(message, view)
        elif view.calls:
            self._calls.append((message, view))
        else:
            self._put_before_calls(message, view)

    def finish(self) -> list[Any]:
        """Return all that was put out."""
        self._release_calls()
        self._release()
        return self.out

    def _put_before_calls(self, message: Any, view: View) -> None:
        if self._calls:
            self.noted.append(("text-between-calls", "" if view.signed else "moved before the calls"))
            if view.signed:
                self._release_calls()
            else:
                self.changed = True
        self._put(message, view)

    def _release_calls(self) -> None:
        calls, self._calls = self._calls, []
        for message, view in calls:
            self._put(message, view)

    def _put(self, message: Any, view: View) -> None:
        held = self._held
        carries = bool(view.results)
        problem = self._touching(held, view.role, carries_results=carries) if held is not None else ""
        if held is not None and problem:
            signed = held.signed or view.signed
            self.noted.append((problem, "" if signed else "merged with the message before"))
            if not signed and isinstance(self.wire, BlockWire):
                self.changed = True
                self._joined.append(message)
                self._held = _Held(held.message, view.role, carries or held.carries_results, signed=False)
                return
        self._bridge(held, view.role, carries_results=carries)
        self._hold(_Held(message, view.role, carries, view.signed))

    def _touching(self, held: _Held, role: str, *, carries_results: bool) -> str:
        """Return what is wrong with two neighbours of one role, if anything is."""
        if held.role != role or role == "system":
            return ""
        if "same-role" in self.problems:
            return "same-role"
        both = held.carries_results and carries_results
        return "split-results" if both and "split-results" in self.problems else ""

    def _bridge(self, held: _Held | None, role: str, *, carries_results: bool) -> None:
        """Put a short message between two that may not touch."""
        if not self._begun and role == "assistant" and "model-first" in self.problems:
            self.noted.append(("model-first", "a user message put before it"))
            self._insert("user")
        elif held is None:
            return
        elif held.carries_results and role == "user" and not carries_results and "tool-then-user" in self.problems:
            self.noted.append(("tool-then-user", "an assistant message put between"))
            self._insert("assistant")
        elif role == "system" and (held.carries_results or held.role == "assistant") and "late-system" in self.problems:
            self.noted.append(("late-system", ""))

    def _insert(self, role: str) -> None:
        self.changed = True
        message = self.wire.speak(role, _BRIDGES[role, self.language])
        self._hold(_Held(message, role, carries_results=False, signed=False))

    def _hold(self, held: _Held) -> None:
        self._release()
        self._held = held
        self._begun = self._begun or held.role != "system" or not self.system_outside

    def _release(self) -> None:
        """Put the held message out, with all that was merged into it."""
        held, joined = self._held, self._joined
        if held is None:
            return
        message = held.message
        if joined and isinstance(self.wire, BlockWire):
            message = merge(self.wire, [message, *joined], first_results="results-not-first" in self.problems)
        self.out.append(message)
        self._held, self._joined = None, []
