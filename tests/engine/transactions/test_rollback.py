"""An exception anywhere leaves the whole state unchanged, and commits go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reactive import Aggregate, Bag, Collect, Count, Database, Max, Min, Monoid, OrderedView, Sum
from reactive.engine.collections.group_values import GroupValues
from reactive.engine.collections.index import Index
from tests.budget import stride

NEVER = 1 << 60


class Fuse:
    """Count calls of all wrapped callables, and raise from the n-th call on."""

    def __init__(self) -> None:
        self.calls = 0
        self.at = NEVER

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        fuse = self

        class Wrapped:
            def __call__(self, *arguments: Any) -> Any:
                fuse.calls += 1
                if fuse.calls >= fuse.at:
                    raise ZeroDivisionError(f"call {fuse.at}")
                return function(*arguments)

        return Wrapped()


def plus(state: int, value: Any) -> int:
    return state + int(value[0])


def minus(state: int, value: Any) -> int:
    return state - int(value[0])


def build(db: Database, fuse: Fuse) -> list[Any]:
    """Views with every operator; every callable of them may raise."""
    a, b = db.table(tuple, name="a"), db.table(tuple, name="b", key=lambda r: r[0])
    key, other = fuse(lambda r: r[0]), fuse(lambda r: r[0])
    on = fuse(lambda x, y: x[1] <= y[1])
    keys: dict[str, Any] = {"left_key": key, "right_key": other}
    total: Any = Aggregate(0, fuse(plus), fuse(minus), fuse(lambda s: s))
    joined = [
        getattr(a, name)(b, **condition)
        for name in ("join", "left_join", "right_join", "full_join", "semi_join", "anti_join")
        for condition in (keys, {"on": on}, {"on": on, **keys})
    ]
    relations = [
        a.where(fuse(lambda r: r[1] > 1)).select(fuse(lambda r: (r[0], r[1] * 1.5))).distinct(),
        a.select_many(fuse(lambda r: [r, r])).union(b),
        a.unnest(fuse(lambda r: range(r[1]))),
        a.difference(b),
        a.intersection_all(b.select(fuse(lambda r: r))),
        a.join(b),
        a.group_by(fuse(lambda r: r[0])).aggregate(
            Count(),
            Sum(fuse(lambda r: r[1] / 3)),
            Min(fuse(lambda r: r[1])),
            Max(lambda r: r[1]),
            Collect(lambda r: r[1]),
            total,
            Monoid(0, fuse(max), fuse(lambda v: v), of=fuse(lambda r: r[1])),
        ),
        a.aggregate(total, Sum(fuse(lambda r: r[1]))),
        a.group_by(fuse(lambda r: r[0])).top(1, by=fuse(lambda r: r[1])),
        a.group_by(fuse(lambda r: r[0])).reduce(fuse(lambda k, rows: sorted(rows)[:1])),
        a.order_by(fuse(lambda r: r[1])).limit(2, 1),
        *joined,
        a.join(a, left_key=key, right_key=other),
    ]
    return [a, b, *(relation.materialize() for relation in relations)]


def build_joins(db: Database, fuse: Fuse) -> list[Any]:
    """Views that count the partners of rows, with predicates that may raise."""
    a, b = db.table(tuple, name="a"), db.table(tuple, name="b", key=lambda r: r[0])
    joins = ("semi_join", "anti_join", "left_join", "right_join", "full_join")
    on = fuse(lambda x, y: x[1] <= y[1])
    return [a, b, *(getattr(a, name)(b, on=on).materialize() for name in joins)]


def change(db: Database, a: Any, b: Any) -> None:
    with db.transaction():
        a.add_all([(1, 1), (2, 3), (2, 3), (4, 2)])
        a.remove((0, 2))
        b.upsert((1, 5))
        b.upsert((2, 2))
        b.delete(0)


def state(db: Database) -> Any:
    """All that the graph and the tables hold, in a form that compares."""
    operators = {
        str(node.signature) + str(node.rank): _plain(node.operator)
        for node in _nodes(db)
        if node.operator is not None
    }
    return operators, [sorted(table.zset().items()) for table in db.tables()]


def _nodes(db: Database) -> list[Any]:
    nodes: dict[Any, None] = {}
    for view in db.views():
        nodes.update(dict.fromkeys(view._node.upstream()))
    return list(nodes)


IGNORED = ("_hash", "touched", "changes", "edits", "shares", "_arrivals", "_nodes", "_log")


def _plain(value: Any) -> Any:
    """A comparable copy of an operator's state."""
    if isinstance(value, Index):  # it may hold the same rows in another form
        pairs: dict[Any, int] = {}
        for key, (row, weight) in value.items():
            pairs[key, row] = pairs.get((key, row), 0) + weight
        return sorted(pairs.items(), key=repr)
    if isinstance(value, GroupValues):  # an undone value may wait to be added
        return _plain(value.bag()), _plain(value.negative)
    if isinstance(value, Bag):
        return _plain(dict(value.items()))
    if isinstance(value, dict):
        return {repr(k): _plain(v) for k, v in sorted(value.items(), key=repr)}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    slots = [s for c in type(value).__mro__ for s in getattr(c, "__slots__", ())]
    if type(value).__module__.startswith("reactive") and slots:
        held = {s: getattr(value, s, None) for s in slots if s not in IGNORED}
        return {s: _plain(v) for s, v in held.items() if not callable(v) or s == "index"}
    if type(value).__module__.startswith("sortedcontainers"):
        return [_plain(v) for v in value]
    return repr(value) if type(value).__module__ == "builtins" and not callable(value) else ""


Build = Callable[[Database, Fuse], list[Any]]


def prepared(*, optimize: bool, build: Build = build) -> tuple[Database, Fuse, list[Any]]:
    db, fuse = Database(optimize=optimize), Fuse()
    parts = build(db, fuse)
    with db.transaction():
        parts[0].add_all([(0, 1), (0, 2), (1, 1), (3, 2)])
        parts[1].add_all([(0, 1), (1, 1), (5, 5)])
    parts[0].add((9, 9))  # both have been looked up then, so that no commit has to make an index
    parts[1].add((9, 9))
    parts[0].remove((9, 9))
    parts[1].delete(9)
    return db, fuse, parts


def calls_of_a_change(*, optimize: bool) -> int:
    db, fuse, (a, b, *_) = prepared(optimize=optimize)
    fuse.calls = 0
    change(db, a, b)
    return fuse.calls


CALLS = {optimize: calls_of_a_change(optimize=optimize) for optimize in (True, False)}


def test_the_change_reaches_many_callables() -> None:
    assert min(CALLS.values()) > 200


def rows(view: Any) -> Any:
    return list(view) if isinstance(view, OrderedView) else dict(view.zset().items())


@pytest.mark.long
@pytest.mark.parametrize("optimize", CALLS)
def test_a_failure_at_any_callable_call_leaves_everything_as_it_was(optimize: bool) -> None:
    fail_at_each_call(prepared(optimize=optimize), range(1, CALLS[optimize] + 1, stride(1)))


def test_a_failing_predicate_leaves_the_counts_of_partners_as_they_were() -> None:
    fail_at_each_call(prepared(optimize=True, build=build_joins), range(1, 40))


def fail_at_each_call(made: tuple[Database, Fuse, list[Any]], calls: range) -> None:
    """Assert that a change which fails at each of the `calls` changes nothing."""
    db, fuse, (a, b, *views) = made
    before = state(db)
    contents = [rows(view) for view in views]
    heard: list[Any] = []
    held = [view.subscribe(heard.append) for view in views]
    for at in calls:
        fuse.calls, fuse.at = 0, at
        with pytest.raises(ZeroDivisionError) as caught:
            change(db, a, b)
        assert any("transaction rolled back" in n for n in caught.value.__notes__)
        fuse.at = NEVER
        assert state(db) == before, f"call {at}"
        assert [rows(view) for view in views] == contents
    assert (heard, db.version) == ([], 5)
    change(db, a, b)
    for view in views:
        view.verify()
    assert len(held) == len(views)


def test_the_comparison_of_states_sees_a_difference() -> None:
    db, _, (a, b, *_) = prepared(optimize=True)
    before = state(db)
    change(db, a, b)
    assert state(db) != before


@pytest.mark.parametrize("relation", range(3))
def test_a_view_that_cannot_be_made_leaves_nothing_behind(relation: int) -> None:
    db = Database()
    table = db.table(int, name="t")
    table.add_all([1, 0])
    inverse = table.select(lambda n: 1 / n)
    made = [inverse, inverse.distinct(), inverse.group_by(lambda x: x).aggregate(Count())]
    with pytest.raises(ZeroDivisionError) as caught:
        made[relation].materialize()
    assert "on row 0" in caught.value.__notes__[0]
    assert db._engine.graph._nodes == {}
    assert table._node.consumers == []


class Grumpy:
    """Cannot be compared with its like."""

    def __hash__(self) -> int:
        return 7

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        raise ArithmeticError("grumpy")


@pytest.mark.parametrize("where", ["distinct", "union", "difference", "join", "group"])
def test_an_equality_that_raises_rolls_back(where: str) -> None:
    db = Database()
    table = db.table(int, name="t")
    grumpy = {1: Grumpy(), 2: Grumpy()}
    made: Any = table.select(lambda n: grumpy[n])
    relations: dict[str, Callable[[], Any]] = {
        "distinct": lambda: made.distinct(),
        "union": lambda: made.union(made),
        "difference": lambda: made.difference(table.select(lambda n: n)),
        "join": lambda: made.join(made, left_key=lambda g: g, right_key=lambda g: g),
        "group": lambda: made.group_by(lambda g: g).aggregate(Count()),
    }
    view = relations[where]().materialize()
    table.add(1)
    size = len(view)
    with pytest.raises(ArithmeticError):
        table.add(2)
    assert (len(view), list(table)) == (size, [1])
    table.remove(1)
    assert len(view) == 0
    assert view.stats().rows == 0
