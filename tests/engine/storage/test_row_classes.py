"""Rows that could change in place are refused, by their class; or watched, with `strict=True`."""

from __future__ import annotations

import datetime
import enum
import ipaddress
import pathlib
import uuid
import zoneinfo
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import attrs
import msgspec
import numpy
import pandas  # type: ignore[import-untyped]
import pydantic
import pytest

from reactive import Collect, Count, Database, TableError
from reactive.engine.storage.rows import why_changeable
from reactive.engine.transactions.transaction import Transaction


@dataclass(frozen=True)
class Frozen:
    hp: int


@dataclass(unsafe_hash=True)
class Loose:
    hp: int


@dataclass(eq=False)
class ByIdentity:
    hp: int


class Named(NamedTuple):
    hp: int


class Struct(msgspec.Struct, frozen=True):
    hp: int


class LooseStruct(msgspec.Struct, eq=False):
    hp: int


@attrs.frozen
class Attrs:
    hp: int


@attrs.frozen(slots=False)
class AttrsDict:
    hp: int


@attrs.define(unsafe_hash=True)
class LooseAttrs:
    hp: int


class Model(pydantic.BaseModel, frozen=True):
    hp: int


class LooseModel(pydantic.BaseModel):
    hp: int

    def __hash__(self) -> int:
        return id(self)


class Plain:
    def __init__(self, hp: int) -> None:
        self.hp = hp


class Slotted:
    __slots__ = ("hp",)

    def __init__(self, hp: int) -> None:
        self.hp = hp


class ByKey(Plain):
    """A row like an object of an ORM: hashed by a key of its own."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByKey) and self.hp == other.hp

    def __hash__(self) -> int:
        return hash(self.hp)


class Empty:
    __slots__ = ()


class Metres(float):
    """A number of one's own."""


Color = enum.Enum("Color", ["RED", "BLUE"])

ACCEPTED: list[Any] = [
    *(1, 1.5, 2j, "a", b"a", True, None, (1, 2), frozenset({1}), range(3), ...),
    *(Decimal(1), Fraction(1, 2), uuid.uuid4(), pathlib.Path("a"), zoneinfo.ZoneInfo("UTC")),
    *(datetime.datetime.now(), datetime.date(2020, 1, 1), datetime.timedelta(1), datetime.UTC),
    *(ipaddress.ip_address("::1"), ipaddress.ip_network("10.0.0.0/8"), Color.RED, Metres(2)),
    *(int, Plain, len, "a".upper, lambda: None, list[int], int | str, object(), Empty()),
    *(numpy.float64(1), numpy.int32(1), pandas.Timestamp(0), pandas.NaT),
    *(Frozen(1), Named(1), Struct(1), Attrs(1), AttrsDict(1), Model(hp=1)),
]
REFUSED: list[tuple[Callable[[int], Any], str]] = [
    (Loose, "its dataclass is not frozen"),
    (ByIdentity, "its dataclass is not frozen"),
    (LooseStruct, "its Struct is not frozen"),
    (LooseAttrs, "its attrs class is not frozen"),
    (lambda hp: LooseModel(hp=hp), "its model is not frozen"),
    (Plain, "its fields can be assigned"),
    (Slotted, "its fields can be assigned"),
    (ByKey, "its fields can be assigned"),
    (lambda hp: ValueError(hp), "its fields can be assigned"),
]


@pytest.mark.parametrize("row", ACCEPTED, ids=lambda row: type(row).__name__)
def test_rows_that_cannot_change_are_taken(row: Any) -> None:
    assert why_changeable(type(row)) is None
    table = Database().table(object)
    table.add(row)
    table.add_all([row, row])
    assert table.count(row) == 3
    table.remove(row)


def test_what_collect_gives_can_be_a_row() -> None:
    db = Database()
    numbers, bags = db.table(int), db.table(object, name="bags")
    numbers.add_all([1, 1, 2])
    bags.add(numbers.aggregate(Collect(lambda n: n)).materialize().value)
    assert len(bags) == 1


@pytest.mark.parametrize(("make", "why"), REFUSED)
@pytest.mark.parametrize("of", ["own class", "object"])
@pytest.mark.parametrize("stored", [True, False])
def test_rows_that_can_change_are_refused(
    make: Callable[[int], Any], why: str, of: str, stored: bool
) -> None:
    row = make(1)
    name = type(row).__name__
    db = Database()
    table: Any = db.table(type(row) if of == "own class" else object, name="players", stored=stored)
    view = table.select(str).materialize()
    statements: list[Callable[[], object]] = [
        lambda: table.add(row),
        lambda: table.add_all([row]),
        lambda: table.add(row, 2),
    ]
    for statement in statements:
        with pytest.raises(TableError) as caught:
            statement()
        assert str(caught.value).startswith(
            f"table 'players' cannot take a {name}: it may change in place ({why}), and no view "
            "would notice\n  use a frozen dataclass"
        )
        assert f"db.table({name}, identity=True)" in str(caught.value)
    assert not list(view)


@pytest.mark.parametrize(("make", "why"), REFUSED)
def test_a_promise_has_them_taken(make: Callable[[int], Any], why: str) -> None:
    row = make(1)
    table: Any = Database().table(type(row), identity=True)
    view = table.group_by(type).aggregate(Count()).materialize()
    table.add_all([row, row])
    assert view[type(row)] == 2 and table.identity
    table.remove_all([row, row])
    assert not list(view)


def test_a_key_does_not_make_a_row_stay_what_it_is() -> None:
    db = Database()
    with pytest.raises(TableError, match="it may change in place"):
        db.table(Plain, key="hp").add(Plain(1))
    table = db.table(Plain, key="hp", name="promised", identity=True)
    table.upsert(Plain(1))
    assert table[1].hp == 1


@dataclass(frozen=True)
class Holder:
    items: list[int] = field(hash=False)


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("how", ["remove", "remove_all", "discard", "update", "clear", "upsert"])
def test_a_strict_table_names_the_field_that_changed(how: str, keyed: bool) -> None:
    db = Database(strict=True)
    key: Any = (lambda p: 7) if keyed else None
    players: Any = db.table(Plain, name="players", identity=True, key=key)
    by: Any = players.group_by(lambda p: p.hp > 0).aggregate(Count()).materialize()
    ann = Plain(100)
    players.add(ann)
    ann.hp = 0
    acts: dict[str, Callable[[], object]] = {
        "remove": lambda: players.remove(ann),
        "remove_all": lambda: players.remove_all([ann]),
        "discard": lambda: players.discard(ann),
        "update": lambda: players.update(ann, Plain(5)),
        "clear": players.clear,
        "upsert": lambda: players.upsert(Plain(5)) if keyed else players.remove(ann),
    }
    with pytest.raises(TableError, match="was changed in place since it was added: hp was 100, is"):
        acts[how]()
    assert len(players) == 1 and dict(by) == {True: 1}
    ann.hp = 100
    acts[how]()
    assert dict(by) == ({True: 1} if how in ("update", "upsert") and len(players) else {})


def test_a_strict_table_sees_what_its_rows_hold() -> None:
    db = Database(strict=True)
    holders = db.table(Holder)
    row = Holder([1])
    holders.add(row)
    row.items.append(2)
    with pytest.raises(TableError, match=r"items was \[1\], is \[1, 2\]"):
        holders.remove(row)
    by_slots: Any = db.table(Slotted, identity=True)
    slotted = Slotted(1)
    by_slots.add(slotted)
    slotted.hp = 2
    with pytest.raises(TableError, match="hp was 1, is 2"):
        by_slots.remove(slotted)


def test_a_strict_table_sees_fields_by_which_rows_are_not_equal() -> None:
    @dataclass(unsafe_hash=True)
    class Player:
        name: str
        hp: int = field(compare=False, default=1)
        _seen: int = field(compare=False, default=0)

    players = Database(strict=True).table(Player, identity=True, name="players")
    by = players.group_by(lambda p: p.hp).aggregate(Count()).materialize()
    ann = Player("ann")
    players.add(ann)
    ann._seen = 1
    ann.hp = 0
    with pytest.raises(TableError, match="hp was 1, is 0"):
        players.remove(ann)
    ann.hp = 1
    players.remove(ann)
    assert by == {}


def test_a_row_hashed_by_a_field_is_known_by_itself_after_it_changed() -> None:
    players: Any = Database(strict=True).table(ByKey, identity=True, name="players")
    row = ByKey(1)
    players.add(row)
    row.hp = 2  # where its hash says, it is not
    with pytest.raises(TableError, match="hp was 1, is 2"):
        players.remove(row)


def test_a_strict_table_is_a_table_otherwise() -> None:
    db = Database(strict=True)
    words, keyed = db.table(str, name="words"), db.table(tuple, key=lambda row: row[0])
    view = words.group_by(len).aggregate(Count()).materialize()
    words.add_all(["a", "bb", "a"])
    with pytest.raises(TableError, match="it is not there"):
        words.remove("ccc")
    with pytest.raises(ZeroDivisionError), db.transaction():
        words.remove("a")
        words.add_all(["ccc"])
        raise ZeroDivisionError
    keyed.add_all([(1, 1), (2, 2)])
    keyed.upsert((1, 5))
    keyed.delete(2)
    assert sorted(words) == ["a", "a", "bb"] and len(words) == 3 and words.count("a") == 2
    assert "bb" in words and "ccc" not in words
    assert list(keyed) == [(1, 5)] and keyed[1] == (1, 5) and keyed.get(2) is None
    assert dict(view) == {1: 2, 2: 1}
    words.replace_all(["x"])
    words.clear()
    assert not list(words) and not list(view)


def class_row(module: str) -> type:
    @dataclass(frozen=True)
    class Row:
        a: int

    Row.__module__ = module
    return Row


def test_a_row_of_another_module_is_said_to_be_of_it() -> None:
    rows: Any = Database().table(class_row("shop"), name="rows")
    with pytest.raises(TableError, match=r"takes rows of shop.*Row, not of stock.*Row: .*a=1"):
        rows.add(class_row("stock")(1))


def test_a_row_of_a_class_that_was_made_again_is_said_to_be_one() -> None:
    rows: Any = Database().table(class_row("shop"), name="rows")
    again = class_row("shop")(1)
    for use in (rows.add, lambda row: rows.add_all([row]), lambda row: rows.replace_all([row])):
        with pytest.raises(TableError, match=r"another class Row than that of .*a=1.*was defined"):
            use(again)
    assert again not in rows


class Word(NamedTuple):
    number: int
    length: int


def test_a_strict_table_forgets_rows_that_an_aborted_transaction_added() -> None:
    """Another row may have the address of a row that was freed."""
    table = Database(strict=True).table(Word, name="words")
    for number in range(1_000):
        with suppress(ZeroDivisionError), Transaction(table._engine):
            table.add(Word(number, number))
            raise ZeroDivisionError
    table.add_all([Word(number, -1) for number in range(1_000)])
    assert len(table) == 1_000
