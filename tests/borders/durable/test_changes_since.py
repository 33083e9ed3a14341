"""`changes_since` continues after a restart, as far as the file keeps the commits."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import Collect, Count, Database, Max, PlanError, Sum
from reactive.borders.durable.store import MemoryStore
from tests.budget import seeds


class Sale(NamedTuple):
    """A row of a table with a key."""

    id: int
    town: str
    price: int


def views(db: Database) -> list[Any]:
    sales = db.table(Sale, key="id", name="sales")
    towns = db.table(str, name="towns")
    by_town = sales.group_by(lambda s: s.town)
    made = [
        sales.where(lambda s: s.price > 3),
        towns.select(len),
        sales.join(towns, on=lambda s, t: s.town == t),
        by_town.aggregate(Count(), Sum(lambda s: s.price), Max(lambda s: s.price)),
        by_town.aggregate(Collect(lambda s: s.price)),
        sales.order_by(lambda s: s.price).limit(3),
        sales.anti_join(towns, on=lambda s, t: s.town == t),
        db.sql(
            "select distinct town from sales "
            "where price not in (select price from sales where id > 4)"
        ),
    ]
    return [relation.materialize() for relation in made]


def rows(view: Any) -> Counter[Any]:
    return Counter(dict(view._contents.items()))


@pytest.mark.parametrize("durability", ["commit", "group", "exit"])
def test_changes_since_any_version_lead_from_the_rows_of_then(durability: Any) -> None:
    for seed in seeds(12):
        random, store = Random(seed), MemoryStore()
        then: dict[int, list[Counter[Any]]] = {}
        for _ in range(3):
            with Database(store=store, durability=durability, keep=100) as db:
                made = views(db)
                sales, towns = db.tables()
                for at, before in then.items():
                    check(made, before, at)
                then.setdefault(db.version, [rows(view) for view in made])
                for _ in range(5):
                    with db.transaction():
                        sales.upsert(
                            Sale(random.randrange(7), random.choice("abc"), random.randrange(9))
                        )
                        towns.add(random.choice("abc"))
                        if random.random() < 0.5:
                            sales.discard(random.choice(list(sales)))
                            towns.discard(random.choice("abc"))
                    then[db.version] = [rows(view) for view in made]
                for at, before in then.items():
                    check(made, before, at)


def check(made: list[Any], before: list[Counter[Any]], at: int) -> None:
    for view, rows_then in zip(made, before, strict=True):
        found = view.changes_since(at)
        assert (found.since, found.version) == (at, view._engine.version)
        now = rows_then.copy()
        for row, weight in found:
            now[row] += weight
        assert {row: n for row, n in now.items() if n} == rows(view)


def test_what_is_not_known_from_the_file_is_said(tmp_path: Path) -> None:
    def begin(keep: int, *, durable: bool = True) -> tuple[Database, Any]:
        db = Database(tmp_path / "x.db", keep=keep)
        words = db.table(str, name="words")
        other = db.table(str, name="other", durable=durable)
        return db, words.union_all(other).materialize("all")

    db, view = begin(0)
    for word in "abcdef":
        db.tables()[0].add(word)
    db.close()
    db, view = begin(3)
    with pytest.raises(
        PlanError, match=r"from version 6 on, not from 2(.|\n)*has the commits after none"
    ):
        view.changes_since(2)
    for word in "ghij":
        db.tables()[0].add(word)
    db.close()
    db, view = begin(3)
    with pytest.raises(PlanError, match=r"has the commits from version 8 on: Database\(path, keep"):
        view.changes_since(7)
    assert sorted(view.changes_since(8)) == [("i", 1), ("j", 1)]
    db.close()
    db, view = begin(3, durable=False)
    with pytest.raises(PlanError, match="table 'other', which it reads, is not durable"):
        view.changes_since(9)
    with pytest.raises(PlanError, match="has no version 11 yet"):
        view.changes_since(11)
    db.close()
    with Database(tmp_path / "x.db", readonly=True) as db:
        view = db.table(str, name="words").materialize()
        with pytest.raises(PlanError, match="its database writes no file"):
            view.changes_since(8)
