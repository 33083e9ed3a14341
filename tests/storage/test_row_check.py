"""None in a field that is not optional is refused by every way into a table."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, make_dataclass
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypeVar

import attrs
import msgspec
import pydantic
import pytest

from reactive import Database, Table, TableError

T = TypeVar("T")
Word = NewType("Word", str)


@dataclass(frozen=True)
class Plain:
    id: int
    word: str
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Slots:
    id: int
    word: str
    weight: float = 0.0
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Wide:
    id: int
    word: str
    tags: tuple[str, ...] = ()
    note: str | None = None


class Named(NamedTuple):
    id: int
    word: str
    note: str | None = None


@attrs.frozen
class Attrs:
    id: int
    word: str
    note: str | None = None


class Struct(msgspec.Struct, frozen=True):
    id: int
    word: str
    note: str | None = None


class Model(pydantic.BaseModel, frozen=True):
    id: int
    word: str
    note: str | None = None

    @classmethod
    def unchecked(cls, number: int, word: Any) -> Model:
        return cls.model_construct(id=number, word=word, note=None)


CLASSES: list[Any] = [Plain, Slots, Wide, Named, Attrs, Struct, Model]
WAYS: dict[str, Callable[[Any, Any, Any], object]] = {
    "add": lambda table, row, good: table.add(row),
    "add_all": lambda table, row, good: table.add_all([good, row]),
    "replace_all": lambda table, row, good: table.replace_all([good, row]),
    "update": lambda table, row, good: table.update(next(iter(table)), row),
    "upsert": lambda table, row, good: table.upsert(row),
    "upsert_all": lambda table, row, good: table.upsert_all([good, row]),
    "+=": lambda table, row, good: table.__iadd__(row),
}


def made(kind: Any, number: int, word: Any) -> Any:
    return kind.unchecked(number, word) if kind is Model else kind(number, word)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("loaded", [1, 100])
@pytest.mark.parametrize("key", [None, "id"])
@pytest.mark.parametrize("kind", CLASSES)
def test_every_way_in_refuses_none(kind: Any, key: str | None, loaded: int, strict: bool) -> None:
    table: Any = Database(strict=strict).table(kind, name="rows", key=key)
    table.add_all([made(kind, n, "a") for n in range(loaded)])
    before = sorted(map(repr, table))
    for way, put in WAYS.items():
        if key is None and way.startswith("upsert"):
            continue
        with pytest.raises(TableError, match="'rows': field 'word' is None") as refused:
            put(table, made(kind, 1000, None), made(kind, 1001, "b"))
        assert "id=1000, word=None" in str(refused.value), way
        assert "declare `word: str | None`" in str(refused.value), way
    many = [made(kind, n, None if n == 2150 else "c") for n in range(2000, 2200)]
    with pytest.raises(TableError, match="id=2150"):
        table.add_all(many)
    assert sorted(map(repr, table)) == before
    table.add_all(many[:150])
    assert len(table) == loaded + 150


@pytest.mark.parametrize(
    "hint",
    [
        *(int | None, Optional[int], Any, object, None, T, Literal["a", None], Hashable),  # noqa: UP045
        *(int | Literal[1, None], Annotated[int | None, "x"], "int | None", "Unknown"),
    ],
    ids=str,
)
def test_none_is_taken_where_it_is_declared(hint: Any) -> None:
    kind = make_dataclass("Row", [("id", int), ("field", hint)], frozen=True)
    table: Any = Database().table(kind)
    table.add(kind(1, None))
    table.add_all([kind(n, None) for n in range(2, 200)])
    assert len(table) == 199


@pytest.mark.parametrize(
    "hint",
    [
        *(int, "int", Word, list[None], Literal["a"], Annotated[int, "x"], int | str, Plain),
        *(tuple[None, int], dict[str, None], Table, type, Callable[[], None], frozenset[Any]),
    ],
    ids=str,
)
def test_none_is_refused_where_it_is_not(hint: Any) -> None:
    kind = make_dataclass("Row", [("id", int), ("field", hint)], frozen=True)
    table: Any = Database().table(kind)
    with pytest.raises(TableError, match="field 'field' is None"):
        table.add(kind(1, None))
    assert len(table) == 0


@dataclass(frozen=True)
class Box(Generic[T]):
    value: T


@pytest.mark.parametrize(
    ("row_type", "row", "where"),
    [
        (tuple[int, str], (1, None), "item 1"),
        (tuple[int, ...], (1, None), "an item"),
        (frozenset[int], frozenset({None}), "an item"),
        (Box[int], Box(None), "field 'value'"),
        (Plain | Named, Named(1, None), "field 'word'"),  # type: ignore[arg-type]
        (object, Named(1, None), "field 'word'"),  # type: ignore[arg-type]
        (int, None, "takes rows of int"),
    ],
)
def test_rows_of_other_types_are_looked_at(row_type: Any, row: Any, where: str) -> None:
    table = Database().table(row_type, name="rows")
    with pytest.raises(TableError, match=where):
        table.add(row)


@pytest.mark.parametrize(
    ("row_type", "row"),
    [
        (tuple[int, str | None], (1, None)),
        (tuple[Any, ...], (None,)),
        (tuple, (None,)),
        (Box[int | None], Box(None)),
        (Box, Box(None)),
        (int | None, None),
    ],
)
def test_rows_of_other_types_may_have_none(row_type: Any, row: Any) -> None:
    table = Database().table(row_type, name="rows")
    table.add(row)
    assert list(table) == [row]


def test_a_statement_of_sql_is_refused() -> None:
    db = Database()
    rows = db.table(Plain, name="rows", key="id")
    rows.add(Plain(1, "a"))
    for text in (
        "insert into rows (id, word) values (2, null)",
        "insert into rows (id) values (2)",
        "update rows set word = null",
        "insert into rows select id + 1, note, note from rows",
    ):
        with pytest.raises(TableError, match=r"'word' (is None|of table 'rows' is NOT NULL)"):
            db.execute(text)
    assert list(rows) == [Plain(1, "a")]


def test_a_transaction_is_undone() -> None:
    db = Database()
    rows = db.table(Slots, name="rows")
    with pytest.raises(TableError, match="field 'weight' is None"), db.transaction():
        rows.add(Slots(1, "a"))
        rows.add(Slots(2, "a", None))  # type: ignore[arg-type]
    assert len(rows) == 0


def test_no_field_is_asked_where_all_are_optional() -> None:
    kind = make_dataclass("Row", [("id", Any), ("note", str | None)], frozen=True)
    table = Database().table(kind)
    assert table._do.gate._check_of(kind).is_unfit is None
