"""What a wheel and an sdist say about the project: no link in them is dead, with an address and without one."""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, anchors
from tools.description import check_address, describe, list_urls

ADDRESS = "https://example.org/tides/suture"
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "below", "alone"),
    [
        ("see [the page](docs/a.md#b).", f"see [the page]({ADDRESS}/blob/HEAD/docs/a.md#b).", "see the page."),
        ("[two\nlines](a.md)", f"[two\nlines]({ADDRESS}/blob/HEAD/a.md)", "two\nlines"),
        ("[`code`](a.md) [b](b.md)", f"[`code`]({ADDRESS}/blob/HEAD/a.md) [b]({ADDRESS}/blob/HEAD/b.md)", "`code` b"),
        ("![A wave](docs/a.svg)", f"![A wave]({ADDRESS}/raw/HEAD/docs/a.svg)", "A wave"),
        ("[above](#top)", f"[above]({ADDRESS}/blob/HEAD/README.md#top)", "above"),
    ],
)
def test_a_relative_link_leads_below_the_address_and_is_its_text_without_one(text: str, below: str, alone: str):
    assert describe(text, ADDRESS) == below
    assert describe(text, "") == alone


@pytest.mark.parametrize("address", ["", ADDRESS])
@pytest.mark.parametrize(
    "text",
    [
        "[elsewhere](https://example.com/a) and ![a picture](https://example.com/a.svg)",
        "[write](mailto:somebody@example.com)",
        "```python\nshow[0](a)\n```\n",
        'fixed.messages[2]["content"] (so)',
    ],
)
def test_what_is_no_relative_link_stays(text: str, address: str):
    assert describe(text, address) == text


@pytest.mark.parametrize("address", ["", ADDRESS])
def test_the_readme_keeps_no_relative_link(address: str):
    described = describe(README, address)
    assert re.findall(r"\]\((?!https://)\S*|^\[.*\]:|(?:src|href)=\S*", described, re.MULTILINE) == []
    assert "with a result put in, the conversation continues" in described  # what the picture shows


def test_every_url_leads_to_a_page_of_the_project():
    below = f"{ADDRESS}/blob/HEAD/"
    paths = [url.removeprefix(below) for url in list_urls(ADDRESS).values() if url.startswith(below)]
    assert len(paths) == 3
    for path in paths:
        page, _, anchor = path.partition("#")
        assert not anchor or anchor in anchors(ROOT / page)
        assert (ROOT / page).exists()


@pytest.mark.parametrize("address", ["http://example.org/suture", "example.org/suture", "docs"])
def test_an_address_that_no_link_can_begin_with_is_refused(address: str):
    with pytest.raises(ValueError, match=f"begins with https:// or is empty, and it is '{address}'"):
        check_address(address)


# --- built ------------------------------------------------------------------------------------


def project(place: Path, address: str) -> Path:
    """Copy what a build reads, with that address."""
    for path in ("pyproject.toml", "README.md", "LICENSE", "tools/description.py", "src/suture/__init__.py"):
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, place / path)
    settings = place / "pyproject.toml"
    text = settings.read_text(encoding="utf-8")
    settings.write_text(re.sub('^address = ".*?"', f'address = "{address}"', text, flags=re.MULTILINE), "utf-8")
    return place


def build(project: Path, target: str) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", "made"]
    subprocess.run(command, cwd=project, check=True, capture_output=True, timeout=60)
    (made,) = (project / "made").iterdir()
    return made


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        return message_from_bytes(archive.read(name))


@pytest.mark.parametrize("address", ["", ADDRESS])
def test_a_wheel_made_of_the_sdist_has_the_description_and_the_urls(address: str, tmp_path: Path):
    pytest.importorskip("hatchling", reason="hatchling builds the package")
    sdist = build(project(tmp_path / "project", address and address + "/"), "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    said = metadata(build(tmp_path / "suture-0.1.0", "wheel"))
    assert said["Description-Content-Type"] == "text/markdown"
    assert said.get_payload(decode=True) == describe(README, address).encode()
    assert said.get_all("Project-URL", []) == [f"{name}, {url}" for name, url in list_urls(address).items()]
