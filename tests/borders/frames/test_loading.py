"""`table.load`, and rows that are made by columns, as `add_all` of rows made one by one."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import msgspec
import polars as pl
import pyarrow.parquet as pq
import pydantic
import pytest

from reactive import Bag, Database, PlanError, TableError
from reactive.borders.frames import reading
from reactive.borders.frames import rows as made
from reactive.engine.runtime import progress
from tests.borders.frames.cases import KINDS

FRAME = pl.DataFrame(
    {
        "id": range(300),
        "town": [None, "Ulm", "Bonn"] * 100,
        "price": [1.5, None, float("nan"), 0.0] * 75,
    }
)


@dataclass(frozen=True, slots=True)
class Counted:
    """A class whose constructor does more than fill the slots."""

    id: int
    town: str | None
    price: float | None

    def __post_init__(self) -> None:
        if self.id == 299:
            raise ValueError("299")


@dataclass(frozen=True, slots=True, kw_only=True)
class ByName:
    id: int
    town: str | None
    price: float | None


@dataclass(frozen=True, slots=True)
class Given:
    id: int
    town: str | None
    price: float | None
    more: InitVar[int] = 0


@dataclass(frozen=True, slots=True)
class Own:
    id: int
    town: str | None
    price: float | None

    def __init__(self, id: int, town: str | None, price: float | None) -> None:
        object.__setattr__(self, "id", -id)
        object.__setattr__(self, "town", town)
        object.__setattr__(self, "price", price)


@dataclass(frozen=True, slots=True)
class Fewer:
    id: int
    town: str | None = "-"
    other: int = 7
    twice: int = field(default=2, compare=False)


@attrs.frozen
class Attrs:
    id: int
    town: str | None
    price: float | None


class Model(pydantic.BaseModel, frozen=True):
    id: int
    town: str | None
    price: float | None


class Tagged(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    town: str | None
    price: float | None


class Base(NamedTuple):
    id: int
    town: str | None
    price: float | None


class Derived(Base):
    __slots__ = ()

    def __new__(cls, id: int, town: str | None, price: float | None) -> Derived:
        return super().__new__(cls, id + 1, town, price)


class Line(NamedTuple):
    what: str


class Order(NamedTuple):
    id: int
    lines: Bag[Line]


CLASSES = (*KINDS, ByName, Given, Own, Attrs, Model, Tagged, Base, Derived, Fewer)


def _one_by_one(kind: Any) -> list[Any]:
    names = [name for name in FRAME.columns if name != "price" or kind is not Fewer]
    return [kind(**row) for row in FRAME.select(names).rows(named=True)]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_rows_by_columns_are_rows_that_are_made_one_by_one(kind: Any) -> None:
    found, wanted = made.rows_of(FRAME, kind), _one_by_one(kind)
    assert list(map(repr, found)) == list(map(repr, wanted))
    assert set(map(type, found)) == {kind}
    one, other = (Database().table(kind, name="rows", key="id") for _ in range(2))
    one.add_arrow(FRAME)
    other.add_all(wanted)
    assert list(map(repr, one)) == list(map(repr, other))
    assert one[found[7].id] == found[7]
    one.remove(one[found[8].id])
    assert len(one) == 299


def test_what_a_constructor_refuses_is_refused() -> None:
    table = Database().table(Counted)
    with pytest.raises(ValueError, match="299"):
        table.add_arrow(FRAME)
    assert len(table) == 0


def test_known_rows_are_plain_by_the_test_of_the_table() -> None:
    for columns in (["id", "town"], ["id", "town", "price"]):
        frame = FRAME.select(columns).to_arrow()
        kind = Database().table_from(FRAME.select(columns)).row_type
        test = made.known_plain(reading.read_frame(frame), kind)
        assert (test is None) == ("price" in columns)  # it has a NaN
        assert test is None or test.are_plain(made.rows_of(frame, kind))


def test_nested_fields_are_as_their_class_declares() -> None:
    table = Database().table(Order, key="id")
    assert table.load([{"id": 1, "lines": [{"what": "tea"}, {"what": "tea"}]}]) == 1
    assert table[1] == Order(1, Bag([Line("tea"), Line("tea")]))


GIVEN: dict[str, Callable[[Path], Any]] = {
    "generator": lambda _: (row for row in _one_by_one(KINDS[0])),
    "list": lambda _: _one_by_one(KINDS[0]),
    "frame": lambda _: FRAME,
    "dictionaries": lambda _: FRAME.rows(named=True),
    "path": lambda path: path,
    "text": lambda path: str(path),
}


@pytest.mark.parametrize("batch", [None, 7, 1000])
@pytest.mark.parametrize("given", GIVEN)
def test_a_load_is_one_commit_or_batches_and_tells_how_far_it_is(
    given: str, batch: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(FRAME.to_arrow(), path)
    db, told = Database(), list[tuple[int, int | None]]()
    table = db.table(KINDS[0], key="id")
    loaded = table.load(
        GIVEN[given](path), batch=batch, progress=lambda done, total: told.append((done, total))
    )
    assert (loaded, len(table)) == (300, 300)
    assert db.version == (43 if batch == 7 else 1)
    assert {total for _, total in told} == {None if given == "generator" else 300}
    assert [done for done, _ in told] == ([*range(0, 300, 7), 300] if batch == 7 else [0, 300])


def test_batches_before_one_that_is_refused_stay() -> None:
    table = Database().table(int, name="numbers")
    with pytest.raises(TableError) as caught:
        table.load([1, 2, 3, "four"], batch=2)
    assert sorted(table) == [1, 2]
    assert "2 rows were loaded into table 'numbers' before" in caught.value.__notes__[0]
    with pytest.raises(TableError):
        table.load([3, "four"])
    assert sorted(table) == [1, 2]


def test_a_bar_is_on_the_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    for terminal in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", terminal)
        assert Database().table(int, name="numbers").load(range(20), batch=10, progress=True) == 20
        assert ("numbers" in terminal.getvalue()) == terminal.isatty()


@pytest.mark.parametrize(
    "call",
    [
        lambda table: table.load(3),
        lambda table: table.load([3], batch=0),
        lambda table: table.load([3], progress="yes"),
        lambda table: table.load("numbers.xlsx"),
        lambda table: table.add_arrow([1]),
    ],
)
def test_what_is_no_load_is_refused(call: Callable[[Any], object]) -> None:
    with pytest.raises(PlanError):
        call(Database().table(int))
