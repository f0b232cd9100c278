"""`examples/first_agent.py`."""

from tests.examples.program import run_example


def test_the_first_agent_calls_both_tools_and_answers_from_their_results():
    lines = run_example("first_agent.py").splitlines()
    assert lines[0] == "model: Let me look."
    assert sorted(lines[1:5]) == sorted(
        [
            '  tides {"port": "Dover"} …',
            "  tides gave 06:12 in Dover",
            '  boats {"port": "Dover", "limit": 2} …',
            '  boats gave ["Dover 1","Dover 2"]',
        ]
    )
    assert lines[5:] == [
        'model: High tide is at 06:12 in Dover. Boats: ["Dover 1","Dover 2"].',
        "finished: 5 messages",
    ]
