"""Tables are restored by their names, with their rows, checked against their class."""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import attrs
import msgspec
import pydantic
import pytest

from reactive import (
    Bag,
    Batch,
    Count,
    Database,
    DurabilityError,
    PlanError,
    SourceError,
    TableError,
)
from reactive.borders.durable.store import MemoryStore
from reactive.engine.collections.frozen_object import FrozenObject


class Color(Enum):
    RED = 1
    BLUE = "blue"


class Marks(Flag):
    A = 1
    B = 2


@dataclass(frozen=True)
class Line:
    sku: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    paid: bool
    price: Decimal | None
    color: Color
    lines: tuple[Line, ...] | None
    made: datetime
    note: Any = None
    marks: Marks = Marks.A


class Named(NamedTuple):
    a: int | None
    b: str | None


class Struct(msgspec.Struct, frozen=True):
    a: int
    b: str = "x"


class Keyword(msgspec.Struct, frozen=True, kw_only=True):
    a: int
    b: str = "x"


@attrs.frozen
class Attrs:
    _a: int
    b: str = "x"


class Model(pydantic.BaseModel, frozen=True):
    a: int
    b: str | None = None


@dataclass(frozen=True)
class Derived:
    a: int
    twice: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "twice", 2 * self.a)
        object.__setattr__(self, "hidden", -self.a)


@dataclass(frozen=True)
class Raised:
    """Made once more of its fields, it would be another one."""

    price: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "price", self.price * 1.25)


class Nothing(NamedTuple): ...


NOW = datetime(2026, 1, 2, 3, 4, 5, 6)
ODD: list[Any] = [
    *(None, True, 0, -1, 2**63, -(2**200), 1.5, -0.0, float("inf"), "", "a\0b", "\ud800", "ö"),
    *(b"", b"\xff", b"\xff{}", Decimal("1.50"), Fraction(1, 3), 1j, NOW, NOW.replace(fold=1)),
    *(NOW.replace(tzinfo=UTC), NOW.replace(tzinfo=timezone(timedelta(hours=2)))),
    *(NOW.replace(tzinfo=ZoneInfo("Europe/Berlin")), date(2026, 1, 1), time(1, 2), timedelta(1, 2)),
    *(UUID(int=7), (), (1, ("a", None)), frozenset({1, "a", (2,)}), range(3), Bag(["a", "a", 1])),
    *(FrozenObject({}), FrozenObject({"b": (1, FrozenObject({"a": None})), "a": Color.RED.name})),
]
ROWS: list[tuple[Any, list[Any]]] = [
    (
        Order,
        [
            Order(1, True, Decimal("1.50"), Color.RED, (Line("a", 2),), NOW),
            Order(2**80, False, None, Color.BLUE, (), NOW.replace(fold=1), Color.RED, ~Marks.A),
            Order("x", 1, "1.5", "RED", None, date(2026, 1, 1), Line("b")),  # type: ignore[arg-type]
            *(Order(n + 10, True, None, Color.RED, (), NOW, odd) for n, odd in enumerate(ODD)),
        ],
    ),
    (Named, [Named(1, None), Named(2, "b"), Named(None, 3)]),  # type: ignore[arg-type]
    (Struct, [Struct(1), Struct(2, "ö")]),
    (Keyword, [Keyword(a=1), Keyword(a=2, b="ö")]),
    (Attrs, [Attrs(1), Attrs(2, "ö")]),
    (Model, [Model(a=1), Model(a=2, b="ö")]),
    (Derived, [Derived(1), Derived(2)]),
    (Raised, [Raised(1.0), Raised(2.0)]),
    (Nothing, [Nothing(), Nothing()]),
    (tuple[int, str | None], [(1, "a"), (2, None)]),
    (tuple, [(), (1, "a"), ((1,),)]),
    (int, [1, 2**70]),
    (float, [1.5, 2]),
    (str, ["a", "\ud800", ""]),
    (Color, [*Color]),
    (int | Color, [1, Color.RED]),
    (object, [odd for odd in ODD if odd is not True]),
]


@pytest.mark.parametrize(("row_type", "rows"), ROWS, ids=[str(kind) for kind, _ in ROWS])
def test_rows_come_back_as_they_were(tmp_path: Path, row_type: Any, rows: list[Any]) -> None:
    path = tmp_path / "shop.db"
    with Database(path) as db:
        table = db.table(row_type, name="rows")
        for row in rows:
            table.add(row)
        table.add(rows[0], 2)
        table.remove(rows[-1])
        wanted = shown(table)
    with Database(path) as db:
        table = db.table(row_type, name="rows")
        assert shown(table) == wanted
        assert db.version == len(rows) + 2
        table.remove(rows[0])
        table.clear()
    with Database(path) as db:
        assert list(db.table(row_type, name="rows")) == []


def shown(table: Any) -> Counter[tuple[Any, ...]]:
    """Count the rows with their classes; sets are compared by their items."""
    return Counter((type(row), row, repr(row) if "{" not in repr(row) else "") for row in table)


def test_what_is_derived_is_derived_again_and_what_is_stored_is_kept(tmp_path: Path) -> None:
    with Database(tmp_path / "shop.db") as db:
        db.table(Derived).add(Derived(3))
        db.table(Raised).add(Raised(4.0))
    with Database(tmp_path / "shop.db") as db:
        (derived,), (raised,) = db.table(Derived), db.table(Raised)
        assert (derived.twice, vars(derived)["hidden"], raised.price) == (6, -3, 5.0)


@pytest.mark.parametrize("key", ["id", lambda o: o.id, lambda o: (o.id, o.paid), lambda o: o.color])
@pytest.mark.parametrize("durability", ["commit", "group", "exit"])
def test_keys_of_all_kinds_find_their_rows(tmp_path: Path, key: Any, durability: Any) -> None:
    path = tmp_path / "shop.db"
    first = Order(1, True, None, Color.RED, (), NOW)
    changed, other = (Order(1, True, None, Color.RED, (), NOW, n) for n in range(2))
    with Database(path, durability=durability) as db:
        orders = db.table(Order, key=key)
        orders.add(first)
        orders.upsert(changed)
        with db.transaction():
            orders.remove(changed)
            orders.add(other)
    with Database(path) as db:
        orders = db.table(Order, key=key)
        assert list(orders) == [other]
        orders.remove(other)
        orders.add_all([first])
    with Database(path) as db:
        assert list(db.table(Order, key=key)) == [first]


def test_anybody_may_read_the_file_while_it_is_open(tmp_path: Path) -> None:
    with Database(tmp_path / "shop.db") as db:
        db.table(Order, name="orders", key="id").add(
            Order(1, True, Decimal("1.50"), Color.RED, (), NOW)
        )
        db.table(str, name="words").add("to", 2)
        reader = sqlite3.connect(tmp_path / "shop.db")
        found = reader.execute("select id, paid, price, color, made from orders").fetchall()
        assert found == [(1, 1, "1.50", "RED", NOW.isoformat())]
        assert reader.execute("select * from words").fetchall() == [("to", 2)]
        reader.close()


def test_a_row_that_cannot_be_stored_is_refused_and_nothing_has_changed(tmp_path: Path) -> None:
    with Database(tmp_path / "shop.db") as db:
        rows = db.table(tuple, name="rows")
        view = rows.aggregate(Count()).materialize()
        rows.add((1,))
        with pytest.raises(TableError, match=r"cannot store \(<object .*\n.*codec="):
            rows.add((object(),))
        with pytest.raises(TableError, match="cannot store"), db.transaction():
            rows.add((2,))
            rows.add((object(),))
        with pytest.raises(TableError, match="cannot store"):
            rows.add_all([(3,), (object(),)])
        assert (list(rows), list(view), db.version) == ([(1,)], [1], 1)


def test_a_class_without_a_plain_form_needs_a_codec(tmp_path: Path) -> None:
    class Shape:
        def __init__(self, text: str) -> None:
            self.text = text

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Shape) and other.text == self.text

        def __hash__(self) -> int:
            return hash(self.text)

    with Database(tmp_path / "shop.db") as db:
        with pytest.raises(PlanError, match=r"a row is a .*Shape, which has no plain form\n"):
            db.table(Shape, identity=True)
        assert db.tables() == []
        codec = (lambda shape: shape.text.encode(), lambda stored: Shape(stored.decode()))
        shapes = db.table(Shape, name="shapes", identity=True, codec=codec)
        keyed = db.table(Shape, name="keyed", identity=True, codec=codec, key=lambda s: s.text)
        shapes.add(Shape("a"), 2)
        keyed.add(Shape("\xff"))
        db.table(Shape, name="kept out", identity=True, durable=False).add(Shape("b"))
    with Database(tmp_path / "shop.db") as db:
        shapes = db.table(Shape, name="shapes", identity=True, codec=codec)
        keyed = db.table(Shape, name="keyed", identity=True, codec=codec, key=lambda s: s.text)
        assert (list(shapes), list(keyed)) == ([Shape("a")] * 2, [Shape("\xff")])
        with pytest.raises(TableError, match="neither bytes nor str"):
            db.table(int, name="bad", codec=(lambda n: n, lambda n: n)).add(1)
        with pytest.raises(PlanError, match="encode"):
            db.table(int, name="worse", codec=7)


class Old(NamedTuple):
    id: int
    town: str
    total: int


class WithDefault(NamedTuple):
    total: float
    id: int | None
    town: str
    note: str = "none"


class Renamed(NamedTuple):
    id: int
    city: str


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with Database(path, keep=9) as db:
        db.table(Old, name="orders", key="id").add_all([Old(1, "Ulm", 7), Old(2, "Bonn", 8)])
        db.table(Old, name="bag").add(Old(1, "Ulm", 7), 3)
    return path


def test_a_new_field_has_its_default_and_a_field_may_hold_more(old: Path) -> None:
    for _ in range(2):
        with Database(old) as db:
            orders = db.table(WithDefault, name="orders", key="id")
            assert sorted(orders) == [WithDefault(7, 1, "Ulm"), WithDefault(8, 2, "Bonn")]
            assert db.table(WithDefault, name="bag").items() == [(WithDefault(7, 1, "Ulm"), 3)]
            assert db.version == 2


def test_a_field_that_is_gone_needs_migrate(old: Path) -> None:
    with Database(old) as db:
        with pytest.raises(PlanError, match=r"field 'town' is gone.*'city' is new.*\n.*migrate="):
            db.table(Renamed, name="orders", key="id")
        assert db.tables() == []
        orders = db.table(
            Renamed, name="orders", key="id", migrate=lambda o: {"id": o["id"], "city": o["town"]}
        )
        assert sorted(orders) == [Renamed(1, "Ulm"), Renamed(2, "Bonn")]
        bag = db.table(Renamed, name="bag", migrate=lambda o: Renamed(0, o["town"]))
        assert bag.items() == [(Renamed(0, "Ulm"), 3)]
        orders.delete(1)
    with Database(old) as db:
        assert list(db.table(Renamed, name="orders", key="id")) == [Renamed(2, "Bonn")]


def test_a_row_may_be_left_out_and_an_error_of_migrate_changes_nothing(old: Path) -> None:
    def fails(fields: dict[str, Any]) -> Any:
        return None if fields["id"] == 1 else fields["nothing"]

    with Database(old) as db:
        with pytest.raises(KeyError) as caught:
            db.table(Renamed, name="orders", key="id", migrate=fails)
        assert "'town': 'Bonn'" in caught.value.__notes__[0]
        orders = db.table(
            Renamed,
            name="orders",
            key="id",
            migrate=lambda o: None if o["id"] == 1 else Renamed(9, o["town"]),
        )
        assert list(orders) == [Renamed(9, "Bonn")]


def test_another_key_has_the_rows_by_it_unless_two_have_the_same(old: Path) -> None:
    with Database(old) as db:
        orders = db.table(Old, name="orders", key="town")
        assert orders["Ulm"] == Old(1, "Ulm", 7)
        orders.upsert(Old(3, "Ulm", 7))
    with Database(old) as db:
        assert db.table(Old, name="orders")._keyed is None
    with Database(old) as db, pytest.raises(TableError, match="become one"):
        db.table(Old, name="bag", key="id")


def test_what_a_record_inside_holds_is_looked_at_too(tmp_path: Path) -> None:
    def classes(*names: str) -> tuple[Any, Any]:
        inner = NamedTuple("Inner", [(name, int) for name in names])  # type: ignore[misc]
        return inner, NamedTuple("Outer", [("id", int), ("inner", inner)])

    inner, outer = classes("a", "b")
    with Database(tmp_path / "shop.db") as db:
        db.table(outer, name="rows").add(outer(1, inner(2, 3)))
    with Database(tmp_path / "shop.db") as db:
        inner, outer = classes("a")
        with pytest.raises(PlanError, match=r"Inner\.b is gone"):
            db.table(outer, name="rows")
        rows = db.table(
            outer, name="rows", migrate=lambda o: outer(o["id"], inner(o["inner"]["b"]))
        )
        assert list(rows) == [outer(1, inner(3))]


def test_tables_that_nobody_opens_stay_and_one_that_is_dropped_goes(old: Path) -> None:
    with Database(old) as db:
        db.drop(db.table(Old, name="bag"))
    with Database(old) as db:
        assert list(db.table(Old, name="bag")) == []
        assert len(db.table(Old, name="orders", key="id")) == 2


@pytest.mark.parametrize("durability", ["commit", "group", "exit"])
def test_a_table_that_is_replaced_keeps_its_rows(old: Path, durability: Any) -> None:
    with Database(old, durability=durability) as db:
        orders = db.table(Old, name="orders", key="id")
        orders.delete(1)
        again = db.table(WithDefault, name="orders", key="id", replace=True)
        assert list(again) == [WithDefault(8, 2, "Bonn")]
        again.clear()
    with Database(old) as db:
        assert list(db.table(WithDefault, name="orders", key="id")) == []


def test_what_is_not_durable_is_not_stored(tmp_path: Path) -> None:
    with Database(tmp_path / "shop.db") as db:
        db.table(str, name="flows", stored=False).add("a")
        db.table(str, name="memory", durable=False).add("a")
        with pytest.raises(PlanError, match="not stored"):
            db.table(str, name="both", stored=False, durable=True)
        assert db._engine.journal.store.tables() == {}
    with pytest.raises(PlanError, match="in memory"):
        Database().table(str, durable=True)
    with pytest.raises(PlanError, match="no use for codec="):
        Database().table(str, codec=(str, str))


def test_history_tells_the_last_commits(old: Path) -> None:
    with Database(old, keep=3) as db:
        orders = db.table(Old, name="orders", key="id")
        for n in range(3, 6):
            orders.add(Old(n, "Rome", n))
        orders.upsert(Old(5, "Ulm", 5))
        assert [past.version for past in db.history()] == [4, 5, 6]
        (last,) = db.history(since=5)
        assert sorted(last.changes["orders"]) == [(Old(5, "Rome", 5), -1), (Old(5, "Ulm", 5), 1)]
        assert abs((datetime.now(UTC) - last.time).total_seconds()) < 600
    with Database(old, keep=3) as db:
        (last,) = db.history(since=5)
        assert ({"id": 5, "town": "Ulm", "total": 5}, 1) in last.changes["orders"]
    with pytest.raises(PlanError, match="no history"):
        Database().history()


def test_a_source_goes_on_after_its_token(tmp_path: Path) -> None:
    def numbers(since: int | None, stop: Any) -> Any:
        for n in range(since or 0, (since or 0) + 5):
            yield Batch([Named(n, str(n))], token=n + 1)

    for run in range(3):
        with Database(tmp_path / "shop.db", durability="group") as db:
            rows = db.table(Named, name="rows")
            reading = db.ingest(numbers, rows)
            reading.wait(timeout=30)
            assert Counter(row.a for row in rows) == Counter(range(5 * run + 5))
            assert db.tokens == {"numbers": 5 * run + 5}


def test_origins_and_what_was_left_out_come_back(tmp_path: Path) -> None:
    odd: Any = "odd"
    with Database(tmp_path / "shop.db") as db:
        files = db.ingest(None, db.table(Old, name="o", key="id"), name="files", on_error="drop")
        files.take(Batch(origins={"a": [Old(1, "x", 1), odd], ("b", 1): [Old(2, "y", 2)]}))
    with Database(tmp_path / "shop.db") as db:
        table = db.table(WithDefault, name="o", key="id")
        again: Any = db.ingest(None, table, name="files", on_error="drop")
        assert again.origins["a"] == (WithDefault(1, 1, "x"),)
        assert [error.row for error in again.errors] == ["odd"]
        again.take(
            Batch(origins={"a": [], ("b", 1): [WithDefault(2, 2, "y"), WithDefault(5, 5, "z")]})
        )
        assert sorted(row.town for row in table) == ["y", "z"]
        assert list(again.errors) == []


def test_a_source_of_other_tables_is_refused(tmp_path: Path) -> None:
    with Database(tmp_path / "shop.db") as db:
        db.ingest(None, db.table(str, name="a"), name="s").take(Batch(["x"], token=1))
    with Database(tmp_path / "shop.db") as db:
        a, b = db.table(str, name="a"), db.table(str, name="b")
        with pytest.raises(SourceError, match="source 's' feeds a, and its token"):
            db.ingest(None, b, name="s")
        memory = db.table(int, name="memory", durable=False)
        with pytest.raises(SourceError, match="some are durable and some are not"):
            db.ingest(None, {str: a, int: memory}, name="both")
        with pytest.raises(SourceError, match="cannot be stored: <object"):
            db.ingest(None, a, name="s").take(Batch(["y"], token=object()))
        assert (list(a), db.tokens) == (["x"], {"s": 1})


def test_what_cannot_be_opened_is_told(tmp_path: Path) -> None:
    foreign = sqlite3.connect(tmp_path / "foreign.db")
    foreign.execute("create table t (x)")
    foreign.close()
    (tmp_path / "text.db").write_text("no database at all, but long enough to be looked at\n" * 99)
    for name, message in [("foreign.db", "has no durable tables"), ("text.db", "not a database")]:
        for _ in range(2):
            with pytest.raises(DurabilityError, match=message):
                Database(tmp_path / name)
    with pytest.raises(DurabilityError, match="make the folder first"):
        Database(tmp_path / "nowhere" / "shop.db")
    options: list[Any] = [
        *({"path": ":memory:"}, {"path": 7}, {"path": "redis://x"}, {"path": ""}),
        *({"path": "x.db", "durability": "often"}, {"path": "x.db", "synchronous": "off"}),
        {"path": "x.db", "keep": -1},
    ]
    for option in options:
        with pytest.raises(PlanError):
            Database(**option)
    assert not Path("x.db").exists()


def test_a_file_of_a_later_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    Database(path).close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("update reactive_state set value = 99 where name = 'format'")
    connection.close()
    with pytest.raises(DurabilityError, match="format 99"):
        Database(path)


def test_a_file_that_somebody_else_changed_is_told(tmp_path: Path) -> None:
    with Database(tmp_path / "shop.db") as db:
        orders = db.table(Old, name="orders", key="id")
        orders.add(Old(1, "Ulm", 1))
        other = sqlite3.connect(tmp_path / "shop.db", isolation_level=None)
        other.execute("delete from orders")
        other.close()
        with pytest.raises(DurabilityError, match="somebody else has written"):
            orders.delete(1)
        assert len(orders) == 1


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"durability": "nonsense"}, "durability='nonsense' is none"),
        ({"durability": "group"}, "in memory has no use for durability='group'"),
        ({"durability": "exit", "keep": 5}, "no use for durability='exit', keep=5"),
        ({"synchronous": "full"}, "no use for synchronous='full'"),
        ({"synchronous": "none"}, "synchronous='none' is none"),
        ({"keep": -1}, "keep=-1 is no number"),
        ({"keep": True}, "keep=True is no number"),
        ({"store": MemoryStore(), "synchronous": "full"}, "is of a path"),
        ({"store": MemoryStore(), "path": "shop.db"}, "not both"),
    ],
)
def test_what_means_nothing_without_a_path_is_refused(given: Any, told: str) -> None:
    with pytest.raises(PlanError, match=told):
        Database(**given)
    Database(durability="commit", synchronous="normal", keep=0).close()


def test_full_waits_for_the_disk(tmp_path: Path) -> None:
    with Database(tmp_path / "shop.db", synchronous="full") as db:
        (level,) = db._engine.journal.store._connection.execute("pragma synchronous").fetchone()
        assert level == 2
        db.table(str, name="words").add("to")


def test_what_another_program_has_changed_is_told(tmp_path: Path) -> None:
    def changed(name: str, statement: str) -> Path:
        path = tmp_path / name
        with Database(path) as db:
            db.table(Old, name="orders", key="id").add(Old(1, "Ulm", 7))
        connection = sqlite3.connect(path)
        connection.execute(statement)
        connection.commit()
        connection.close()
        return path

    for number, (statement, kind, message) in enumerate(
        (
            ("alter table orders drop column town", DurabilityError, "has other columns"),
            ("alter table orders rename column town to place", DurabilityError, "other columns"),
            ("drop table orders", DurabilityError, "is gone"),
            ("update orders set town = x'ffee'", DurabilityError, r"its row \(1, b.* is damaged"),
        )
    ):
        with Database(changed(f"{number}.db", statement)) as db:
            with pytest.raises(kind, match=message):
                db.table(Old, name="orders", key="id")
            assert not db.tables()


def test_a_path_that_is_none_has_its_remedy(tmp_path: Path) -> None:
    from sqlalchemy import create_engine

    with pytest.raises(DurabilityError, match=r"give the path of a file in it"):
        Database(tmp_path)
    assert not list(tmp_path.parent.glob(f"{tmp_path.name}-lock"))
    with pytest.raises(PlanError, match=r"write Database\('shop.db'\)"):
        Database("sqlite:///shop.db")
    with pytest.raises(PlanError, match=r"mirror\(Database\(\), engine, Order\)"):
        Database(create_engine("sqlite://"))  # type: ignore[arg-type]
    with Database(tmp_path / "shop.db"), pytest.raises(DurabilityError, match="close that one"):
        Database(tmp_path / "shop.db")
    Database(tmp_path / "shop.db").close()
