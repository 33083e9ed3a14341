"""None in a field that is not optional is refused by every way into a table."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, make_dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypeVar

import attrs
import msgspec
import pydantic
import pytest

from reactive import Database, Table, TableError, tracked
from reactive.engine.transactions.row_gate import RowGate

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
    table: Any = Database().table(kind)
    assert table._do.gate._check_of(kind).is_unfit is None


def _named(value: object) -> str:
    """Return the same name of a value in each process: the order of a set is another in each."""
    return str(sorted(value)) if isinstance(value, frozenset) else str(value)


@pytest.mark.parametrize(
    ("hint", "good", "bad"),
    [
        (int, True, 1.5),
        (float, 1, "1"),
        (date, date(2026, 1, 1), datetime(2026, 1, 1)),
        (str | None, None, b"a"),
        (Literal["a", 1], 1, True),
        (tuple[int, ...], (1, 2), (1, "a")),
        (tuple[int, str], (1, "a"), (1, None)),
        (Plain, Plain(1, "a"), Plain("1", "a")),  # type: ignore[arg-type]
        (frozenset[str], frozenset("ab"), frozenset({1})),
    ],
    ids=_named,
)
@pytest.mark.parametrize("many", [1, 100])
def test_a_strict_table_refuses_values_of_other_classes(
    hint: Any, good: Any, bad: Any, many: int
) -> None:
    kind = make_dataclass("Row", [("id", int), ("field", hint)], frozen=True)
    table: Any = Database(strict=True).table(kind, name="rows")
    table.add_all([kind(n, good) for n in range(many)])
    for put in (
        table.add,
        lambda row: table.add_all([kind(n + 500, good) for n in range(99)] + [row]),
    ):
        with pytest.raises(TableError, match=r"'rows': field 'field' is .*, and is declared"):
            put(kind(1000, bad))
    assert len(table) == many
    Database().table(kind).add(kind(1, bad))


@tracked
class Task:
    """An object whose attributes change."""

    id: int
    title: str
    note: str | None

    def __init__(self, number: int, title: str) -> None:
        self.id, self.title, self.note = number, title, "x"


def test_an_attribute_of_a_tracked_object_is_looked_at() -> None:
    table = Database().table(Task, key="id")
    task = Task(1, "a")
    table.add(task)
    task.note = None
    with pytest.raises(TableError, match=r"None to Task\.title: field 'title' is None"):
        task.title = None  # type: ignore[assignment]
    assert task.title == "a" and table[1].title == "a"
    with pytest.raises(TableError, match="field 'title' is None"):
        table.add(Task(2, None))  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [3, 300])
@pytest.mark.parametrize("key", [None, "id"])
def test_an_older_file_is_read_and_its_rows_can_be_replaced(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    key: str | None,
    count: int,
) -> None:
    with monkeypatch.context() as before, Database(tmp_path / "rows.db") as db:
        before.setattr(RowGate, "_check_fields", lambda gate, row: None)
        old: Any = db.table(Plain, name="rows", key=key)
        old.add_all([made(Plain, n, None if n == 2 else "a") for n in range(count)])
    with Database(tmp_path / "rows.db") as db:
        rows: Any = db.table(Plain, name="rows", key=key)
        assert [row for row in rows if row.word is None] == [made(Plain, 2, None)]
        (warned,) = [record.getMessage() for record in caplog.records]
        assert "field 'word' is None" in warned and "declare `word: str | None`" in warned
        with pytest.raises(TableError, match="field 'word' is None"):
            rows.add(made(Plain, 1000, None))
        rows.update(made(Plain, 2, None), Plain(2, "b"))
        rows.remove(Plain(1, "a"))
        assert len(rows) == count - 1 and all(row.word for row in rows)


@pytest.mark.parametrize("width", [1, 4, 5, 12])
@pytest.mark.parametrize("is_batch", [False, True])
def test_none_is_found_in_each_place_of_narrow_and_wide_rows(width: int, is_batch: bool) -> None:
    fields = [(f"f{n}", int if n % 2 else str) for n in range(width)]
    kind: Any = NamedTuple("Wide", fields)  # type: ignore[misc]
    table: Any = Database().table(kind, name="wide")
    good = kind(*(n if n % 2 else "x" for n in range(width)))
    table.add(good)
    for place in range(width):
        bad = good._replace(**{f"f{place}": None})
        with pytest.raises(TableError, match=f"field 'f{place}' is None"):
            table.add_all([good] * 3 + [bad]) if is_batch else table.add(bad)
    table.add_all([good] * 3)
    assert len(table) == 4
