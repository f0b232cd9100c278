"""All extras beside each other, and beside each product: resolved and judged."""

from collections.abc import Mapping
from itertools import combinations
from itertools import product as combined
from typing import NamedTuple

from _judging import Cell, is_kept, judge_extras, judge_product, newest
from _requirements import PLAIN, PRODUCTS, Project, package
from _resolving import Refused, Resolver


class Matrix(NamedTuple):
    """Everything that was resolved."""

    extras: Mapping[str, Mapping[str, str]]
    """What each extra brings alone."""
    products: Mapping[str, Mapping[str, str]]
    """What each product brings alone."""
    pairs: tuple[Cell, ...]
    beside: tuple[Cell, ...]


def resolve_all(project: Project) -> Matrix:
    resolver = Resolver()
    names = (PLAIN, *project.extras)
    resolver.learn("each extra and each product alone", [*map(project.asked_by, names), *((one,) for one in PRODUCTS)])
    extras = {name: _versions(resolver, project.asked_by(name)) for name in names}
    products = {name: _versions(resolver, (name,)) for name in PRODUCTS}

    pairs = list(combinations(project.extras, 2))
    resolver.learn("pairs of extras", [project.asked_by(one) + project.asked_by(other) for one, other in pairs])
    cells = list(combined(names, PRODUCTS))
    resolver.learn("extras beside products", [(*project.asked_by(extra), product) for extra, product in cells])

    own = {name: {each: extras[name][each] for each in project.packages(name)} for name in names}
    expected = {(extra, product): newest(products[product], own[extra]) for extra, product in cells}
    pinned = {
        (extra, product): (*project.asked_by(extra), f"{product}=={products[product][package(product)]}")
        for extra, product in cells
        if not is_kept(product, products[product], resolver[(*project.asked_by(extra), product)])
    }
    resolver.learn("extras beside products that were not kept, pinned", pinned.values())
    return Matrix(
        extras,
        products,
        tuple(
            judge_extras(
                one,
                other,
                newest(own[one], own[other]),
                resolver[project.asked_by(one) + project.asked_by(other)],
            )
            for one, other in pairs
        ),
        tuple(
            judge_product(
                extra,
                product,
                expected[extra, product],
                resolver[(*project.asked_by(extra), product)],
                resolver[pinned[extra, product]] if (extra, product) in pinned else None,
            )
            for extra, product in cells
        ),
    )


def _versions(resolver: Resolver, asked: tuple[str, ...]) -> Mapping[str, str]:
    answer = resolver[asked]
    if isinstance(answer, Refused):
        raise SystemExit(f"{', '.join(asked)} cannot be had alone: {answer.reason}")
    return answer.versions
