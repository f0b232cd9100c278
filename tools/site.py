"""What the site has beside docs/: the pages of the project's root, and a page of each public module."""

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
MODULES = (
    "suture",
    "suture.codecs",
    "suture.errors",
    "suture.events",
    "suture.messages",
    "suture.middleware",
    "suture.models",
    "suture.profiles",
    "suture.proxy",
    "suture.reduction",
    "suture.stores",
    "suture.testing",
    "suture.tokens",
    "suture.tools",
    "suture.viewer",
    "suture.wires",
    "suture.integrations.agent_framework",
    "suture.integrations.anthropic",
    "suture.integrations.google_adk",
    "suture.integrations.langchain",
    "suture.integrations.litellm",
    "suture.integrations.mcp",
    "suture.integrations.openai",
    "suture.integrations.openai_agents",
    "suture.integrations.otel",
    "suture.integrations.pydantic_ai",
    "suture.integrations.strands",
    "suture.integrations.temporal",
)
"""The modules that users import from."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the modules in the navigation."""
    pages = ["reference/index.md", *(f"reference/{module}.md" for module in MODULES)]
    config.nav = [*(config.nav or ()), {"Every public name": pages}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    for name, place in PAGES.items():
        files.append(File.generated(config, place, content=_move_links((ROOT / name).read_text(encoding="utf-8"))))
    for module in MODULES:
        files.append(File.generated(config, f"reference/{module}.md", content=_list_names(module)))
    listed = "\n".join(f"- [{module}]({module}.md)" for module in MODULES)
    content = f"# Every public name\n\nBy the module that it is imported from:\n\n{listed}\n"
    files.append(File.generated(config, "reference/index.md", content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Let links out of docs/ lead to the pages of the site, and take off what tests are told of a block of code."""
    markdown = re.sub(r"^```python .*$", "```python", markdown, flags=re.MULTILINE)
    return re.sub(r"\]\(\.\./([A-Z]+\.md)", lambda found: f"]({PAGES[found[1]]}", markdown)


def _list_names(module: str) -> str:
    """Return the page of a module; the package's own shows what no other page does, and leads to the rest."""
    shown = "\n    options: { show_root_heading: true, show_root_full_path: false, heading_level: 2 }\n"
    if module == "suture.reduction":  # its function `plan` is hidden behind the file of that name
        return f"# {module}\n\n::: {module}\n\n::: {module}.plan.plan{shown}"
    if module != "suture":
        return f"# {module}\n\n::: {module}\n"
    source = (ROOT / "src" / "suture" / "__init__.py").read_text(encoding="utf-8")
    homes = sorted(re.findall(r"^    from (\S+) import (\w+) as \w+$", source, re.MULTILINE), key=lambda home: home[1])
    elsewhere = ", ".join(f"[{name}][{room}.{name}]" for room, name in homes if room in MODULES)
    here = "\n".join(f"::: {room}.{name}{shown}" for room, name in homes if room not in MODULES)
    return f"# suture\n\nAlso here: {elsewhere}.\n\n{here}"


def _move_links(text: str) -> str:
    """Return a page of the root with its links as they are seen from docs/."""
    text = re.sub(r"\]\(([A-Z]+\.md)", lambda found: f"]({PAGES[found[1]]}", text.replace("](docs/", "]("))
    return re.sub(r"\[([^\]]+)\]\(LICENSE\)", r"\1", text)
