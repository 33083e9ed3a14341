"""`replace_origin`: rows by the places that they come from, against a dictionary of these."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from reactive import Database, TableError
from tests.budget import seeds


@pytest.mark.parametrize("seed", seeds(80))
def test_a_table_has_the_rows_of_all_origins_and_only_differences_are_told(seed: int) -> None:
    random = Random(seed)
    db = Database()
    table = db.table(int, name="numbers")
    known: dict[str, list[int]] = {}
    told: list[int] = []
    subscription = table.subscribe(lambda delta: told.append(len(delta.added) + len(delta.removed)))
    for _ in range(30):
        origin = random.choice("abc")
        rows = [random.randrange(5) for _ in range(random.randrange(4))]
        before = Counter(known.get(origin, ()))
        told.clear()
        table.replace_origin(origin, rows)
        changed = (Counter(rows) - before).total() + (before - Counter(rows)).total()
        assert sum(told) == changed
        known[origin] = rows
        assert Counter(table) == Counter(row for each in known.values() for row in each)
        assert {origin: Counter(of) for origin, of in table.origins().items()} == {
            origin: Counter(of) for origin, of in known.items() if of
        }
    subscription.close()


def test_a_refused_row_leaves_the_origin_as_it_was() -> None:
    table = Database().table(tuple[str, int], name="pairs", key=lambda pair: pair[0])
    table.replace_origin("a", [("x", 1)])
    with pytest.raises(TableError, match="key is taken"):
        table.replace_origin("b", [("y", 1), ("x", 2)])
    assert (list(table), list(table.origins())) == ([("x", 1)], ["a"])


def test_origins_survive_the_process(tmp_path: Path) -> None:
    with Database(tmp_path / "uses.db") as db:
        table = db.table(str, name="uses")
        table.add("by hand")
        table.replace_origin("a.py", ["os", "re"])
    with Database(tmp_path / "uses.db") as db:
        table = db.table(str, name="uses")
        table.replace_origin("a.py", ["re", "sys"])
        assert sorted(table) == ["by hand", "re", "sys"]
