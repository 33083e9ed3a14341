"""An update of a table reaches subscribers as one, through where, select and inner joins."""

from __future__ import annotations

import asyncio
import math
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from reactive import Count, Database, Delta, TableError
from tests.thresholds import LOWEST, SHIPPED, WALKED, thresholds


@dataclass(frozen=True, slots=True)
class Student:
    name: str
    age: int


@dataclass(frozen=True, slots=True)
class Member:
    name: str
    role: str


@dataclass(frozen=True, slots=True)
class Fee:
    role: str
    price: int


@pytest.fixture(params=["as shipped", "at their lowest", "walked", "as written"], autouse=True)
def db(request: pytest.FixtureRequest) -> Iterator[Database]:
    settings = {"at their lowest": LOWEST, "walked": WALKED}.get(request.param, SHIPPED)
    with thresholds(settings):
        yield Database(optimize=request.param != "as written")


class Heard:
    """The deltas of a relation."""

    def __init__(self, relation: Any) -> None:
        self.deltas: list[Delta[Any]] = []
        self.subscription = relation.subscribe(self.deltas.append)

    def last(self) -> tuple[Any, Any, Any]:
        """Return the removed, updated and added rows of the only commit since the last call."""
        (delta,) = self.deltas
        self.deltas.clear()
        return delta.removed, delta.updated, delta.added


SALLY, OLDER = Student("Sally", 31), Student("Sally", 32)
GEORGE, YOUNGER = Student("George", 40), Student("George", 19)


def test_an_update_passes_where_select_and_join(db: Database) -> None:
    """Figure 4 of the i3QL paper."""
    students, members = db.table(Student), db.table(Member)
    grown = students.where(lambda s: s.age > 20)
    named = grown.select(lambda s: (s.name, s.age))
    both = students.join(members, on=lambda s, m: s.name == m.name)
    roles = both.where(lambda s, m: s.age > 20).select(lambda s, m: (m.role, s.age))
    heard = [Heard(r) for r in (students, grown, named, both, roles, roles.materialize())]
    students.add(SALLY)
    members.add_all([Member("Sally", "chair"), Member("Sally", "clerk")])
    for each in heard:
        each.deltas.clear()
    students.update(SALLY, OLDER)
    chair, clerk = Member("Sally", "chair"), Member("Sally", "clerk")
    expected: list[Any] = [
        ((SALLY, OLDER),),
        ((SALLY, OLDER),),
        ((("Sally", 31), ("Sally", 32)),),
        (((SALLY, chair), (OLDER, chair)), ((SALLY, clerk), (OLDER, clerk))),
        *(((("chair", 31), ("chair", 32)), (("clerk", 31), ("clerk", 32))),) * 2,
    ]
    assert [each.last() for each in heard] == [((), updated, ()) for updated in expected]


def test_where_passes_both_ends_or_one(db: Database) -> None:
    students = db.table(Student)
    grown = Heard(students.where(lambda s: s.age > 20).select(lambda s: s.age))
    students.add_all([GEORGE, SALLY])
    grown.deltas.clear()
    students.update(GEORGE, YOUNGER)
    assert grown.last() == ((40,), (), ())
    students.update(YOUNGER, GEORGE)
    assert grown.last() == ((), (), (40,))
    students.update(GEORGE, Student("George", 41))
    assert grown.last() == ((), ((40, 41),), ())


def test_a_condition_above_a_join_may_pass_some_of_its_pairs(db: Database) -> None:
    students, fees = db.table(Student), db.table(Fee)
    pairs = students.join(fees).where(lambda s, f: s.age > f.price)
    heard = Heard(pairs.select(lambda s, f: (s.age, f.role)))
    fees.add_all([Fee("cheap", 10), Fee("dear", 31)])
    students.add(SALLY)
    heard.deltas.clear()
    students.update(SALLY, OLDER)
    assert heard.last() == ((), (((31, "cheap"), (32, "cheap")),), ((32, "dear"),))


def test_updates_of_a_commit_are_composed(db: Database) -> None:
    letters = db.table(str)
    heard = Heard(letters.select(str.upper))
    letters.add_all(["a", "x"])
    heard.deltas.clear()
    with db.transaction():
        letters.update("a", "b")
        letters.update("b", "c")
    assert heard.last() == ((), (("A", "C"),), ())
    with db.transaction():
        letters.update("c", "a")
        letters.update("a", "c")
        letters.update("x", "y")
    assert heard.last() == ((), (("X", "Y"),), ())
    with db.transaction():
        letters.update("y", "z")
        letters.remove("z")
    assert heard.last() == (("Y",), (), ())


def test_an_upsert_is_an_update_where_the_key_is_dropped(db: Database) -> None:
    students = db.table(Student, key="name")
    ages = Heard(students.select(lambda s: s.age))
    students.upsert(SALLY)
    assert ages.last() == ((), (), (31,))
    students.upsert(OLDER)
    assert ages.last() == ((), ((31, 32),), ())
    with db.transaction():
        students.delete("Sally")
        students.add(Student("Sally", 50))
    assert ages.last() == ((), ((32, 50),), ())
    students.replace_all([Student("Sally", 51), GEORGE])
    assert ages.last() == ((), ((50, 51),), (40,))
    students.upsert_all([Student("Sally", 52), Student("George", 41)])
    removed, updated, added = ages.last()
    assert (removed, set(updated), added) == ((), {(51, 52), (40, 41)}, ())


def test_an_update_may_change_the_key(db: Database) -> None:
    students = db.table(Student, key="name")
    rows, ages = Heard(students), Heard(students.select(lambda s: s.age))
    students.add(SALLY)
    rows.deltas.clear()
    ages.deltas.clear()
    students.update(SALLY, YOUNGER)
    assert rows.last() == ((), ((SALLY, YOUNGER),), ())
    assert ages.last() == ((), ((31, 19),), ())


def test_a_row_that_finds_other_partners_is_updated_if_they_are_as_many(db: Database) -> None:
    members, fees = db.table(Member), db.table(Fee)
    joined = members.join(fees, left_key=lambda m: m.role, right_key=lambda f: f.role)
    prices = Heard(joined.select(lambda m, f: (m.name, f.price)))
    fees.add_all([Fee("chair", 5), Fee("clerk", 3), Fee("guest", 1), Fee("guest", 2)])
    members.add(Member("Sally", "chair"))
    prices.deltas.clear()
    members.update(Member("Sally", "chair"), Member("Sally", "clerk"))
    assert prices.last() == ((), ((("Sally", 5), ("Sally", 3)),), ())
    members.update(Member("Sally", "clerk"), Member("Sally", "guest"))
    removed, updated, added = prices.last()
    assert (removed, updated, sorted(added)) == (
        (("Sally", 3),),
        (),
        [("Sally", 1), ("Sally", 2)],
    )


def test_both_sides_of_a_join_may_change_in_one_commit(db: Database) -> None:
    students, members, fees = db.table(Student), db.table(Member), db.table(Fee)
    joined = students.join(members, on=lambda s, m: s.name == m.name)
    all_three = joined.join(fees, on=lambda s, m, f: m.role == f.role)
    heard = Heard(all_three.select(lambda s, m, f: (s.age, m.name, f.price)))
    fees.add_all([Fee("chair", 5), Fee("clerk", 3)])
    members.add(Member("Sally", "chair"))
    students.add(SALLY)
    heard.deltas.clear()
    with db.transaction():
        fees.update(Fee("clerk", 3), Fee("clerk", 4))
        students.update(SALLY, OLDER)
        members.update(Member("Sally", "chair"), Member("Sally", "clerk"))
    assert heard.last() == ((), (((31, "Sally", 5), (32, "Sally", 4)),), ())


def test_a_join_of_a_table_with_itself(db: Database) -> None:
    students = db.table(Student)
    heard = Heard(students.join(students, on=lambda a, b: a.name == b.name))
    students.add(SALLY)
    heard.deltas.clear()
    students.update(SALLY, OLDER)
    assert heard.last() == ((), (((SALLY, SALLY), (OLDER, OLDER)),), ())


def test_joins_in_a_circle(db: Database) -> None:
    edges = db.table(tuple)
    paths = edges.join(edges, on=lambda a, b: a[1] == b[0])
    circles = paths.join(edges, on=lambda a, b, c: b[1] == c[0] and c[1] == a[0])
    heard = Heard(circles.select(lambda a, b, c: (a[2], b[2], c[2])))
    edges.add_all([(1, 2, "x"), (2, 3, "y"), (3, 1, "z")])
    heard.deltas.clear()
    edges.update((2, 3, "y"), (2, 3, "why"))
    removed, updated, added = heard.last()
    assert (removed, added) == ((), ())
    assert {(old, tuple("why" if v == "y" else v for v in old)) for old, _ in updated} == set(
        updated
    )
    assert len(updated) == 3


def test_keys_that_are_nan_have_no_partners(db: Database) -> None:
    edges = db.table(tuple)
    paths = edges.join(edges, on=lambda a, b: a[1] == b[0])
    circles = paths.join(edges, on=lambda a, b, c: b[1] == c[0] and c[1] == a[0])
    heard = [Heard(paths), Heard(circles)]
    edges.add_all([(math.nan, math.nan, 1), (1, 1, 1)])
    edges.update((math.nan, math.nan, 1), (math.nan, math.nan, 2))
    assert [len(each.deltas) for each in heard] == [1, 1]
    edges.update((1, 1, 1), (1, 1, 2))
    assert heard[0].deltas[-1].updated == ((((1, 1, 1),) * 2, ((1, 1, 2),) * 2),)
    assert heard[1].deltas[-1].updated == ((((1, 1, 1),) * 3, ((1, 1, 2),) * 3),)


def test_rows_that_are_found_by_a_value(db: Database) -> None:
    """Twenty queries for one value each are found by their value."""
    students = db.table(Student)
    heard = {
        name: Heard(students.where(_named(name)).select(lambda s: s.age))
        for name in [*map(str, range(20)), "Sally", "George"]
    }
    students.add_all([SALLY, GEORGE])
    heard["Sally"].deltas.clear()
    heard["George"].deltas.clear()
    students.update(SALLY, OLDER)
    assert heard["Sally"].last() == ((), ((31, 32),), ())
    students.update(OLDER, Student("George", 7))
    assert heard["Sally"].last() == ((32,), (), ())
    assert heard["George"].last() == ((), (), (7,))


def test_partners_that_are_found_by_ranges(db: Database) -> None:
    students, fees = db.table(Student), db.table(Fee)
    pairs = students.join(fees, on=lambda s, f: s.age > f.price)
    heard = Heard(pairs.select(lambda s, f: (s.age, f.role)))
    fees.add_all([Fee("cheap", 10), Fee("dear", 31)])
    students.add(SALLY)
    heard.deltas.clear()
    students.update(SALLY, OLDER)
    assert heard.last() == ((), (((31, "cheap"), (32, "cheap")),), ((32, "dear"),))


def test_views_over_views_unnest_and_union_all(db: Database) -> None:
    texts = db.table(str)
    words = texts.select_many(str.split).materialize()
    heard = Heard((words.where(lambda w: len(w) > 1) + words).select(str.upper))
    letters = Heard(texts.unnest(lambda t: t.split()))
    texts.add("to b")
    heard.deltas.clear()
    letters.deltas.clear()
    texts.update("to b", "or b")
    assert heard.last() == ((), (("TO", "OR"), ("TO", "OR")), ())
    assert letters.last() == (
        (),
        ((("to b", "to"), ("or b", "or")), (("to b", "b"), ("or b", "b"))),
        (),
    )
    texts.update("or b", "or not b")
    _, updated, _ = letters.last()
    assert updated == ()


def test_what_cancels_is_in_no_pair(db: Database) -> None:
    letters = db.table(str)
    heard = Heard(letters.select(str.upper))
    letters.add_all(["a", "b", "x"])
    heard.deltas.clear()
    letters.update("x", "X")
    assert heard.deltas == []
    with db.transaction():
        letters.update("a", "c")
        letters.remove("b")
        letters.add("A")
    assert heard.last() == (("B",), (), ("C",))


def test_rows_that_are_there_several_times(db: Database) -> None:
    students, members = db.table(Student), db.table(Member)
    joined = Heard(
        students.join(members, on=lambda s, m: s.name == m.name).select(lambda s, m: s.age)
    )
    members.add(Member("Sally", "chair"), 2)
    students.add(SALLY, 3)
    joined.deltas.clear()
    students.update(SALLY, OLDER)
    assert joined.last() == ((), ((31, 32), (31, 32)), ())


def test_rows_that_are_equal_are_no_update(db: Database) -> None:
    numbers = db.table(float)
    heard = Heard(numbers.select(lambda x: (x,)))
    numbers.add(math.nan)
    numbers.add(1.0)
    heard.deltas.clear()
    numbers.update(1.0, 1.0)
    numbers.update(float("nan"), math.nan)
    assert heard.deltas == []
    numbers.update(math.nan, 2.0)
    ((gone, come),) = heard.last()[1]
    assert math.isnan(gone[0])
    assert come == (2.0,)


def test_a_table_that_is_not_stored(db: Database) -> None:
    letters = db.table(str, stored=False)
    heard = Heard(letters.select(str.upper))
    letters.update("a", "b")
    assert heard.last() == ((), (("A", "B"),), ())


def test_groups_are_paired_by_their_key(db: Database) -> None:
    students = db.table(Student)
    totals = students.group_by(lambda s: s.name).aggregate(Count())
    heard = Heard(totals)
    named = Heard(totals.select(lambda name, count: (name, count)))
    distinct = Heard(students.select(lambda s: s.age).distinct())
    students.add_all([SALLY, GEORGE])
    for each in (heard, named, distinct):
        each.deltas.clear()
    students.update(GEORGE, Student("Sally", 1))
    assert heard.last() == ((("George", 1),), ((("Sally", 1), ("Sally", 2)),), ())
    assert distinct.last() == ((40,), (), (1,))


def test_a_transaction_that_fails_leaves_no_update_behind(db: Database) -> None:
    letters = db.table(str)
    heard = Heard(letters.select(str.upper))
    letters.add_all(["a", "b"])
    heard.deltas.clear()
    with pytest.raises(ZeroDivisionError), db.transaction():
        letters.update("a", "c")
        raise ZeroDivisionError
    with pytest.raises(TableError):
        letters.update("z", "a")
    with db.transaction():
        letters.remove("a")
        letters.add("c")
    assert heard.last() == (("A",), (), ("C",))


def test_a_statement_that_is_refused_takes_no_other_update_back(db: Database) -> None:
    letters = db.table(str)
    heard = Heard(letters.select(str.upper))
    letters.add("a")
    heard.deltas.clear()
    with db.transaction():
        letters.update("a", "b")
        with pytest.raises(TableError):
            letters.update("a", "c")
    assert heard.last() == ((), (("A", "B"),), ())


def test_a_callable_that_raises_rolls_the_update_back(db: Database) -> None:
    numbers = db.table(int)
    heard = Heard(numbers.select(lambda x: 10 // x))
    numbers.add(1)
    heard.deltas.clear()
    with pytest.raises(ZeroDivisionError):
        numbers.update(1, 0)
    with db.transaction():
        numbers.remove(1)
        numbers.add(2)
    assert heard.last() == ((10,), (), (5,))


def test_an_update_by_a_subscriber(db: Database) -> None:
    letters = db.table(str)
    heard = Heard(letters.select(str.upper))
    letters.add("a")

    def answer(delta: Delta[str]) -> None:
        if "b" in dict(delta.items()):
            letters.update("b", "c")

    with letters.subscribe(answer):
        letters.update("a", "b")
    assert [d.updated for d in heard.deltas[1:]] == [(("A", "B"),), (("B", "C"),)]


def test_nothing_is_noted_once_nobody_subscribes(db: Database) -> None:
    letters = db.table(str)
    view = letters.select(str.upper).materialize()
    counts = letters.aggregate(Count()).subscribe(lambda delta: None)
    assert not letters._node.tracers
    subscription = view.subscribe(lambda delta: None)
    assert letters._node.tracers
    subscription.close()
    assert not letters._node.tracers
    view.subscribe(lambda delta: None).close()
    lost = view.subscribe(lambda delta: None)
    del lost
    assert not letters._node.tracers
    counts.close()


def test_deltas_as_data_and_in_a_pickle(db: Database) -> None:
    letters = db.table(str)
    heard = Heard(letters.select(str.upper))
    letters.add("a")
    letters.update("a", "b")
    delta = heard.deltas[-1]
    assert repr(delta) == "Delta(version=2, updated=(('A', 'B'),))"
    assert delta.items() == (("A", -1), ("B", 1))
    assert delta.to_dict()["updated"] == [{"old": "A", "new": "B"}]
    assert pickle.loads(pickle.dumps(delta)).updated == (("A", "B"),)


def test_an_observer_hears_removals_then_updates_then_additions(db: Database) -> None:
    class Log:
        def __init__(self) -> None:
            self.events: list[Any] = []

        def added(self, row: str) -> None:
            self.events.append(("+", row))

        def removed(self, row: str) -> None:
            self.events.append(("-", row))

        def updated(self, old: str, new: str) -> None:
            self.events.append((old, new))

    letters, log = db.table(str), Log()
    watching = letters.select(str.upper).observe(log)
    letters.add_all(["a", "x"])
    log.events.clear()
    with db.transaction():
        letters.add("n")
        letters.update("a", "b")
        letters.remove("x")
    assert log.events == [("-", "X"), ("A", "B"), ("+", "N")]
    watching.close()


def merged(
    db: Database, relation: Any, act: Callable[[], None], *, snapshot: bool = False
) -> Delta[Any]:
    """All that is changed as one delta."""

    async def run() -> Delta[Any]:
        with relation.changes(latest=True, snapshot=snapshot) as changes:
            act()
            found: Delta[Any] = await anext(changes)
            return found

    return asyncio.run(run())


def test_merged_deltas_compose_their_updates(db: Database) -> None:
    letters = db.table(str)
    upper = letters.select(str.upper)
    letters.add_all(["a", "i", "x"])

    def act() -> None:
        letters.add("n")
        letters.update("a", "b")
        letters.update("b", "c")
        letters.update("i", "j")
        letters.update("j", "i")
        letters.update("x", "y")
        letters.remove("y")
        letters.add("y")

    delta = merged(db, upper, act)
    assert (delta.removed, delta.updated, delta.added) == (("X",), (("A", "C"),), ("N", "Y"))
    delta = merged(db, upper, lambda: letters.update("c", "d"), snapshot=True)
    assert (delta.is_snapshot, delta.updated) == (True, ())


class Counted(int):
    """A number that knows how often it was doubled."""

    times = 0

    def double(self) -> int:
        Counted.times += 1
        return 2 * self


def test_a_callable_runs_again_only_if_somebody_asks_for_updates(db: Database) -> None:
    numbers = db.table(Counted)
    heard = Heard(numbers.select(lambda n: n.double()))
    numbers.add(Counted(1))
    numbers.update(Counted(1), Counted(2))
    before = Counted.times
    assert heard.deltas[-1].items() == ((2, -1), (4, 1))
    assert Counted.times == before
    assert heard.deltas[-1].updated == ((2, 4),)
    assert Counted.times == before + 2


def _named(name: str) -> Any:
    return lambda s: s.name == name
