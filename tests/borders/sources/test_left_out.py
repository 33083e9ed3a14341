"""Rows that are left out, their reports, and errors that stop a source all the same."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from reactive import (
    Batch,
    Database,
    Ingestion,
    PlanError,
    Raised,
    Refused,
    RowError,
    SourceError,
    StaleCaptureError,
    Table,
    TableError,
)
from reactive.borders.sources import ingest
from tests.borders.sources.histories import Fact, Item


def items(**options: Any) -> tuple[Database, Table[Item, int]]:
    db = Database(**options)
    return db, db.table(Item, key="id", name="items")


def pushed(db: Database, into: Any) -> Ingestion[Any]:
    return db.ingest(None, into, name="pushed", on_error="drop")


def told(reading: Ingestion[Any]) -> list[tuple[Any, str]]:
    return [(error.row, error.error.kind) for error in reading.errors]


def test_a_row_that_its_table_refuses_is_told_as_it_is() -> None:
    db, table = items()
    reading = pushed(db, table)
    reading.take(Batch([Item(1, 1), "odd", Item(2, [])], token=1))  # type: ignore[arg-type]
    assert list(table) == [Item(1, 1)]
    assert told(reading) == [("odd", "TableError"), ("Item(id=2, value=[])", "TableError")]
    first = next(iter(reading.errors))
    assert first == RowError(
        "source pushed into items",
        "odd",
        Raised("TableError", "table 'items' takes rows of Item, not the str 'odd'"),
    )


@pytest.mark.parametrize("row", [Item(1, []), Item(1, 0)])  # type: ignore[arg-type]
def test_a_row_that_is_refused_takes_the_place_of_the_one_with_its_key(row: Item) -> None:
    db, table = items()
    view = table.select(lambda i: 6 // i.value).materialize()
    reading = pushed(db, table)
    reading.take(Batch([Item(1, 1), Item(2, 1)]))
    reading.take(Batch([row]))
    assert (list(table), list(view), len(reading.errors)) == ([Item(2, 1)], [6], 1)
    reading.take(Batch([Item(1, 2)]))
    assert (len(table), len(reading.errors)) == (2, 0)
    reading.take(Batch([row]))
    reading.take(Batch(deletes=[1]))
    assert (list(table), len(reading.errors)) == ([Item(2, 1)], 0)


def test_the_last_row_of_a_key_counts_also_if_another_is_refused() -> None:
    db, table = items()
    reading = pushed(db, table)
    odd: Any = Item(1, [])  # type: ignore[arg-type]
    reading.take(Batch([odd, Item(1, 2)]))
    assert (list(table), told(reading)) == ([Item(1, 2)], [])
    reading.take(Batch([Item(1, 3), odd]))
    assert (list(table), len(told(reading))) == ([], 1)


def test_of_two_origins_with_one_key_the_later_one_is_left_out() -> None:
    db, table = items()
    reading = pushed(db, table)
    reading.take(Batch(origins={"f": [Item(1, 1)], "g": [Item(1, 2), Item(2, 2)]}))
    assert sorted(table, key=lambda i: i.id) == [Item(1, 1), Item(2, 2)]
    assert told(reading) == [(Item(1, 2), "TableError")]
    assert dict(reading.origins) == {"f": (Item(1, 1),), "g": (Item(2, 2),)}
    reading.take(Batch(origins={"f": [], "g": [Item(1, 2), Item(2, 2)]}))
    assert sorted(table, key=lambda i: i.id) == [Item(1, 2), Item(2, 2)]
    assert told(reading) == []


def test_a_key_passes_from_one_origin_to_another_in_one_batch() -> None:
    db, table = items()
    reading = db.ingest(None, table, name="pushed")
    reading.take(Batch(origins={"f": [Item(1, 1)]}))
    reading.take(Batch(origins={"g": [Item(1, 2)], "f": ()}))
    assert list(table) == [Item(1, 2)]
    with pytest.raises(TableError, match="its key is taken by"):
        reading.take(Batch(origins={"f": [Item(1, 3)]}))
    assert dict(reading.origins) == {"g": (Item(1, 2),)}


def test_a_row_that_raises_beside_another_one_is_left_out() -> None:
    db = Database()
    facts = db.table(Fact, name="facts")
    one = facts.join(facts, on=lambda a, b: a.of == b.of).select(
        lambda a, b: 1 // (a.value + b.value)
    )
    view = one.materialize()
    reading = pushed(db, facts)
    reading.take(Batch([Fact("a", 1), Fact("a", -1), Fact("b", 3)]))
    assert told(reading) == [(Fact("a", -1), "ZeroDivisionError")]
    view.verify()
    reading.take(Batch(removes=[Fact("a", -1), Fact("b", 3)]))
    assert (list(facts), told(reading)) == ([Fact("a", 1)], [])


def test_a_row_that_cannot_go_is_told() -> None:
    db = Database()
    facts = db.table(Fact, name="facts")
    reading = pushed(db, facts)
    reading.take(Batch([Fact("a", 1)], removes=[Fact("b", 2)], token=1))
    assert (list(facts), told(reading)) == ([Fact("a", 1)], [(Fact("b", 2), "TableError")])
    facts.clear()
    strict = db.ingest(None, facts, name="strict")
    with pytest.raises(TableError, match="it is not there"):
        strict.take(Batch(removes=[Fact("b", 2)], token=1))
    assert strict.token is None


def test_a_row_of_no_table_is_left_out() -> None:
    db, table = items()
    facts = db.table(Fact, name="facts")
    reading = pushed(db, {Item: table, Fact: facts})
    reading.take(Batch(["odd", Fact("a", 1)], origins={"f": {Item: [Item(1, 1)], int: [7]}}))
    assert (list(table), list(facts)) == ([Item(1, 1)], [Fact("a", 1)])
    assert {*told(reading)} == {("odd", "TableError"), (7, "TableError")}
    reading.take(Batch(origins={"f": [Item(1, 1)]}))
    assert [row for row, _ in told(reading)] == ["odd"]
    strict = db.ingest(None, {Item: table, Fact: facts}, name="strict")
    with pytest.raises(TableError, match="no table was given for 'odd', of class str"):
        strict.take(Batch(["odd"]))


def test_an_unhashable_row_is_an_error_of_its_table() -> None:
    db = Database()
    facts = db.table(Fact, name="facts")
    reading = db.ingest(None, facts, name="pushed")
    reading.take(Batch(origins={"f": [Fact("a", 1)]}))
    odd: Any = Fact("a", [])  # type: ignore[arg-type]
    for batch in (Batch([odd]), Batch(origins={"f": [odd]}), Batch([odd], removes=[Fact("a", 1)])):
        with pytest.raises(TableError, match="its field 'value' is a list"):
            reading.take(batch)
    assert list(facts) == [Fact("a", 1)]


def test_what_no_row_is_to_blame_for_stops_the_source() -> None:
    db, table = items(strict=True)
    least = 1
    view = table.where(lambda i: i.value >= least).materialize()
    reading = pushed(db, table)
    reading.take(Batch([Item(1, 1)], token=1))
    least = 2
    with pytest.raises(StaleCaptureError):
        reading.take(Batch([Item(2, 2)], token=2))
    assert (len(view), reading.token, told(reading)) == (1, 1, [])
    facts = db.table(Fact, name="facts")
    other = db.ingest(None, {Item: table, Fact: facts}, name="other", on_error="drop")
    for batch, kind, message in [
        (Batch(deletes={Fact: [1]}), TableError, "table 'facts' has no key to delete by"),
        (Batch(removes=[Item(1, 1)]), TableError, "table 'items' has a key to delete by"),
        (Batch(deletes=[1]), PlanError, "are given by the classes of their rows"),
    ]:
        with pytest.raises(kind, match=message):
            other.take(batch)
    assert other.token is None


def test_the_policy_is_that_of_the_ingestion() -> None:
    db, table = items()
    view = table.select(lambda i: 6 // i.value).materialize()
    pushed(db, table).take(Batch([Item(1, 0), Item(2, 0)], token=1))
    strict = db.ingest(None, table, name="pushed")
    with pytest.raises(ZeroDivisionError):
        strict.take(Batch([Item(3, 0)], token=2))
    strict.take(Batch([Item(1, 1)], token=3))
    again = pushed(db, table)
    assert (list(view), again.token, told(again)) == ([6], 3, [(Item(2, 0), "ZeroDivisionError")])


def test_a_table_that_was_dropped_stops_the_source() -> None:
    db, table = items()
    reading = pushed(db, table)
    reading.take(Batch([Item(1, 1)], token=1))
    db.drop(table)
    with pytest.raises(SourceError, match="was dropped"):
        reading.take(Batch([Item(2, 1)], token=2))
    assert (reading.token, told(reading)) == (1, [])


def test_a_view_of_what_is_left_out_that_raises_stops_the_source() -> None:
    db, table = items()
    view = table.select(lambda i: 6 // i.value).materialize()
    reading = pushed(db, table)
    lengths = reading.errors.select(lambda e: len(e.row)).materialize()
    with pytest.raises(TypeError):
        reading.take(Batch([Item(1, 0)], token=1))
    assert (reading.token, list(view), list(lengths), told(reading)) == (None, [], [], [])


def test_nobody_hears_of_a_batch_but_what_stands() -> None:
    db, table = items()
    view = table.select(lambda i: (i.id, 6 // i.value)).materialize()
    heard: list[Any] = []
    subscription = view.subscribe(lambda delta: heard.append(sorted(delta.added)))
    reading = pushed(db, table)
    reading.take(Batch([Item(n, n % 4) for n in range(12)], token=1))
    assert heard == [sorted((n, 6 // (n % 4)) for n in range(12) if n % 4)]
    assert (db.version, len(reading.errors)) == (1, 3)
    subscription.close()


def test_rows_that_raise_are_found_by_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    def trials(rows: int) -> int:
        made = []

        def counted() -> None:
            made.append(1)
            raise ingest._TakenBack

        monkeypatch.setattr(ingest, "_take_back", counted)
        db, table = items()
        view = table.select(lambda i: 6 // i.value).materialize()
        reading = pushed(db, table)
        reading.take(Batch([Item(n, n != rows // 3) for n in range(rows)]))
        assert (len(view), len(reading.errors)) == (rows - 1, 1)
        return len(made)

    small, large = trials(32), trials(1024)
    assert small <= large <= 2 * small


def unfit(key: Any, text: str = "?") -> Refused:
    return Refused(text, ValueError("no number"), key)


@pytest.mark.parametrize("seed", range(30))
def test_what_can_be_made_no_row_takes_the_place_of_a_row(seed: int) -> None:
    random = Random(seed)
    db, table = items()
    reading = pushed(db, table)
    model: dict[int, Any] = {}
    """key -> value; None for a refused row."""
    for _ in range(20):
        keys = [random.randrange(5) for _ in range(random.randrange(4))]
        changes = {key: random.choice(["go", None, 1, 2]) for key in keys}
        anew = random.random() < 0.2
        if anew:
            changes = {key: None for key, value in model.items() if value is None} | changes
        batch = Batch(
            [Item(key, value) for key, value in changes.items() if isinstance(value, int)],
            deletes=[key for key, value in changes.items() if value == "go"],
            refused={Item: [unfit(key, str(key)) for key, v in changes.items() if v is None]},
            anew=[Item] if anew else (),
        )
        reading.take(batch)
        model |= changes
        model = {key: value for key, value in model.items() if value != "go"}
        assert {i.id: i.value for i in table} == {k: v for k, v in model.items() if v is not None}
        assert sorted(e.row for e in reading.errors) == sorted(
            str(key) for key, value in model.items() if value is None
        )


def test_what_can_be_made_no_row_of_a_table_without_key_goes_as_it_came() -> None:
    db = Database()
    table = db.table(int, name="numbers")
    reading = pushed(db, table)
    reading.take(Batch([1, 2], refused={int: [unfit(None, "a"), unfit(None, "a")]}))
    assert (sorted(table), told(reading)) == ([1, 2], [("a", "ValueError")] * 2)
    reading.take(Batch(removes=["a", 2]))
    assert (list(table), told(reading)) == ([1], [("a", "ValueError")])
    reading.take(Batch(removes=["b"], refused={int: [unfit(None, "b")]}))
    assert told(reading) == [("a", "ValueError")]
    reading.take(Batch([3], anew=[int], refused={int: [unfit(None, "c")]}))
    assert (sorted(table), told(reading)) == ([1, 3], [("c", "ValueError")])


def test_of_a_key_that_is_refused_and_upserted_the_row_counts() -> None:
    db, table = items()
    reading = pushed(db, table)
    reading.take(Batch([Item(1, 1)], deletes=[1], refused={Item: [unfit(1)]}))
    assert (list(table), told(reading)) == ([Item(1, 1)], [])


def test_what_is_refused_stops_a_source_that_leaves_nothing_out() -> None:
    db, table = items()
    reading = db.ingest(None, table, name="pushed")
    with pytest.raises(ValueError, match="no number"):
        reading.take(Batch([Item(1, 1)], refused={Item: [unfit(2)]}))
    assert list(table) == []
    several = db.ingest(None, {Item: table}, name="several")
    with pytest.raises(TableError, match="no table was given for"):
        several.take(Batch(anew=[Fact], refused={Fact: []}))
