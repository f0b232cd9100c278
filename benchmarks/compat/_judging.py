"""What becomes of a product when an extra comes into its environment, and whether a clash is known."""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from _requirements import package, release
from _resolving import Answer, Refused, Resolved

Fate = Literal["kept", "downgraded", "refused"]
Pair = tuple[str, str]


class Lower(NamedTuple):
    """A package whose version is lower than without the other side."""

    package: str
    alone: str
    together: str


class Cell(NamedTuple):
    """An extra beside a product, or beside another extra."""

    extra: str
    beside: str
    fate: Fate
    versions: Mapping[str, str] = {}
    """What the resolver takes if nothing is pinned; empty if it refuses."""
    lower: tuple[Lower, ...] = ()
    """What is lower than alone; of a product that was downgraded: where its newest release is pinned."""
    reason: str = ""
    """Why the newest releases cannot be together; empty if they can."""

    @property
    def pair(self) -> Pair:
        return self.extra, self.beside


class Verdict(NamedTuple):
    """What the list of known clashes does not name, and what it names for nothing."""

    new: tuple[Pair, ...]
    vanished: tuple[Pair, ...]


def newest(*alone: Mapping[str, str]) -> dict[str, str]:
    """Return the highest version of each package."""
    found: dict[str, str] = {}
    for versions in alone:
        for name, version in versions.items():
            if name not in found or release(version) > release(found[name]):
                found[name] = version
    return found


def find_lower(versions: Mapping[str, str], expected: Mapping[str, str]) -> tuple[Lower, ...]:
    """Return what is lower than expected; a package that is no longer needed is not."""
    return tuple(
        Lower(name, expected[name], versions[name])
        for name in sorted(expected.keys() & versions.keys())
        if release(versions[name]) < release(expected[name])
    )


def judge_product(
    extra: str, product: str, expected: Mapping[str, str], loose: Answer, pinned: Answer | None = None
) -> Cell:
    """Judge an extra beside a product: `expected` are the versions of what must not become lower unnamed.

    `pinned` is the answer with the product at its newest release; it counts only if the product was not kept.
    """
    if isinstance(loose, Resolved) and is_kept(product, expected, loose):
        return Cell(extra, product, "kept", loose.versions, find_lower(loose.versions, expected))
    reason = pinned.reason if isinstance(pinned, Refused) else ""
    lower = find_lower(pinned.versions, expected) if isinstance(pinned, Resolved) else ()
    if isinstance(loose, Refused):
        return Cell(extra, product, "refused", {}, lower, reason or loose.reason)
    return Cell(extra, product, "downgraded", loose.versions, lower, reason)


def is_kept(product: str, expected: Mapping[str, str], answer: Answer) -> bool:
    """Tell whether a product was resolved to the release that it has alone."""
    name = package(product)
    return isinstance(answer, Resolved) and release(answer.versions[name]) >= release(expected[name])


def judge_extras(extra: str, other: str, expected: Mapping[str, str], answer: Answer) -> Cell:
    """Judge two extras in one environment; the other stands in brackets, as some are called like a product."""
    if isinstance(answer, Refused):
        return Cell(extra, f"[{other}]", "refused", reason=answer.reason)
    return Cell(extra, f"[{other}]", "kept", answer.versions, find_lower(answer.versions, expected))


def compare(cells: Iterable[Cell], known: Mapping[Pair, str]) -> Verdict:
    """Hold what is not kept against the clashes that are known."""
    found = {cell.pair for cell in cells if cell.fate != "kept"}
    return Verdict(tuple(sorted(found - known.keys())), tuple(sorted(known.keys() - found)))
