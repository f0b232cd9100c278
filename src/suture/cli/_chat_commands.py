"""The commands of a chat: what a line that begins with a slash asks for. Nothing of it is sent to the model."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from suture.cli._chat_talk import Talk
from suture.cli._outline import outline
from suture.cli._screen import Screen, screen_for
from suture.cli._visible import shorten
from suture.messages import ToolInfo
from suture.repair import check
from suture.tokens import CharacterCounter, Tally

__all__ = ["Commands"]

_QUOTED = 60


class Commands:
    """What can be asked about the conversation, and done to it.

    >>> from suture.wires import get_chat_wire
    >>> commands = Commands(Talk(get_chat_wire("message")), "pairing")
    >>> commands.obey("/undo")
    there is nothing to take back
    True
    >>> commands.obey("/quit")
    False
    """

    def __init__(self, talk: Talk, profile: str, tool_infos: Sequence[ToolInfo] = ()) -> None:
        self._talk, self._profile, self._tool_infos = talk, profile, tool_infos

    def obey(self, line: str) -> bool:
        """Do what a line asks; tell whether the chat goes on."""
        name, *rest = line.split()
        if name == "/quit" and not rest:
            return False
        screen = screen_for(sys.stdout)
        if name not in _COMMANDS:
            screen.say(f"there is no {shorten(name, _QUOTED)}; /help shows what there is, and // sends a slash")
        elif rest:
            screen.say(f"{name} takes nothing after it; //… sends a message that begins with a slash")
        else:
            _COMMANDS[name][1](self, screen)
        sys.stdout.flush()
        return True

    def show_history(self, screen: Screen) -> None:
        """Show one line a message."""
        if not self._talk.messages:
            screen.say("nothing was said so far")
            return
        screen.history("history", outline(self._talk.messages, self._talk.wire.name), whole=True)

    def check(self, screen: Screen) -> None:
        """Show what the model's provider would refuse."""
        screen.report(check(self._talk.messages, wire=self._talk.wire.name, profile=self._profile))

    def undo(self, screen: Screen) -> None:
        """Take the last turn back."""
        taken = self._talk.undo()
        if not taken:
            screen.say("there is nothing to take back")
            return
        said = shorten(self._talk.wire.text(taken[0]), _QUOTED)
        behind = len(taken) - 1
        screen.say(f'taken back: "{said}"' + (f" and {behind} message{'s' * (behind != 1)} after it" if behind else ""))

    def count(self, screen: Screen) -> None:
        """Show what was used, and how long the history is."""
        used, messages = self._talk.usage, self._talk.messages
        total = Tally(self._talk.wire, CharacterCounter()).total(messages, self._tool_infos)
        told = f"{used.prompt_tokens} tokens read, {used.completion_tokens} written, {used.total_tokens} together"
        screen.say(f"used: {told}" if used.total_tokens else "used: the model reported nothing so far")
        screen.say(f"history: {len(messages)} message{'s' * (len(messages) != 1)}, about {total} tokens with the tools")

    def help(self, screen: Screen) -> None:
        """Show what there is."""
        for name, (about, _) in _COMMANDS.items():
            screen.say(f"{name:<10}{about}")
        screen.say("//…       send a message that begins with a slash")
        screen.say("A line that ends in \\ goes on. Ctrl-C stops an answer, or clears the line. Ctrl-D leaves.")


_COMMANDS: Mapping[str, tuple[str, Callable[[Commands, Screen], Any]]] = {
    "/history": ("show the conversation, one line a message", Commands.show_history),
    "/check": ("say what the provider would refuse in it", Commands.check),
    "/undo": ("take back your last message and all that followed", Commands.undo),
    "/tokens": ("say how many tokens were used, and how many the history has", Commands.count),
    "/help": ("show this", Commands.help),
    "/quit": ("leave", Commands.help),
}
