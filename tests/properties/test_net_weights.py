"""What a view shows depends on the net weights of its tables, and on nothing else.

Tables that are not stored may take rows back before they give them. However a history is cut into
commits, and in whatever order its changes come, it leads to the same rows; also while weights are
negative. Once no weight is negative, these are the rows of the query over stored tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reactive import Aggregate, Database
from tests import generate

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
Change = tuple[int, Any, int]
"""A table, a row, and by how much its weight changes."""

CHANGES = st.tuples(st.integers(0, 1), generate.ROWS, st.sampled_from([1, 1, 2, -1, -1, -2]))
HISTORIES = st.lists(CHANGES, min_size=1, max_size=14)
NAMES = ("bag", "other")


class Played:
    """A database that a query is played in; the query is drawn once, and made again for each."""

    def __init__(self, query: Any, *, stored: bool = False, optimize: bool = True) -> None:
        self.db = Database(optimize=optimize)
        self.tables = [self.db.table(tuple, name=name, stored=stored) for name in NAMES]
        self.view = query(self.tables).materialize()

    def commit(self, changes: Iterable[Change]) -> None:
        with self.db.transaction():
            for place, row, weight in changes:
                table = self.tables[place]
                if weight > 0:
                    table.add((*row,), weight)
                else:
                    table.remove((*row,), -weight)

    def shown(self) -> Counter[Any]:
        return Counter({row: n for row, n in self.view.items() if n})


def net(changes: Sequence[Change]) -> Counter[tuple[int, Any]]:
    """The weight of each row."""
    found: Counter[tuple[int, Any]] = Counter()
    for place, row, weight in changes:
        found[place, row] += weight
    return found


class Recorded:
    """Draws like Hypothesis, and gives the same again."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw
        self._drawn: list[Any] = []
        self._next = 0

    def again(self) -> Recorded:
        self._next = 0
        return self

    def __call__(self, strategy: Any) -> Any:
        if self._next == len(self._drawn):
            self._drawn.append(self._draw(strategy))
        self._next += 1
        return self._drawn[self._next - 1]


def grouped_by_hand(draw: Any, relation: Any) -> Any:
    """An aggregate of the user's own, whose state is a value that has no order."""
    fold: Aggregate[Any, Any] = Aggregate(
        0, lambda s, v: s + v, lambda s, v: s - v, of=lambda r: 3 if r[0] is None else 5
    )
    return relation.group_by(draw(st.sampled_from(generate.KEYS))).aggregate(fold)


def query_of(draw: Recorded) -> Any:
    def made(tables: Any) -> Any:
        again = draw.again()
        depth = again(st.integers(0, 3))
        relation = _relation(again, tables, depth)
        match again(st.integers(0, 6)):
            case 0 | 1:
                return generate.grouped(again, relation)
            case 2:
                found = generate.ordered(again, relation)
                return found.limit(again(st.integers(0, 3)), again(st.integers(0, 2)))
            case 3:
                return grouped_by_hand(again, relation)
            case 4:
                return generate.reduced(again, relation)
            case 5:
                return generate.topped(again, relation)
            case _:
                return relation

    return made


def _relation(draw: Recorded, tables: Any, depth: int) -> Any:
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return tables[draw(st.integers(0, 1))]
    if draw(st.booleans()):
        return generate.one_to_one(draw, _relation(draw, tables, depth - 1))
    left = _relation(draw, tables, depth - 1)
    return generate.two_to_one(draw, left, _relation(draw, tables, depth - 1))


@settings(max_examples=80, deadline=None, suppress_health_check=SLOW)
@given(data=st.data(), history=HISTORIES)
def test_a_view_is_a_function_of_net_weights(data: Any, history: list[Change]) -> None:
    query = query_of(Recorded(data.draw))
    shuffled = data.draw(st.permutations(history))
    played: list[Played] = []
    for optimize in (True, False):  # what negative weights mean to a union, rules may change
        as_one = Played(query, optimize=optimize)
        as_one.commit(history)
        expected = as_one.shown()
        played.append(as_one)
        for changes in (history, shuffled):
            played.append(one := Played(query, optimize=optimize))
            for change in changes:
                one.commit([change])
            assert one.shown() == expected
    debts = [(place, row, -n) for (place, row), n in net(history).items() if n < 0]
    stored = Played(query, stored=True)
    stored.commit([(place, row, n) for (place, row), n in net(history).items() if n > 0])
    stored.view.verify()
    for one in played:
        for change in debts:
            one.commit([change])
        assert one.shown() == stored.shown()
