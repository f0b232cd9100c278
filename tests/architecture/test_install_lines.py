"""What the package tells users to install: a requirement that pip finds, as the extras have it."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
REQUIREMENTS = {requirement for extra in EXTRAS.values() for requirement in extra}


def test_every_install_line_names_a_requirement_of_an_extra():
    sources = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")}
    told = {line for text in sources.values() for line in re.findall(r"[\"'(`]([a-z0-9-]+>=[0-9.]+)[\"']", text)}
    assert told
    assert told <= REQUIREMENTS | {"no-such-sdk>=3"}
    # The name on the index may be somebody else's one day.
    assert not [path for path, text in sources.items() if "pip install suture" in text or "suture[" in text]
