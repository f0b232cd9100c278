"""An agent that runs inside another one, as a tool: its own run, in the outer one's stream, session and store."""

import asyncio
from collections.abc import Sequence
from typing import Any

from suture.kernel._begin import Begin
from suture.kernel._buffer import Emitter
from suture.kernel._contexts import Outcome
from suture.kernel._interrupt import InterruptSignal
from suture.kernel._run import Run, new_run_id
from suture.kernel._scope import Scope, current_frame
from suture.kernel._spec import Spec
from suture.kernel._usage import difference, spend

__all__ = ["run_nested"]


async def run_nested(spec: Spec, messages: Sequence[Any], *, forwards_events: bool) -> Any:
    """Run an agent for the tool call at hand; return its output.

    With a checkpoint it has a journal of its own beside the outer one: what is stored there is never done again.
    """
    frame = current_frame(f"agent {spec.name!r} as a tool")
    outer = frame.scope
    run_id = new_run_id()
    count = frame.counts.get(spec.name, 0)
    frame.counts[spec.name] = count + 1
    which = f"{spec.name}.{count}" if count else spec.name  # a wrapper may call its endpoint twice
    address = f"{outer.address}/{frame.place}/{which}"
    spec = spec._replace(redact=spec.redact or outer.spec.redact)
    inner = Scope(spec, run_id, address, (*outer.path, spec.name), outer.language, outer.streaming, outer=outer)
    inner.stop_at = set(outer.inner_stop_at)
    inner.inner_stop_at = set(outer.inner_stop_at)
    inner.dependencies, inner.tool_options = outer.dependencies, outer.tool_options
    if forwards_events and outer.emitter is not None:
        inner.emitter = Emitter(outer.emitter.buffer, spec.name, inner.path, run_id)
    if outer.journal is not None:
        inner.spec = spec._replace(store=outer.journal.store)
        place = frame.place.replace("/", ".")
        inner.checkpoint_id = f"{outer.checkpoint_id}/{outer.run_id}.{place}.{which}"
    run: Run[Any] = Run(inner, Begin(messages, answers=outer.answers, nested=True))
    outer.children.add(run.work)
    try:
        result = await run
    finally:
        outer.children.discard(run.work)
        if outer.journal is not None and inner.journal is not None and inner.journal.broken is not None:
            outer.journal.broken = inner.journal.broken
        used = difference(inner.usage, inner.usage_before)
        if used.total_tokens:
            spend(outer, used)
    if result.outcome is Outcome.INTERRUPTED:
        raise InterruptSignal(inner.waiting)
    if result.outcome is Outcome.CANCELLED:
        raise asyncio.CancelledError
    return result.output
