"""Who keeps the context short, and how: each policy is one object for one run.

It is given each message as it comes (`add`) and says what is sent before each reply (`request`). The limit is in
tokens; what a policy has of thresholds by default is scaled to it: a limit of 160,000 leaves the reference and ours as
they are, one of 100,000 LangChain.
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from suture.reduction import Ledger, Settings, plan

from ._corpus import Chat, Recording
from ._scale import Scale

__all__ = [
    "OURS",
    "POLICIES",
    "LangChain",
    "NoReduction",
    "Ours",
    "OursGated",
    "Policy",
    "Reference",
    "last_round",
    "scaled",
    "stand_in",
]

_FULL = 160_000
"""The limit at which the reference's defaults, and ours, are what they are."""


def scaled(number: int, limit: int) -> int:
    """Return a threshold for `limit` that is `number` by default."""
    return number * limit // _FULL


class Policy:
    """Sends everything, always."""

    def __init__(self, recording: Recording, limit: int, scale: Scale) -> None:
        self.limit, self.scale = limit, scale
        self.history: list[Chat] = []
        self.tokens = 0
        self.paid = 0.0
        """What summaries cost."""

    def add(self, message: Chat) -> None:
        """Take a message that was just made."""
        self.history.append(message)
        self.tokens += self.scale.of(message)

    def request(self) -> Sequence[Chat]:
        """Return what is sent to the model now."""
        return list(self.history)

    def put(self, index: int, message: Chat) -> None:
        """Put a message in the place of another, for good."""
        self.tokens += self.scale.of(message) - self.scale.of(self.history[index])
        self.history[index] = message


NoReduction = Policy


class Reference(Policy):
    """Eino's `reduction` middleware with its defaults, from its published rules.

    A result longer than the limit is cut when it comes. Before a reply, if there are at least as many tokens as allowed
    (just as many will do), all results between the first turn that is not marked and the last turn with calls are
    replaced, and their turns are marked. So is a result that is shorter than what replaces it. The history stays so.
    """

    def __init__(self, recording: Recording, limit: int, scale: Scale) -> None:
        super().__init__(recording, limit, scale)
        self.longest = scaled(50_000, limit)
        self.marked: set[int] = set()

    def add(self, message: Chat) -> None:
        text = message["content"]
        if message["role"] == "tool" and len(text) > self.longest:
            half = self.longest // 2
            notice = (
                f"<persisted-output>\nOutput too large ({len(text)}). Full output saved to: "
                f"/tmp/trunc/{message['tool_call_id']}\nPreview (first {half}):\n{text[:half]}\n\n"
                f"Preview (last {half}):\n{text[len(text) - half :]}\n\nUse read_file to view\n</persisted-output>"
            )
            message = {**message, "content": notice}
        super().add(message)

    def request(self) -> Sequence[Chat]:
        if self.tokens >= self.limit:
            turns = [index for index, message in enumerate(self.history) if message["role"] == "assistant"]
            start = next((index for index in turns if index not in self.marked), len(self.history))
            last = last_round(self.history)
            for index in turns:
                if start <= index < last and self.history[index].get("tool_calls"):
                    self._clear(index, last)
        return list(self.history)

    def _clear(self, turn: int, end: int) -> None:
        wanted = {call["id"] for call in self.history[turn]["tool_calls"]}
        for index in range(turn + 1, min(turn + 1 + len(wanted), end)):
            message = self.history[index]
            if message["role"] != "tool":
                break
            if message["tool_call_id"] in wanted:
                self.put(index, {**message, "content": stand_in("/tmp", message["tool_call_id"])})
        self.marked.add(turn)


class LangChain(Policy):
    """`ContextEditingMiddleware` with a `ClearToolUsesEdit` of its defaults: keep 3, nothing is truncated or saved.

    It is applied anew to the whole history before each reply, and what it does is not kept. A model of it, which
    `make bench` compares with the class itself on every request of the corpus.
    """

    keep = 3
    placeholder = "[cleared]"

    def __init__(self, recording: Recording, limit: int, scale: Scale) -> None:
        super().__init__(recording, limit, scale)
        self._cleared: dict[int, Chat] = {}

    def request(self) -> Sequence[Chat]:
        sent = list(self.history)
        for index in self.chosen():
            if index not in self._cleared:
                self._cleared[index] = {**self.history[index], "content": self.placeholder}
            sent[index] = self._cleared[index]
        return sent

    def chosen(self) -> list[int]:
        """Return the places of the results that are not sent now."""
        if self.tokens <= self.limit:
            return []
        results = [index for index, message in enumerate(self.history) if message["role"] == "tool"]
        return results[: -self.keep]


class Ours(Policy):
    """`suture.reduction.plan` with its defaults, as an agent with `ToolReduction` goes by it.

    A result that is too long is truncated when it comes. Before a reply, if there are too many tokens, old results are
    cleared. Each plan is applied to what the last one left, and its ledger goes into the next. What stands before the
    rounds that may still be cleared is left out of a plan, and its tokens are taken off the limit: it would come back
    as it is.
    """

    at_least = 0.0
    """What clearing must free, as a part of the limit."""
    root = ""
    """Where output is said to be saved; not given, a name as long as a run has by default."""
    incremental = True
    """Whether plans begin behind what is settled."""

    def __init__(self, recording: Recording, limit: int, scale: Scale) -> None:
        super().__init__(recording, limit, scale)
        self.settings = Settings(
            root_dir=self.root or "/" + sha256(recording.id.encode()).hexdigest()[:16],
            max_length_for_trunc=scaled(50_000, limit),
            max_length_per_turn=scaled(200_000, limit),
            clear_at_least_tokens=int(self.at_least * limit),
        )
        self.ledger = Ledger()
        self._settled = 0
        """Before this message there is nothing more to clear."""
        self._settled_tokens = 0

    def add(self, message: Chat) -> None:
        super().add(message)
        if message["role"] == "tool" and len(message["content"]) > self.settings.max_length_for_trunc:
            self._plan(last_round(self.history), skip_clear=True)

    def request(self) -> Sequence[Chat]:
        if self.tokens > self.limit and self._may_pay():
            limit = max(0, self.limit - self._settled_tokens)
            if self._plan(self._settled, max_tokens_for_clear=limit) and self.incremental:
                self._settled = last_round(self.history)
                self._settled_tokens = self.scale.total(self.history[: self._settled])
        return list(self.history)

    def _may_pay(self) -> bool:
        """Tell whether clearing could free as much as it must: the old results are at least that many tokens."""
        least, old = self.settings.clear_at_least_tokens, self.history[self._settled : last_round(self.history)]
        return not least or self.scale.total([message for message in old if message["role"] == "tool"]) >= least

    def _plan(self, start: int, **changes: Any) -> bool:
        """Plan from message `start` on, and apply that; tell whether anything changed."""
        made = plan(self.history[start:], self.settings, wire="openai-chat", ledger=self.ledger, **changes)
        self.ledger = made.ledger
        for index, message in enumerate(made.messages, start):
            if message is not self.history[index]:
                self.put(index, message)
        return made.changed


class OursGated(Ours):
    """Ours, but nothing is cleared unless that frees two fifths of the limit."""

    at_least = 0.4


def last_round(messages: Sequence[Chat]) -> int:
    """Return where the last turn with calls is; 0 where there is none."""
    return next((at for at in range(len(messages) - 1, -1, -1) if messages[at].get("tool_calls")), 0)


def stand_in(root: str, call_id: str) -> str:
    """Return what stands for an old result that was saved under `root`: the reference's text, which is ours too."""
    return f"<persisted-output>Tool result saved to: {root}/clear/{call_id}\nUse read_file to view</persisted-output>"


OURS = "ours"
POLICIES: Mapping[str, Callable[[Recording, int, Scale], Policy]] = {
    "no reduction": NoReduction,
    "reference": Reference,
    "LangChain": LangChain,
    OURS: Ours,
}
"""The four that the goal is about."""
