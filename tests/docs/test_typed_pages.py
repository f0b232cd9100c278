"""`make lint` type-checks the pages' programs: what is wrong is told at its line of the page."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.docs import pages
from tools.typecheck_pages import EXEMPT, PARTLY_ANNOTATED, check, take_programs

PAGE = """# A page

```python
import suture

history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None}]
print(suture.repair(history).messages[0]["content"])


async def main() -> None:
    result = await suture.ChatModelAgent(model="openai:gpt-5-mini").run("hi")
    print(result.messages[0].words)
```

```python no-run
await nothing
```

```python
def shout(text):
    return text.upper()
```
"""


def test_a_program_stands_at_the_lines_of_its_page(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    program = dict(enumerate(take_programs(page).splitlines(), 1))
    shown = dict(enumerate(PAGE.splitlines(), 1))
    assert {number for number, line in program.items() if line} == {4, 6, 7, 10, 11, 12, 20, 21}
    assert all(line == shown[number] for number, line in program.items() if line)


def test_what_is_wrong_in_a_program_is_told_at_its_line_by_both_checkers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    for name in ("page.md", "docs/tools.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(PAGE, encoding="utf-8")
    found = [tmp_path / "page.md", tmp_path / "docs" / "tools.md"]
    wrong = asyncio.run(check(found, tmp_path / "programs", Path(sys.executable)))
    places = [(line.partition(": ")[0], line.rpartition(" ")[2]) for line in wrong]
    assert [place for place in places if place[1] == "(pyright)"] == [
        ("docs/tools.md:12", "(pyright)"),
        ("page.md:12", "(pyright)"),
    ]
    assert [place for place in places if place[1] == "(mypy)"] == [
        ("docs/tools.md:12", "(mypy)"),  # where functions may be without annotations
        ("page.md:12", "(mypy)"),
        ("page.md:20", "(mypy)"),
    ]


@pytest.mark.parametrize("page", sorted({*PARTLY_ANNOTATED, *EXEMPT}))
def test_a_page_that_is_excepted_exists(page: str):
    assert (pages.DOCS / f"{page}.md").exists()
