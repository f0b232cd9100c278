"""The clashes that are known, with why they are: the one place where a new one is written down.

A clash is an extra that a product at its newest release does not stand, or stands only if that release is pinned.
"""

from typing import NamedTuple

from _judging import Pair


class Clash(NamedTuple):
    """An extra, what it does not go with, and why."""

    extra: str
    beside: tuple[str, ...]
    """Products; or extras that come later in pyproject.toml, in brackets."""
    why: str


CLASHES = (
    Clash(
        "otel",
        ("strands-agents",),
        "strands-agents brings an instrumentation that comes out later than opentelemetry-api, and takes no newer one",
    ),
    Clash(
        "openai-agents",
        ("strands-agents[openai,anthropic,gemini]",),
        "the Agents SDK takes openai from 3 since 0.21, these below 3: without a pin uv prefers its newest release",
    ),
    Clash(
        "google-adk",
        ("crewai", "crewai[anthropic]", "crewai[google-genai]"),
        "the two take no OpenTelemetry in common",
    ),
    Clash(
        "strands",
        ("litellm[proxy]", "agent-framework"),
        "strands-agents takes mcp below 2.2, these from 2.2",
    ),
)


def read_clashes(clashes: tuple[Clash, ...] = CLASHES) -> dict[Pair, str]:
    """Return why, for each pair."""
    return {(clash.extra, beside): clash.why for clash in clashes for beside in clash.beside}
