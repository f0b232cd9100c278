"""Every example on the guests' pages runs and prints what the page shows."""

from pathlib import Path

import pytest

from tests.docs.pages import DOCS, blocks, name
from tests.docs.running import run_python

PAGES = sorted((DOCS / "guests").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_python_examples_of_a_page_run_in_order_and_print_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    run_python(page)


def test_a_python_block_is_run_or_says_that_it_is_not():
    infos = {block.info for page in PAGES for block in blocks(page) if block.language == "python"}
    assert infos <= {"python", "python no-run"}
