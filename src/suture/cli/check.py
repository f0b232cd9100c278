"""`suture check`: say what a provider would refuse. Exit status 0 if nothing, 1 if something.

On a terminal each report is shown as it is found; in a pipe nothing is written unless the whole input could
be read.
"""

from argparse import Namespace
from contextlib import ExitStack

from suture.cli._conversation import Conversation
from suture.cli._outputs import Outputs
from suture.cli._progress import progress_on
from suture.cli._read import open_source, read_conversations
from suture.repair import Report, check, visible_json

__all__ = ["run"]


def run(asked: Namespace) -> int:
    """Check every conversation of a file and print what was found."""
    found = 0
    with ExitStack() as stack:
        source = stack.enter_context(open_source(asked.file, asked.max_bytes))
        outputs = Outputs(stack)
        output = outputs.open()
        screen = outputs.screen(output)
        progress = stack.enter_context(progress_on(source))
        many = False
        for conversation in read_conversations(source):
            report = _check(conversation, asked)
            many = conversation.many
            found += not report.acceptable
            if asked.json:
                line = visible_json({"line": conversation.line, "report": report.to_dict()})
                output.write(line.encode() + b"\n")
            elif not (many and report.acceptable):
                with progress.paused():
                    screen.report(report, conversation.title)
            progress.step()
        progress.close()
        if many and not asked.json:
            screen.say(f"{progress.told}: {progress.count - found} acceptable, {found} with findings")
        outputs.publish()
    return 1 if found else 0


def _check(conversation: Conversation, asked: Namespace) -> Report:
    with conversation.located():
        messages, wire = conversation.take(asked.wire)
        return check(messages, wire=wire, profile=asked.profile, tail=asked.tail)
