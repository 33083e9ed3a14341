"""Inputs that a remote recursion receives: small sides as queries, otherwise their inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from optimizer import plan
from optimizer.plans.clauses import apart_from_sides
from optimizer.plans.explain import headline
from optimizer.plans.properties import nodes
from optimizer.traverse import without_iterations
from reactive import Count, Database, Sum, fixpoint, iterate
from reactive.engine.remote.fragments import LEVEL, is_kept_loop


class Link(NamedTuple):
    src: int
    dst: int


class Share(NamedTuple):
    src: int
    dst: int
    links: int


class Rank(NamedTuple):
    page: int
    rank: float


def starts(links: Any) -> Any:
    pages = links.select_many(lambda link: (link.src, link.dst)).distinct()
    return pages.select(lambda page: Rank(page, 1.0))


def counted(links: Any) -> Any:
    return links.group_by(lambda link: link.src).aggregate(Count())


def ranks(start: Any, shares: Any) -> Any:
    def step(ranks: Any) -> Any:
        given = ranks.join(shares, on=lambda r, s: r.page == s.src)
        total = given.group_by(lambda r, s: s.dst).aggregate(Sum(lambda r, s: r.rank / s.links))
        return total.select(lambda page, rank: Rank(page, rank))

    return iterate(step, start, times=5)


def shares(links: Any, counts: Any) -> Any:
    joined = links.join(counts, on=lambda link, of: link.src == of[0])
    return joined.select(lambda link, of: Share(link.src, link.dst, of[1]))


QUERIES: dict[str, tuple[Callable[[Any, Any], Any], list[str]]] = {
    "all of a table goes, so its pages and counts are made there": (
        lambda links, more: ranks(starts(links), shares(links, counted(links))),
        ["links"],
    ),
    "the set of a table goes as the table": (
        lambda links, more: ranks(
            starts(links.distinct()), shares(links.distinct(), counted(links.distinct()))
        ),
        ["links"],
    ),
    "a condition may leave little, so what passes it goes": (
        lambda links, more: ranks(
            starts(links.where(lambda link: link.dst > 7)),
            shares(
                links.where(lambda link: link.dst > 7),
                counted(links.where(lambda link: link.dst > 7)),
            ),
        ),
        ["where link.dst > 7"],
    ),
    "a join with another table may leave little, so it stays a query": (
        lambda links, more: ranks(starts(more), shares(links, counted(more))),
        ["distinct", "select Share(link.src, link.dst, of[1])"],
    ),
    "what has not all of a row may be little": (
        lambda links, more: ranks(
            starts(links),
            links.select(lambda link: Share(link.src, link.src, 1)),
        ),
        ["distinct", "select Share(link.src, link.src, 1)"],
    ),
    "groups of what is not sent stay a query": (
        lambda links, more: ranks(
            counted(more).select(lambda page, n: Rank(page, n * 1.0)),
            links.select(lambda link: Share(link.src, link.dst, 1)),
        ),
        ["select Rank(page, n * 1.0)", "links"],
    ),
    "a recursion inside stays a query": (
        lambda links, more: ranks(
            starts(
                fixpoint(
                    lambda r: links.union(
                        r.join(links, on=lambda p, e: p.dst == e.src).select(
                            lambda p, e: Link(p.src, e.dst)
                        )
                    )
                )
            ),
            shares(links, counted(links)),
        ),
        ["distinct", "links"],
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_side_stays_a_query_unless_what_it_reads_goes_anyway(name: str) -> None:
    query, wanted = QUERIES[name]
    db: Any = Database()
    links, more = db.table(Link, name="links"), db.table(Link, name="more")
    run = db._engine.queries.optimize(query(links, more).plan).plan
    node = without_iterations(run, is_kept_loop)
    assert isinstance(node, plan.Iterate)
    over, sides = apart_from_sides(node, LEVEL)
    assert sorted(map(_shown, sides)) == sorted(wanted)
    read = [n for n in nodes(over) if isinstance(n, plan.Recursive) and n.level == LEVEL]
    assert {n.index for n in read} == set(range(len(sides)))


def _shown(side: plan.Node) -> str:
    return getattr(side, "name", None) or headline(side)
