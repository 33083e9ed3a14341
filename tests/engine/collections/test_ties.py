"""Ties of rows: the order is that of their tie keys; calls of a row among many ties are few."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import permutations
from typing import Any

import attr
import attrs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database
from reactive.engine.collections.order import is_comparable_class, tie_key
from reactive.engine.collections.ties import precedes
from tests.budget import examples
from tests.counted_calls import calls_of


@attr.s(frozen=True, auto_attribs=True)
class Sorted:
    left: Any
    right: Any


@attrs.frozen
class Unsorted:
    left: Any
    right: Any


@attrs.frozen(order=True)
class Keyed:
    left: Any = attrs.field(order=str)
    right: Any = attrs.field(eq=False, default=0)


@attrs.frozen(order=True)
class Own:
    left: Any
    right: Any

    def __lt__(self, other: Own) -> bool:
        return bool(other.right < self.right)


class OwnBelow(Sorted):
    def __eq__(self, other: object) -> bool:
        return isinstance(other, OwnBelow) and self.left == other.left

    __hash__ = Sorted.__hash__


@attrs.frozen(order=True)
class Zoned:
    tzinfo: Any
    right: Any


class Struct(msgspec.Struct, frozen=True):
    left: Any
    right: Any


class SortedStruct(msgspec.Struct, frozen=True, order=True):
    left: Any
    right: Any


@dataclass(frozen=True, order=True)
class Placed:
    left: Any
    right: Any


class Partly:
    """A class with an order of which some values do not compare."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Partly) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __lt__(self, other: Any) -> Any:
        return NotImplemented if self.value == 1 else self.value < other.value


NUMBERS: list[Any] = [False, True, 0, 1, 2, 1.0, 1.5, float("nan"), Decimal(1), Decimal("nan"), 1j]
OTHERS: list[Any] = [None, "a", "b", b"a", Fraction(1, 2), frozenset({1}), date(2024, 1, 1)]
TIMES = [datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)]
PLAIN = st.sampled_from([*NUMBERS, *OTHERS, *TIMES])
CLASSES = (Sorted, Unsorted, Own, OwnBelow, Zoned, Struct, SortedStruct, Placed)
VALUES = st.recursive(
    PLAIN | st.builds(Partly, st.integers(0, 2)),
    lambda inner: (
        st.one_of(
            *(st.builds(kind, inner, inner) for kind in CLASSES), st.builds(Keyed, inner, inner)
        )
        | st.tuples(inner, inner)
    ),
    max_leaves=4,
)


def outcome(ask: Callable[[], object]) -> object:
    try:
        return bool(ask())
    except Exception as error:
        return type(error)


@examples(600)
@given(VALUES, VALUES)
def test_rows_precede_each_other_as_their_tie_keys_say(one: Any, other: Any) -> None:
    if one is other:
        return
    found, wanted = (
        outcome(lambda: precedes(one, other)),
        outcome(lambda: tie_key(one) < tie_key(other)),
    )
    assert found == wanted or wanted is TypeError, (one, other)


@pytest.mark.parametrize("kind", CLASSES)
def test_pairs_of_one_class_are_sorted_as_by_their_tie_keys(kind: Any) -> None:
    some = [kind(left, right) for left in (0, 1, "a", None) for right in (0, "b", 1.5)]
    for one, other in permutations(some, 2):
        wanted = outcome(partial(_is_less, tie_key(one), tie_key(other)))
        assert outcome(partial(precedes, one, other)) == wanted, (one, other)


def _is_less(key: Any, other: Any) -> Any:
    return key < other


def test_classes_without_an_order_are_known() -> None:
    known = {kind.__name__ for kind in (*CLASSES, Keyed) if is_comparable_class(kind)}
    assert known == {kind.__name__ for kind in (*CLASSES, Keyed)} - {"Unsorted", "Struct"}


@pytest.mark.parametrize("kind", [Sorted, Unsorted, Struct, SortedStruct])
def test_a_row_among_many_ties_takes_few_calls(kind: Any) -> None:
    db = Database()
    table: Any = db.table(kind)
    table.add_all([kind(number, 0) for number in range(0, 4000, 2)])
    view = table.order_by(lambda row: row.right).materialize()
    new = [kind(number, 0) for number in range(1, 401, 2)]
    for row in new[:100]:
        table.add(row)
    each = calls_of(lambda: [table.add(row) for row in new[100:]]) / 100
    assert each < 200
    view.verify()
