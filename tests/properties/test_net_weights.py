"""The rows of a view depend only on the net weights of its tables.

Tables that are not stored accept the deletion of a row before its insertion. Every split of a
history into commits, and every order of its changes, leads to the same rows; also while weights are
negative. Once no weight is negative, these are the rows of the query over stored tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from hypothesis import given

from reactive import Database
from tests.budget import examples
from tests.random_queries.drawn import SEEDS, Drawn, draw
from tests.random_queries.histories import Held
from tests.random_queries.plans import Switches
from tests.random_queries.rows import row_of

Change = tuple[int, Any, int]
"""A table, a row, and by how much its weight changes."""

SWITCHES = Switches(sizes=(1, 2, 2, 3), recursion=False)
TABLES = (Held("P"), Held("P"))


class Played:
    """A database that a query is played in."""

    def __init__(self, drawn: Drawn, *, stored: bool = False, optimize: bool = True) -> None:
        self.db = Database(optimize=optimize)
        self.tables = drawn.open(self.db, stored=stored)
        (relation,) = drawn.relations(self.tables)
        self.view = relation.materialize()

    def commit(self, changes: Iterable[Change]) -> None:
        with self.db.transaction():
            for place, row, weight in changes:
                table = self.tables[place]
                if weight > 0:
                    table.add((*row,), weight)
                else:
                    table.remove((*row,), -weight)

    def shown(self) -> Counter[Any]:
        return Counter({row: n for row, n in self.view.zset().items() if n})


def net(changes: Sequence[Change]) -> Counter[tuple[int, Any]]:
    """The weight of each row."""
    found: Counter[tuple[int, Any]] = Counter()
    for place, row, weight in changes:
        found[place, row] += weight
    return found


def changes_of(drawn: Drawn) -> list[Change]:
    """Draw inserts and deletes, also deletes before their insert."""
    random = Random(drawn.seed)
    rows = [row_of("P", random, drawn.mode) for _ in range(4)]
    weights = (1, 1, 2, -1, -1, -2)
    return [
        (random.randrange(2), random.choice(rows), random.choice(weights))
        for _ in range(random.randrange(1, 14))
    ]


@examples(200, share=25)
@given(seed=SEEDS)
def test_a_view_is_a_function_of_net_weights(seed: int) -> None:
    drawn = draw(seed, SWITCHES, tables=TABLES)
    history = changes_of(drawn)
    shuffled = Random(seed).sample(history, len(history))
    played: list[Played] = []
    for optimize in (True, False):  # rules may change the effect of negative weights on a union
        as_one = Played(drawn, optimize=optimize)
        as_one.commit(history)
        expected = as_one.shown()
        played.append(as_one)
        for changes in (history, shuffled):
            played.append(one := Played(drawn, optimize=optimize))
            for change in changes:
                one.commit([change])
            assert one.shown() == expected, drawn
    debts = [(place, row, -n) for (place, row), n in net(history).items() if n < 0]
    stored = Played(drawn, stored=True)
    stored.commit([(place, row, n) for (place, row), n in net(history).items() if n > 0])
    stored.view.verify()
    for one in played:
        for change in debts:
            one.commit([change])
        assert one.shown() == stored.shown(), drawn
