"""What is combined: the extras of a pyproject.toml, and the products that users have already."""

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

PRODUCTS = (
    "litellm",
    "litellm[proxy]",
    "langchain",
    "langchain-openai",
    "langchain-anthropic",
    "langchain-google-genai",
    "langchain-mcp-adapters",
    "langgraph",
    "deepagents",
    "pydantic-ai",
    "openai-agents",
    "google-adk",
    "google-adk[extensions]",
    "google-cloud-aiplatform",
    "strands-agents",
    "strands-agents[openai,anthropic,gemini]",
    "agent-framework",
    "crewai",
    "crewai[anthropic]",
    "crewai[google-genai]",
    "llama-index",
    "dspy",
    "smolagents",
    "instructor",
    "instructor[anthropic]",
)
"""Frameworks and products that bring SDKs of their own, also with the extras under which users install these."""
SDKS = ("openai", "anthropic", "google", "mcp", "bedrock", "otel")
"""The extras that are an SDK; each has a column of its own in the table of products."""
PLAIN = ""
"""The package without an extra."""


class Project(NamedTuple):
    """What a pyproject.toml asks for: the package alone, and each of its extras, `dev` left out."""

    base: tuple[str, ...]
    extras: dict[str, tuple[str, ...]]

    def asked_by(self, extra: str) -> tuple[str, ...]:
        """Return the requirements of an extra and of the package itself."""
        return self.base + (self.extras[extra] if extra else ())

    def packages(self, extra: str) -> tuple[str, ...]:
        """Return the names of the packages that an extra asks for."""
        return tuple(package(requirement) for requirement in self.extras.get(extra, ()))


def read_project(file: Path) -> Project:
    project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    extras = {name: tuple(asked) for name, asked in project["optional-dependencies"].items() if name != "dev"}
    return Project(tuple(project["dependencies"]), extras)


def package(requirement: str) -> str:
    """Return the name of the package that a requirement asks for, as uv writes it."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    return re.sub(r"[._-]+", "-", found[0]).lower() if found else requirement


def release(version: str) -> list[int]:
    """Return the numbers of a version, for comparing; a release candidate counts as its release."""
    return [int(number) for number in re.findall(r"\d+", re.split(r"[a-z+]", version)[0])]
