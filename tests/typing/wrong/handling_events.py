"""Wrong ways to read events, to send them, and to keep values."""

from typing import assert_never
from uuid import UUID

from suture import (
    Approval,
    current_run,
    get_run_local_value,
    interrupt,
    register_type,
    send_event,
    set_run_local_value,
)
from suture.events import AnyEvent, Custom, Event, Interrupted, MessageDelta, ToolFinished, ToolStarted


def read(event: AnyEvent) -> str:
    event.name  # wrong: not every event has a name  # noqa: B018
    if isinstance(event, ToolStarted | ToolFinished):
        event.result  # wrong: a tool that started has no result yet  # noqa: B018
    if isinstance(event, Interrupted):
        return event.interrupts[0].ID  # wrong: it is called id
    match event:
        case MessageDelta(text=text):
            return text + 1  # wrong: texts and numbers do not add up
        case ToolStarted():
            return event.arguments
        case _:
            assert_never(event)  # wrong: there are more


def send(event: Event) -> None:
    send_event("progress")  # wrong: a text is no event
    send_event(Custom())  # wrong: no name
    event.sequence = 7  # wrong: an event does not change


async def keep() -> str:
    set_run_local_value(7, "seven")  # wrong: a key is a text
    value = get_run_local_value("seven")
    print(value + 1)  # wrong: it is a pair: the value, and whether there is one
    session: set[str] = current_run().session  # wrong: a mapping is no set
    register_type("example.UUID", UUID, encode=str, decode=7)  # wrong: a number is no function
    register_type(UUID, "example.UUID")  # wrong: the name comes first
    sure: bool = interrupt("Sure?", expects=bool)  # wrong: it was not awaited
    number: int = await interrupt("How many?", expects=str)  # wrong: a text is no number
    Approval("yes")  # wrong: a text is no yes
    return f"{session} {sure} {number}"
