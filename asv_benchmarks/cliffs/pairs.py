"""Joins whose pairs are the result: over tables that are filled, loaded, and of one key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from asv_benchmarks.cliffs.cliff import Cliff, Sides, Timed
from asv_benchmarks.shapes import SEED
from reactive import Database, Relation, Table


@dataclass(frozen=True, slots=True)
class Item:
    id: int
    owner: int
    size: int


@dataclass(frozen=True, slots=True)
class Owner:
    id: int
    kind: int


class ItemTuple(NamedTuple):
    id: int
    owner: int
    size: int


class OwnerTuple(NamedTuple):
    id: int
    kind: int


Types = tuple[type[Any], type[Any]]
CLASSES: Types = Item, Owner
TUPLES: Types = ItemTuple, OwnerTuple
Tables = tuple[Table[Any], Table[Any]]
Asked = Callable[[Table[Item], Table[Owner]], Relation[*tuple[Any, ...]]]


def pairs(items: Table[Item], owners: Table[Owner]) -> Relation[*tuple[Any, ...]]:
    """Items with their owners."""
    return items.join(owners, on=lambda i, o: i.owner == o.id)


def ids(items: Table[Item], owners: Table[Owner]) -> Relation[*tuple[Any, ...]]:
    """Something of both."""
    joined = items.join(owners, on=lambda i, o: i.owner == o.id)
    return joined.select(lambda i, o: (i.id, o.kind))


def over_filled(
    asked: Asked, of: Callable[[Item, Owner], Any], types: Types = CLASSES
) -> Callable[[int], Sides]:
    """The view is made; by hand: both tables by their keys, and the pairs as counts."""

    def sides(size: int) -> Sides:
        items, owners = _rows(size, types)
        tables = _tables(types)
        tables[1].add_all(owners)
        tables[0].add_all(items)
        return (
            Timed(
                lambda kept: kept.append(asked(*tables).materialize()),
                size,
                list,
                lambda kept: dict(kept[0].items()),
            ),
            Timed(
                lambda kept: kept.append(_by_hand(items, owners, of)),
                size,
                list,
                lambda kept: kept[0],
            ),
        )

    return sides


def load(size: int) -> Sides:
    """Load the items under the view; by hand, store them too, once each."""
    items, owners = _rows(size)

    def ready() -> tuple[Table[Item], Any]:
        tables = _tables()
        tables[1].add_all(owners)
        return tables[0], pairs(*tables).materialize()

    def by_hand(kept: list[Any]) -> None:
        kept.append(_by_hand(items, owners, _both))
        kept.append({item: item for item in items})

    return (
        Timed(
            lambda state: state[0].add_all(items),
            size,
            ready,
            lambda state: dict(state[1].items()),
        ),
        Timed(by_hand, size, list, lambda kept: kept[0]),
    )


def partners(*, comes: bool) -> Callable[[int], Sides]:
    """Insert or delete an owner of all items; by hand, store or drop the pairs."""

    def sides(size: int) -> Sides:
        items = [Item(number, 1, number % 10) for number in range(size)]
        owner = Owner(1, 1)
        tables = _tables()
        tables[0].add_all(items)
        view = pairs(*tables).materialize()
        shown: dict[Any, int] = {}

        def ready() -> None:
            for present, add, remove in (
                (owner in tables[1], tables[1].add, tables[1].remove),
                (bool(shown), put, take),
            ):
                if present == comes:
                    (remove if comes else add)(owner)

        def put(owner: Owner) -> None:
            for item in items:
                shown[item, owner] = 1

        def take(owner: Owner) -> None:
            for item in items:
                del shown[item, owner]

        ours = tables[1].add if comes else tables[1].remove
        its = put if comes else take
        return (
            Timed(lambda state: ours(owner), size, ready, lambda state: dict(view.zset().items())),
            Timed(lambda state: its(owner), size, lambda: None, lambda state: dict(shown)),
        )

    return sides


def _by_hand(
    items: list[Item], owners: list[Owner], of: Callable[[Item, Owner], Any]
) -> dict[Any, int]:
    of_key: dict[int, list[Owner]] = {}
    with_key: dict[int, list[Item]] = {}
    shown: dict[Any, int] = {}
    for owner in owners:
        of_key.setdefault(owner.id, []).append(owner)
    for item in items:
        with_key.setdefault(item.owner, []).append(item)
        for owner in of_key.get(item.owner, ()):
            row = of(item, owner)
            shown[row] = shown.get(row, 0) + 1
    return shown


def _rows(size: int, types: Types = CLASSES) -> tuple[list[Any], list[Any]]:
    (item, owner), random, number = types, Random(SEED), max(1, size // 10)
    return (
        [item(each, random.randrange(number), each % 10) for each in range(size)],
        [owner(each, each % 7) for each in range(number)],
    )


def _tables(types: Types = CLASSES) -> Tables:
    db = Database()
    return db.table(types[0], name="items"), db.table(types[1], name="owners")


def _both(item: Item, owner: Owner) -> tuple[Item, Owner]:
    return item, owner


def _ids(item: Item, owner: Owner) -> tuple[int, int]:
    return item.id, owner.kind


FILLED = "pairs of a join, a view over filled tables"
SIZE, PARTNERS = 50_000, 20_000
CLIFFS = (
    Cliff(FILLED, "twin", over_filled(pairs, _both), SIZE, most=1.5),
    Cliff(f"{FILLED} of tuples", "twin", over_filled(pairs, _both, TUPLES), SIZE, most=1.5),
    Cliff(f"{FILLED}, `select`", "twin", over_filled(ids, _ids), SIZE, most=1.5),
    Cliff("pairs of a join, load", "twin", load, SIZE, most=1.5),
    Cliff("20,000 partners of one key come", "twin", partners(comes=True), PARTNERS, most=1.5),
    Cliff("20,000 partners of one key go", "twin", partners(comes=False), PARTNERS, most=1.5),
)
