"""What is known about a LangChain conversation: its tokens, what of it was saved, and where its output goes."""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from threading import Lock
from typing import Any, NamedTuple
from uuid import uuid4

from langchain_core.messages import ToolMessage
from langgraph.config import get_config

from suture.integrations._langchain_reduction_state import is_same
from suture.messages import History
from suture.middleware.reducing import Notebook
from suture.reduction import SAVED, Saved, Settings, Terms, Writer, folded, read_saved, safe_name
from suture.wires import Result

__all__ = ["Conversation", "Conversations", "Home", "Written", "home_of"]

_KEPT = 64
"""How many conversations are kept in mind."""
_REMEMBERED = 65_536
"""How many paths that others chose are kept in mind."""
_SEPARATOR = re.compile(r"[/\\]")


class Home(NamedTuple):
    """Where the output of a conversation is kept."""

    root: str
    """The beginning of the paths of what is saved next."""
    fence: str
    """The beginning of the paths that it may read: its own, and those of the agents inside of it."""

    def holds(self, path: str) -> bool:
        """Tell whether a path is behind the fence, and does not climb over it.

        >>> home = Home("/suture/a", "/suture/a/")
        >>> home.holds("/suture/a/trunc/x"), home.holds("/suture/b/trunc/x"), home.holds("/suture/a/../b/trunc/x")
        (True, False, False)
        """
        return path.startswith(self.fence) and ".." not in _SEPARATOR.split(path[len(self.fence) :])


def home_of(settings: Settings, messages: Sequence[Any]) -> Home:
    """Return where the output of the conversation at hand goes: to its thread's place, below `root_dir` if that is set.

    Without a thread it goes by its first message, whose id is its own.

    >>> home_of(Settings(root_dir="/data"), [ToolMessage("42", tool_call_id="a", id="m1")])
    Home(root='/data/run+m1', fence='/data/run+m1/')
    """
    above = "/suture" if settings.root_dir is None else settings.root_dir.rstrip("/")
    try:
        configurable: dict[str, Any] = dict(get_config().get("configurable", {}))
    except RuntimeError:
        configurable = {}
    thread = configurable.get("thread_id")
    if thread is None:
        first = getattr(messages[0], "id", None) if messages else None
        own = f"{above}/run+{safe_name(str(first or uuid4().hex))}"  # no thread's name has a plus
        return Home(own, own + "/")
    own = f"{above}/{safe_name(str(thread))}"
    outer = str(configurable.get("checkpoint_ns") or "").rpartition("|")[0]  # the last part is the node's
    inner = f"/{sha256(outer.encode()).hexdigest()[:12]}" if outer else ""
    return Home(own + inner, own + "/")


class Written:
    """The paths outside of their conversations' homes that one middleware has written: others chose them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._paths: OrderedDict[tuple[str, str], None] = OrderedDict()

    def add(self, home: Home, path: str) -> None:
        """Remember that a conversation has written to a path."""
        if home.holds(path):
            return
        with self._lock:
            self._paths[home.fence, path] = None
            while len(self._paths) > _REMEMBERED:
                self._paths.popitem(last=False)

    def holds(self, home: Home, path: str) -> bool:
        """Tell whether it was this conversation that wrote to a path."""
        return (home.fence, path) in self._paths


class Conversation(Notebook):
    """A conversation as far as it is known: what its messages count, and what they say was saved.

    `held` is what the agent's state holds of it, `messages` is what others made of that for a request.
    """

    def __init__(self, settings: Settings, messages: Sequence[Any], held: Sequence[Any], written: Written) -> None:
        super().__init__(settings)
        self.scope = self._wire = None  # an agent of ours may be running around this one; it is none of its business
        self.history: History[Any] = History(messages)
        self.noted: Saved | None = None
        """What was saved last."""
        self._held, self._written = held, written
        self._home: Home | None = None

    @property
    def home(self) -> Home:
        """Where output is kept, and what may be read."""
        if self._home is None:
            self._home = home_of(self.settings, self._held or self.history)
        return self._home

    @property
    def root(self) -> str:
        """Where output is kept."""
        return self.home.root

    def note_saved(self, saved: Saved) -> None:
        """Keep what was saved, for the mark on its result."""
        self.noted = saved
        self.note_written(saved.path)

    def note_written(self, path: str) -> None:
        """Remember that a path is this conversation's own."""
        self._written.add(self.home, path)

    def terms(self, backend_of: Callable[[str], Writer | None]) -> Terms:
        """Return what reducing a result depends on; no path that a mark names is written to, whoever's it is."""
        terms = super().terms(backend_of)
        return terms._replace(taken={*terms.taken, *[folded(saved.path) for saved in _marked(self.history)]})

    def recorded(self, history: Sequence[Any] = ()) -> dict[str, Saved]:
        """Return what the results of this history say was saved, by folded path.

        A mark is believed where it names a path behind the conversation's fence, or one that this conversation was
        seen to write: marks come with the messages, and these may come from anybody.
        """
        home, written = self.home, self._written
        return {
            folded(saved.path): saved
            for saved in _marked(history or self.history)
            if home.holds(saved.path) or written.holds(home, saved.path)
        }

    def is_begun_by(self, messages: Sequence[Any]) -> bool:
        """Tell at a glance whether `messages` may begin with this conversation."""
        length = self.history.length
        return 0 < length <= len(messages) and messages[length - 1] is self.history[length - 1]

    def go_on(self, messages: Sequence[Any], held: Sequence[Any]) -> bool:
        """Take what `messages` add to this conversation; tell whether they go on with it at all."""
        length = self.history.length
        if not is_same(list(messages[:length]), self.history[:]):
            return False
        self._held, self._home = held, None
        if len(messages) > length:
            self.history = self.history.extend(list(messages[length:]))
        return True


class Conversations:
    """The conversations that one middleware saw last, for all the threads that share it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = Lock()
        self._kept: list[Conversation] = []
        self._written = Written()

    def open(self, held: Sequence[Any]) -> Conversation:
        """Return the conversation that a state holds, for a look at what it has saved, or to save something."""
        return Conversation(self._settings, held, held, self._written)

    def take(self, messages: Sequence[Any], held: Sequence[Any]) -> Conversation:
        """Return the conversation that `messages` are, which is nobody else's until it is put back."""
        with self._lock:
            known = [each for each in self._kept if each.is_begun_by(messages)]
            best = max(known, key=_length, default=None)
            if best is not None:
                self._kept.remove(best)
        if best is not None and best.go_on(messages, held):
            return best
        return Conversation(self._settings, messages, held, self._written)

    def put_back(self, conversation: Conversation) -> None:
        """Keep a conversation in mind."""
        with self._lock:
            self._kept.append(conversation)
            del self._kept[:-_KEPT]


def _marked(messages: Sequence[Any]) -> Iterator[Saved]:
    """Yield all that results say was saved, true or not."""
    for message in messages:
        if isinstance(message, ToolMessage) and SAVED in message.response_metadata:
            saved = read_saved(message.response_metadata, Result(message.tool_call_id, message.name or ""))
            if saved is not None:
                yield saved


def _length(conversation: Conversation) -> int:
    return conversation.history.length
