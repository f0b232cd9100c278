"""`make demo`: a broken history and its repair, the same on every wire, and a real agent that is interrupted.

The histories are in `samples/`: small conversations that went wrong in the ways that real ones do. With `--whole`
each of them is shown before and after, with every finding. The agent is that of `local_agent.py`.
"""

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple

import suture
from suture import ConfigError, replace
from suture.cli import Line, Screen, compare, open_source, read_conversations
from suture.wires import Call, get_wire

SAMPLES = Path(__file__).parent / "samples"
WIRES = ("message", "agentic", "openai-chat", "openai-responses", "anthropic", "gemini", "bedrock")
SHOWN = "openai-chat.jsonl, line 1"


class Sample(NamedTuple):
    """A conversation of `samples/`, and its repair."""

    title: str
    messages: Sequence[Any]
    fixed: suture.Repaired[Any]


def samples() -> Iterator[Sample]:
    for path in [path for wire in WIRES for path in sorted(SAMPLES.glob(f"{wire}.json*"))]:
        with open_source(str(path)) as source:
            for conversation in read_conversations(source):
                messages, wire = conversation.take(None)
                fixed = suture.repair(messages, wire=wire)
                title = f"{path.name}, {conversation.title}" if conversation.title else path.name
                if not suture.check(fixed.messages, wire=fixed.report.wire).acceptable:
                    raise SystemExit(f"{title}: the repaired history is not acceptable")
                yield Sample(title, messages, fixed)


def show(screen: Screen, sample: Sample, *, whole: bool) -> None:
    """Show a conversation before and after, and what was found in it."""
    report = sample.fixed.report
    before, after = compare(sample.messages, sample.fixed.messages, report.wire)
    screen.head(sample.title)
    screen.history("before", list(show_cuts(before, sample.messages, report.wire)), whole=True)
    if whole:
        screen.report(report)
    else:
        screen.say("what a provider would refuse, and what is done about it:")
        for finding in report.findings:
            screen.say(f"    #{finding.index}  {finding.call_id}: {finding.problem}, {finding.done}")
    screen.history("after", list(show_cuts(after, sample.fixed.messages, report.wire)), whole=True)
    screen.say("")


def show_cuts(lines: Sequence[Line], messages: Sequence[Any], wire: str) -> Iterator[Line]:
    """Yield the lines with a mark behind arguments that end too early."""
    for line, message in zip(lines, messages, strict=True):
        carries = line.carries
        for call in get_wire(wire).view(message).calls:
            if is_cut(call):
                carries = re.sub(rf"(?= as {re.escape(call.id or '(no id)')}(?:,|$))", "…⟨cut off⟩", carries)
        yield replace(line, carries=carries)


def is_cut(call: Call) -> bool:
    if not isinstance(call.arguments, str) or not call.arguments.startswith("{"):
        return False
    try:
        json.loads(call.arguments)
    except ValueError:
        return True
    return False


def repairs(screen: Screen, *, whole: bool) -> None:
    found = list(samples())
    for sample in found:
        if whole or sample.title == SHOWN:
            show(screen, sample, whole=whole)
    if not whole:
        screen.head("The same on every wire (python examples/demo.py --whole shows them all)")
        for title, _, fixed in found:
            screen.say(f"  {title:<26}{', '.join(dict.fromkeys(each.problem for each in fixed.report.findings))}")
    findings = sum(len(sample.fixed.report.findings) for sample in found)
    wires = len({sample.fixed.report.wire for sample in found})
    screen.say(
        f"{len(found)} broken histories on {wires} wires, {findings} findings, all mended: "
        "suture.check accepts every one of them now."
    )
    screen.say("")


def real_agent(screen: Screen) -> None:
    """Let a real model call a tool; stop it in the middle of another; and ask it something new."""
    screen.head("A real agent: a tool call, one that is stopped in the middle, and the turn after that")
    try:
        from local_agent import main as run_local_agent
    except ConfigError as error:
        screen.say(f"    left out here: {error}")
        return
    screen.say("    It is a small model and not a clever one: mind what happens, not what it says.")
    screen.say("    Loading it takes a few seconds …")
    sys.stdout.flush()
    asyncio.run(run_local_agent())
    screen.say("")
    screen.say("    Without the answer that the stopped call was given, a provider would refuse that last turn.")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Broken histories and their repair; an agent that is interrupted.")
    parser.add_argument("--whole", action="store_true", help="show every sample before and after, with every finding")
    asked = parser.parse_args(arguments)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # not every terminal has all letters
    screen = Screen(sys.stdout)
    screen.say("Somebody interrupts, a process dies, a stream is cut: a tool call is left without")
    screen.say("its result. From then on the provider refuses the whole conversation. Here is one")
    screen.say("that went wrong, and its repair.")
    screen.say("")
    repairs(screen, whole=asked.whole)
    real_agent(screen)
    screen.say("")
    screen.say("Next: docs/first-agent.md, your first agent in five minutes; for plain histories docs/repair.md.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
