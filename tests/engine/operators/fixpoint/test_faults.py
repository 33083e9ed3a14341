"""Whatever raises in a round: tables and views are as they were, and later commits are right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from reactive import Count, Database, Max, Min, fixpoint, iterate
from tests.budget import SEED, stride
from tests.engine.transactions.test_rollback import NEVER, Fuse
from tests.moody import Moods

Rel = Any


Make = Callable[[Fuse, Rel, Rel], Rel]


def small(fuse: Fuse) -> Any:
    return fuse(lambda r: r[0] < 5)


def outer(fuse: Fuse) -> Any:
    return fuse(lambda x, y: (x[0], y[1]))


def swap(fuse: Fuse) -> Any:
    return fuse(lambda r: (r[1], r[0]))


def on(fuse: Fuse) -> Any:
    return fuse(lambda x, y: x[1] == y[0])


def keys(fuse: Fuse) -> dict[str, Any]:
    return {"left_key": fuse(lambda r: r[1]), "right_key": fuse(lambda r: r[0])}


def both_ways(fuse: Fuse) -> Any:
    return fuse(lambda r: [r, (r[1], r[0])])


def by_key(fuse: Fuse, a: Rel, b: Rel) -> Rel:
    return fixpoint(lambda r: a.union(r.join(a, **keys(fuse)).select(outer(fuse))))


def by_predicate(fuse: Fuse, a: Rel, b: Rel) -> Rel:
    return fixpoint(lambda r: a.union(r.join(r, on=on(fuse)).select(outer(fuse))))


def mutual(fuse: Fuse, a: Rel, b: Rel) -> Rel:
    odd, even = fixpoint(
        lambda odd, even: (
            a.union(even.join(a, **keys(fuse)).select(outer(fuse))),
            odd.join(a, on=on(fuse)).select(outer(fuse)).where(small(fuse)),
        )
    )
    return odd.union(even)


def negation(fuse: Fuse, a: Rel, b: Rel) -> Rel:
    return fixpoint(
        lambda r: a.select(swap(fuse)).union(
            r.select_many(both_ways(fuse)).anti_join(b, on=on(fuse)).semi_join(a, **keys(fuse))
        )
    )


def elements(fuse: Fuse, a: Rel, b: Rel) -> Rel:
    return fixpoint(
        lambda r: b.union(
            r.unnest(both_ways(fuse)).where(on(fuse)).select(outer(fuse)).intersection(a)
        )
    )


def shortest(fuse: Fuse, a: Rel, b: Rel) -> Rel:
    node = fuse(lambda r: r[0])
    return fixpoint(
        lambda d: b.union(
            d.join(a, left_key=node, right_key=node).select(
                fuse(lambda d, e: (e[1], min(9, d[1] + 1)))
            )
        ),
        keep=Min(fuse(lambda r: r[1])),
        by=node,
    )


def widest(fuse: Fuse, a: Rel, b: Rel) -> Rel:
    """The best of one relation, and another that reads it."""
    wide, seen = fixpoint(
        lambda wide, seen: (
            b.union(
                wide.join(a, on=fuse(lambda d, e: d[0] == e[0])).select(
                    fuse(lambda d, e: (e[1], min(d[1], e[0] + 2)))
                )
            ),
            wide.select(fuse(lambda d: (d[0], 0))).union(
                seen.join(a, on=on(fuse)).select(outer(fuse))
            ),
        ),
        keep=(Max(fuse(lambda r: r[1])), None),
        by=(fuse(lambda r: r[0]), None),
    )
    return wide.union_all(seen)


def rounds(fuse: Fuse, a: Rel, b: Rel) -> Rel:
    return iterate(
        lambda r: r.join(a, **keys(fuse)).select(outer(fuse)).difference(b.select(swap(fuse))),
        a,
        times=3,
    )


def strata(fuse: Fuse, a: Rel, b: Rel) -> Rel:
    """Build a recursion over the difference of two recursions, and count its rows."""
    less = by_key(fuse, a, b).anti_join(elements(fuse, a, b), on=on(fuse))
    over = fixpoint(lambda r: b.union(r.join(less, **keys(fuse)).select(outer(fuse))))
    return over.group_by(fuse(lambda r: r[0])).aggregate(Count(), Max(fuse(lambda r: r[1])))


KINDS: dict[str, Make] = {
    make.__name__: make
    for make in (
        *(by_key, by_predicate, mutual, negation, elements),
        *(shortest, widest, rounds, strata),
    )
}
each = pytest.mark.parametrize("kind", KINDS)
modes = pytest.mark.parametrize("optimize", [True, False])


class Rig:
    """A view of a recursion whose callables may blow, over some rows, and a change of these."""

    def __init__(self, kind: str, *, optimize: bool) -> None:
        self.db, self.fuse = Database(optimize=optimize), Fuse()
        self.a, self.b = self.db.table(tuple, name="a"), self.db.table(tuple, name="b")
        self.relation = KINDS[kind](self.fuse, self.a, self.b)
        self.view: Any = self.relation.materialize()
        self.fill()
        self.change()  # the first one has indexes made, which stay
        self.change_back()
        self.version = self.db.version
        self.fuse.calls = 0

    def fill(self) -> None:
        with self.db.transaction():
            self.a.add_all([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (3, 4)])
            self.b.add_all([(0, 0), (4, 1)])

    def change(self) -> None:
        with self.db.transaction():
            self.a.add_all([(4, 0), (1, 1), (0, 5)])
            self.a.remove((1, 2))
            self.a.remove((3, 4))
            self.b.remove((4, 1))
            self.b.add_all([(2, 2), (0, 0)])

    def change_back(self) -> None:
        with self.db.transaction():
            self.a.remove_all([(4, 0), (1, 1), (0, 5)])
            self.a.add_all([(1, 2), (3, 4)])
            self.b.add((4, 1))
            self.b.remove_all([(2, 2), (0, 0)])

    def contents(self) -> list[Any]:
        return [Counter(dict(each.zset().items())) for each in (self.a, self.b, self.view)]

    def fails(self, change: Callable[[], None], at: int) -> bool:
        """Return True if a change raises at call `at`; it must then leave all state unchanged."""
        before, rows = self.contents(), self.view.stats().rows
        self.fuse.calls, self.fuse.at = 0, at
        try:
            change()
        except ZeroDivisionError as error:
            assert any("transaction rolled back" in note for note in error.__notes__)
            assert self.contents() == before, f"call {at}"
            assert self.view.stats().rows == rows, f"call {at}"
            return True
        finally:
            self.fuse.at = NEVER
        return False


def calls_of_a_change(kind: str, *, optimize: bool) -> int:
    rig = Rig(kind, optimize=optimize)
    rig.change()
    return rig.fuse.calls


@each
def test_the_change_reaches_many_callables(kind: str) -> None:
    assert min(calls_of_a_change(kind, optimize=optimize) for optimize in (True, False)) > 5


@pytest.mark.long
@each
@modes
def test_a_failure_at_any_callable_call_leaves_everything_as_it_was(
    kind: str, optimize: bool
) -> None:
    rig = Rig(kind, optimize=optimize)
    heard: list[Any] = []
    every = stride(1, share=4)
    with rig.view.subscribe(heard.append):
        for at in range(1 + SEED % every, calls_of_a_change(kind, optimize=optimize) + 1, every):
            assert rig.fails(rig.change, at)
        assert (heard, rig.db.version) == ([], rig.version)
        rig.change()
    rig.view.verify()


@pytest.mark.long
@each
@modes
def test_commits_after_a_failure_at_any_call_are_right(kind: str, optimize: bool) -> None:
    rig = Rig(kind, optimize=optimize)
    before = rig.contents()
    rig.change()
    after = rig.contents()
    rig.view.verify()
    rig.change_back()
    for at in range(1, calls_of_a_change(kind, optimize=optimize) + 1, stride(1, 10)):
        for change, wanted in ((rig.change, after), (rig.change_back, before)):
            if rig.fails(change, at):
                change()
            assert rig.contents() == wanted, f"call {at}"
    rig.a.clear()
    rig.b.clear()
    assert (len(rig.view), rig.view.stats().rows) == (0, 0)


@each
@modes
def test_a_view_that_cannot_be_made_leaves_nothing_behind(kind: str, optimize: bool) -> None:
    rig = Rig(kind, optimize=optimize)
    wanted = Counter(dict(rig.view.zset().items()))
    rig.view.close()
    rig.fuse.calls = 0
    rig.relation.materialize()
    for at in {1, rig.fuse.calls // 2 + 1, rig.fuse.calls}:
        rig.fuse.calls, rig.fuse.at = 0, at
        with pytest.raises(ZeroDivisionError):
            rig.relation.materialize()
        assert (rig.db.views(), len(rig.db._engine.graph._nodes)) == ([], 0)
    rig.fuse.at = NEVER
    assert Counter(dict(rig.relation.materialize().zset().items())) == wanted


class Moody(Moods):
    """A moody value that also has an order."""

    def __hash__(self) -> int:
        self.mood()
        return self.value % 3

    def __lt__(self, other: Moody) -> bool:
        self.mood()
        return self.value < other.value


FOLLOWS: dict[str, Any] = {"left_key": lambda x: x[1], "right_key": lambda y: y[0]}


def longer(r: Rel, a: Rel) -> Rel:
    return r.join(a, **FOLLOWS).select(lambda x, y: (x[0], y[1]))


MOODY: dict[str, Callable[[Rel], Rel]] = {
    "closure": lambda a: fixpoint(lambda r: a.union(longer(r, a))),
    "doubling": lambda a: fixpoint(lambda r: a.union(longer(r, r))),
    "best": lambda a: fixpoint(
        lambda d: a.select(lambda e: (0, e[0])).union(
            d.join(a, **FOLLOWS).select(lambda d, e: (d[0] + 1, e[1]))
        ),
        keep=Min(lambda d: d[0]),
        by=lambda d: d[1],
    ),
    "rounds": lambda a: iterate(lambda r: r.intersection(a).union(longer(r, a)), a, times=2),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", MOODY)
def test_a_row_that_raises_at_any_hash_or_comparison_leaves_all_agreed(kind: str) -> None:
    for at in range(1, 10_000, stride(1, 6)):
        Moody.at = 0
        db = Database()
        table = db.table(tuple, name="a")
        view = MOODY[kind](table).materialize()
        one, two, three = Moody(1), Moody(2), Moody(4)
        table.add_all([(one, two), (two, one)])
        before = len(view)
        Moody.calls, Moody.at = 0, at
        try:
            with db.transaction():
                table.add((two, three))
                table.remove((one, two))
            is_done = Moody.calls < at
        except ValueError:
            is_done = False
            assert len(view) == before
            assert Counter(table) == Counter([(one, two), (two, one)])
        Moody.at = 0
        table.add((three, one))
        view.verify()
        table.remove((two, one))
        view.verify()
        table.clear()
        assert (len(view), view.stats().rows) == (0, 0)
        if is_done:
            return
    raise AssertionError("the change does not come to its end")


@modes
def test_no_callable_is_asked_of_a_row_that_is_neither_there_before_nor_after(
    optimize: bool,
) -> None:
    """The start is deleted in the commit that inserts its edge: no callable may read that pair."""
    db = Database(optimize=optimize)
    starts, edges = db.table(int, name="starts"), db.table(tuple, name="edges")
    seen = fixpoint(
        lambda seen: starts.union(
            seen.join(edges, on=lambda n, e: n == e[0]).select(lambda n, e: 12 // e[1])
        )
    ).materialize()
    starts.add(1)
    edges.add((1, 2))
    assert sorted(seen) == [1, 6]
    with db.transaction():
        starts.update(1, 2)
        edges.add((1, 0))
    assert sorted(seen) == [2]
    with pytest.raises(ZeroDivisionError):
        starts.add(1)
    assert sorted(seen) == [2]
    seen.verify()


@modes
@pytest.mark.parametrize("shared", [False, True])
def test_nor_where_what_a_negation_leaves_out_goes_with_what_it_left_out(
    optimize: bool, shared: bool
) -> None:
    """A row and the row that holds it back are deleted together; no callable may read the row.

    If `shared`, another join of the recursion reads the index of `held`.
    """
    db = Database(optimize=optimize)
    starts, held = db.table(int, name="starts"), db.table(int, name="held")
    seen = fixpoint(
        lambda seen: starts.union(
            seen.anti_join(held, on=lambda n, h: n == h).select(lambda n: 12 // n)
        ).union(
            seen.join(held, on=lambda n, h: n == h and h > 5).select(lambda n, h: -n)
            if shared
            else starts
        )
    ).materialize()
    with db.transaction():
        starts.add_all([0, 5])
        held.add_all([0, 5, 6])
    assert sorted(seen) == [0, 5]
    with db.transaction():
        starts.remove(0)
        held.remove(0)
    assert sorted(seen) == [5]
    with db.transaction():
        starts.add_all([0, 6])
        held.add(0)
        held.remove(5)
    shown = sorted(seen)
    seen.verify()
    with pytest.raises(ZeroDivisionError):
        held.remove(0)
    assert sorted(seen) == shown
    seen.verify()
    with db.transaction():
        held.clear()
        starts.replace_all([3])
    assert sorted(seen) == [3, 4]
    seen.verify()


@pytest.mark.parametrize("optimize", [True, False])
def test_a_row_without_a_key_meets_rows_of_the_same_commit(optimize: bool) -> None:
    """A condition that raises for a recursive row is evaluated with the rows of the same commit."""
    db = Database(optimize=optimize)
    starts: Any = db.table(tuple, name="starts")
    edges: Any = db.table(tuple, name="edges")
    reached = fixpoint(
        lambda r: starts.union(
            r.join(edges, on=lambda x, y: 1 / x[1] > 0 and x[0] == y[0] and 1 / y[1] > 0).select(
                lambda x, y: (x[0], y[0])
            )
        )
    ).materialize()
    starts.add((1, 1))
    with pytest.raises(ZeroDivisionError), db.transaction():
        starts.add((2, 0))
        edges.add((2, 3))
    with pytest.raises(ZeroDivisionError), db.transaction():
        edges.add((1, 0))
        starts.add((3, 3))
    assert set(reached) == {(1, 1)}
    edges.add((1, 2))
    reached.verify()
