"""Equivalences with leaders and with pairs, against classes in plain Python."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from reactive import Database
from tests.budget import seeds

LEADERS = """
.decl link(x: {kind}, y: {kind}) .input link
.decl same(x: {kind}, y: {kind}) eqrel .output same
.decl mark(x: {kind}) .output mark
.decl peers(x: {kind}, y: {kind}) .output peers
.decl apart(x: {kind}, y: {kind}) .output apart
.decl sizes(x: {kind}, n: number) .output sizes
same(x, y) :- link(x, y), x != y.
mark(x) :- same(x, _). mark(y) :- same(_, y), same(y, y).
peers(x, y) :- link(x, _), same(x, y), link(y, _).
apart(x, y) :- mark(x), mark(y), !same(x, y).
sizes(x, n) :- mark(x), n = count : {{ same(x, _) }}.
"""

DEPENDENT = (
    LEADERS
    + """
same(x, z) :- far(x, z), same(x, x).
.decl far(x: {kind}, y: {kind})
far(x, z) :- same(x, y), link(z, z), link(y, z).
"""
)


def classes(pairs: set[tuple[Any, Any]]) -> dict[Any, set[Any]]:
    """The class of each member."""
    found: dict[Any, set[Any]] = {}
    for x, y in pairs:
        both = found.get(x, {x}) | found.get(y, {y})
        found |= dict.fromkeys(both, both)
    return found


def expected(links: set[tuple[Any, Any]], *, is_dependent: bool) -> dict[str, set[Any]]:
    pairs = {(x, y) for x, y in links if x != y}
    while True:
        of = classes(pairs)
        new = {(x, z) for y, z in links if (z, z) in links for x in of.get(y, ()) if is_dependent}
        if new <= pairs:
            break
        pairs |= new
    same = {(x, y) for x, members in of.items() for y in members}
    linked = {x for x, _ in links}
    return {
        "same": same,
        "mark": {(x,) for x in of},
        "peers": {(x, y) for x, y in same if x in linked and y in linked},
        "apart": {(x, y) for x in of for y in of if (x, y) not in same},
        "sizes": {(x, len(members)) for x, members in of.items()},
    }


VALUES: dict[str, list[Any]] = {"number": [*range(6)], "symbol": [*"abcdef"]}


@pytest.mark.parametrize("seed", seeds(8))
@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("text", [LEADERS, DEPENDENT], ids=["plain", "recursive"])
def test_classes_follow_their_links(text: str, kind: str, seed: int) -> None:
    random = Random(seed)
    program = Database().datalog(text.format(kind=kind))
    views = {name: program[name].materialize() for name in program}
    table, row = program.tables["link"], program.row("link")
    links: set[tuple[Any, Any]] = set()
    for _ in range(25):
        pair = (random.choice(VALUES[kind]), random.choice(VALUES[kind]))
        if pair in links:
            table.remove(row(*pair))
        else:
            table.add(row(*pair))
        links ^= {pair}
        wanted = expected(links, is_dependent=text is DEPENDENT)
        assert {name: set(map(tuple, view)) for name, view in views.items()} == wanted
    for view in views.values():
        view.verify()


def test_a_class_is_read_without_its_pairs() -> None:
    def touched(count: int) -> int:
        program = Database().datalog("""
            .decl link(x: number, y: number) .input link
            .decl same(x: number, y: number) eqrel
            .decl first(x: number) .output first
            same(x, y) :- link(x, y).
            first(x) :- same(x, 0).
        """)
        view = program["first"].materialize()
        link = program.row("link")
        program.tables["link"].add_all([link(n, n + 1) for n in range(count)])
        assert len(view) == count + 1
        return view.stats().touched

    assert touched(200) < 2.5 * touched(100)


def test_an_equivalence_that_kept_rows_depend_on_has_its_pairs() -> None:
    program = Database().datalog("""
        .decl link(x: number, y: number) .input link
        .decl same(x: number, y: number) eqrel .output same
        .decl least(x: number, y: number) .output least
        same(x, y) :- link(x, y), x < 5.
        same(x, y) :- least(x, y).
        least(x, y) :- same(x, z), link(z, y), y >= 5.
        least(x, y) <= least(x, z) :- z <= y.
    """)
    views = [program[name].materialize() for name in program]
    link = program.row("link")
    rows = [link(1, 2), link(2, 7), link(2, 6), link(6, 5), link(9, 8)]
    program.tables["link"].add_all(rows)
    assert len(views[0]) == 25 and {row.y for row in views[1]} == {5}
    for row in rows:
        program.tables["link"].remove(row)
        for view in views:
            view.verify()
        program.tables["link"].add(row)


def test_given_rows_and_records_are_equivalences_too() -> None:
    db = Database()
    links = db.table(tuple[int, int], name="links")
    program = db.datalog(
        ".decl same(x: number, y: number) eqrel .output same\nsame(7, 8).", inputs={"same": links}
    )
    view = program["same"].materialize()
    links.add_all([(1, 2), (2, 3)])
    assert {x for x, _ in view} == {1, 2, 3, 7, 8} and len(view) == 9 + 4
    records = Database().datalog("""
        .type P = [x: number, y: P]
        .decl same(x: P, y: P) eqrel .output same
        same([1, nil], nil). same([2, nil], nil).
    """)
    assert len(records["same"].materialize()) == 9
