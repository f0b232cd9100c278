"""Those who summarise: `suture.reduction.compact`, and LangChain's and deepagents' own classes, in their environment.

Nobody has a model here. Each gets the same text for a summary, and pays for it: what its summariser was sent, at the
full price, and the text itself at the price of output.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from suture.reduction import compact

from ._corpus import Chat, Recording
from ._policies import OursGated, Policy
from ._scale import Scale

__all__ = ["COMPACTION", "REST", "Make", "peers"]

SUMMARY = "The user wants the bug to be fixed. So far the files were read, and one change was tried. " * 18
"""What every summariser says: 405 tokens."""
OUTPUT = 5.0
"""The price of a token that a model writes, where one that it reads is 1."""
COMPACTION = "ours, compaction"


def price(asked: int) -> float:
    """Return what a summary costs whose summariser read so many tokens."""
    return asked + OUTPUT * len(SUMMARY) / 4


class Compacting(Policy):
    """`suture.reduction.compact`, as an agent with `Compaction` goes by it: over the limit, and for good."""

    part: float | None = None
    """Down to which part of the limit; not given, as by default."""

    def __init__(self, recording: Recording, limit: int, scale: Scale) -> None:
        super().__init__(recording, limit, scale)
        self._root = "/" + sha256(recording.id.encode()).hexdigest()[:16]

    def summarizer(self) -> Callable[[str], str] | None:
        """Return who summarises."""
        return self._summarize

    def _summarize(self, prompt: str) -> str:
        self.paid += price(len(prompt) // 4)
        return SUMMARY

    def request(self) -> Sequence[Chat]:
        if self.tokens > self.limit:
            made = compact(
                self.history,
                max_tokens=self.limit,
                target_tokens=None if self.part is None else int(self.part * self.limit),
                summarizer=self.summarizer(),
                wire="openai-chat",
                root_dir=self._root,
            )
            self.history = list(made.messages)
            self.tokens = self.scale.total(self.history)
        return list(self.history)


class CompactingFurther(Compacting):
    """The same down to three tenths of the limit, as those who keep little do."""

    part = 0.3


class CompactingAlone(Compacting):
    """The same without a model: a digest takes the place of each summary."""

    def summarizer(self) -> None:
        return None


Make = Callable[[Recording, int, Scale], Policy]
REST: Mapping[str, Make] = {
    "ours, frees >= 0.4 L": OursGated,
    COMPACTION: Compacting,
    f"{COMPACTION} to 0.3 L": CompactingFurther,
    f"{COMPACTION}, no model": CompactingAlone,
}
"""Further ones of ours, to compare."""


class Summarising(Policy):
    """What a class of another framework sends; where it refuses to send anything, the request counts as it would be."""

    def __init__(self, program: Any, who: str, recording: Recording, limit: int, scale: Scale) -> None:
        super().__init__(recording, limit, scale)
        self._system = [message for message in recording.messages if message["role"] == "system"]
        self._recorded = [message for message in recording.messages if message["role"] != "system"]
        self._made: dict[str, Chat] = {}
        told = [message | {"tokens": scale.of(message)} for message in self._recorded]
        room = limit - scale.total(self._system)
        self._answers = iter(program.ask(who=who, messages=told, limit=room, summary=SUMMARY)["sent"])

    def request(self) -> Sequence[Chat]:
        answer = next(self._answers)
        if answer["asked"]:
            self.paid += price(answer["asked"])
        return [*self._system, *map(self._read, answer["messages"])]

    def _read(self, sent: int | Chat) -> Chat:
        return self._recorded[sent] if isinstance(sent, int) else self._made.setdefault(repr(sent), sent)


@contextmanager
def peers() -> Iterator[Mapping[str, Make]]:
    """Start the other frameworks, where they are installed; without them their rows are left out."""
    package = "benchmarks." if __package__ == "benchmarks.replay" else ""
    programs = import_module(f"{package}_program")
    python = programs.guests_python()
    with ExitStack() as stack:
        if python is None:
            yield {}
            return
        program = programs.Program("summaries", python, Path(__file__).parent / "peer_summaries.py", stack)
        yield {
            "LangChain summarises": lambda *run: Summarising(program, "langchain", *run),
            "deepagents summarises": lambda *run: Summarising(program, "deepagents", *run),
        }
