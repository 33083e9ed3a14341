"""Packed columns are read with equal values of the same classes; other bytes are refused."""

from __future__ import annotations

import pickle
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from random import Random
from typing import Any, Literal, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive.api.extended import row_class
from reactive.borders.durable.rows.packed import Packer, Unpacker, Unreadable
from reactive.borders.durable.rows.values import Unstorable


class Colour(Enum):
    RED = 1
    BLUE = "b"


class Arc(NamedTuple):
    source: Any
    target: Any


@dataclass(frozen=True, slots=True)
class Town:
    name: str
    size: Any


@dataclass(frozen=True)
class Rounded:
    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", round(self.size))


Row = row_class(("town", "total"))
plain = (
    st.integers()
    | st.text(max_size=3)
    | st.booleans()
    | st.none()
    | st.floats(allow_nan=False)
    | st.binary(max_size=3)
    | st.sampled_from(Colour)
    | st.dates()
    | st.datetimes()
    | st.uuids()
    | st.decimals(allow_nan=False)
    | st.fractions()
)
values = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.builds(Arc, inner, inner)
        | st.builds(Town, st.text(max_size=2), inner)
        | st.builds(Row, inner, inner)
    ),
    max_leaves=6,
)


def packed(column: list[Any]) -> bytes:
    packer = Packer()
    packer.column(column)
    return packer.bytes()


def shape(value: Any) -> Any:
    """A value with the classes of all that it is made of."""
    if isinstance(value, tuple):
        return type(value), [shape(part) for part in value]
    if isinstance(value, Town):
        return Town, shape(value.name), shape(value.size)
    return type(value), repr(value)


@pytest.mark.long
@given(st.lists(values, max_size=12))
def test_a_column_comes_back_as_it_was(column: list[Any]) -> None:
    assert list(map(shape, Unpacker(packed(column)).column())) == list(map(shape, column))


@given(
    st.lists(st.integers(-(2**70), 2**70), max_size=9)
    | st.lists(st.floats(allow_nan=False), max_size=9)
    | st.integers(0, 70).flatmap(
        lambda bits: st.lists(
            st.sampled_from([2**bits, 2**bits - 1, -(2**bits), -(2**bits) - 1, 0]), max_size=9
        )
    )
)
def test_a_column_of_numbers_comes_back_as_it_was(column: list[Any]) -> None:
    assert list(map(repr, Unpacker(packed(column)).column())) == list(map(repr, column))


def test_a_column_of_numbers_is_read_where_bytes_are_the_other_way_round() -> None:
    numbers = [1, -2, 300]
    other: Literal["little", "big"] = "big" if sys.byteorder == "little" else "little"
    packer = Packer()
    packer.plain(("array", "h", other, 3))
    packer.plain(b"".join(number.to_bytes(2, other, signed=True) for number in numbers))
    assert Unpacker(packer.bytes()).column() == numbers


@pytest.mark.parametrize("written", [b"", b"123", "text", [1, 2]])
def test_a_column_of_numbers_that_is_none_is_refused(written: Any) -> None:
    packer = Packer()
    packer.plain(("array", "h", sys.byteorder, 2))
    packer.plain(written)
    with pytest.raises(Unreadable):
        Unpacker(packer.bytes()).column()


def test_columns_longer_than_a_pickle_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reactive.borders.durable.rows.packed.SLICE", 7)
    column = [(number, str(number % 3)) for number in range(50)]
    found = Unpacker(packed(column)).column()
    assert found == column
    assert found[0][1] is found[3][1]


@pytest.mark.parametrize(
    "value",
    [
        *(float("nan"), (1, float("nan")), Decimal("nan"), object(), Rounded(2), [1], Colour),
        datetime(2026, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")),
    ],
)
def test_what_would_not_come_back_is_refused(value: Any) -> None:
    with pytest.raises(Unstorable):
        packed([value])


def test_classes_of_a_function_are_refused() -> None:
    @dataclass(frozen=True)
    class Local:
        size: int

    with pytest.raises(Unstorable, match="not found by its name"):
        packed([Local(1)])


def test_nothing_that_is_read_is_run() -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return print, ("run",)

    for bomb in (Bomb(), ("record", "subprocess", "Popen"), ("record", "os", "system")):
        with pytest.raises((Unreadable, Unstorable)):
            Unpacker(pickle.dumps(bomb)).column()


@pytest.mark.long
def test_damage_is_unreadable_or_read_as_a_column() -> None:
    column = [(1, "a", Colour.RED), Arc(1, 2), Town("a", 2), date(2026, 1, 1), timedelta(1), UTC]
    column += [UUID(int=7), Fraction(1, 3), *range(100)]
    whole, random = packed(column), Random(7)
    for _ in range(1_000):
        torn = bytearray(whole)
        for _ in range(random.randint(1, 3)):
            torn[random.randrange(len(torn))] = random.randrange(256)
        end = random.choice([len(torn), random.randrange(len(torn))])
        with suppress(Unreadable, Unstorable):
            assert isinstance(Unpacker(bytes(torn[:end])).column(), list)
