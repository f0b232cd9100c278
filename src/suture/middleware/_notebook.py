"""What one run knows about its reduced output: how many tokens there are, what was saved where, what went wrong."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from suture.errors import NotInRunError, OffloadError
from suture.kernel import (
    Scope,
    current_frame,
    note_on_result,
    set_session_value,
)
from suture.language import Language, current_language
from suture.messages import History
from suture.reduction import (
    Cleared,
    Ledger,
    Saved,
    Settings,
    Terms,
    Writer,
    folded,
    mark_saved,
    read_saved,
    safe_name,
    text_measure,
)
from suture.tokens import CharacterCounter, Tally, is_incremental
from suture.wires import Wire, get_wire, recognise

__all__ = ["Notebook", "scope_at_hand"]


def scope_at_hand() -> Scope | None:
    """Return the run that the code at hand belongs to; `None` outside of any."""
    try:
        return current_frame().scope
    except NotInRunError:
        return None


class Notebook:
    """One per run, never shared. What must outlive the run is in its messages, or in its session."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.scope = scope_at_hand()
        self.failure: OffloadError | None = None
        """Output that was not saved, and that ends the run."""
        self.told: set[tuple[str, str]] = set()
        """Calls whose output was not saved, and of which this was told."""
        self.asked_at: float | None = None
        """When the model was asked last."""
        self._quiet_until = 0
        self._settled: tuple[History[Any], int] = (History(), 0)
        self._reserved: set[str] = set()
        self._tally: Tally | None = None
        self._wire: Wire | None = self.scope.wire if self.scope is not None else None
        self._ledger: Ledger | None = None
        self._pages = 0
        self._saved: dict[str, Saved] = {}
        self._seen: History[Any] = History()

    @property
    def language(self) -> Language:
        """The language of the run."""
        return self.scope.language if self.scope is not None else current_language()

    @property
    def root(self) -> str:
        """Where output is kept: where the settings say, else a place of the conversation's own."""
        if self.settings.root_dir is not None:
            return self.settings.root_dir
        if self.scope is None:
            return "/" + safe_name(f"outside-{id(self)}")
        return "/" + safe_name(self.scope.checkpoint_id or self.scope.run_id)

    def wire_of(self, name: str, messages: Sequence[Any]) -> Wire:
        """Return the wire of the messages; outside of a run it is recognised."""
        if self._wire is None or (name and name != self._wire.name):
            self._wire = get_wire(name or recognise(messages)[0])
            self._tally = None
        return self._wire

    def tally(self, wire: Wire) -> Tally:
        """Return what counts this run's tokens, each message once."""
        if self._tally is None:
            counter = self.settings.token_counter
            incremental = counter if counter is not None and is_incremental(counter) else CharacterCounter()
            self._tally = Tally(wire, cast("Any", incremental))
        return self._tally

    def terms(self, backend_of: Callable[[str], Writer | None]) -> Terms:
        """Return what reducing a result of this run depends on."""

        def offloads(name: str) -> bool:
            return backend_of(name) is not None

        return Terms(
            settings=self.settings,
            root=self.root,
            language=self.language,
            offloads=offloads,
            taken={*self.recorded(), *self._reserved},
            ledger=self.ledger,
            measure=text_measure(self.settings),
        )

    def settled_in(self, history: History[Any]) -> int:
        """Return before which message there is nothing more to clear."""
        known, length = self._settled
        return length if history.follows(known) else 0

    def settle(self, history: History[Any], length: int) -> None:
        """Remember that there is nothing more to clear before a message."""
        self._settled, self._quiet_until = (history, length), 0

    def is_quiet(self, history: History[Any], tokens: int) -> bool:
        """Tell whether clearing is not worth another look yet."""
        return tokens < self._quiet_until and history.follows(self._settled[0])

    def wait_for(self, done: Cleared, least: int, rest: Sequence[Any], wire: Wire) -> None:
        """Remember when clearing may be worth another look: not before as much has come as is lacking."""
        kept = sum(map(self.tally(wire).of, rest))
        self._quiet_until = done.tokens + least - done.missed - kept

    # What was saved

    def reserve(self, path: str) -> None:
        """Give a path to nobody else."""
        self._reserved.add(folded(path))

    def release(self, path: str) -> None:
        """Let others have a path: nothing came of it."""
        self._reserved.discard(folded(path))

    @property
    def ledger(self) -> Ledger:
        """What messages that cannot be marked cannot say themselves; empty on a wire with marks."""
        if self._ledger is None:
            self._ledger = Ledger() if self.scope is None or self._has_marks else self._read_ledger(self.scope)
        return self._ledger

    def keep(self, ledger: Ledger) -> None:
        """Keep what is new in the session, where the messages cannot carry it."""
        before = self.ledger
        self._ledger = ledger
        new = Ledger(ledger.saved[len(before.saved) :], ledger.rounds - before.rounds)
        if self.scope is not None and not self._has_marks and new != Ledger():
            set_session_value(f"{self.key}/{self._pages}", new.to_dict())
            self._pages += 1

    def _read_ledger(self, scope: Scope) -> Ledger:
        """Return what the session has of it, page by page."""
        found = Ledger()
        session = scope.root.session
        while (page := session.get(f"{self.key}/{self._pages}")) is not None:
            new = Ledger.of(page)
            found = Ledger((*found.saved, *new.saved), found.rounds | new.rounds)
            self._pages += 1
        return found

    def note_saved(self, saved: Saved) -> None:
        """Keep what the tool call at hand has saved, with its result."""
        self._saved[folded(saved.path)] = saved
        if self.scope is None or not self._has_marks:
            self.keep(self.ledger.with_saved(saved))
        else:
            note_on_result(**mark_saved(saved))

    def recorded(self, history: Sequence[Any] = ()) -> dict[str, Saved]:
        """Return all that this history's output was saved as, by folded path."""
        if self.scope is not None and self._has_marks:
            self._read_marks(self.scope.wire, History.of(history or self.scope.history))
        else:
            self._saved.update({folded(saved.path): saved for saved in self.ledger.saved})
        return self._saved

    @property
    def _has_marks(self) -> bool:
        return self.scope is not None and self.scope.wire.marks

    @property
    def key(self) -> str:
        """Where in the session things are kept: a nested run has a history, and so a place, of its own."""
        scope = cast("Scope", self.scope)
        place = scope.spec.name if scope.outer is None else scope.address
        return f"suture.reduction/{place}"

    def _read_marks(self, wire: Wire, history: History[Any]) -> None:
        """Read what results carry, those that are new since the last time."""
        start = len(self._seen)
        if not history.follows(self._seen):
            start, self._saved = 0, {}
        for index in range(start, len(history)):
            for result in wire.view(history[index]).results:
                saved = read_saved(result.extra, result) if result.extra else None
                if saved is not None:
                    self._saved[folded(saved.path)] = saved
        self._seen = history
