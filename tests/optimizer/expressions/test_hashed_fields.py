"""Fields that every hash of a row reads: they are hashable in every row of a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import attrs
import msgspec
import pytest

from optimizer.expr import Attribute, Parameter
from optimizer.expressions.knowledge import hashable
from reactive import Database


@dataclass(frozen=True)
class Plain:
    key: Any
    other: Any = field(default=0, hash=False)


class Named(NamedTuple):
    key: Any
    other: Any = 0


@attrs.frozen
class Attrs:
    key: Any
    other: Any = attrs.field(default=0, eq=False)


@attrs.frozen
class ByKey:
    key: Any = attrs.field(eq=str)
    other: Any = 0


class Struct(msgspec.Struct, frozen=True):
    key: Any
    other: Any = 0


class OwnHash(msgspec.Struct, frozen=True):
    key: Any
    other: Any = 0

    def __hash__(self) -> int:
        return 1


class Identity(msgspec.Struct, frozen=True, eq=False):
    key: Any
    other: Any = 0


CLASSES = (Plain, Named, Attrs, ByKey, Struct, OwnHash, Identity)


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("name", ["key", "other"])
def test_a_field_counts_as_hashable_only_if_rows_without_are_refused(kind: Any, name: str) -> None:
    try:
        hash(kind(**{"key": 1, "other": 1} | {name: []}))
        is_read = False
    except TypeError:
        is_read = True
    told = hashable(Attribute(Parameter(0), name), (kind,))
    assert is_read or not told


@pytest.mark.parametrize("kind", [Plain, Named, Attrs, Struct])
def test_keys_of_plain_rows_are_counted_without_an_index(kind: Any) -> None:
    db = Database()
    left, right = db.table(kind, name="left"), db.table(kind, name="right")
    view = left.semi_join(right, on=lambda a, b: a.key == b.key).materialize()
    left.add_all([kind(1), kind(2)])
    right.add_all([kind(1, 1), kind(1, 2)])
    assert "keys by b.key" in str(view.explain())
    assert list(view) == [kind(1)]
