"""Every example on the guests' pages runs and prints what the page shows."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from suture.stores import MemoryBackend
from tests.docs.pages import DOCS, ROOT, blocks, links, name
from tests.docs.running import run_python

PAGES = sorted((DOCS / "guests").glob("*.md"))
RUN = [page for page in PAGES if any(block.info == "python" for block in blocks(page))]


class Scripted(FakeListChatModel):
    """A model that takes tools, and does not use them."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        del tools, options
        return self


@pytest.mark.parametrize("page", RUN, ids=name)
def test_the_python_examples_of_a_page_run_in_order_and_print_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    run_python(page)


def test_a_python_block_is_run_or_says_that_it_is_not():
    infos = {block.info for page in PAGES for block in blocks(page) if block.language == "python"}
    assert {info for info in infos if not info.startswith("python others")} <= {"python", "python no-run"}


def test_the_guest_in_the_readme_is_made_as_it_says():
    [block] = [block for block in blocks(ROOT / "README.md") if block.info == "python guest"]
    made: dict[str, Any] = {"model": Scripted(responses=["hi"]), "tools": [], "backend": MemoryBackend()}
    exec(block.body, made)
    assert made["agent"].invoke({"messages": "hello"})["messages"][-1].text == "hi"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_page_of_guests_leads_to_each_of_them(page: Path):
    assert page.relative_to(DOCS).as_posix() in links(DOCS / "guests.md")
