"""`make demo`: broken histories on every wire, before and after `suture.repair`, and what was found in them.

The histories are in `samples/`: small conversations that went wrong in the ways that real ones do.
"""

import sys
from pathlib import Path

import suture
from suture.cli import Screen, compare, open_source, read_conversations, screen_for

SAMPLES = Path(__file__).parent / "samples"
WIRES = ("message", "agentic", "openai-chat", "openai-responses", "anthropic", "gemini", "bedrock")


def show(screen: Screen, path: Path) -> list[suture.Report]:
    """Show every conversation of a sample before and after; return the reports on what was repaired."""
    reports: list[suture.Report] = []
    with open_source(str(path)) as source:
        for conversation in read_conversations(source):
            messages, wire = conversation.take(None)
            fixed = suture.repair(messages, wire=wire)
            before, after = compare(messages, fixed.messages, fixed.report.wire)
            screen.head(f"{path.name}, {conversation.title}" if conversation.title else path.name)
            screen.history("before", before, whole=True)
            screen.say("")
            screen.report(fixed.report)
            screen.say("")
            screen.history("after", after, whole=True)
            screen.say("")
            left = suture.check(fixed.messages, wire=fixed.report.wire)
            if not left.acceptable:
                screen.report(left, "still wrong")
                raise SystemExit(f"{path.name}: the repaired history is not acceptable")
            reports.append(fixed.report)
    return reports


def main() -> int:
    screen = screen_for(sys.stdout)
    screen.say("Conversations that went wrong: tool calls without results, results without calls, late ones,")
    screen.say("doubled ones. For each: the history, what a provider would refuse in it, and the repair.")
    screen.say("")
    reports: list[suture.Report] = []
    for wire in WIRES:
        for path in sorted(SAMPLES.glob(f"{wire}.json*")):
            reports += show(screen, path)
    findings = sum(len(report.findings) for report in reports)
    wires = len({report.wire for report in reports})
    screen.say(
        f"{len(reports)} broken histories on {wires} wires, {findings} findings, all mended: "
        "suture.check accepts every one of them now."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
