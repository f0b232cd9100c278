"""`examples/samples`: a broken history of every wire, to try the commands on."""

from pathlib import Path

import pytest

import suture
from suture.cli.files import open_source
from suture.wires import WIRES
from tests.cli.program import run

SAMPLES = sorted((Path(__file__).parents[2] / "examples" / "samples").iterdir())


def test_there_is_a_sample_of_every_wire():
    assert sorted(path.name.partition(".")[0] for path in SAMPLES) == sorted(WIRES)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_sample_is_recognised_as_its_wire_and_is_broken_in_several_ways(path: Path):
    problems: set[str] = set()
    with open_source(str(path)) as source:
        for conversation in source:
            messages, wire = conversation.take(None)
            report = suture.check(messages, wire=wire)
            assert report.wire == path.name.partition(".")[0]
            problems |= {finding.problem for finding in report.findings}
    assert len(problems) >= 2


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_repaired_sample_is_accepted(path: Path, tmp_path: Path):
    out = tmp_path / path.name
    assert run("repair", path, "-o", out).status == 0
    assert run("check", out).status == 0
