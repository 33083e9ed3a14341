"""Rows in columns are decoded to equal rows of the same types, or are refused."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Context, Decimal
from enum import Enum, Flag, IntEnum
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow")

from optimizer.kinds.instants import instant
from reactive import OffloadError
from reactive.engine.collections.zset import NAN
from spark_backend.codec.arrow import from_arrow, to_arrow
from spark_backend.codec.schema import (
    Pickled,
    Plain,
    Record,
    common_type,
    describe_encoding,
    kept_as,
    type_name,
)


@dataclass(frozen=True)
class Place:
    street: str
    number: int | None


class Person(NamedTuple):
    name: str
    height: float | None
    home: Place | None
    pair: tuple[bool, Decimal]


class Color(Enum):
    RED = 1
    BLUE = "blue"


class Number(IntEnum):
    ONE = 1


class Bits(Flag):
    A = 1
    B = 2


def local_enum() -> Any:
    class Local(Enum):
        A = 1

    return Local


@dataclass(frozen=True)
class Own:
    x: int

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


@dataclass(frozen=True)
class Half:
    x: int
    note: str = field(compare=False)


@dataclass(frozen=True)
class Checked:
    x: int

    def __post_init__(self) -> None:
        assert self.x


@dataclass(frozen=True)
class Cased:
    name: int
    Name: int


@dataclass(frozen=True)
class Chained:
    after: Chained | None


EXACT = Context(prec=60)
clock = st.times().map(lambda at: at.replace(fold=0))
texts = st.text(st.characters(exclude_categories=["Cs"]))
decimals = st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(n).scaleb(-18, EXACT))


def has_instant(value: datetime) -> bool:
    """Return True if the moment is in the years 1 to 9999 in all zones."""
    return 1 < value.year < 9999


VALUES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers(-(2**63), 2**63 - 1)),
    (float, st.floats()),
    (str, texts),
    (bytes, st.binary()),
    (bool, st.booleans()),
    (date, st.dates()),
    (datetime, st.datetimes().map(lambda d: d.replace(fold=0))),
    (Decimal, decimals),
    (int | None, st.none() | st.integers(0, 9)),
    (UUID, st.uuids()),
    (Color, st.sampled_from(Color)),
    (Color | None, st.none() | st.sampled_from(Color)),
    (time, clock),
    (timedelta, st.timedeltas()),
    (
        Annotated[datetime, UTC],
        st.datetimes(timezones=st.timezones()).filter(has_instant).map(instant),
    ),
    (
        Annotated[datetime, ZoneInfo("Europe/Berlin")],
        st.datetimes(timezones=st.just(UTC)).filter(has_instant),
    ),
    (frozenset[str], st.frozensets(texts)),
    (frozenset[float | None], st.frozensets(st.none() | st.floats(allow_nan=False))),
    (frozenset[frozenset[Color]], st.frozensets(st.frozensets(st.sampled_from(Color)))),
    (tuple[time, ...], st.lists(clock).map(tuple)),
    (tuple[UUID | None, Color], st.tuples(st.none() | st.uuids(), st.sampled_from(Color))),
    (Place, st.builds(Place, texts, st.none() | st.integers(0, 9))),
    (
        Person,
        st.builds(
            Person,
            texts,
            st.none() | st.floats(),
            st.none() | st.builds(Place, texts, st.none()),
            st.tuples(st.booleans(), decimals),
        ),
    ),
]


@pytest.mark.quick
@pytest.mark.parametrize(("kind", "values"), VALUES, ids=lambda v: str(v)[:30])
@settings(deadline=None)
@given(data=st.data())
def test_rows_come_back_equal_and_of_the_same_types(
    kind: Any, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    kept = kept_as(kind)
    assert not isinstance(kept, Pickled)
    rows = data.draw(st.lists(values, max_size=5))
    back = from_arrow(kept, to_arrow(kept, rows))
    assert all(same(a, b) for a, b in zip(rows, back, strict=True))


@given(st.lists(st.none() | st.integers(-(10**38) + 1, 10**38 - 1)))
@example([2**63, None, -(2**64)])
def test_integers_that_were_computed_may_be_beyond_64_bits(values: list[int | None]) -> None:
    wide = Plain(int, optional=True, low=-(10**38) + 1, high=10**38 - 1)
    back = from_arrow(wide, to_arrow(wide, values))
    assert back == values
    assert {type(v) for v in back} <= {int, type(None)}


def same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b) or (a != a and b is NAN)


REFUSED = [
    (int, True, "is of type bool, not int"),
    (int, 2**63, "is beyond 64 bits"),
    (int, None, "is of type NoneType, not int"),
    (float, 1, "is of type int, not float"),
    (str, "\ud800", "half of a surrogate pair"),
    (date, datetime(2024, 1, 1), "is of type datetime, not date"),
    (datetime, datetime(2024, 1, 1, tzinfo=timezone.utc), "time zone"),  # noqa: UP017
    (datetime, datetime(2024, 1, 1, fold=1), "a fold"),
    (time, time(1, fold=1), "a fold"),
    (time, time(1, tzinfo=UTC), "a time zone"),
    (Annotated[datetime, UTC], datetime(2024, 1, 1), "has no time zone"),
    (
        Annotated[datetime, UTC],
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
        "is beyond the years of UTC",
    ),
    (Color, "RED", "is of type str, not Color"),
    (frozenset[int], {1}, r"is of type set, not frozenset\[int\]"),
    (frozenset[int], frozenset({True}), "True is of type bool, not int"),
    (UUID, "a", "is of type str, not UUID"),
    (Decimal, Decimal("1E-19"), "18 digits"),
    (Decimal, Decimal("NaN"), "18 digits"),
    (Decimal, Decimal("1E20"), "18 digits"),
    (tuple[int, str], (1,), "is of length 1"),
    (Place, Place("x", True), r"Place.number: True is of type bool, not int \| None"),
    (Person, Person("x", 1.0, Place("x", 2**70), (True, Decimal(1))), "Person.home: Place.number:"),
]


@pytest.mark.parametrize(("kind", "row", "reason"), REFUSED, ids=str)
def test_what_would_come_back_as_something_else_is_refused(
    kind: Any, row: Any, reason: str
) -> None:
    kept = kept_as(kind)
    assert not isinstance(kept, Pickled)
    with pytest.raises(OffloadError, match=reason):
        to_arrow(kept, [row])


T = TypeVar("T")


@dataclass(frozen=True)
class Of(Generic[T]):
    inside: T


TYPED = [
    (Literal["a", "b"], ["a", "b"], "str"),
    (Literal[1, 2, None], [1, None], "int | None"),
    (Literal["a"] | None, ["a", None], "str | None"),
    (NewType("Euro", Decimal), [Decimal("1.5")], "Decimal"),
    (Annotated[str, "a note"], ["a"], "str"),
    (TypeVar("Bound", bound=int), [1], "int"),
    (tuple[Literal[1], ...], [(1, 1), ()], "tuple[int, ...]"),
    (Of[str], [Of("a")], "Of"),
    (Of[Literal["a"] | None], [Of("a"), Of(None)], "Of"),
    (Literal[Color.RED], [Color.RED], "Color"),
    (Annotated[datetime, UTC], [datetime(2024, 1, 1, tzinfo=UTC)], "datetime of UTC"),
    (frozenset[UUID | None], [frozenset({UUID(int=1), None})], "frozenset[UUID | None]"),
    (Of[frozenset[time]], [Of(frozenset({time(1)}))], "Of"),
]


@pytest.mark.parametrize(("kind", "rows", "name"), TYPED, ids=str)
def test_what_stands_for_a_type_is_kept_as_that(kind: Any, rows: list[Any], name: str) -> None:
    kept = kept_as(kind)
    assert not isinstance(kept, Pickled)
    assert type_name(kept) == name
    assert from_arrow(kept, to_arrow(kept, rows)) == rows


PICKLED = [
    (list, "list has no Spark type"),
    (object, "object has no Spark type"),
    (int | str, r"int \| str is of several types"),
    (list[int], r"list\[int\] has no hash; Bag\[...\] and tuple\[..., ...\] are lists on Spark"),
    (tuple[()], "the empty tuple has no columns"),
    (tuple[int, dict[str, int]], r"dict\[str, int\] has no Spark type"),
    (frozenset, "frozenset has no Spark type"),
    (Number, "members of Number are equal to values that are no members"),
    (Bits, "members of Bits are equal to values that are no members"),
    (local_enum(), r"no worker could import local_enum.<locals>.Local"),
    (Literal[1, "a"], "has no Spark type"),
    (Own, "Own is not equal by its fields"),
    (Half, "Half is not equal by its fields"),
    (Checked, "Checked does more than keep its fields"),
    (Cased, "two fields whose names differ in case only"),
    (Chained, "Chained.after: it contains itself"),
]


@pytest.mark.parametrize(("kind", "reason"), PICKLED, ids=str)
def test_other_types_are_pickled_and_it_is_said_why(kind: Any, reason: str) -> None:
    kept = kept_as(kind)
    assert isinstance(kept, Pickled)
    assert re.search(reason, kept.reason)
    assert describe_encoding(kept) == f"pickled in a binary column ({kept.reason})"


def test_the_columns_of_a_class_are_its_fields() -> None:
    assert describe_encoding(kept_as(Person)) == (
        "columns name: str, height: float | None, home: Place | None, pair: tuple[bool, Decimal]"
    )


def test_what_is_one_or_the_other_is_of_the_wider_type() -> None:
    small, large = Plain(int, low=0, high=1), Plain(int, low=5, high=2**70)
    assert common_type(small, large) == Plain(int, low=0, high=2**70)
    nothing = Plain(type(None), optional=True)
    assert common_type(nothing, small) == Plain(int, optional=True, low=0, high=1)
    both = common_type(Record(tuple, ("_1",), (small,)), Record(tuple, ("_1",), (nothing,)))
    assert both == Record(tuple, ("_1",), (common_type(small, nothing),))
