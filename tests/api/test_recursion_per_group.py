"""A recursion inside of `each` and `nest` equals one that is computed for each group by hand."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

import pytest

from optimizer.errors import StratificationError
from reactive import Count, Database, Min, PlanError, Relation, Sum, Table, fixpoint
from reactive.lattices import flat


class Link(NamedTuple):
    """An edge of the graph of one document."""

    doc: Any
    a: int
    b: int


class Pair(NamedTuple):
    a: int
    b: int


class Doc(NamedTuple):
    id: int
    root: int


Rel = Relation[Any]
NAN = float("nan")


def reach(links: Rel) -> Rel:
    return fixpoint(
        lambda r: links.select(lambda e: Pair(e.a, e.b)).union(
            r.join(links, on=lambda p, e: p.b == e.a).select(lambda p, e: Pair(p.a, e.b))
        )
    )


def reached_by_hand(links: list[Link]) -> set[Any]:
    found = {Pair(e.a, e.b) for e in links}
    while more := {Pair(p.a, e.b) for p in found for e in links if p.b == e.a} - found:
        found |= more
    return found


def distances(links: Rel) -> Rel:
    """The fewest edges from node 0."""
    return fixpoint(
        lambda r: (
            links.where(lambda e: e.a == 0)
            .select(lambda e: Pair(e.b, 1))
            .union(
                r.join(links, on=lambda p, e: p.a == e.a).select(lambda p, e: Pair(e.b, p.b + 1))
            )
        ),
        keep=Min(lambda p: p.b),
        by=lambda p: p.a,
    )


def distances_by_hand(links: list[Link]) -> set[Any]:
    best: dict[int, int] = {}
    found = {e.b for e in links if e.a == 0}
    for steps in range(1, 9):
        best |= dict.fromkeys(found - best.keys(), steps)
        found = {e.b for e in links if e.a in found}
    return {Pair(*item) for item in best.items()}


def odd_and_even(links: Rel) -> Rel:
    """Ways of an even number of edges that have none of an odd number."""
    odd, even = fixpoint(
        lambda odd, even: (
            links.select(lambda e: Pair(e.a, e.b)).union(
                even.join(links, on=lambda p, e: p.b == e.a).select(lambda p, e: Pair(p.a, e.b))
            ),
            odd.join(links, on=lambda p, e: p.b == e.a).select(lambda p, e: Pair(p.a, e.b)),
        )
    )
    return even.difference(odd)


def odd_and_even_by_hand(links: list[Link]) -> set[Any]:
    odd: set[Any] = set()
    even: set[Any] = set()
    while True:
        before = len(odd) + len(even)
        odd |= {Pair(e.a, e.b) for e in links}
        odd |= {Pair(p.a, e.b) for p in even for e in links if p.b == e.a}
        even |= {Pair(p.a, e.b) for p in odd for e in links if p.b == e.a}
        if before == len(odd) + len(even):
            return even - odd


def invited(links: Rel) -> Rel:
    """Node 0, and nodes to which two links lead from such nodes: an aggregate of the recursion."""
    return fixpoint(
        lambda r: links.select(lambda e: 0).union(
            r.join(links, on=lambda p, e: p == e.a)
            .group_by(lambda p, e: e.b)
            .aggregate(Count())
            .where(lambda b, n: n >= 2)
            .select(lambda b, n: b)
        )
    )


def invited_by_hand(links: list[Link]) -> set[Any]:
    found: set[Any] = set()
    while True:
        more = {0} if links else set()
        more |= {b for b in range(5) if sum(e.b == b and e.a in found for e in links) >= 2}
        if more == found:
            return found
        found = more


PROGRAMS: dict[str, tuple[Callable[[Rel], Rel], Callable[[list[Link]], set[Any]]]] = {
    "reach": (reach, reached_by_hand),
    "distances": (distances, distances_by_hand),
    "odd_and_even": (odd_and_even, odd_and_even_by_hand),
    "invited": (invited, invited_by_hand),
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("program", PROGRAMS)
def test_each_group_has_a_recursion_of_its_own(program: str, seed: int) -> None:
    query, by_hand = PROGRAMS[program]
    random = Random(seed)
    db = Database(optimize=seed > 0)
    links: Table[Link] = db.table(Link, name="links")
    view = links.group_by(lambda e: e.doc).each(query).materialize()
    rows: list[Link] = []
    for _ in range(10):
        before, is_undone = list(rows), random.random() < 0.2
        with suppress(KeyError), db.transaction():
            for _ in range(random.choice((1, 3, 9))):
                if rows and random.random() < 0.45:
                    links.remove(rows.pop(random.randrange(len(rows))))
                else:
                    doc = random.choice((1, 2, None, NAN))
                    rows.append(Link(doc, random.randrange(5), random.randrange(5)))
                    links.add(rows[-1])
            if is_undone:
                raise KeyError
        rows = before if is_undone else rows
        wanted = [
            (repr(doc), row)
            for doc in {repr(e.doc): e.doc for e in rows}.values()
            for row in by_hand([e for e in rows if repr(e.doc) == repr(doc)])
        ]
        shown: Any = view
        assert sorted((repr(doc), row) for doc, row in shown) == sorted(wanted)
    view.verify()
    links.clear()
    assert (list(view), view.stats().rows) == ([], 0)


def test_rows_with_a_recursion_inside() -> None:
    db = Database()
    docs: Table[Doc] = db.table(Doc, name="docs", key="id")
    links: Table[Link] = db.table(Link, name="links")

    def from_root(doc: Any) -> Rel:
        own = links.where(lambda e: e.doc == doc.id)
        return fixpoint(
            lambda r: (
                own.where(lambda e: e.a == doc.root)
                .select(lambda e: e.b)
                .union(r.join(own, on=lambda n, e: n == e.a).select(lambda n, e: e.b))
            )
        )

    view: Any = docs.nest(reached=from_root).materialize()
    random, rows = Random(3), list[Link]()
    for step in range(12):
        with db.transaction():
            docs.upsert(Doc(random.randrange(3), random.randrange(4)))
            for _ in range(random.choice((1, 4))):
                if rows and random.random() < 0.45:
                    links.remove(rows.pop(random.randrange(len(rows))))
                else:
                    rows.append(Link(*random.choices(range(4), k=3)))
                    links.add(rows[-1])
        for doc, inside in view:
            found, fresh = set[int](), {doc.root}
            while fresh:
                fresh = {e.b for e in rows if e.doc == doc.id and e.a in fresh} - found
                found |= fresh
            assert sorted(inside) == sorted(found)
        if step % 4 == 0:
            view.verify()


def test_a_change_of_a_group_touches_no_other_group() -> None:
    db = Database()
    links: Table[Link] = db.table(Link, name="links")
    view = links.group_by(lambda e: e.doc).each(reach).materialize()
    touched = []
    for docs in (2, 40):
        links.replace_all([Link(doc, n, n + 1) for doc in range(docs) for n in range(6)])
        before = view.stats().touched
        links.remove(Link(1, 2, 3))
        links.add(Link(1, 2, 3))
        touched.append(view.stats().touched - before)
    assert touched[0] == touched[1]
    assert "fixpoint r" in str(view.explain())


def test_what_cannot_be_one_recursion_is_refused() -> None:
    db = Database()
    links: Table[Link] = db.table(Link, name="links")
    by_doc = links.group_by(lambda e: e.doc)

    def joined(group: Rel) -> Rel:
        return fixpoint(
            lambda r: group.union(r), keep=flat(lambda e: e.b), by=lambda e: (e.doc, e.a)
        )

    def spent(group: Rel) -> Rel:
        return fixpoint(
            lambda n: group.select(lambda e: e.a).union(
                n.join(group, on=lambda n, e: e.a < n)
                .group_by(lambda n, e: n)
                .aggregate(Sum(lambda n, e: e.b))
                .select(lambda n, total: total)
            )
        )

    with pytest.raises(PlanError, match="a recursion over a lattice joins the values of all"):
        by_doc.each(joined)
    with pytest.raises(StratificationError, match="the value is in its rows"):
        by_doc.each(spent)


FROM_ROOT = """select id from docs d where exists (with recursive seen(x) as (
    select d.root union select e.b from links e, seen s where e.a = s.x and e.doc = d.id
) select * from seen where x = 3)"""


@pytest.mark.parametrize("optimize", [True, False])
def test_sql_has_a_recursion_from_the_row_around_it(optimize: bool) -> None:
    rng, db = Random(5), Database(optimize=optimize)
    docs: Any = db.table(Doc, name="docs")
    links: Any = db.table(Link, name="links")
    view = db.sql(FROM_ROOT).materialize()
    for _ in range(60):
        table, row = rng.choice(
            [
                (docs, Doc(rng.randrange(3), rng.randrange(4))),
                *[(links, Link(rng.randrange(3), rng.randrange(4), rng.randrange(4)))] * 3,
            ]
        )
        table.discard(row) if rng.random() < 0.4 else table.add(row)
        expected = []
        for doc in docs:
            seen, waiting = {doc.root}, [doc.root]
            while waiting:
                at = waiting.pop()
                more = {e.b for e in links if (e.doc, e.a) == (doc.id, at)} - seen
                seen |= more
                waiting += more
            expected += [(doc.id,)] * (3 in seen)
        assert sorted(tuple(row) for row in view) == sorted(expected)
    view.verify()
