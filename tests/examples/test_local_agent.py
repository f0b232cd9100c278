"""`examples/local_agent.py`: what happens is always the same, whatever words the model finds for it."""

import re

from tests.examples.program import run_example
from tests.models.local.asking import needs_model

CALL = r"[0-9A-Za-z]{32}"
TOLD = rf"""local:SmolLM2-135M-Instruct\.Q4_1, on this machine: no key, no network

user:  When is high tide in Dover\?
model: calls tides \{{ ?"port" ?: ?"(?P<first>Dover|Hull)" ?\}}
tool:  High tide in (?P=first) is at \d\d:\d\d\.
model: (?P<answer>.+)
       \(\d+ tokens written\)

user:  Will it rain in Hull\?
model: calls forecast \{{ ?"port" ?: ?"(?:Dover|Hull)" ?\}}
       … and is stopped: cancelled

the history, mended:
  user      Will it rain in Hull\?
  assistant calls forecast \((?P<id>{CALL})\)
  tool      Tool call forecast with id (?P=id) was stopped before it finished - the run was canceled\.

user:  Never mind the rain\. When is high tide in Hull\?
model: calls tides \{{ ?"port" ?: ?"(?P<last>Dover|Hull)" ?\}}
tool:  High tide in (?P=last) is at \d\d:\d\d\.
model: (?P<end>.+)
       \(\d+ tokens written\)
"""


@needs_model
def test_the_local_agent_calls_is_stopped_and_goes_on_on_the_mended_history():
    assert re.fullmatch(TOLD, run_example("local_agent.py"), re.DOTALL)
