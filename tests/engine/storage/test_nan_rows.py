"""A row with a value that equals nothing, or equals another, is found again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import attrs
import msgspec
import pytest

from reactive import Database


class Named(NamedTuple):
    id: int
    v: Any


@dataclass(frozen=True)
class Plain:
    id: int
    v: Any


@dataclass(frozen=True, slots=True)
class Slotted:
    id: int
    v: Any


@dataclass(frozen=True, eq=False)
class FieldByField:
    """A row that compares as dataclasses do from Python 3.13 on."""

    id: int
    v: Any

    def __eq__(self, other: object) -> bool:
        if type(other) is not FieldByField:
            return NotImplemented
        return self.id == other.id and bool(self.v == other.v)

    def __hash__(self) -> int:
        return hash((self.id, self.v))


@attrs.frozen
class Attrs:
    id: int
    v: Any


@attrs.frozen(slots=False)
class AttrsInDict:
    id: int
    v: Any


@attrs.frozen(weakref_slot=False)
class AttrsWithoutReferences:
    id: int
    v: Any


class Struct(msgspec.Struct, frozen=True):
    id: int
    v: Any


CLASSES = [
    *(Named, Plain, Slotted, FieldByField, Attrs, AttrsInDict, AttrsWithoutReferences, Struct),
]
VALUES: dict[str, Callable[[], Any]] = {
    "NaN": lambda: float("nan"),
    "Decimal NaN": lambda: Decimal("nan"),
    "None": lambda: None,
    "-0.0": lambda: -0.0,
    "infinity": lambda: math.inf,
    "tuple": lambda: (1, float("nan")),
    "deep tuple": lambda: (1, (Decimal("nan"), None)),
    "record": lambda: Attrs(7, float("nan")),
    "record in a tuple": lambda: (Attrs(7, Attrs(8, Decimal("nan"))),),
}
KEYS: dict[str, Any] = {"none": None, "field": "id", "callable": lambda row: row.id + 1}
WAYS = ["remove", "discard", "update", "count", "upsert", "transaction", "many"]


@pytest.mark.sampled
@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("way", WAYS)
def test_a_row_is_found_again(kind: Any, value: str, key: str, way: str) -> None:
    def row(number: int) -> Any:
        return kind(number, VALUES[value]())

    if way == "upsert" and KEYS[key] is None:
        way = "remove"
    db = Database()
    table = db.table(kind, name="t", key=KEYS[key])
    view = table.select(lambda r: r.v).materialize()
    rows = table.where(lambda r: r.id < 9).materialize()
    table.add_all([row(1), row(2)])
    match way:
        case "remove":
            table.remove(row(1))
        case "discard":
            table.discard(row(1))
        case "update":
            table.update(row(1), kind(3, "new"))
            assert {r.id for r in table} == {2, 3}
            table.remove(kind(3, "new"))
        case "count":
            assert {"none": row(1), "field": 1, "callable": 2}[key] in table
            table.discard(row(1))
        case "upsert":
            table.upsert(row(1))
            assert len(table) == len(rows) == 2
            table.discard(row(1))
        case "transaction":
            with db.transaction():
                table.remove(row(1))
                table.add(row(1))
                table.remove(row(1))
        case _:
            table.remove_all([row(2), row(1)])
            table.add(row(2))
    assert [r.id for r in table] == [r.id for r in rows] == [2]
    assert len(view) == 1
    view.verify()
    rows.verify()
    table.remove(row(2))
    assert not len(table) and not len(view) and not len(rows)
