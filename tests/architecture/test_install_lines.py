"""What the package tells users to install stands in its metadata alone."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_source_repeats_the_release_that_an_extra_needs():
    sources = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")}
    assert sources
    assert not {line for text in sources.values() for line in re.findall(r"[\"'(`]([a-z0-9-]+>=[0-9.]+)[\"']", text)}
    # The name on the index may be somebody else's one day.
    assert not [path for path, text in sources.items() if "pip install suture" in text or "suture[" in text]
