"""Rows added, removed or replaced by generated functions are as by the general statements."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import attrs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count, Database, Sum, TableError
from reactive.engine.storage.store import MANY
from tests.budget import examples
from tests.counted_calls import calls_of
from tests.moments import Moments


@dataclass(frozen=True, slots=True)
class Order:
    id: Any
    town: Any
    amount: Any = 0


class Named(NamedTuple):
    id: Any
    town: Any
    amount: Any = 0


class Quick(msgspec.Struct, frozen=True):
    id: Any
    town: Any
    amount: Any = 0


KINDS: list[Callable[..., Any]] = [Order, Named, Quick, lambda *values: tuple(values)]
NAN = math.nan
ROWS = st.sampled_from(
    [
        *((0, "Rome", 0), (1, "Bonn", 1), (1, "Bonn", True), (1.0, "Bonn", 1), (2, "Rome", 2)),
        *((MANY, "Bonn", 1), (MANY, "Bonn", NAN), (True, "Rome", 1), (None, "Rome", 1)),
        (MANY, "Bonn", []),
    ]
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("add", "remove", "remove and add", "add twice"),
                *("remove_all", "update", "replace_all", "remove_all and add_all"),
                *("update the first", "update a copy", "update the latest", "update an absent"),
            ]
        ),
        ROWS,
    ),
    max_size=6,
)
HISTORIES = st.lists(st.tuples(st.booleans(), STEPS), max_size=5)


def first(kind: Callable[..., Any]) -> list[Any]:
    return [kind(n, "Bonn" if n % 2 else "Rome", n % 5) for n in range(MANY)]


def fresh(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values, with a NaN that is another object."""
    return tuple([float("nan") if value is NAN else value for value in values])


class Side:
    """A table, views, and the deltas of a subscriber."""

    def __init__(self, key: Any = None, kind: Any = object) -> None:
        self.db = Database()
        self.says: list[str] = []
        self.table: Any = self.db.table(kind, name="orders", key=key)
        self.heard: list[Any] = []
        self.views = [
            self.table.materialize(),
            self.table.where(
                lambda o: o[1:2] == ("Bonn",) if type(o) is tuple else o.town == "Bonn"
            )
            .aggregate(Count())
            .materialize(),
        ]
        self.subscription = self.table.subscribe(self.heard.append)

    def do(self, what: str, row: Any) -> str:
        """Run a statement; return the text of its error, or an empty string."""
        try:
            match what:
                case "add twice":
                    self.table.add(row, 2)
                case "remove and add":
                    self.table.remove(row)
                    self.table.add(row)
                case "remove_all and add_all":
                    gone = [row for row in self.table if row != 7][:: 1 + len(self.table) // 5]
                    self.table.remove_all(gone)
                    self.table.add_all([*gone[::2], row])
                case "update":
                    self.table.update(row, row)
                case "update the first" | "update the latest":
                    held = sorted(self.table, key=repr) or [row]  # which is refused
                    self.table.update(held[0 if what == "update the first" else -1], row)
                case "update a copy":
                    of = MANY // 2
                    self.table.update(type(row)(of, "Bonn" if of % 2 else "Rome", of % 5), row)
                case "update an absent":
                    self.table.update(row, row[:1] if type(row) is tuple else row)
                case "replace_all":
                    self.table.replace_all([*self.table, row, row][:-1])
                case "remove_all":
                    self.table.remove_all([row])
                case _:
                    getattr(self.table, what)(row)
        except (TableError, TypeError) as error:
            return str(error)
        return ""

    def told(self) -> list[Counter[Any]]:
        found = [Counter({repr(row): weight for row, weight in d.items()}) for d in self.heard]
        self.heard.clear()
        return found


@given(st.sampled_from(range(len(KINDS))), st.booleans(), HISTORIES)
@examples(200)
def test_it_does_and_refuses_what_the_general_statement_does(
    number: int, is_keyed: bool, histories: Any
) -> None:
    key = (lambda o: o.id) if is_keyed and number < 3 else None  # the last one has no names
    quick, general = Side(key), Side(key)
    rows = first(KINDS[number])
    quick.table.add_all(rows)
    for row in rows:
        general.table.add(row)
    quick.table.add(KINDS[number](-1, "Bonn", 1))
    assert quick.table._do.add_one.__name__ == "add_one"
    general.table.add(KINDS[number](-1, "Bonn", 1))
    quick.told(), general.told()
    for fails, steps in histories:
        for side in (quick, general):
            side.says = []
            with suppress(ZeroDivisionError), side.db.transaction():
                kept = {id(row): row for row in side.table}
                for what, values in steps[1:]:
                    side.says.append(side.do(what, KINDS[number](*fresh(values))))
                equal = {repr(row) for row in kept.values()}
                assert all(id(row) in kept for row in side.table if repr(row) in equal)
                if fails:
                    raise ZeroDivisionError
            for what, values in steps[:1]:
                side.says.append(side.do(what, KINDS[number](*fresh(values))))
            for view in side.views:
                view.verify()
        assert quick.says == general.says
        assert Counter(map(repr, quick.table)) == Counter(map(repr, general.table))
        assert len(quick.table) == len(general.table)
        assert quick.told() == general.told()


@pytest.mark.parametrize(
    ("kind", "key"),
    [*((kind, None) for kind in KINDS), (Order, attrgetter("id")), (Named, lambda o: o.id)],
)
def test_it_takes_a_row_without_a_call_of_its_class(kind: Any, key: Any) -> None:
    table = Database().table(object, key=key)
    table.add_all(first(kind))
    do: Any = table._do
    for number in (-1, -2):  # the first one makes the function
        row = kind(number, "Bonn", 1)
        table.add(row)
        table.remove(row)
    store, row = table._store, kind(-3, "Bonn", 1)
    assert calls_of(lambda: store.revert(do.add_one(row))) > 0
    alone = calls_of(lambda: None)
    assert calls_of(lambda: do.add_one(row)) == alone + 1
    assert calls_of(lambda: do.remove_one(row)) == alone + 2  # and a look into the dictionary
    held, other = kind(-4, "Bonn", 1), kind(-5, "Bonn", 1)
    table.add(held)  # a commit: nothing removed may return
    update_one = do.update_one
    assert update_one is not None
    assert calls_of(lambda: update_one(held, other)) == alone + 2


def test_a_load_of_an_emptied_table_makes_it_anew_and_a_lost_field_ends_it() -> None:
    db = Database()
    table: Any = db.table(object)
    table.add_all(first(Order))
    table.remove(Order(1, "Bonn", 1))
    table.add(7)  # no field tells this one apart
    table.add(Order(1, "Bonn", 1))
    table.add(Order(1, "Bonn", 1))
    assert table.count(Order(1, "Bonn", 1)) == 2 and len(table) == MANY + 2
    table.clear()
    table.add_all(first(Named))
    table.add(Named(-1, "Bonn"))
    assert table._do.add_one.__name__ == "add_one"
    with pytest.raises(TableError, match="it is not there"):
        table.remove(Named(-1, "Rome"))
    table.remove(Named(-1, "Bonn"))
    assert Counter(table) == Counter(first(Named))


@pytest.mark.parametrize("key", [None, "id"])
@pytest.mark.parametrize("verb", ["add", "remove", "update"])
def test_at_no_moment_can_it_leave_table_and_view_apart(verb: str, key: str | None) -> None:
    moment, where = 0, "the first"
    while where:
        db = Database()
        table: Any = db.table(Order, key=key)
        table.add_all(first(Order))
        view = table.group_by(lambda o: o.town).aggregate(Sum(lambda o: o.amount)).materialize()
        for _ in range(100):
            table.add(Order(-1, "Bonn", 1))
            table.remove(Order(-1, "Bonn", 1))
            table.update(Order(4, "Rome", 4), Order(4, "Bonn", 4))
            table.update(Order(4, "Bonn", 4), Order(4, "Rome", 4))
        new, old = Order(-2, "Rome", 7), Order(3, "Bonn", 3)
        rows = {"add": [new], "remove": [old], "update": [old, new]}[verb]
        before = Counter(table)
        came, gone = [new] if verb != "remove" else [], [old] if verb != "add" else []
        after = before + Counter(came) - Counter(gone)
        with Moments(moment) as moments, suppress(KeyboardInterrupt):
            getattr(table, verb)(*rows)
        where = moments.where or ""
        assert Counter(table) in (before, after), where
        assert len(table) == Counter(table).total()
        view.verify()
        table.add(Order(-3, "Oslo", 1))
        view.verify()
        moment += 1


@dataclass(frozen=True, slots=True)
class Sale:
    id: int
    town: str
    amount: int = 0
    note: str | None = None


class Line(NamedTuple):
    id: int
    town: str
    amount: int = 0
    note: str | None = None


class Mark(NamedTuple):
    id: int
    town: str
    amount: int = 0


class Weight(NamedTuple):
    id: int
    town: str
    amount: float = 0.0


@attrs.frozen
class Stay:
    id: int
    town: str
    amount: float = 0.0
    note: str | None = None


TYPED: list[Any] = [Sale, Line, Mark, Weight, Stay]


@given(st.sampled_from(TYPED), st.sampled_from([None, "id"]), HISTORIES)
@examples(60)
def test_annotations_alone_make_a_function_that_does_the_same(
    kind: Any, key: str | None, histories: Any
) -> None:
    quick, general = Side(key, kind), Side(key, kind)
    quick.table.add(kind(-1, "Bonn", 1))
    assert quick.table._do.add_one.__name__ == "add_one"
    general.table._do.add_one = general.table._do.add
    general.table.add(kind(-1, "Bonn", 1))
    for fails, steps in histories:
        for side in (quick, general):
            side.says = []
            with suppress(ZeroDivisionError), side.db.transaction():
                for what, values in steps[1:]:
                    side.says.append(side.do(what, kind(*fresh(values))))
                if fails:
                    raise ZeroDivisionError
            for what, values in steps[:1]:
                side.says.append(side.do(what, kind(*fresh(values))))
        assert quick.says == general.says
        assert Counter(map(repr, quick.table)) == Counter(map(repr, general.table))
        assert len(quick.table) == len(general.table)
        assert quick.told() == general.told()


class Unequal:
    """A row that equals nothing, not even None."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("cannot compare")

    __hash__ = object.__hash__


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("key", [None, "id"])
@pytest.mark.parametrize("kind", TYPED)
def test_a_value_that_cannot_be_compared_with_none_is_taken_as_before(
    kind: Any, key: str | None, many: bool
) -> None:
    table = Database().table(kind, name="rows", key=key)
    odd: Any = Unequal()
    rows = [kind(1, "Bonn", 1), kind(2, odd, 1)]
    if many:
        table.add_all(rows)
    else:
        for row in rows:
            table.add(row)
    assert any(row.town is odd for row in table)
    with pytest.raises(TableError, match="field 'amount' is None"):
        table.add(kind(3, odd, None))
    with pytest.raises(TableError, match="field 'amount' is None"):
        table.add_all([kind(3, "Bonn", 1), kind(4, odd, None)])
    assert len(table) == 2


@pytest.mark.parametrize("key", [None, "id"])
@pytest.mark.parametrize("kind", TYPED)
def test_a_typed_row_is_looked_at_and_taken_without_a_call(kind: Any, key: str | None) -> None:
    table = Database().table(kind, name="rows", key=key)
    do: Any = table._do
    table.add(kind(1, "Bonn", 1))  # makes the function
    row = kind(2, "Bonn", 1)  # the hashes of -1 and -2 are one
    alone = calls_of(lambda: None)
    of_hash = calls_of(lambda: hash(row)) - alone
    builtins = 1 if key else 3  # hash(); len() before and after, and the dictionary
    assert calls_of(lambda: do.add_one(row)) <= alone + 1 + of_hash + builtins


@pytest.mark.parametrize("kind", TYPED)
def test_a_typed_table_counts_copies_keeps_keys_apart_and_holds_the_object_that_returns(
    kind: Any,
) -> None:
    db = Database()
    bag, keyed = db.table(kind, name="bag"), db.table(kind, name="keyed", key="id")
    rows = [kind(n, "Bonn", 1) for n in range(3)]
    for row in rows:
        bag.add(row)
        keyed.add(row)
    assert len(bag) == len(keyed) == 3
    bag.add(kind(1, "Bonn", 1))
    assert (len(bag), bag.count(rows[1])) == (4, 2)
    with pytest.raises(TableError, match="its key is taken"):
        keyed.add(kind(1, "Rome", 1))
    for table in (bag, keyed):
        with db.transaction():
            table.remove(rows[2])
            table.add(kind(2, "Bonn", 1))
        assert any(row is rows[2] for row in table)
