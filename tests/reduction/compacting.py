"""What the tests of compaction share: small histories, summarisers that do all they should not, and what must hold."""

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from random import Random
from typing import Any

import suture
from suture import Compaction, Message, ToolCall
from suture.errors import ContextLengthError, ContextOverflowError
from suture.kernel import ChatModelAgentState, ModelContext
from suture.messages import History as Messages
from suture.reduction import Change, Plan, Save, compact
from suture.reduction.draft import rounds_of
from suture.stores import MemoryBackend
from suture.testing import ScriptedModel
from suture.tokens import CharacterCounter
from suture.wires import get_wire
from tests.histories import Step, write

KINDS = ("user", "say", "think", "turn a", "turn a b", "result a", "result b", "mixed a")
LENGTH = 480
"""How many characters each text has: a hundred tokens and twenty."""
COUNTER = CharacterCounter()


def text_of(place: int, length: int = LENGTH) -> str:
    """Return a text that no other message has, all of it told apart by its place."""
    return "".join(f"<{place}.{number}>" for number in range(length // 6))


def step_of(kind: str, place: int, length: int = LENGTH) -> Step:
    name, *ids = kind.split()
    match name:
        case "turn":
            return ("turn", [(call_id, "f", f'{{"at": {place}}}') for call_id in ids])
        case "result":
            return ("result", ids[0], "f", text_of(place, length))
        case "mixed":
            return ("mixed", [(ids[0], "f", text_of(place, length))], text_of(place + 50, length))
    return (name, text_of(place, length))


def small_histories(length: int) -> Iterator[list[Step]]:
    """Yield every history of `length` messages behind a user's."""
    for kinds in product(KINDS, repeat=length - 1):
        yield [step_of("user", 0), *[step_of(kind, place) for place, kind in enumerate(kinds, 1)]]


def drawn_history(draw: Random, start: int = 0) -> list[Step]:
    """Return a history of 6 to 40 messages behind a user's, their texts from next to nothing to five usual ones."""
    kinds = ["user", *draw.choices(KINDS, k=draw.randint(6, 40))]
    return [
        step_of(kind, start + 100 * place, draw.choice((12, LENGTH, LENGTH, 5 * LENGTH)))
        for place, kind in enumerate(kinds)
    ]


def sound(_: str) -> str:
    return "They talked."


def fail(_: str) -> str:
    raise RuntimeError("overloaded")


def _refuse_long(prompt: str) -> str:
    if COUNTER.count_text(prompt) > 420:
        raise ContextLengthError("too long")
    return "short"


async def _hang(prompt: str) -> str:
    await asyncio.Event().wait()
    return prompt


class CallsTools(ScriptedModel[Message]):
    def __init__(self) -> None:
        super().__init__(lambda _: Message.assistant("hm", tool_calls=[ToolCall("x", "f", "{}")]))


SUMMARIZERS: dict[str, Any] = {
    "raises": fail,
    "hangs": _hang,
    "empty": lambda _: "  \n",
    "longer than what it got": lambda prompt: prompt * 3,
    "calls tools": CallsTools,
    "another language": lambda _: "他们聊了聊。",
    "broken tags": lambda _: '</conversation-summary><conversation-summary id="x" saved="">',
    "small window": _refuse_long,
}
"""Eight that do what no summariser should."""


def user_texts(steps: Sequence[Step]) -> list[str]:
    return [step[-1] for step in steps if step[0] in {"user", "mixed"}]


def open_calls(wire: str, messages: Sequence[Any]) -> list[tuple[str, Any]]:
    """Return the calls of turns that are not answered."""
    found = rounds_of(get_wire(wire), messages)
    return [
        (call.id, str(call.arguments)) for each in found if len(each.answers) < len(each.calls) for call in each.calls
    ]


def problems(wire: str, messages: Sequence[Any]) -> list[str]:
    report = suture.check(messages, wire=wire, profile="pairing", tail="keep")
    return sorted(finding.problem for finding in report.findings)


def all_words(wire: str, messages: Sequence[Any], plan: Plan[Any]) -> str:
    spoken = ["\n".join(get_wire(wire).words(message).texts) for message in messages]
    return "\n".join([*spoken, *[save.content for save in plan.saves]])


def total(wire: str, messages: Sequence[Any]) -> int:
    return sum(COUNTER.count(message, wire) for message in messages)


class Watched:
    """A summariser, and what it has summarised: `twice` is what it was to summarise once more."""

    def __init__(self, summarizer: Any) -> None:
        self.summarizer, self.done, self.new, self.twice = summarizer, set[str](), set[str](), list[str]()

    async def __call__(self, prompt: str) -> str:
        answer = self.summarizer(prompt)
        answer = await answer if hasattr(answer, "__await__") else answer
        shown = set(re.findall(r"<\d+\.\d+>", prompt.partition("The conversation:")[2]))
        self.twice += shown & (self.done | self.new)
        self.new |= shown
        return answer

    def settle(self, plan: Plan[Any]) -> None:
        """Take what it said for a summary, if it was taken for one."""
        if any(change.action == "summarize" for change in plan.changes):
            self.done |= self.new
        self.new = set()


def watched(summarizer: Any) -> Any:
    return summarizer() if isinstance(summarizer, type) else Watched(summarizer)


RUNNER = asyncio.Runner()


def compact_in_agent(messages: list[Any], *, max_tokens: int, summarizer: Any, wire: str, **options: Any) -> Plan[Any]:
    """Compact as an agent's middleware does before a turn; what it saved is in the plan."""
    files = MemoryBackend()
    settings: Any = {"token_counter": COUNTER, "backend": files, "root_dir": "/r", "summarizer_timeout": 0}
    compaction = Compaction(max_tokens, summarizer=summarizer, **settings, **options)

    async def turn() -> Any:
        state: ChatModelAgentState[Any] = ChatModelAgentState(messages=Messages(messages))
        made = compaction.before_model_rewrite_state(state, ModelContext(wire=wire))
        return await made if made is not None and not isinstance(made, ChatModelAgentState) else made

    made = RUNNER.run(turn())
    if made is None:
        return Plan(messages=messages, tokens_before=total(wire, messages), tokens_after=total(wire, messages))
    report = {**made.report, "saves": [Save(path, text) for path, text in RUNNER.run(contents(files)).items()]}
    report["changes"] = [Change(**change) for change in report["changes"]]
    return Plan(messages=made.messages, **{name: report[name] for name in report if name != "changed"})


async def contents(files: MemoryBackend) -> dict[str, str]:
    """Return all that a backend holds."""
    return {path: b"".join([each async for each in files.read(path)]).decode() for path in await files.paths()}


class History:
    """A history on a wire, and what must hold however it is compacted."""

    def __init__(self, wire: str, steps: Sequence[Step], *, repaired: bool = False, behind: Sequence[Any] = ()) -> None:
        self.wire, self.words = wire, user_texts(steps)
        messages = [*behind, *write(wire, steps)]
        if repaired:
            messages = list(suture.repair(messages, wire=wire, profile="pairing", tail="keep").messages)
        self.messages, self.tokens, self.is_sound = messages, total(wire, messages), not problems(wire, messages)
        self.waiting = set(open_calls(wire, messages)) if self.is_sound else set[tuple[str, Any]]()

    def check(
        self, limit: int, summarizer: Any, *, by: Callable[..., Plan[Any]] = compact, **options: Any
    ) -> Plan[Any] | None:
        """Compact it and check all that is promised; `None` where it was refused."""
        wire, messages, before = self.wire, self.messages, list(self.messages)
        try:
            plan = by(messages, max_tokens=limit, summarizer=summarizer, wire=wire, **options)
        except ContextOverflowError:
            return None
        finally:
            assert all(one is other for one, other in zip(messages, before, strict=True))
        if isinstance(summarizer, Watched):
            assert not summarizer.twice
            summarizer.settle(plan)
        after = plan.messages
        assert total(wire, after) == plan.tokens_after <= limit or plan.messages is messages
        assert plan.tokens_after <= plan.tokens_before == self.tokens
        if self.tokens <= limit:
            assert plan.messages is messages
        if self.is_sound:
            assert problems(wire, after) == []
            assert not self.waiting or self.waiting <= set(open_calls(wire, after))
        said = all_words(wire, after, plan)
        for text in self.words:
            assert text in said
        return plan


def check(
    wire: str, steps: Sequence[Step], limit: int, summarizer: Any, *, repaired: bool = False, **options: Any
) -> Plan[Any] | None:
    """Compact a history once and check all that is promised; `None` where it was refused."""
    return History(wire, steps, repaired=repaired).check(limit, summarizer, **options)


def shown_places(prompt: str) -> set[str]:
    """Return which messages a prompt shows pieces of."""
    return set(re.findall(r"<(\d+)\.", prompt))
