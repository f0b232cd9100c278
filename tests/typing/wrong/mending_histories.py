"""Wrong ways to repair, to make messages, and to store journals."""

from collections.abc import Sequence
from typing import Any

from suture import AgenticMessage, Message, Repairer, ToolCall, check, repair, replace
from suture.stores import MemoryStore, SQLiteStore, Store
from suture.testing import StoreContract

history: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]

repair(42)  # wrong: a number is no history
repair(history, tail="drop")  # wrong: neither cancel nor keep
repair(history, orphans="keep")  # wrong: neither text nor drop
repair(history, "openai-chat")  # wrong: a wire is given by name
repair(history, generator=lambda name: name)  # wrong: it is asked with a name and an id
repair(history, causes={1: "stopped"})  # wrong: a cause is given for a turn and a call in it
repair(history).message  # wrong: it is called messages  # noqa: B018
Repairer(history).messages.append({})  # wrong: a repairer is extended, not what it shows
fixed: list[Message] = list(repair(history).messages)  # wrong: dicts are no messages
check(history, orphans="drop")  # wrong: nothing is changed, so it is not asked
check(history).findings[0].mended = True  # wrong: a finding does not change
Repairer([Message.user("hi")]).extend([AgenticMessage.user("hi")])  # wrong: messages of another wire
Repairer(history).extend(history).messages[0].content  # wrong: a dict has no content  # noqa: B018

Message("robot")  # wrong: no such role
Message("user", 7)  # wrong: a number is no text
Message.user(7)  # wrong: a number is no content
Message.tool("done")  # wrong: which call?
Message.assistant(tool_calls=[("call_1", "search")])  # wrong: a pair is no call
Message("user", "hi").content = "bye"  # wrong: a message does not change
AgenticMessage("tool")  # wrong: there is no tool role
ToolCall(1, "search")  # wrong: an id is a text
replace({"role": "user"}, role="system")  # wrong: a dict is changed as dicts are


class Forgetful:
    async def append(self, run: str, first: int, records: Sequence[bytes]) -> None: ...


class Blocking:
    def append(self, run: str, first: int, records: Sequence[bytes]) -> None: ...

    def load(self, run: str) -> list[bytes]:
        return []


class TestForgetful(StoreContract):
    def make_store(self) -> Store:
        return Forgetful()  # wrong: it cannot load, delete or list


async def keep(store: Store) -> None:
    await store.append("run", 0, ["text"])  # wrong: records are bytes
    await store.append("run", [b"record"])  # wrong: which number?
    text: str = await store.load("run")  # wrong: there are many records
    SQLiteStore(7)  # wrong: a number is no path
    store = Blocking()  # wrong: it cannot be awaited
    print(text, store, MemoryStore("runs"))  # wrong: it takes nothing
