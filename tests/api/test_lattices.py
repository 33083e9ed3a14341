"""Recursion over lattices equals a worklist by hand after every commit, or is an error."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable
from contextlib import nullcontext, suppress
from random import Random
from typing import Any, ClassVar, NamedTuple

import pytest
from hypothesis import strategies as st

from reactive import Database, FixpointError, Max, PlanError, Relation, fixpoint, iterate, lattices
from reactive.lattices import TOP, FrozenDict, Lattice, check, flat, interval, largest, union
from tests.api.lattice_programs import EXAMPLES, KINDS, Example, Facts, histories, tables_of
from tests.budget import stride
from tests.errors.golden import refused

HISTORIES = range(12)[:: stride(1, 3)]
COMMITS = 10


def test_top_is_one_object_in_copies() -> None:
    assert pickle.loads(pickle.dumps(TOP)) is TOP
    assert f"{TOP} {TOP!r}" == "TOP TOP"


@pytest.mark.parametrize("seed", HISTORIES)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_a_program_equals_its_worklist_after_every_commit(example: Example, seed: int) -> None:
    random = Random(seed)
    db = Database(optimize=seed % 3 > 0, strict=seed % 4 == 1)
    tables = tables_of(db)
    view = example.query(tables).materialize()
    facts: Facts = {kind: set() for kind in KINDS}
    nodes = random.choice((3, 5, 9))
    start = random.choice((0, nodes, 3 * nodes))
    for changes in histories(example, random, nodes=nodes, start=start, commits=COMMITS):
        before = sorted(map(repr, view))
        if random.random() < 0.3:
            with pytest.raises(ZeroDivisionError), db.transaction():
                _apply(changes, tables)
                1 / 0  # noqa: B018
            assert sorted(map(repr, view)) == before
        with db.transaction():
            _apply(changes, tables)
        for is_new, kind, row in changes:
            (facts[kind].add if is_new else facts[kind].discard)(row)
        assert set(view) == example.by_hand(facts)
        assert len(view) == len(set(view))
    view.verify()
    with db.transaction():
        for table in tables.values():
            table.clear()
    assert (list(view), view.stats().rows) == ([], 0)


def _apply(changes: list[tuple[bool, str, Any]], tables: dict[str, Any]) -> None:
    for is_new, kind, row in changes:
        (tables[kind].add if is_new else tables[kind].remove)(row)


class Edge(NamedTuple):
    a: int
    b: int


class Level(NamedTuple):
    n: int
    v: Any


class Change(NamedTuple):
    """A row of a table of values."""

    old: int
    new: int


class Node(NamedTuple):
    n: int


Rel = Relation[Any]
Query = Callable[[Any, Any, Any, Any], Rel]


def _by(row: Any) -> Any:
    return row.n


def _levels(step: Callable[[Rel], Rel]) -> Rel:
    return fixpoint(step, keep=largest(lambda r: r.v), by=_by)


def _up(states: Rel, edges: Rel) -> Rel:
    return states.join(edges, on=lambda s, e: s.n == e.a).select(
        lambda s, e: Level(e.b, min(s.v + 1, 6))
    )


def by_a_table_of_values(edges: Rel, facts: Rel, changes: Rel, nodes: Rel) -> Rel:
    return _levels(
        lambda s: facts.union_all(
            s.join(edges, on=lambda s, e: s.n == e.a)
            .join(changes, on=lambda s, e, m: s.v == m.old)
            .select(lambda s, e, m: Level(e.b, m.new))
        )
    )


def through_a_set_of_values(edges: Rel, facts: Rel, changes: Rel, nodes: Rel) -> Rel:
    def step(s: Rel, c: Rel) -> tuple[Rel, Rel]:
        changed = c.join(changes, on=lambda c, m: c.v == m.old).select(
            lambda c, m: Level(c.n, max(m.new, c.v))
        )
        moved = s.join(edges, on=lambda s, e: s.n == e.a).select(lambda s, e: Level(e.b, s.v))
        return facts.union_all(changed).union_all(c), moved

    return fixpoint(step, keep=(largest(lambda r: r.v), None), by=(_by, None))[0]


def under_a_negation(edges: Rel, facts: Rel, changes: Rel, nodes: Rel) -> Rel:
    return _levels(
        lambda s: facts.union_all(_up(s.anti_join(nodes, on=lambda s, k: s.n == k.n), edges))
    )


def under_a_negation_of_values(edges: Rel, facts: Rel, changes: Rel, nodes: Rel) -> Rel:
    return _levels(
        lambda s: facts.union_all(_up(s.anti_join(nodes, on=lambda s, k: s.v < k.n), edges))
    )


def beside_a_recursive_set(place: int) -> Query:
    def query(edges: Rel, facts: Rel, changes: Rel, nodes: Rel) -> Rel:
        def step(s: Rel, r: Rel) -> tuple[Rel, Rel]:
            known = s.semi_join(r, on=lambda s, r: r.n == s.n)
            reached = r.join(edges, on=lambda r, e: r.n == e.a).select(lambda r, e: Node(e.b))
            here = s.select(lambda s: Node(s.n))
            return facts.union_all(_up(known, edges)), here.union(reached).union(nodes)

        both = fixpoint(step, keep=(largest(lambda r: r.v), None), by=(_by, None))
        return both[place]

    return query


def of_two_lattices(edges: Rel, facts: Rel, changes: Rel, nodes: Rel) -> Rel:
    def step(s: Rel, t: Rel) -> tuple[Rel, Rel]:
        both = s.join(t, on=lambda s, t: s.n == t.n).join(edges, on=lambda s, t, e: s.n == e.a)
        made = both.select(lambda s, t, e: Level(e.b, max(t.v, min(s.v, 4))))
        return facts.union_all(_up(t, edges)), made.union_all(facts).union_all(s)

    keep = largest(lambda r: r.v)
    return fixpoint(step, keep=(keep, keep), by=(_by, _by))[1]


def beside_the_best(edges: Rel, facts: Rel, changes: Rel, nodes: Rel) -> Rel:
    def step(s: Rel, b: Rel) -> tuple[Rel, Rel]:
        return facts.union_all(_up(b, edges)), s.union_all(facts)

    keep = (largest(lambda r: r.v), Max(lambda r: r.v))
    return fixpoint(step, keep=keep, by=(_by, _by))[1]


def of_the_best_by_a_table_of_values(edges: Rel, facts: Rel, changes: Rel, nodes: Rel) -> Rel:
    def step(s: Rel, b: Rel) -> tuple[Rel, Rel]:
        made = b.join(edges, on=lambda b, e: b.n == e.a).join(
            changes, on=lambda b, e, m: b.v == m.old
        )
        return facts.union_all(made.select(lambda b, e, m: Level(e.b, m.new))), s

    keep = (largest(lambda r: r.v), Max(lambda r: r.v))
    return fixpoint(step, keep=keep, by=(_by, _by))[1]


def of_the_best_of_sums(edges: Rel, facts: Rel, changes: Rel, nodes: Rel) -> Rel:
    return fixpoint(
        lambda s: facts.union_all(_up(s, edges)).union_all(
            s.join(s, on=lambda s, t: s.n + 1 == t.n)
            .join(edges, on=lambda s, t, e: t.n == e.a)
            .select(lambda s, t, e: Level(e.b, min(s.v + t.v, 9)))
        ),
        keep=Max(lambda r: r.v),
        by=_by,
    )


def with_limits_of_values(edges: Rel, facts: Rel, changes: Rel, nodes: Rel) -> Rel:
    def step(s: Rel) -> Rel:
        near = s.join(edges, on=lambda s, e: s.n == e.a and s.v >= e.b - 1)
        return facts.union_all(near.select(lambda s, e: Level(e.b, min(s.v + 1, 6))))

    return _levels(step)


def joined_with_itself(edges: Rel, facts: Rel, changes: Rel, nodes: Rel) -> Rel:
    def step(s: Rel) -> Rel:
        pairs = s.join(s, on=lambda s, t: s.n + 1 == t.n).join(edges, on=lambda s, t, e: s.n == e.a)
        return facts.union_all(pairs.select(lambda s, t, e: Level(e.b, min(s.v + t.v, 9))))

    return _levels(step)


def around_a_closure(edges: Rel, facts: Rel, changes: Rel, nodes: Rel) -> Rel:
    def step(s: Rel) -> Rel:
        start = s.select(lambda s: Edge(s.n, s.v))
        spread = fixpoint(
            lambda r: start.union(
                r.join(edges, on=lambda r, e: r.a == e.a).select(lambda r, e: Edge(e.b, r.b))
            )
        )
        return facts.union_all(spread.select(lambda r: Level(r.a, min(r.b + 1, 5))))

    return _levels(step)


def of_elements_of_sets(edges: Rel, facts: Rel, changes: Rel, nodes: Rel) -> Rel:
    def step(s: Rel) -> Rel:
        elements = s.unnest(lambda s: s.v).join(edges, on=lambda s, x, e: x == e.a)
        return (
            facts.select(lambda f: Level(f.n, frozenset({f.v})))
            .union_all(elements.select(lambda s, x, e: Level(s.n, frozenset({e.b}))))
            .union_all(
                s.join(edges, on=lambda s, e: s.n == e.a).select(lambda s, e: Level(e.b, s.v))
            )
        )

    return fixpoint(step, keep=union(lambda r: r.v), by=_by)


QUERIES: tuple[tuple[str, Query], ...] = (
    ("a table of values", by_a_table_of_values),
    ("a set of values", through_a_set_of_values),
    ("a negation", under_a_negation),
    ("a negation of values", under_a_negation_of_values),
    ("a set: its lattice", beside_a_recursive_set(0)),
    ("a set: its rows", beside_a_recursive_set(1)),
    ("two lattices", of_two_lattices),
    ("the best", beside_the_best),
    ("the best by a table of values", of_the_best_by_a_table_of_values),
    ("the best of sums", of_the_best_of_sums),
    ("limits", with_limits_of_values),
    ("itself", joined_with_itself),
    ("a closure", around_a_closure),
    ("elements", of_elements_of_sets),
)
OF_TABLES = (by_a_table_of_values, through_a_set_of_values, of_the_best_by_a_table_of_values)


@pytest.mark.parametrize("seed", HISTORIES)
@pytest.mark.parametrize("query", [query for _, query in QUERIES], ids=[n for n, _ in QUERIES])
def test_a_mixed_recursion_equals_its_evaluation_or_is_an_error(query: Query, seed: int) -> None:
    """Tables of values may not be monotone: then a commit may be refused, nothing else."""
    random = Random(seed)
    db = Database(optimize=seed % 3 > 0, strict=seed % 4 == 1)
    tables = [db.table(kind, name=kind.__name__) for kind in (Edge, Level, Change, Node)]
    view = query(*tables).materialize()
    is_monotone, nodes = query not in OF_TABLES, random.choice((3, 5, 8))
    present: list[list[Any]] = [[], [], [], []]
    for number in range(COMMITS):
        before = sorted(map(repr, view))
        changes = []
        for _ in range(2 * nodes if number == 0 else random.choice((1, 1, 2, 4))):
            place = random.choice((0, 0, 0, 1, 2, 3))
            rows = present[place]
            if rows and number and random.random() < 0.5:
                changes.append((False, place, rows.pop(random.randrange(len(rows)))))
                continue
            row = _random_row(random, place, nodes, rises=seed % 3 > 0)
            if row not in rows:
                rows.append(row)
                changes.append((True, place, row))
        try:
            with db.transaction():
                for is_new, place, row in changes:
                    (tables[place].add if is_new else tables[place].remove)(row)
        except FixpointError as error:
            assert not is_monotone
            assert "is not monotone" in str(error)
            assert sorted(map(repr, view)) == before
            for is_new, place, row in reversed(changes):
                (present[place].remove if is_new else present[place].append)(row)
        _check_solution(view, is_monotone=is_monotone)
    with db.transaction():
        for table in tables:
            table.clear()
    assert (list(view), view.stats().rows) == ([], 0)


def _check_solution(view: Any, *, is_monotone: bool) -> None:
    """Compare with the evaluation from scratch, which may refuse a step that is not monotone."""
    with nullcontext() if is_monotone else suppress(FixpointError):
        view.verify()


def _random_row(random: Random, place: int, nodes: int, *, rises: bool) -> Any:
    some, value = random.randrange(nodes), random.randrange(6)
    match place:
        case 0:
            return Edge(some, random.randrange(nodes))
        case 1:
            return Level(some, value)
        case 2:
            return Change(value, max(value, random.randrange(6)) if rises else some)
        case _:
            return Node(some)


@pytest.mark.parametrize("query", [by_a_table_of_values, of_the_best_by_a_table_of_values])
def test_a_value_that_no_round_justifies_falls_with_a_row_paired_by_an_earlier_value(
    query: Query,
) -> None:
    """The table maps 0 to 1 to 2 to 2; then 1 to 1: the value 2 would keep itself alive."""
    db = Database()
    edges, facts, changes, nodes = (
        db.table(kind, name=kind.__name__) for kind in (Edge, Level, Change, Node)
    )
    view = query(edges, facts, changes, nodes).materialize()
    with db.transaction():
        edges.add(Edge(0, 0))
        facts.add(Level(0, 0))
        changes.add_all([Change(0, 1), Change(1, 2), Change(2, 2)])
    assert list(view) == [Level(0, 2)]
    changes.update(Change(1, 2), Change(1, 1))
    assert list(view) == [Level(0, 1)]
    view.verify()


def test_a_step_that_is_not_monotone_is_an_error_that_names_the_key() -> None:
    db = Database()
    facts = db.table(Level, name="facts")
    rows: Rel = facts
    view = fixpoint(
        lambda s: rows.union_all(
            s.where(lambda s: s.v < 3).select(lambda s: Level(s.n + 1, s.v))
        ).union_all(s.where(lambda s: s.n == 1).select(lambda s: Level(0, 7))),
        keep=largest(lambda r: r.v),
        by=_by,
    ).materialize()
    facts.add(Level(5, 9))
    with refused(
        """
        FixpointError: fixpoint 's' is not monotone: it has Level(n=1, v=2)
          of the rows as they are now, the step makes no row of that key
          transaction rolled back: no table or view changed
          a larger value must lead to as large or larger values, never to fewer rows
        """
    ):
        facts.add(Level(0, 2))
    assert (list(view), list(facts)) == ([Level(5, 9)], [Level(5, 9)])


def test_a_value_that_rises_without_end_is_stopped() -> None:
    db = Database()
    facts = db.table(Level, name="facts")
    view = fixpoint(
        lambda s: facts.union_all(s.select(lambda s: Level(s.n, s.v + 1))),
        keep=largest(lambda r: r.v),
        by=_by,
        max_rounds=50,
    ).materialize()
    with pytest.raises(FixpointError, match="has not come to an end after 50 rounds"):
        facts.add(Level(0, 0))
    assert list(view) == []


class Mark(int):
    """A number that counts its joins, and raises from one of them on."""

    calls: ClassVar[int] = 0
    at: ClassVar[int] = 0
    error: ClassVar[type[BaseException]] = ValueError

    def joined(self, other: int) -> int:
        Mark.calls += 1
        if 0 < Mark.at <= Mark.calls:
            raise Mark.error
        return Mark(max(self, other))

    def risen(self) -> int:
        return Mark(min(self + 1, 6))


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_the_state_is_restored_if_a_join_raises_at_any_call(error: type[BaseException]) -> None:
    Mark.at, Mark.error = 0, error
    db = Database()
    edges, facts = db.table(Edge, name="edges"), db.table(Level, name="facts")
    view = fixpoint(
        lambda s: facts.union_all(
            s.join(edges, on=lambda s, e: s.n == e.a).select(lambda s, e: Level(e.b, s.v.risen()))
        ),
        keep=Lattice(lambda a, b: a.joined(b), lambda r: r.v),
        by=_by,
    ).materialize()
    with db.transaction():
        edges.add_all([Edge(n, (n + 1) % 5) for n in range(5)])
        facts.add_all([Level(0, Mark(0)), Level(2, Mark(1))])
    start, failed = sorted(view), 0
    for number in range(1, 200):
        Mark.at, Mark.calls = number, 0
        try:
            with db.transaction():
                facts.remove(Level(0, Mark(0)))
                facts.add(Level(3, Mark(2)))
                edges.remove(Edge(2, 3))
                edges.add(Edge(2, 4))
            break
        except error:
            failed += 1
        Mark.at = 0
        assert sorted(view) == start
        view.verify()
    assert failed > 5
    Mark.at = 0
    assert sorted(view) != start
    view.verify()


class Other(NamedTuple):
    n: int
    m: int
    v: int


def test_what_by_and_of_must_read() -> None:
    db = Database()
    rows = db.table(Other, name="rows")
    for keep, by, message in (
        (largest(), lambda r: r.n, "does not say which field of a row has the value"),
        (largest(lambda r: r.v + 1), lambda r: (r.n, r.m), "must read one field"),
        (largest(lambda r: r.v), lambda r: r.n, "must read all fields of the row but 'v'"),
        (largest(lambda r: r.v), lambda r: (r.n, r.v), "which is the value that is joined"),
        (largest(lambda r: r.v), lambda r: r.n + r.m, "must read fields of the row"),
    ):
        with pytest.raises(PlanError, match=message):
            fixpoint(lambda s: rows.union_all(s), keep=keep, by=by)
    view = fixpoint(
        lambda s: rows.union_all(s), keep=largest(), by=lambda r: (r[0], r.m)
    ).materialize()
    rows.add_all([Other(1, 1, 5), Other(1, 1, 7), Other(1, 2, 3)])
    assert sorted(view) == [(1, 1, 7), (1, 2, 3)]


def test_rows_of_unknown_classes_must_agree_outside_of_the_value() -> None:
    db = Database()
    rows = db.table(tuple, name="rows")
    view = fixpoint(
        lambda s: rows.union_all(s), keep=largest(lambda r: r[1]), by=lambda r: r[0]
    ).materialize()
    rows.add_all([(1, 5), (1, 7), (2, 3)])
    assert sorted(view) == [(1, 7), (2, 3)]
    with pytest.raises(ValueError, match="differ in more than the value"):
        rows.add((2, 4, "more"))
    assert sorted(view) == [(1, 7), (2, 3)]


def test_explain_names_the_lattice_and_the_key() -> None:
    db = Database()
    rows = db.table(Level, name="rows")
    query = fixpoint(lambda s: rows.union_all(s), keep=flat(lambda r: r.v), by=lambda r: r.n)
    assert "fixpoint s (join flat(r.v) by r.n)" in str(query.explain())


def test_nan_and_none_are_constants_like_others() -> None:
    db = Database()
    edges, facts = db.table(Edge, name="edges"), db.table(Level, name="facts")
    view = fixpoint(
        lambda s: facts.union_all(
            s.join(edges, on=lambda s, e: s.n == e.a).select(lambda s, e: Level(e.b, s.v))
        ),
        keep=flat(lambda s: s.v),
        by=_by,
    ).materialize()
    edges.add_all([Edge(0, 1), Edge(1, 0)])
    for value in (float("nan"), None):
        facts.add_all([Level(0, value), Level(1, value)])
        assert repr(sorted(view)) == f"[Level(n=0, v={value}), Level(n=1, v={value})]"
        view.verify()
        facts.add(Level(0, 1))
        assert sorted(view) == [Level(0, TOP), Level(1, TOP)]
        view.verify()
        facts.clear()


def test_a_recursion_over_a_lattice_inside_of_iterate() -> None:
    db = Database()
    edges, facts = db.table(Edge, name="edges"), db.table(Level, name="facts")
    none = facts.where(lambda f: False)
    view = iterate(
        lambda before: _levels(lambda s: facts.union_all(before).union_all(_up(s, edges))),
        none,
        times=2,
    ).materialize()
    edges.add_all([Edge(0, 1), Edge(1, 0), Edge(1, 2)])
    facts.add_all([Level(0, 1), Level(2, 3)])
    assert sorted(view) == [Level(n, 6) for n in range(3)]
    view.verify()
    edges.remove(Edge(1, 0))
    assert sorted(view) == [Level(0, 1), Level(1, 2), Level(2, 3)]
    view.verify()


def test_equal_lattices_share_one_operator() -> None:
    db = Database()
    rows = db.table(Level, name="rows")

    def ask() -> Any:
        return fixpoint(
            lambda s: rows.union_all(s),
            keep=interval(lambda r: r.v, thresholds=[1, 2]),
            by=lambda r: r.n,
        )

    one, other = ask().materialize(), ask().materialize()
    rows.add(Level(1, (0, 0)))
    assert list(one) == list(other)
    assert ask().plan.best == ask().plan.best


def _widened_badly(a: int) -> int:
    return 9 if a == 1 else a


def test_the_laws_of_lattices_are_checked() -> None:
    broken: Lattice[Any]
    sets = [frozenset(s) for s in ("", "a", "ab", "bc")]
    for lattice, values in (
        (flat(), [1, 2, TOP]),
        (lattices.smallest(), [1, 2, 3]),
        (largest(), [1, 2, 3]),
        (union(), sets),
        (lattices.intersection(), sets),
        (lattices.is_any(), [True, False]),
        (lattices.is_all(), [True, False]),
        (lattices.common_prefix(), ["ab", "abc", "b", ""]),
        (interval(), [(0, 1), (1, 1), (-2, 5)]),
        (interval(thresholds=[]), [(0, 1), (1, 1), (-2, 5)]),
        (interval(thresholds=[0, 2]), [(0, 1), (1, 1), (-2, 5)]),
        (lattices.product(flat(), interval(thresholds=[1])), [(1, (0, 1)), (2, (1, 1))]),
        (
            lattices.mapping(union()),
            [FrozenDict({}), FrozenDict({"k": sets[1]}), FrozenDict({"k": sets[2], "l": sets[3]})],
        ),
    ):
        check(lattice, values)
        check(lattice)
        check(lattice, st.sampled_from(values), examples=20)
    for broken, problem in (
        (Lattice(lambda a, b: a + b), "not idempotent"),
        (Lattice(lambda a, b: a), "not commutative"),
        (Lattice(lambda a, b: abs(a - b) or a), "not associative"),
        (Lattice(max, bottom=2), "not neutral for its bottom"),
        (Lattice(max, leq=lambda a, b: a >= b), "not that of its leq"),
        (Lattice(max, widen=lambda a: a - 1), "not as large"),
        (Lattice(max, widen=lambda a: a + 1), "not idempotent"),
        (Lattice(max, widen=_widened_badly), "not monotone"),
    ):
        with pytest.raises(PlanError, match=problem):
            check(broken, [1, 2, 3])
        with pytest.raises(PlanError, match=problem):
            check(broken, st.integers(0, 3))


def test_functions_are_checked_to_be_monotone() -> None:
    check(lattices.largest(), [1, 5], functions=[lambda n: n + 1])
    for values in ([1, 5], st.integers(), None):
        with pytest.raises(PlanError, match=r"neg is not monotone: of .* it makes .*\n.* larger"):
            check(lattices.largest(), values, functions=[operator.neg])
    with pytest.raises(PlanError, match="no values of the lattice 'max' are known"):
        check(Lattice(max))


def test_the_work_of_an_edit_does_not_depend_on_other_parts_of_the_program() -> None:
    def touched(parts: int) -> int:
        example = EXAMPLES[0]
        db = Database()
        tables = tables_of(db)
        view = example.query(tables).materialize()
        with db.transaction():
            for part in range(parts):
                tables["fact"].add(KINDS["fact"](10 * part, 1))
                for n in range(9):
                    tables["flow"].add(KINDS["flow"](10 * part + n, 10 * part + n + 1))
                tables["flow"].add(KINDS["flow"](10 * part + 9, 10 * part + 3))
        before = view.stats().touched
        tables["fact"].remove(KINDS["fact"](0, 1))
        tables["fact"].add(KINDS["fact"](0, 2))
        return view.stats().touched - before

    assert touched(50) == touched(2)


@pytest.mark.parametrize("keep", [largest(lambda r: r.v), Max(lambda r: r.v)])
def test_a_value_that_rose_in_many_rounds_falls_in_one_step(keep: Any) -> None:
    def touched(most: int) -> int:
        db = Database()
        edges, facts = db.table(Edge, name="edges"), db.table(Level, name="facts")
        view = fixpoint(
            lambda s: facts.union_all(
                s.join(edges, on=lambda s, e: s.n == e.a).select(
                    lambda s, e: Level(e.b, min(s.v + 1, most))
                )
            ),
            keep=keep,
            by=_by,
        ).materialize()
        with db.transaction():
            edges.add_all([Edge(0, 1), Edge(1, 2), Edge(2, 0)])
            facts.add(Level(0, 0))
        assert sorted(view) == [(n, most) for n in range(3)]
        before = view.stats().touched
        facts.remove(Level(0, 0))
        assert list(view) == []
        return view.stats().touched - before

    assert touched(1_000) == touched(10)
