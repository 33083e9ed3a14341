"""Subsumption and choice domains, against plain Python after every commit of random histories."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import pytest

from reactive import Database, FixpointError, PlanError
from tests.budget import seeds

Edge = tuple[int, ...]
Rows = Iterable[tuple[Any, ...]]


def play(
    text: str, seed: int, draw: Callable[[Random], Edge], expected: Callable[[set[Edge]], Rows]
) -> None:
    """Insert and delete edges, some at once, and compare the output after every commit."""
    random = Random(seed)
    db = Database()
    program = db.datalog(text)
    (name,) = program
    view, table, row = program[name].materialize(), program.tables["edge"], program.row("edge")
    held: set[Edge] = set()
    for _ in range(40):
        with db.transaction():
            for _ in range(random.choice([1, 1, 3])):
                edge = draw(random)
                if edge in held:
                    table.remove(row(*edge))
                else:
                    table.add(row(*edge))
                held ^= {edge}
        assert sorted(map(tuple, view)) == sorted(expected(held)), held
    view.verify()


TREE = """
.decl edge(v: number, u: number) .input edge
.decl tree(v: number, u: number) choice-domain u .output tree
tree(-1, 0).
tree(v, u) :- tree(_, v), edge(v, u).
"""


def spanning_tree(edges: set[Edge]) -> Rows:
    """The row of each node that is derived in the first round, the least of several."""
    chosen = {0: -1}
    new = {0}
    while new:
        found: dict[int, int] = {}
        for v, u in sorted(edges):
            if v in new and u not in chosen:
                found.setdefault(u, v)
        chosen |= found
        new = set(found)
    return [(v, u) for u, v in chosen.items()]


@pytest.mark.parametrize("seed", seeds(20))
def test_a_recursive_choice_is_the_first_derived_row(seed: int) -> None:
    play(TREE, seed, lambda r: (r.randrange(7), r.randrange(7)), spanning_tree)


CHOICE = """
.decl edge(v: number, u: number) .input edge
.decl some(v: number, u: number, n: symbol) choice-domain {} .output some
some(v, u, "a"), some(u, v, "b") :- edge(v, u), v != u.
"""


@pytest.mark.parametrize("seed", seeds(6))
@pytest.mark.parametrize(("domain", "key"), [("v", (0,)), ("(u, n)", (1, 2)), ("(u, v, n)", None)])
def test_a_choice_is_the_least_row_of_its_key(domain: str, key: Any, seed: int) -> None:
    def expected(edges: set[Edge]) -> Rows:
        rows = {(v, u, "a") for v, u in edges if v != u} | {(u, v, "b") for v, u in edges if v != u}
        best: dict[Any, Any] = {}
        for row in sorted(rows):
            best.setdefault(row if key is None else tuple(row[place] for place in key), row)
        return best.values()

    play(CHOICE.format(domain), seed, lambda r: (r.randrange(4), r.randrange(4)), expected)


# Several choice domains.


PAIRS = """
.decl edge(v: number, u: number) .input edge
.decl pair(v: number, u: number) choice-domain v, u .output pair
pair(v, u) :- edge(v, u).
"""

ORDER = """
.decl edge(v: number, u: number) .input edge
.decl node(v: number)
node(v), node(u) :- edge(v, u).
.decl order(v: number, u: number) choice-domain v, u .output order
order(-1, v) :- node(v).
order(v, u) :- order(_, v), node(u).
"""

VISITED = """
.decl edge(v: number, u: number) .input edge
.decl step(v: number, u: number) choice-domain {} .output step
.decl visited(v: number)
visited(0).
visited(u) :- step(_, u).
step(v, u) :- visited(v), edge(v, u).
"""


def chosen_by_rounds(candidates: Callable[[set[Edge]], Rows], places: tuple[int, ...]) -> Rows:
    """The rows that rounds choose, of which no two have an equal item in one of the places."""
    kept: set[Edge] = set()
    while True:
        before = len(kept)
        for row in sorted(candidates(set(kept))):
            if not any(row[place] == other[place] for place in places for other in kept):
                kept.add(row)
        if len(kept) == before:
            return kept


def orders(edges: set[Edge], kept: set[Edge]) -> Rows:
    nodes = {v for edge in edges for v in edge}
    return [*((-1, v) for v in nodes), *((v, u) for _, v in kept for u in nodes)]


def visits(edges: set[Edge], kept: set[Edge]) -> Rows:
    return [edge for edge in edges if edge[0] in {0, *(u for _, u in kept)}]


@pytest.mark.parametrize("seed", seeds(4))
@pytest.mark.parametrize(
    ("text", "candidates", "places"),
    [
        (PAIRS, lambda edges, kept: edges, (0, 1)),
        (ORDER, orders, (0, 1)),
        (VISITED.replace("{}", "v, (u)"), visits, (0, 1)),
        (VISITED.replace("{}", "u"), visits, (1,)),  # through another relation
    ],
)
def test_rounds_choose_rows_that_share_no_value(
    text: str, candidates: Any, places: tuple[int, ...], seed: int
) -> None:
    def expected(edges: set[Edge]) -> Rows:
        return chosen_by_rounds(lambda kept: candidates(edges, kept), places)

    play(text, seed, lambda r: (r.randrange(6), r.randrange(6)), expected)


# Subsumption.


DISTANCES = """
.decl edge(v: number, u: number, c: number) .input edge
.decl near(v: number, c: number) .output near
near(0, 0).
near(u, c + d) :- near(v, c), edge(v, u, d).
near({}) <= near({}) :- {}.
"""


def distances(edges: set[Edge]) -> Rows:
    found = {0: 0}
    for _ in range(8):
        for v, u, c in edges:
            if v in found:
                found[u] = min(found.get(u, 99), found[v] + c)
    return found.items()


@pytest.mark.parametrize("seed", seeds(5))
@pytest.mark.parametrize(
    "shape",
    [
        ("v, c", "v, d", "c > d"),
        ("v, c", "v, d", "c >= d"),
        ("v, long", "v, short", "short < long"),
        ("x, a", "x, b", "b <= a"),
    ],
)
def test_the_least_distance_is_kept_also_round_cycles(
    shape: tuple[str, str, str], seed: int
) -> None:
    text = DISTANCES.format(*shape)
    play(text, seed, lambda r: (r.randrange(6), r.randrange(6), r.randrange(1, 5)), distances)


LONGEST = """
.decl edge(v: number, u: number, c: number) .input edge
.decl far(v: number, c: number) .output far
far(0, 0).
far(u, c + d) :- far(v, c), edge(v, u, d), v < u.
far(v, c) <= far(v, d) :- {}.
"""


@pytest.mark.parametrize("seed", seeds(5))
@pytest.mark.parametrize("test", ["c < d", "d >= c", "c < d, true", "c < d; c + 1 <= d"])
def test_the_greatest_is_kept(test: str, seed: int) -> None:
    def expected(edges: set[Edge]) -> Rows:
        found = {0: 0}
        for v, u, c in sorted(edges):
            if v in found and v < u:
                found[u] = max(found.get(u, 0), found[v] + c)
        return found.items()

    text = LONGEST.format(test)
    play(text, seed, lambda r: (r.randrange(6), r.randrange(6), r.randrange(1, 5)), expected)


PARETO = """
.type Cost = [time: number, price: number]
.decl edge(v: number, u: number, t: number, p: number) .input edge
.decl way(v: number, c: Cost) .output way
way(0, [0, 0]).
way(u, [t + s, p + q]) :- way(v, [t, p]), edge(v, u, s, q), v < u.
way(v, [t, p]) <= way(v, [s, q]) :- t >= s, p >= q.
"""


@pytest.mark.parametrize("seed", seeds(10))
def test_rows_that_another_dominates_are_left_out(seed: int) -> None:
    def expected(edges: set[Edge]) -> Rows:
        ways: dict[int, set[Edge]] = {0: {(0, 0)}}
        for v, u, t, p in sorted(edges):
            if v < u:
                ways.setdefault(u, set()).update((a + t, b + p) for a, b in ways.get(v, ()))
        return [
            (v, (t, p))
            for v, costs in ways.items()
            for t, p in costs
            if not any((s, q) != (t, p) and s <= t and q <= p for s, q in costs)
        ]

    def draw(random: Random) -> Edge:
        return (*(random.randrange(4) for _ in "vu"), *(random.randrange(1, 4) for _ in "tp"))

    play(PARETO, seed, draw, expected)


OF_ANOTHER = """
.decl edge(v: number, u: number) .input edge
.decl wins(v: number) .output wins
wins(v), wins(u) :- edge(v, u).
wins(v) <= wins(_) :- beats(_, v).
wins(9) <= wins(_) :- true.
.decl beats(v: number, u: number)
beats(v, u) :- edge(v, u), v < u.
"""


@pytest.mark.parametrize("seed", seeds(5))
def test_other_relations_say_what_dominates(seed: int) -> None:
    def expected(edges: set[Edge]) -> Rows:
        beaten = {u for v, u in edges if v < u}
        every = {v for edge in edges for v in edge}
        return [(v,) for v in every if v not in beaten or every == {v}]

    play(OF_ANOTHER, seed, lambda r: (r.randrange(5), r.randrange(5)), expected)


INTERVALS = """
.type Span = [low: number, high: number]
.decl edge(v: number, u: number) .input edge
.decl span(v: number, s: Span) .output span
span(0, [0, 0]).
span(u, [a, b + 1]) :- span(v, [a, b]), edge(v, u), b < 9.
span(v, [min(a, c), max(b, d)]) :- span(v, [a, b]), span(v, [c, d]).
span(v, [a, b]) <= span(v, [c, d]) :- c <= a, b <= d.
"""


@pytest.mark.parametrize("seed", seeds(10))
def test_a_recursion_reads_no_row_that_another_dominates(seed: int) -> None:
    """Join the spans of each node, in cycles and with itself; all of them were joined in pairs."""

    def expected(edges: set[Edge]) -> Rows:
        spans: dict[int, set[int]] = {0: {0}}
        before = None
        while before != spans:
            before = {v: {*highs} for v, highs in spans.items()}
            for v, u in edges:
                spans.setdefault(u, set()).update([b + 1 for b in spans.get(v, ()) if b < 9])
        return [(v, (0, max(highs))) for v, highs in spans.items() if highs]

    play(INTERVALS, seed, lambda r: (r.randrange(4), r.randrange(4)), expected)


def test_a_recursion_pairs_only_rows_that_no_other_dominates() -> None:
    """Two spans of a node meet, and not all that it had: n ** 2 pairs of 50 spans."""
    program = Database().datalog(INTERVALS.replace("b < 9", "b < 200"))
    view, row = program["span"].materialize(), program.row("edge")
    program.tables["edge"].add_all([row(0, 1), row(1, 2), row(2, 1)])
    assert sorted(map(tuple, view)) == [(0, (0, 0)), (1, (0, 199)), (2, (0, 200))]
    assert view.stats().touched < 100 * 200


def test_subsumption_by_two_columns_ends_a_recursion() -> None:
    text = """
        .decl end(x: number) .input end
        .decl a(x: number, y: number) .output a
        a(0, 0). a(x + 1, y + 1) :- a(x, y).
        a(x, y) <= a(u, v) :- {}.
    """
    view = Database().datalog(text.format("x >= u, y >= v"))["a"].materialize()
    assert list(map(tuple, view)) == [(0, 0)]
    view.verify()
    # What another relation says is read after the recursion, which has to end by itself.
    program = Database().datalog(text.format("x >= u, y >= v, !end(x)"), max_rounds=50)
    with pytest.raises(FixpointError, match="after 50 rounds"):
        program["a"].materialize()


def test_of_rows_that_dominate_each_other_a_recursion_keeps_one() -> None:
    program = Database().datalog("""
        .decl edge(v: number, u: number) .input edge
        .decl a(x: number, y: number) .output a
        a(x, y) :- edge(x, y).
        a(x + 1, y) :- a(x, y), x < 9.
        a(x, y) <= a(u, v) :- x + y >= u + v.
    """)
    view, row = program["a"].materialize(), program.row("edge")
    for edge in [(3, 4), (5, 1), (0, 6), (2, 4)]:
        program.tables["edge"].add(row(*edge))
        assert len(view) == 1 and sum(next(iter(view))) == (7 if edge == (3, 4) else 6)
    view.verify()


@pytest.mark.parametrize(
    "body",
    [
        "x - u = w, w >= 0, y >= v",
        '!false, u <= x, v <= y, match("[0-9]*", to_string(x))',
        "x = range(u, 99), y >= v",  # which is more than a test
        "x >= u, y > v; x > u, y = v",
    ],
)
def test_tests_of_any_form_say_what_dominates(body: str) -> None:
    view = (
        Database()
        .datalog(f"""
        .decl a(x: number, y: number) .output a
        a(0, 2). a(1, 1). a(3, 0). a(7, 7).
        a(x + 1, y) :- a(x, y), x < 9.
        a(x, y) <= a(u, v) :- {body}.
    """)["a"]
        .materialize()
    )
    assert sorted(map(tuple, view)) == [(0, 2), (1, 1), (3, 0)]
    view.verify()


LAST = """
.decl edge(v: number, u: number) .input edge
.decl far(v: number, u: number, n: number) btree_{} .output far
far(v, u, v + u) :- edge(v, u), v < u.
far(v, w, m + n) :- far(v, u, m), far(u, w, n).
"""


@pytest.mark.parametrize("seed", seeds(6))
@pytest.mark.parametrize("best", [min, max])
def test_a_relation_keeps_its_best_last_column(best: Callable[..., int], seed: int) -> None:
    def expected(edges: set[Edge]) -> Rows:
        found = {(v, u): v + u for v, u in edges if v < u}
        for middle in range(5):
            for v in range(middle):
                for u in range(middle + 1, 5):
                    if (v, middle) in found and (middle, u) in found:
                        total = found[v, middle] + found[middle, u]
                        found[v, u] = best(total, found.get((v, u), total))
        return [(v, u, n) for (v, u), n in found.items()]

    text = LAST.format(best.__name__)
    play(text, seed, lambda r: (r.randrange(5), r.randrange(5)), expected)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (".decl a() btree_min", "relation 'a' has no columns"),
        (".decl a(x: symbol) btree_max", "the last column of 'a' is no number"),
        (".decl a(x: number) btree_max btree_min", "btree_m"),
        (".decl a(x: number) btree_min choice-domain x", "keeps some of its rows already"),
        (
            ".decl a(x: number) btree_min a(x) <= a(y) :- x < y.",
            "keeps the best rows of each key already",
        ),
    ],
)
def test_another_kind_of_best_rows_is_refused(text: str, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        Database().datalog(text)


def test_parts_of_a_target_are_witnesses() -> None:
    program = Database().datalog("""
        .decl edge(v: number, u: number) .input edge
        .decl least(v: number, u: number, n: number) .output least
        least(v, u, n) :- n = min v + u : { edge(v, u) }.
        .decl any(v: number, u: number) .output any
        any(v, u) :- _ = min v + u : { edge(v, u) }, _ = v / 2.
        .decl own(v: number, n: number) .output own
        own(v, n) :- edge(v, _), n = max v * u : { edge(v, u) }.
        .decl both(u: number, n: number) .output both
        both(u, n) :- edge(v, _), v > 3, n = max v * u : { edge(v, u) }.
    """)
    views = {name: program[name].materialize() for name in program}
    table, row = program.tables["edge"], program.row("edge")
    table.add_all([row(3, 1), row(2, 2), row(4, 5), row(4, 2)])
    assert sorted(map(tuple, views["least"])) == [(2, 2, 4), (3, 1, 4)]
    assert sorted(map(tuple, views["any"])) == [(2, 2), (3, 1)]
    assert sorted(map(tuple, views["own"])) == [(2, 20), (3, 20), (4, 20)]
    assert sorted(map(tuple, views["both"])) == [(5, 20)]
    table.remove(row(3, 1))
    assert sorted(map(tuple, views["least"])) == [(2, 2, 4)]
    for view in views.values():
        view.verify()
