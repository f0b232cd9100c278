"""Runs in which nothing goes wrong: with Suture the provider is sent the same bytes, and the program sees the same."""

import asyncio
from typing import Any

import pytest

from suture.repair import Report
from tests.guests.scenarios.frameworks import FRAMEWORKS
from tests.guests.scenarios.playing import PAY
from tests.guests.scenarios.talking import Setting
from tests.guests.strict_provider import StrictServer

TALKS = [(name, api) for name, kind in FRAMEWORKS.items() for api in kind.apis]
HOOK = "PatchToolCallsMiddleware.before_agent"
"""LangGraph tells of each hook that there is, and so of ours."""


@pytest.mark.parametrize(("framework", "api"), TALKS)
def test_a_healthy_run_has_the_same_bytes_events_and_answers(framework: str, api: str, strict: StrictServer):
    seen: list[Any] = []
    heard: list[Report] = []
    for ours in (False, True):
        script = strict.script([PAY], "Paid.", "You are welcome.")
        setting = Setting(api, script.url, ours, heard=heard)

        async def main(setting: Setting = setting) -> Any:
            talk = FRAMEWORKS[framework](setting)
            try:
                kinds = [type(event).__name__ async for event in talk.events("Pay.") if HOOK not in str(event)]
                return kinds, await talk.say("Thanks.")
            finally:
                await talk.close()

        seen.append((asyncio.run(main()), setting.shop.paid, script.bodies))
    assert seen[0] == seen[1]
    assert seen[0][0][1] == "You are welcome."
    assert heard == []
