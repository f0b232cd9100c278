"""What the requests of a run cost, with several kinds of prompt cache and without one.

A message is in the cache or it is not. With *any prefix* a request reads all that it has in common with the one before
it. With *breakpoints* it reads the longest part that ends just where an earlier request put a breakpoint: at its end,
or behind the first user message; and looks for that no further back than a provider does, 20 blocks from a breakpoint.
*One more breakpoint*: before the last round, where clearing will not reach.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ._corpus import Chat, Recording
from ._policies import Policy, Reference, last_round, stand_in
from ._scale import Scale

__all__ = ["FRESH", "READ", "WRITE", "Bill", "Breakpoints", "replay"]

READ, WRITE, FRESH = 0.1, 1.25, 1.0
"""The price of a token that the cache has, of one that goes into it, and of one where there is no cache."""
_LOOKBACK = 20


@dataclass
class Bill:
    """Sums over all requests of all runs, in tokens."""

    requests: int = 0
    sent: int = 0
    read: int = 0
    """The part that is an unchanged prefix of the request before."""
    rewritten: int = 0
    """What follows it, as far as the request before it had reached."""
    shares: float = 0.0
    """The sum of each request's share of unchanged prefix."""
    breaks: int = 0
    """Requests that do not begin with the whole of the one before."""
    strict: int = 0
    """What is read with breakpoints."""
    strict_more: int = 0
    """What is read with one more breakpoint."""
    over: int = 0
    """Requests over the limit."""
    avoidable: int = 0
    """… although it could be met by clearing all that is old."""
    summaries: float = 0.0
    """What summaries cost, in tokens at the full price."""
    by_run: dict[str, float] = field(default_factory=dict)
    """What each run costs, with any prefix."""

    @property
    def new(self) -> int:
        return self.sent - self.read - self.rewritten

    @property
    def cost(self) -> float:
        """The price of all, where any prefix can be read from the cache."""
        return _price(self.sent, self.read) + self.summaries

    @property
    def strict_cost(self) -> float:
        return _price(self.sent, self.strict) + self.summaries

    @property
    def strict_more_cost(self) -> float:
        return _price(self.sent, self.strict_more) + self.summaries

    @property
    def fresh_cost(self) -> float:
        """The price of all without a cache."""
        return FRESH * self.sent + self.summaries

    @property
    def hits(self) -> float:
        """The share of what is sent that is an unchanged prefix."""
        return self.read / self.sent if self.sent else 0.0

    @property
    def mean_hits(self) -> float:
        """The same as the mean over all requests."""
        return self.shares / self.requests if self.requests else 0.0


class Sent(NamedTuple):
    """A request that was sent: for each message what stands up to its end, as a number, and how many tokens that is."""

    messages: Sequence[Chat] = ()
    chain: Sequence[int] = ()
    tokens: Sequence[int] = ()
    same: int = 0
    """How many messages it has in common with the request before, from the beginning."""

    def upto(self, count: int) -> int:
        """Return the tokens of the first `count` messages."""
        return self.tokens[count - 1] if count else 0

    def next(self, request: Sequence[Chat], scale: Scale) -> "Sent":
        """Return the request that is sent after this one."""
        known = next(
            (at for at, pair in enumerate(zip(self.messages, request, strict=False)) if pair[0] is not pair[1]), None
        )
        start = min(len(self.messages), len(request)) if known is None else known
        chain, tokens = list(self.chain[:start]), list(self.tokens[:start])
        digest, total = (chain[-1], tokens[-1]) if start else (0, 0)
        for message in request[start:]:
            digest = hash((digest, scale.key(message)))
            total += scale.of(message)
            chain.append(digest)
            tokens.append(total)
        same = start
        while same < min(len(chain), len(self.chain)) and chain[same] == self.chain[same]:
            same += 1
        return Sent(request, chain, tokens, same)


class Breakpoints:
    """A cache that is hit only where something was put into it."""

    def __init__(self, *, more: bool = False) -> None:
        self._more = more
        self._entries: set[int] = set()

    def read(self, sent: Sent) -> int:
        """Return how many tokens of a request are in the cache; afterwards all of them are."""
        request = sent.messages
        points = self._points(request)
        hit = 0
        for point in points:
            for index in range(point, _earliest(request, point) - 1, -1):
                if sent.chain[index] in self._entries:
                    hit = max(hit, sent.tokens[index])
                    break
        self._entries.update([sent.chain[point] for point in points])
        return hit

    def _points(self, request: Sequence[Chat]) -> list[int]:
        ends = {min(1, len(request) - 1), len(request) - 1}
        if self._more:
            ends.add(max(0, last_round(request) - 1))
        return sorted(ends)


def _earliest(request: Sequence[Chat], point: int) -> int:
    """Return the first message that a lookup from a breakpoint gets to."""
    left = _LOOKBACK
    for index in range(point, -1, -1):
        left -= len(request[index].get("tool_calls") or ()) + bool(request[index]["content"])
        if left < 0:
            return index + 1
    return 0


class _Least:
    """The fewest tokens that a history can be sent with: all is cleared but the last round, where that helps."""

    def __init__(self, recording: Recording, limit: int, scale: Scale) -> None:
        self._scale = scale
        self._cut = Reference(recording, limit, scale)  # truncates as all do that truncate
        self._gain = 0
        """What clearing all results frees."""
        self._old_gain = 0
        """… all but those of the last round."""

    def add(self, message: Chat) -> None:
        self._cut.add(message)
        if message.get("tool_calls"):
            self._old_gain = self._gain
        if message["role"] == "tool":
            now = self._cut.history[-1]
            least = {**now, "content": stand_in("/tmp", now["tool_call_id"])}
            self._gain += max(0, self._scale.of(now) - self._scale.of(least))

    def tokens(self) -> int:
        return self._cut.tokens - self._old_gain


def replay(
    recordings: Sequence[Recording], make: Callable[[Recording, int, Scale], Policy], limit: int, scale: Scale
) -> Bill:
    """Send all runs once more under one policy."""
    bill = Bill()
    for recording in recordings:
        before = bill.cost
        _replay_one(recording, make(recording, limit, scale), bill, scale)
        bill.by_run[recording.id] = bill.cost - before
    return bill


def _replay_one(recording: Recording, policy: Policy, bill: Bill, scale: Scale) -> None:
    least = _Least(recording, policy.limit, scale)
    plain, more = Breakpoints(), Breakpoints(more=True)
    before = Sent()
    for message in recording.messages:
        if message["role"] == "assistant":
            sent = before.next(policy.request(), scale)
            size, read = sent.upto(len(sent.messages)), sent.upto(sent.same)
            bill.requests += 1
            bill.sent += size
            bill.read += read
            bill.rewritten += sent.upto(min(len(before.messages), len(sent.messages))) - read
            bill.shares += read / size
            bill.breaks += sent.same < len(before.messages)
            bill.strict += plain.read(sent)
            bill.strict_more += more.read(sent)
            bill.over += size > policy.limit
            bill.avoidable += size > policy.limit >= least.tokens()
            before = sent
        policy.add(message)
        least.add(message)
    bill.summaries += policy.paid


def _price(sent: int, read: int) -> float:
    return READ * read + WRITE * (sent - read)
