"""What the wheel and the sdist say about the project: README.md with links that lead somewhere, and its URLs.

Hatchling calls this while it builds. All addresses come from `address` in pyproject.toml, that of a repository whose
pages are laid out as on GitHub. While it is empty there are no URLs, and a link is its text.
"""

import re
from pathlib import Path
from typing import Any

_CODE_OR_LINK = re.compile(
    r"^```.*?^```|(?P<picture>!?)\[(?P<text>[^\[\]]+)\]\((?P<target>[^()\s]+)\)", re.DOTALL | re.MULTILINE
)
_ABSOLUTE = re.compile("[a-z]+:")


def check_address(address: str) -> str:
    """Return the setting without a slash at its end; refuse what no link can begin with."""
    if address and not address.startswith("https://"):
        raise ValueError(f"address in pyproject.toml begins with https:// or is empty, and it is {address!r}")
    return address.rstrip("/")


def describe(readme: str, address: str) -> str:
    """Return README.md with its relative links and pictures below the address; without one, as their texts."""

    def lead(found: re.Match[str]) -> str:
        target = found["target"]
        if target is None or _ABSOLUTE.match(target):
            return found[0]
        if not address:
            return found["text"]
        page = f"README.md{target}" if target.startswith("#") else target
        shown = "raw" if found["picture"] else "blob"
        return f"{found['picture']}[{found['text']}]({address}/{shown}/HEAD/{page})"

    return _CODE_OR_LINK.sub(lead, readme)


def list_urls(address: str) -> dict[str, str]:
    """Return what stands beside the description on an index; nothing without an address."""
    if not address:
        return {}
    pages = {"Documentation": "README.md#what-to-read", "Changelog": "CHANGELOG.md", "Security": "SECURITY.md"}
    below = {name: f"{address}/blob/HEAD/{page}" for name, page in pages.items()}
    return {"Source": address, **below, "Issues": f"{address}/issues"}


def get_metadata_hook() -> type:
    """Return the class that Hatchling asks this file for."""
    from hatchling.metadata.plugin.interface import MetadataHookInterface

    class Description(MetadataHookInterface):
        def update(self, metadata: dict[str, Any]) -> None:
            address = check_address(self.config["address"])
            readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
            metadata["readme"] = {"content-type": "text/markdown", "text": describe(readme, address)}
            metadata["urls"] = list_urls(address)

    return Description
