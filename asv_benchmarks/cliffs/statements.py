"""Transactions and lists of one, updates, `replace_where`, SQL, `&` beside `and`, refused rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from asv_benchmarks.cliffs.cliff import Cliff, Sides, Timed
from asv_benchmarks.turns import Ear
from reactive import Count, Database, Relation, Sum, Table

CHANGES = 200


class Sold(NamedTuple):
    id: int
    key: int
    amount: int


def in_transaction(size: int) -> Sides:
    """Run each statement in its own transaction, under a view that has a subscriber."""
    return _summed(size, _in_transactions), _summed(size, _plainly)


def updates(size: int) -> Sides:
    """Rows replaced by themselves; the neighbour replaces them by others and back."""
    return _summed(size, _by_itself), _summed(size, _by_another)


def lists(size: int) -> Sides:
    """Rows added by `add_all`, in lists of one; the neighbour adds them."""
    return _summed(size, _as_lists), _summed(size, _plainly)


def replaced(size: int) -> Sides:
    """Rows of one key replaced by themselves, found by a condition; the neighbour knows them."""
    return _summed(size, _by_condition), _summed(size, _as_given)


def executed(size: int) -> Sides:
    """One row updated by its key in SQL, and by `update`."""
    return _keyed(size, _by_statement), _keyed(size, _by_key)


def _as_lists(db: Database, sold: Table[Sold], rows: list[Sold]) -> None:
    for row in rows:
        sold.remove_all([row])
        sold.add_all([row])


def _by_condition(db: Database, sold: Table[Sold], rows: list[Sold]) -> None:
    for key in range(10):
        new = [row._replace(amount=row.amount + 1) for row in sold if row.key == key]
        for each in (new, [row._replace(amount=row.amount - 1) for row in new]):
            sold.replace_where(lambda s: s.key == key, each)


def _as_given(db: Database, sold: Table[Sold], rows: list[Sold]) -> None:
    for key in range(10):
        old = [row for row in sold if row.key == key]
        new = [row._replace(amount=row.amount + 1) for row in old]
        for gone, come in ((old, new), (new, old)):
            with db.transaction():
                sold.remove_all(gone)
                sold.add_all(come)


def _by_statement(db: Database, sold: Any, rows: list[Sold]) -> None:
    for row in rows:
        db.execute("update sold set amount = :amount where id = :id", amount=-1, id=row.id)
        db.execute("update sold set amount = :amount where id = :id", amount=row.amount, id=row.id)


def _by_key(db: Database, sold: Any, rows: list[Sold]) -> None:
    for row in rows:
        sold.update(row.id, amount=-1)
        sold.update(row.id, amount=row.amount)


def _keyed(size: int, do: Callable[[Database, Any, list[Sold]], None]) -> Timed:
    db = Database()
    sold = db.table(Sold, name="sold", key="id")
    rows = _rows(size)
    sold.add_all(rows)
    view = sold.where(lambda s: s.amount < 0).materialize()
    some = rows[:CHANGES]
    return Timed(lambda _: do(db, sold, some), 2 * len(some), lambda: None, lambda _: len(view))


def _in_transactions(db: Database, sold: Table[Sold], rows: list[Sold]) -> None:
    for row in rows:
        with db.transaction():
            sold.remove(row)
        with db.transaction():
            sold.add(row)


def _plainly(db: Database, sold: Table[Sold], rows: list[Sold]) -> None:
    for row in rows:
        sold.remove(row)
        sold.add(row)


def _by_itself(db: Database, sold: Table[Sold], rows: list[Sold]) -> None:
    for row in rows:
        sold.update(row, row)
        sold.update(row, row)


def _by_another(db: Database, sold: Table[Sold], rows: list[Sold]) -> None:
    for row in rows:
        other = row._replace(amount=-1)
        sold.update(row, other)
        sold.update(other, row)


def _summed(size: int, do: Callable[[Database, Table[Sold], list[Sold]], None]) -> Timed:
    db, ear = Database(), Ear()
    sold = db.table(Sold, name="sold")
    rows = _rows(size)
    sold.add_all(rows)
    view = sold.group_by(lambda s: s.key).aggregate(Sum(lambda s: s.amount), Count()).materialize()
    subscription = view.subscribe(ear.delta)
    some = rows[:CHANGES]

    def result(state: object) -> object:
        return subscription is not None, dict(view.zset().items())

    return Timed(lambda state: do(db, sold, some), 2 * len(some), lambda: None, result)


Tables = tuple[Table[Sold], Table[Sold], Table[Sold]]


def ampersand(a: Table[Sold], b: Table[Sold], c: Table[Sold]) -> Relation[*tuple[Any, ...]]:
    """Keys in conditions that `&` connects."""
    return a.join(b).join(c, on=lambda a, b, c: (a.key == b.key) & (c.key == b.key))


def conjunction(a: Table[Sold], b: Table[Sold], c: Table[Sold]) -> Relation[*tuple[Any, ...]]:
    """Keys in conditions that `and` connects."""
    return a.join(b).join(c, on=lambda a, b, c: a.key == b.key and c.key == b.key)


def joined(size: int) -> Sides:
    """Three tables are filled below a view of their pairs."""
    return _joined(size, ampersand), _joined(size, conjunction)


def _joined(size: int, asked: Callable[..., Relation[*tuple[Any, ...]]]) -> Timed:
    rows = [Sold(number, number, number % 10) for number in range(size)]

    def ready() -> tuple[Tables, Any]:
        db = Database()
        tables = db.table(Sold, name="a"), db.table(Sold, name="b"), db.table(Sold, name="c")
        return tables, asked(*tables).materialize()

    def do(state: tuple[Tables, Any]) -> None:
        for table in state[0]:
            table.add_all(rows)

    return Timed(do, 3 * size, ready, lambda state: dict(state[1].items()))


class Billed(NamedTuple):
    id: int
    key: int
    amount: Any


def refused(size: int) -> Sides:
    """Changes below a sum over a join, after a row that cannot be summed; and without one."""
    return _billed(size, Billed(-1, 5, None)), _billed(size, None)


def _billed(size: int, odd: Billed | None) -> Timed:
    db = Database()
    bills, sold = db.table(Billed, name="bills"), db.table(Sold, name="sold")
    sold.add_all(_rows(100))
    bills.add_all(Billed(number, number % 100, 1) for number in range(size))
    both = bills.join(sold, on=lambda b, s: b.key == s.key)
    groups = both.group_by(lambda b, s: s.amount)
    view = groups.aggregate(Sum(lambda b, s: b.amount)).materialize()
    if odd is not None:
        with suppress(TypeError):
            bills.add(odd)
    some = [Billed(-number, number % 100, 2) for number in range(2, CHANGES)]

    def do(state: object) -> None:
        for row in some:
            bills.add(row)
            bills.remove(row)

    return Timed(do, 2 * len(some), lambda: None, lambda state: dict(view.zset().items()))


def _rows(size: int) -> list[Sold]:
    return [Sold(number, number % 100, number % 10) for number in range(size)]


CLIFFS = (
    Cliff("a transaction of one statement", "the statement", in_transaction, 5_000, most=1.3),
    Cliff("`update(x, x)`", "`update(x, y)`", updates, 5_000, most=1.0),
    Cliff("`add_all([x])`", "`add(x)`", lists, 5_000, most=1.5),
    Cliff("`replace_where` of 50 rows by a field", "these rows", replaced, 5_000, most=1.5),
    Cliff('`db.execute("update ... where id = :id")`', "`update`", executed, 5_000, most=3.0),
    Cliff("`(a.k == b.k) & (c.k == b.k)`, load", "`and`", joined, 3_000, most=1.3),
    Cliff("changes after a refused row", "without it", refused, 20_000, most=1.3),
)
