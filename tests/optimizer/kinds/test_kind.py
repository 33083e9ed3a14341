"""Annotations as kinds: however one is written, it is read as the same kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
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
    kind_of,
    may_be_none,
    name_of,
    without_none,
)

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
    assert may_be_none(kind_of(annotation)) is has_none
    assert without_none(kind_of(annotation)) == rest
