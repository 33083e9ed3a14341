"""Updates in deltas, over random queries and histories.

    removed and the old rows of updates    the deletions of the net delta
    added and the new rows of updates      the insertions of the net delta

Over one table, the updates of a chain are the table's updates that pass it step by step. Over
joins whose keys do not change, they are the updates of the pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reactive import Database, Delta, Table, TableError
from tests.budget import examples
from tests.random_queries.drawn import SEEDS, commit, draw

Move = tuple[Any, Any]
Row = tuple[Any, ...]

ROWS = st.tuples(st.sampled_from([0, 1, 2, 3]), st.sampled_from([1, 2, 3]))
CHANGES = st.tuples(
    st.sampled_from(["update", "update", "update", "add", "remove", "upsert"]),
    ROWS,
    ROWS,
)
HISTORIES = st.lists(st.lists(CHANGES, min_size=1, max_size=4), min_size=2, max_size=8)


def change(table: Table[Any], kind: str, one: Row, other: Row) -> list[Move]:
    """Make a change if it can be made; the update that it is."""
    try:
        match kind:
            case "update":
                table.update(one, other)
                return [(one, other)]
            case "upsert":
                table.upsert(other)
            case "add":
                table.add(other)
            case _:
                table.remove(one)
    except TableError:  # not there, or its key is taken
        pass
    except Exception as error:
        if "no key" not in str(error):
            raise
    return []


def check_law(delta: Delta[Any]) -> None:
    """The parts of a delta are the delta."""
    went = Counter([*delta.removed, *(old for old, _ in delta.updated)])
    came = Counter([*delta.added, *(new for _, new in delta.updated)])
    assert went == Counter({row: -weight for row, weight in delta.items() if weight < 0})
    assert came == Counter({row: weight for row, weight in delta.items() if weight > 0})


@given(SEEDS, st.booleans())
@examples(60)
def test_the_parts_of_a_delta_are_the_delta(seed: int, optimize: bool) -> None:
    drawn = draw(seed)
    db = Database(optimize=optimize)
    tables = drawn.open(db)
    (query,) = drawn.relations(tables)
    deltas: list[Delta[Any]] = []
    view = query.materialize()
    with query.subscribe(deltas.append), view.subscribe(deltas.append):
        for made in drawn.script():
            commit(db, tables, made)
            view.verify()
            for delta in deltas:
                check_law(delta)
            deltas.clear()


STEPS: dict[str, Sequence[Callable[[Any], Any]]] = {
    "where": [
        lambda r: r[0] > 1,
        lambda r: r[0] == r[1],
        lambda r: r[1] != 2,
        lambda r: False,
        lambda r: True,
    ],
    "select": [lambda r: (r[1], r[0]), lambda r: (r[0] % 2, 1), lambda r: (r[0], 0)],
    "select_many": [
        lambda r: [(r[0], i) for i in range(r[1])],
        lambda r: [(r[0], 5), (r[1], 6)] if r[0] != 1 else [],
    ],
}
Step = tuple[str, Callable[[Any], Any]]
ALL: list[Step] = [(name, call) for name, calls in STEPS.items() for call in calls]
CHAINS: st.SearchStrategy[list[Step]] = st.lists(st.sampled_from(ALL), max_size=4)


def rows(step: Step, row: Any) -> list[Any]:
    """Return the rows that a step makes of a row."""
    name, call = step
    if name == "where":
        return [row] if call(row) else []
    return [call(row)] if name == "select" else list(call(row))


def passed(step: Step, moves: Iterable[Move]) -> list[Move]:
    """The moves that pass a step."""
    found: list[Move] = []
    for old, new in moves:
        olds, news = rows(step, old), rows(step, new)
        if len(olds) == len(news):
            found += zip(olds, news, strict=True)
    return found


def composed(moves: Iterable[Move]) -> list[Move]:
    """Return the moves, each followed to its end; of equal rows the latest first."""
    found: list[Move] = []
    for old, new in moves:
        before = next((m for m in reversed(found) if m[1] == old), None)
        if before is not None:
            found.remove(before)
            old = before[0]
        if old != new:
            found.append((old, new))
    return found


def of_delta(moves: Iterable[Move], weights: Counter[Any]) -> Counter[Move]:
    """Return the moves whose rows are both in a net delta, with enough weight."""
    left, found = Counter(weights), Counter[Move]()
    for old, new in moves:
        if left[old] < 0 < left[new]:
            left[old] += 1
            left[new] -= 1
            found[old, new] += 1
    return found


@given(CHAINS, st.booleans(), HISTORIES)
@examples(100)
def test_updates_of_a_chain_pass_it_step_by_step(
    chain: list[Step], optimize: bool, history: Any
) -> None:
    db = Database(optimize=optimize)
    table = db.table(tuple)
    query: Any = table
    for name, call in chain:
        query = getattr(query, name)(call)
    deltas: list[Delta[Any]] = []
    with query.subscribe(deltas.append):
        for commit in history:
            before, moves = Counter(table), list[Move]()
            with db.transaction():
                for kind, one, other in commit:
                    moves += change(table, kind, one, other)
            net = Counter(table)
            net.subtract(before)
            expected = list(of_delta(composed(moves), net).elements())
            for step in chain:
                expected = passed(step, expected)
            for delta in deltas:
                check_law(delta)
                weights = Counter(dict(delta.items()))
                assert Counter(delta.updated).total() == of_delta(expected, weights).total()
                assert set(delta.updated) <= set(expected)
            assert deltas or not of_delta(expected, Counter())
            deltas.clear()


VALUES = st.integers(0, 4)
PAIRS = st.lists(st.tuples(st.integers(0, 2), VALUES), min_size=1, max_size=3)
EDITS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), VALUES), min_size=1, max_size=4)
JOINED: list[Callable[[Any, Any, Any], Any]] = [
    lambda a, b, c: a.join(b, on=lambda x, y: x[1] == y[1]),
    lambda a, b, c: a.join(b, on=lambda x, y: x[1] == y[1]).join(
        c, on=lambda x, y, z: y[1] == z[1]
    ),
    lambda a, b, c: a.join(
        b.join(c, on=lambda y, z: y[1] == z[1]), on=lambda x, r: x[1] == r[0][1]
    ),
    lambda a, b, c: a.join(b, on=lambda x, y: x[1] <= y[1]).materialize().join(c),
    lambda a, b, c: a.join(a, on=lambda x, y: x[1] >= y[1]).where(lambda x, y: x[2] != 3),
    lambda a, b, c: a.where(lambda x: x[2] > 1).join(
        b.where(lambda y: y[2] > 1), left_key=lambda x: x[1], right_key=lambda y: y[1]
    ),
    lambda a, b, c: (
        a.join(b, on=lambda x, y: x[1] == y[1])
        .join(c, on=lambda x, y, z: y[1] == z[1] and x[2] + z[2] > 3)
        .where(lambda x, y, z: y[2] != 2)
    ),
    lambda a, b, c: a.join(a, on=lambda x, y: x[1] == y[1]).join(
        a, on=lambda x, y, z: y[1] == z[1] and z[1] == x[1]
    ),
]


@given(st.sampled_from(JOINED), st.booleans(), st.tuples(PAIRS, PAIRS, PAIRS), st.lists(EDITS))
@examples(100)
def test_pairs_are_updated_where_their_keys_stay(
    join: Callable[..., Any], optimize: bool, given_rows: Any, commits: Any
) -> None:
    """Rows have a number, a key and a value; only the value changes."""
    db = Database(optimize=optimize)
    tables = [db.table(tuple, name=name) for name in "abc"]
    now = [
        [(number, key, value) for number, (key, value) in enumerate(each)] for each in given_rows
    ]
    for table, each in zip(tables, now, strict=True):
        table.add_all(each)
    query = join(*tables)
    deltas: list[Delta[Any]] = []
    view = query.materialize()
    with view.subscribe(deltas.append), query.subscribe(deltas.append):
        for edits in commits:
            before, was = _by_numbers(view), [list(each) for each in now]
            with db.transaction():
                for place, number, value in edits:
                    if number < len(now[place]):
                        old = now[place][number]
                        new = now[place][number] = (*old[:2], value)
                        tables[place].update(old, new)
            after = _by_numbers(view)
            expected = {
                (row, after[numbers])
                for numbers, row in before.items()
                if numbers in after and after[numbers] != row
            }
            for delta in deltas:
                check_law(delta)
                assert set(delta.updated) == expected
            assert bool(deltas) is (was != now and before != after)
            deltas.clear()


def _by_numbers(view: Iterable[Any]) -> dict[Any, Any]:
    """Rows by the numbers of the rows that they were made of."""
    return {_numbers(row): row for row in view}


def _numbers(row: Any) -> Any:
    return tuple(map(_numbers, row)) if isinstance(row[0], tuple) else row[0]
