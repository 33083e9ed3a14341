"""Proofs of rows of random queries: each step is evaluated from scratch, heights are the least."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given

from reactive import (
    Count,
    Database,
    Max,
    PlanError,
    Sum,
    TableError,
    fixpoint,
    iterate,
    lattices,
)
from reactive.errors import TransactionError, VerificationError
from tests.budget import examples, seeds
from tests.random_queries.drawn import SEEDS, commit, draw


@given(seed=SEEDS)
@examples(1_000)
def test_each_step_of_each_proof_makes_its_row(seed: int) -> None:
    drawn = draw(seed, steps=3)
    db = Database()
    tables = drawn.open(db)
    view = drawn.relations(tables)[0].materialize()
    for made in drawn.script():
        commit(db, tables, made)
        for row, weight in list(view.zset().items())[:5]:
            if weight > 0:
                proof = view.why(row)
                assert proof.check() > 0
                assert proof.height >= max((p.height for p in proof.premises), default=0)


def closure(edges: Any) -> Any:
    return fixpoint(
        lambda reach: edges.union(
            reach.join(edges, on=lambda p, e: p[1] == e[0]).select(lambda p, e: (p[0], e[1]))
        )
    )


def distances(edges: set[tuple[int, int]], start: int) -> dict[int, int]:
    """The number of edges to each node, by a search in breadth."""
    found: dict[int, int] = {}
    layer, steps = {start}, 0
    while layer:
        steps += 1
        layer = {b for a, b in edges if a in layer} - found.keys()
        found |= dict.fromkeys(layer, steps)
    return found


@pytest.mark.parametrize("seed", seeds(60))
def test_the_height_of_a_path_is_its_length(seed: int) -> None:
    random = Random(seed)
    db = Database()
    edges = db.table(tuple[int, int], name="edges")
    reach = closure(edges).materialize()
    for _ in range(30):
        edge = random.randrange(7), random.randrange(7)
        if edge in edges and random.random() < 0.5:
            edges.discard(edge)
        else:
            edges.add(edge)
        start = random.randrange(7)
        for end, steps in distances(set(edges), start).items():
            proof = reach.why((start, end))
            assert (proof.height, len(proof.facts())) == (steps, steps)
            proof.check()


def test_all_proofs_are_those_of_all_simple_paths() -> None:
    db = Database()
    edges = db.table(tuple[int, int], name="edges")
    edges.add_all([(1, 2), (2, 4), (1, 3), (3, 4), (2, 3)])
    reach = closure(edges).materialize()
    found = {tuple(sorted(row for _, row in proof.facts())) for proof in reach.whys((1, 4))}
    assert found == {
        ((1, 2), (2, 4)),
        ((1, 3), (3, 4)),
        ((1, 2), (2, 3), (3, 4)),
    }


def test_a_row_of_a_lattice_is_shown_from_the_values_that_are_joined() -> None:
    db = Database()
    edges = db.table(tuple[int, int], name="edges")
    marks = db.table(tuple[int, frozenset[str]], name="marks")
    seen = fixpoint(
        lambda seen: marks.union(
            edges.join(seen, on=lambda e, s: e[0] == s[0]).select(lambda e, s: (e[1], s[1]))
        ),
        keep=lattices.union(lambda row: row[1]),
        by=lambda row: row[0],
    ).materialize("seen")
    edges.add_all([(1, 2), (2, 1), (2, 3)])
    marks.add_all([(1, frozenset("a")), (2, frozenset("b"))])
    for row in seen:
        proof = seen.why(row)
        proof.check()
        assert {mark for name, (_, mark) in proof.facts() if name == "marks"} == {
            frozenset("a"),
            frozenset("b"),
        }


def test_the_loop_of_an_iteration_is_shown_round_by_round() -> None:
    db = Database()
    numbers = db.table(int, name="numbers")
    numbers.add(1)
    doubled = iterate(lambda rows: rows.select(lambda n: 2 * n), start=numbers, times=3)
    view = doubled.materialize()
    proof = view.why(8)
    assert (proof.height, proof.facts(), proof.check() > 3) == (4, [("numbers", 1)], True)


def test_groups_have_their_first_members_and_extremes_a_witness() -> None:
    db = Database()
    sales = db.table(tuple[str, int], name="sales")
    sales.add_all([("a", n) for n in range(15)])
    counts = sales.group_by(lambda s: s[0]).aggregate(Count(), Sum(lambda s: s[1])).materialize()
    proof = counts.why("a")
    assert [p.kind for p in proof.premises] == ["fact"] * 10 + ["more"]
    assert "... 5 more" in str(proof) and "15 rows" in str(proof)
    proof.check()
    largest = sales.group_by(lambda s: s[0]).aggregate(Max(lambda s: s[1])).materialize()
    assert largest.why("a").facts() == [("sales", ("a", 14))]


def test_the_place_in_an_order_is_told() -> None:
    db = Database()
    words = db.table(str, name="words")
    words.add_all(["to", "be", "or", "not", "that"])
    ordered = words.order_by(lambda w: w).limit(4).materialize()
    proof = ordered.why("or")
    assert "third of 5" in str(proof)
    proof.check()


def test_sql_and_datalog_have_proofs() -> None:
    db = Database()
    orders = db.table(tuple[int, str], name="orders")
    orders.add_all([(1, "a"), (2, "b")])
    db.execute("create table towns (name text, zip int)")
    db.execute("insert into towns values ('a', 7)")
    missing = db.sql(
        "select name from towns t where not exists (select 1 from towns u where u.zip > t.zip)"
    ).materialize("missing")
    (row,) = missing
    proof = missing.why(row)
    proof.check()
    assert [absent.name for absent in proof.absences()] == ["towns"]
    program = db.datalog(
        ".decl step(x: number, y: number) .input step .decl far(x: number) .output far "
        "far(0). far(y) :- far(x), step(x, y)."
    )
    far = program["far"].materialize("far")
    step = program.row("step")
    program.tables["step"].add_all([step(n, n + 1) for n in range(4)])
    proof = far.why(program.row("far")(4))
    assert proof.height == 5 and proof.check() > 5


QUESTIONS: dict[str, tuple[Callable[[Any, Any], Any], type[Exception], str]] = {
    "no such row": (lambda view, table: view.why("x"), PlanError, "why_not"),
    "a row that is there": (lambda view, table: view.why_not("to"), PlanError, "is there"),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_errors_tell_what_to_ask_instead(name: str) -> None:
    ask, kind, text = QUESTIONS[name]
    words = Database().table(str, name="words")
    words.add("to")
    view = words.select(lambda w: w).materialize()
    with pytest.raises(kind, match=text):
        ask(view, words)


def test_a_proof_is_of_its_version() -> None:
    db = Database()
    words = db.table(str, name="words")
    words.add("to")
    view = words.select(len).materialize()
    proof = view.why(2)
    words.add("be")
    with pytest.raises(VerificationError, match="changed since"):
        proof.check()
    with db.transaction():
        words.add("or")
        with pytest.raises(TransactionError, match="transaction is open"):
            view.why(2)


def test_a_stream_without_rows_is_refused() -> None:
    db = Database()
    events = db.table(int, name="events", stored=False)
    view = events.select(lambda n: n + 1).materialize()
    events.add(1)
    with pytest.raises(TableError, match="not stored"):
        view.why(2)


def test_texts_of_a_proof_have_all_of_it() -> None:
    db = Database()
    edges = db.table(tuple[int, int], name="edges")
    edges.add_all([(1, 2), (2, 3)])
    proof = closure(edges).materialize("reach").why((1, 3))
    assert str(proof).splitlines()[1:] == [
        "├─ reach (1, 2)",
        "│  └─ edges (1, 2)   fact",
        "└─ edges (2, 3)      fact",
    ]
    found = proof.to_dict()
    assert found["name"] == "reach" and found["premises"][1]["row"] == "(2, 3)"
    assert proof.mermaid().count("-->") == proof.dot().count("->") == 3
    assert "edges (2, 3)" in proof._repr_html_()
    flow = proof.to_sarif(lambda row: ("graph.txt", row[0]))
    assert [
        step["location"]["physicalLocation"]["region"]["startLine"]
        for step in flow["threadFlows"][0]["locations"]
    ] == [2, 1, 1, 1]


def test_a_branch_that_does_not_make_the_row_is_in_no_proof() -> None:
    db = Database()
    a, b, c = (db.table(int, name=name) for name in "abc")
    for table in (a, b, c):
        table.add(1)
    view = a.anti_join(b, on=lambda x, y: x == y).union(c).materialize()
    assert [proof.facts() for proof in view.whys(1)] == [[("c", 1)]]
    b.add(2)
    equal = a.join(b, on=lambda x, y: x == y)
    less = c.join(b, on=lambda x, y: x < y)
    pairs = equal.union(less).materialize()
    assert [proof.facts() for proof in pairs.whys((1, 2))] == [[("c", 1), ("b", 2)]]


@pytest.mark.parametrize("seed", seeds(40))
def test_the_height_is_the_least_where_proofs_branch(seed: int) -> None:
    random = Random(seed)
    db = Database()
    edges = db.table(tuple[int, int], name="edges")
    joined = fixpoint(
        lambda reach: edges.union(
            reach.join(reach, on=lambda p, q: p[1] == q[0]).select(lambda p, q: (p[0], q[1]))
        )
    ).materialize()
    edges.add_all({(n, n + 1) for n in range(8)} | {(random.randrange(9), random.randrange(9))})
    least = dict.fromkeys(edges, 1)
    for height in range(2, 12):
        found = {
            (one[0], other[1]): height
            for one in least
            for other in least
            if one[1] == other[0] and (one[0], other[1]) not in least
        }
        least |= found
    assert least.keys() == set(joined)
    for pair, height in least.items():
        proof = joined.why(pair)
        assert proof.height == height
        proof.check()
