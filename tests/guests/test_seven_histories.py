"""The page on the seven histories is what its program prints, and says that with Suture all of it is right."""

import re
import subprocess
import sys

from tests.docs.pages import DOCS, ROOT, table

PAGE = DOCS / "guests" / "seven-histories.md"
PROGRAM = ROOT / "benchmarks" / "guests" / "table.py"


def releases(page: str) -> str:
    return page.partition("## Releases\n")[2].strip()


def ours(page: str) -> str:
    """Return the page without what the frameworks do by themselves, and without their releases."""
    kept = page.partition("## Releases\n")[0]
    return re.sub(r"^(\|[^|]*\|[^|]*\|) without \|.*$", r"\1", kept, flags=re.MULTILINE)


def test_the_page_is_what_the_program_prints():
    ran = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, encoding="utf-8", check=False)
    assert ran.returncode == 0, ran.stderr
    printed, page = ran.stdout, PAGE.read_text(encoding="utf-8")
    if releases(printed) != releases(page):  # what another release does by itself is its own affair
        printed, page = ours(printed), ours(page)
    assert printed == page


def rows(kind: str) -> dict[str, list[str]]:
    """Return the guests' cells, with Suture or without."""
    return {row[0]: row[3:] for row in table(PAGE, "guest") if row[2] == kind}


def test_with_suture_every_history_is_right_in_every_guest():
    assert rows("with") == dict.fromkeys(rows("without"), ["right"] * 7)


def test_without_suture_no_guest_has_all_seven_right():
    assert [guest for guest, cells in rows("without").items() if {*cells} == {"right"}] == []
