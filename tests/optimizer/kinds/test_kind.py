"""Annotations as kinds: however one is written, it is read as the same kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, make_dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    Optional,
    TypeVar,
    Union,
)

import pytest
from typing_extensions import TypeAliasType

from optimizer.expr import Attribute, Parameter
from optimizer.expressions.simplification import holds_no_nan, is_no_tuple, is_not_none, tuple_width
from optimizer.kinds.kind import (
    ANYTHING,
    NONE,
    Choice,
    Either,
    Instance,
    Items,
    Kind,
    Members,
    Places,
    Scalar,
    Struct,
    Table,
    class_of,
    declares_none,
    kind_of,
    name_of,
    without_none,
)
from optimizer.plan import Table as PlanTable
from optimizer.plans.declared_kinds import kind_of_type
from optimizer.plans.nodes.sources import _shapes_of_table
from optimizer.subqueries.error_freedom import RowFacts
from optimizer.subqueries.error_freedom import kinds as kinds_of_value
from reactive import Database, TableError
from reactive.engine.collections.zset import is_hashable, nan_fields
from reactive.engine.storage.rows import nan_texts
from reactive.engine.storage.rows import row_class_of as class_of_rows

T = TypeVar("T")
INT, STR = Scalar(int), Scalar(str)


class Colour(Enum):
    RED = 1


class Plain:
    pass


class Pair(NamedTuple):
    a: int
    b: Missing  # type: ignore[name-defined]  # noqa: F821


@dataclass(frozen=True)
class Box(Generic[T]):
    inside: T
    many: tuple[T, ...]


@dataclass(frozen=True)
class Tree:
    below: tuple[Tree, ...]


UserId = NewType("UserId", int)
Names = TypeAliasType("Names", tuple[str, ...])
ListOf = TypeAliasType("ListOf", tuple[T, ...], type_params=(T,))


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        (int, INT),
        (None, NONE),
        (Any, ANYTHING),
        (object, ANYTHING),
        ("Later", ANYTHING),
        (T, ANYTHING),
        (TypeVar("B", bound=int), INT),
        (TypeVar("C", int, str), Either((INT, STR))),
        (UserId, INT),
        (Annotated[UserId, "note"], INT),
        (Annotated[datetime, UTC], Scalar(datetime, UTC)),
        (Final[int], INT),
        (Optional[int], Either((INT, NONE))),  # noqa: UP045
        (int | None, Either((INT, NONE))),
        (Union[int, str | None], Either((INT, STR, NONE))),  # noqa: UP007
        (Literal["a", 1], Choice(("a", 1))),
        (Colour, Members(Colour)),
        (tuple[int, str], Places((INT, STR))),
        (tuple[()], Places(())),
        (tuple[int, ...], Items(tuple, INT)),
        (tuple, Items(tuple, ANYTHING)),
        (list[int], Items(list, INT)),
        (frozenset[str], Items(frozenset, STR)),
        (Sequence[int], Items(tuple, INT)),
        (Set[int], Items(frozenset, INT)),
        (dict[str, int], Table(dict, STR, INT)),
        (Mapping[str, int], Table(dict, STR, INT)),
        (Mapping, Table(dict, ANYTHING, ANYTHING)),
        (Names, Items(tuple, STR)),
        (ListOf[int], Items(tuple, INT)),
        (Plain, Instance(Plain)),
        (Box[int], Struct(Box, (int,))),
    ],
)
def test_an_annotation_is_read_as_its_kind(annotation: Any, kind: Kind) -> None:
    assert kind_of(annotation) == kind
    assert kind_of(kind) is kind
    assert name_of(kind)


def test_a_generic_class_has_fields_of_its_arguments() -> None:
    found = kind_of(Box[int])
    assert isinstance(found, Struct)
    assert found.fields == {"inside": INT, "many": Items(tuple, INT)}


def test_a_class_may_hold_others_of_its_own() -> None:
    assert Struct(Tree).fields == {"below": Items(tuple, Struct(Tree))}


def test_a_name_that_is_not_there_leaves_the_other_fields_as_they_are() -> None:
    assert Struct(Pair).fields == {"a": INT, "b": ANYTHING}


@pytest.mark.parametrize(
    ("annotation", "has_none", "rest"),
    [
        (int | None, True, INT),
        (Literal["a", None], True, Choice(("a",))),
        (None, True, NONE),
        (int, False, INT),
        (Any, False, ANYTHING),
    ],
)
def test_none_is_told_apart_from_the_other_values(
    annotation: Any, has_none: bool, rest: Kind
) -> None:
    assert declares_none(kind_of(annotation)) is has_none
    assert without_none(kind_of(annotation)) == rest


Two = NewType("Two", tuple[int, str])
ONE_KIND: list[list[Any]] = [
    [int, Annotated[int, "pieces"], NewType("Pieces", int), Final[int]],
    [tuple[int, str], Annotated[tuple[int, str], "pair"], Two],
    [str | None, Optional[str], Annotated[str | None, "note"], Optional[Annotated[str, "note"]]],  # noqa: UP045
    [Any, Any | None, Optional[Any], object],  # noqa: UP045
]
"""Ways to write one annotation. Of `Any` also with None, which it admits."""


def read_by(of: Any) -> list[Any]:
    """Return each reader's result for an annotation, of rows and of a field."""
    made: Any = make_dataclass("Row", [("v", of)], frozen=True)
    field = Attribute(Parameter(0), "v")
    return [
        _shapes_of_table(PlanTable(1, "rows", None, True, of), ()),
        tuple_width(of),
        class_of_rows(of),
        kinds_of_value(field, RowFacts((made,))),
        [test(field, (made,)) for test in (is_not_none, is_no_tuple, holds_no_nan)],
        nan_fields(made),
        nan_texts(made),
        is_hashable(made),
        kind_of_type(of),
    ]


@pytest.mark.parametrize("written", ONE_KIND, ids=lambda each: str(each[0]))
def test_all_readers_see_one_kind_however_it_is_written(written: list[Any]) -> None:
    wanted, *others = map(read_by, written)
    for way, found in zip(written[1:], others, strict=True):
        assert found == wanted, way


@pytest.mark.parametrize("written", ONE_KIND[:-1], ids=lambda each: str(each[0]))
def test_a_table_takes_rows_however_its_class_is_written(written: list[Any]) -> None:
    row: Any = {0: 7, 1: (1, "a"), 2: "note"}[ONE_KIND.index(written)]
    for way in written:
        if way is not Final[int]:
            table: Any = Database().table(way, name="rows")
            table.add(row)
            assert list(table.where(lambda each: each == row).materialize()) == [row], way
            with pytest.raises(TableError, match="takes rows of"):
                table.add(1.5)


def test_a_choice_with_none_may_be_none() -> None:
    made: Any = make_dataclass("Row", [("v", Literal["a", None])], frozen=True)
    assert not is_not_none(Attribute(Parameter(0), "v"), (made,))


def test_one_annotation_that_is_not_known_yet_leaves_the_others() -> None:
    made: Any = make_dataclass("Row", [("v", int), ("later", "Unknown")], frozen=True)
    assert is_not_none(Attribute(Parameter(0), "v"), (made,))
    assert nan_fields(made) == ("later",)


def test_an_abstract_class_is_that_of_the_values() -> None:
    assert class_of(kind_of(Sequence[int])) is Sequence
    assert class_of_rows(Mapping[str, int] | None) == (Mapping, type(None))
