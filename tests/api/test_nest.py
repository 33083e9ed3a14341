"""`nest`: for each row the rows that a query gives for it, to any depth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import Bag, Database, Delta, Edit


class Row(NamedTuple):
    id: int
    ref: int
    n: float | None


LINKS: list[Callable[[Any], Callable[[Any], Any]]] = [
    lambda c: lambda o: o.ref == c.id,
    lambda c: lambda o: o.n == c.n,
    lambda c: lambda o: o.ref == c.id and o.id < 3,
    lambda c: lambda o: o.ref < c.ref,
    lambda c: lambda o: True,
]
FAR = [
    lambda b, c: lambda o: o.ref == c.id and o.id != b.id,
    lambda b, c: lambda o: o.id == b.ref,
]
"""What reads the row two levels further out, too."""


@dataclass
class Shape:
    """A nested query: which table, what it has in common with the rows around, and what is inside.
    `first` is how many rows there are in the order of their numbers; None: they have no order."""

    table: str
    link: Callable[..., Any]
    is_far: bool
    first: int | None
    inside: dict[str, Shape]


def drawn(random: Random, depth: int, level: int = 0) -> Shape:
    count = random.choice((1, 1, 2)) if depth > 1 else 0
    is_far = level > 1 and random.random() < 0.5
    links: list[Any] = FAR if is_far else LINKS
    return Shape(
        random.choice("abc"),
        random.choice(links),
        is_far,
        random.choice((None, None, 1, 2, 9)),
        {name: drawn(random, depth - 1, level + 1) for name in "xy"[:count]},
    )


def order(row: Any) -> Any:
    return (-row.id, row.ref)


def query(tables: dict[str, Any], shape: Shape, *around: Any) -> Any:
    """The relation of a shape, given what stands for the rows around it."""
    made = tables[shape.table]
    if around:
        made = made.where(shape.link(*around[-2:]) if shape.is_far else shape.link(around[-1]))
    if shape.first is not None and around:
        made = made.order_by(order)
        made = made if shape.first == 9 else made.limit(shape.first)
    if not shape.inside:
        return made
    inside = {name: asked(tables, each, around) for name, each in shape.inside.items()}
    return made.nest(**inside)


def asked(tables: dict[str, Any], shape: Shape, around: tuple[Any, ...]) -> Callable[[Any], Any]:
    return lambda row: query(tables, shape, *around, row)


def expected(rows: dict[str, list[Row]], shape: Shape, *around: Any) -> Any:
    """The same by plain Python."""
    found = rows[shape.table]
    if around:
        test = shape.link(*around[-2:]) if shape.is_far else shape.link(around[-1])
        found = [row for row in found if test(row)]
    is_ordered = shape.first is not None and bool(around)
    if is_ordered:
        found = sorted(found, key=lambda row: (order(row), row.n is not None, str(row.n)))
        found = found[: shape.first]
    made: list[Any] = found
    if shape.inside:
        made = [
            (row, *(expected(rows, each, *around, row) for each in shape.inside.values()))
            for row in found
        ]
    return tuple(made) if is_ordered else Bag(made)


def change(random: Random, db: Database, tables: dict[str, Any]) -> None:
    """One to three rows that come, go or are another then, in one commit."""
    with db.transaction():
        for _ in range(random.choice((1, 1, 3))):
            table = tables[random.choice("abc")]
            held = list(table)
            if held and random.random() < 0.4:
                table.remove(random.choice(held))
            elif held and random.random() < 0.3:
                old = random.choice(held)
                table.update(old, old._replace(ref=random.randrange(4)))
            else:
                n = random.choice((None, 1.0, 2.0, float("nan")))
                table.add(Row(random.randrange(4), random.randrange(4), n))


class Copy:
    """Rows that are known from nothing but edits."""

    def __init__(self, view: Any) -> None:
        self.rows: Bag[Any] = Bag([])
        self.subscription = view.subscribe(self.receive, snapshot=True)

    def receive(self, delta: Delta[Any]) -> None:
        for edit in delta.edits:
            self.rows = edited(self.rows, edit.path, edit)


def edited(rows: Any, path: tuple[Any, ...], edit: Edit) -> Any:
    """Rows after an edit at a path below them. Those with its key change, all copies of them."""
    if path:
        key, name, *below = path
        found = [row for row in rows if row.row == key]
        assert found, f"{edit} changes what is not there"
        kind = type(rows)
        return kind(change_in(row, name, below, edit) if row in found else row for row in rows)
    if isinstance(rows, tuple):
        made, at = list(rows), edit.position
        if edit.weight > 0:
            made.insert(at, edit.row)
        else:
            assert made.pop(at) == edit.row
        return tuple(made)
    counts = dict(rows.items())
    counts[edit.row] = counts.get(edit.row, 0) + edit.weight
    assert counts[edit.row] >= 0, edit
    return Bag({row: count for row, count in counts.items() if count})


def change_in(row: Any, name: str, path: Any, edit: Edit) -> Any:
    return row._replace(**{name: edited(getattr(row, name), tuple(path), edit)})


@pytest.mark.parametrize("seed", range(24))
def test_a_nest_is_what_comprehensions_give(seed: int) -> None:
    random = Random(seed)
    db = Database(optimize=seed % 4 != 3)
    tables = {name: db.table(Row, name=name) for name in "abc"}
    shape = drawn(random, depth=random.choice((2, 3, 4)))
    view = query(tables, shape).materialize()
    copy = Copy(view)
    inner: list[Delta[Any]] = []
    name, key = next(iter(shape.inside)), Row(1, 1, None)
    hears = view.subscribe(inner.append, path=(key, name), snapshot=True)
    for _ in range(8):
        change(random, db, tables)
        rows = {name: list(table) for name, table in tables.items()}
        assert Bag(view) == expected(rows, shape)
        view.verify()
        assert (copy.rows, copy.subscription.error) == (Bag(view), None)
        at_key = getattr(view.get(key), name, ())
        assert added_up(inner) == Bag(at_key), hears.error
    late = query(tables, shape).materialize()
    assert Bag(late) == Bag(view)
    for table in tables.values():
        table.clear()
    assert not len(view) and not copy.rows and not added_up(inner)


def added_up(deltas: list[Delta[Any]]) -> Bag[Any]:
    counts: Counter[Any] = Counter()
    for delta in deltas:
        for row, weight in delta:
            counts[row] += weight
    return Bag({row: count for row, count in counts.items() if count})
