"""Sinks in the process: their output, its time, and refusals."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

from reactive import (
    ClosedError,
    Database,
    Delta,
    OffloadError,
    PlanError,
    Sink,
    TransactionError,
    View,
)
from reactive.engine.runtime.lock import BROKEN
from reactive.engine.transactions.commit import InterruptedCommit
from spark_backend import ChangesFolder
from tests.borders.offload.elsewhere import Elsewhere
from tests.borders.sinks.crashing import ObjectStore
from tests.borders.sinks.histories import VIEWS, Shop, bag
from tests.budget import seeds


class Parcel(NamedTuple):
    """A row with a field that the files have too."""

    number: int
    weight: float


class Receiver:
    """A function of batches that fails on request."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, list[Any]]] = []
        self.tries: list[int] = []
        self.fails = False

    def __call__(self, number: int, changes: list[Any]) -> None:
        self.tries.append(number)
        if self.fails:
            raise ConnectionError("nobody is there")
        self.batches.append((number, changes))

    def content(self) -> Counter[Any]:
        found: Counter[Any] = Counter()
        for _, changes in self.batches:
            for row, weight in changes:
                for shown in bag([row]):
                    found[shown] += weight
        assert not found or min(found.values()) >= 0
        return +found


def words(*, name: str | None = "all") -> tuple[Database, Any, View[Any]]:
    db = Database()
    table = db.table(str, name="words")
    return db, table, table.materialize(name)


@pytest.mark.parametrize("make_view", VIEWS)
@pytest.mark.parametrize("moves", [False, True])
def test_the_batches_come_to_the_view(make_view: Any, moves: bool) -> None:
    for seed in seeds(40):
        receiver, random = Receiver(), Random(seed)
        shop = Shop(random, make_view, lambda view: view.changes_to(receiver))
        shop.begin_in(Database(offload=Elsewhere() if moves else None))
        for _ in range(12):
            shop.change()
            receiver.fails = random.random() < 0.2
            if moves and random.random() < 0.3:
                shop.move()
            if random.random() < 0.5:
                try:
                    shop.sink.flush()
                except ConnectionError:
                    assert receiver.fails and shop.sink.state == "failed"
                else:
                    assert receiver.content() == bag(shop.view)
        receiver.fails = False
        shop.db.flush()
        assert receiver.content() == bag(shop.view)
        assert [number for number, _ in receiver.batches] == list(range(len(receiver.batches)))
        shop.db.close()


def test_a_batch_that_failed_comes_again_as_it_was_and_what_came_since_is_the_next() -> None:
    _, table, view = words()
    receiver = Receiver()
    sink = view.changes_to(receiver)
    table.add("to")
    receiver.fails = True
    for _ in range(2):
        with pytest.raises(ConnectionError):
            sink.flush()
        table.add("be")
    assert sink.state == "failed" and isinstance(sink.error, ConnectionError)
    receiver.fails = False
    sink.flush()
    assert receiver.batches == [(0, [("to", 1)]), (1, [("be", 2)])]
    assert receiver.tries == [0, 0, 0, 1]
    assert repr(sink).endswith("running, batch 1, through commit 3)") and not sink.error


def test_changes_that_cancel_are_no_batch() -> None:
    _, table, view = words()
    receiver = Receiver()
    with view.changes_to(receiver) as sink:
        assert sink.flush() is None and sink.position is None
        table.add("to")
        table.remove("to")
        assert sink.flush() is None
        assert sink.lag.waiting == 0
        table.add_all(["be"] * 3000)
        assert sink.lag.waiting == 1 and sink.lag.seconds is not None
    assert receiver.batches == [(0, [("be", 3000)])], "leaving the `with` writes"
    assert sink.state == "stopped"


def test_a_view_that_was_computed_again_is_not_told_again() -> None:
    db, table, view = words()
    receiver, deltas = Receiver(), list[Delta[str]]()
    view.changes_to(receiver)
    table.subscribe(deltas.append, name="alerts")
    table.add("to")
    db.flush()
    engine = db._engine
    engine.broken, engine.db_lock.at_rest = InterruptedCommit([]), BROKEN
    engine.db_lock.depth = BROKEN
    assert len(view) == 1
    assert engine.broken is None, "it has been repaired"
    table.add("be")
    db.flush()
    assert receiver.batches == [(0, [("to", 1)]), (1, [("be", 1)])]
    assert [(delta.number, delta.added) for delta in deltas] == [(1, ("to",)), (2, ("be",))]


def test_a_trigger_writes_by_itself_until_the_sink_is_stopped() -> None:
    db, table, view = words()
    receiver, told = Receiver(), threading.Event()

    def receive(number: int, changes: list[Any]) -> None:
        receiver(number, changes)
        told.set()

    sink = view.changes_to(receive, trigger="10ms")
    table.add("to")
    assert told.wait(10)
    assert receiver.batches == [(0, [("to", 1)])]
    receiver.fails = True
    told.clear()
    table.add("be")
    while sink.error is None:
        told.wait(0.005)
    receiver.fails = False
    assert told.wait(10), "it tries again by itself"
    db.close()
    assert sink.state == "stopped"
    assert receiver.batches[1] == (1, [("be", 1)])


def test_without_a_trigger_nothing_is_written_until_somebody_asks() -> None:
    db, table, view = words()
    receiver = Receiver()
    sink = view.changes_to(receiver)
    table.add("to")
    assert receiver.batches == []
    db.flush()
    assert receiver.batches == [(0, [("to", 1)])]
    with db.transaction():
        table.add("be")
        with pytest.raises(TransactionError, match="inside a transaction"):
            sink.flush()
    sink.stop()
    sink.stop()
    with pytest.raises(ClosedError, match="was stopped"):
        sink.flush()
    db.flush()
    assert len(receiver.batches) == 1


def test_a_function_may_change_tables_and_ask_for_a_flush() -> None:
    _, table, view = words()
    seen: list[int] = []

    def echo(number: int, changes: list[Any]) -> None:
        seen.append(number)
        if number < 3:
            table.add(f"{number}")
            sink.flush()

    sink = view.changes_to(echo)
    table.add("to")
    for _ in range(5):
        sink.flush()
    assert seen == [0, 1, 2, 3]


def test_a_sink_is_one_and_its_arguments_are_checked(tmp_path: Path) -> None:
    _, _, view = words()
    sink = view.changes_to(print)
    with pytest.raises(PlanError, match="there already"):
        view.changes_to(print)
    sink.stop()
    view.changes_to(print).stop()
    for trigger in ("soon", 0, -1.0, True, "10 parsecs", float("inf")):
        with pytest.raises(PlanError, match="no interval"):
            view.changes_to(print, trigger=trigger)
    with pytest.raises(PlanError, match="changes_to takes a function"):
        view.changes_to("out")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="write_to takes a path"):
        view.write_to(print)
    with pytest.raises(PlanError, match="none of"):
        view.write_to(tmp_path, "append")  # type: ignore[arg-type]
    with pytest.raises(OffloadError, match="ChangesFolder"):
        view.write_to(tmp_path)
    view.close()
    with pytest.raises(ClosedError):
        view.changes_to(print)


def test_the_sink_of_a_view_that_was_closed_says_so() -> None:
    _, table, view = words()
    sink = view.changes_to(print)
    view.close()
    with pytest.raises(ClosedError):
        sink.flush()
    table.add("to")


def changes_in(folder: Path) -> list[list[tuple[Any, ...]]]:
    """The batches in a folder."""
    paths = sorted(folder.glob("batch=*/part-0.parquet"))
    tables = [pq.ParquetFile(path).read() for path in paths]
    return [sorted(zip(*table.to_pydict().values(), strict=True)) for table in tables]


def test_a_folder_of_changes_goes_on_and_refuses_another_query(tmp_path: Path) -> None:
    def begin(rows: list[str], longest: int) -> Sink:
        db = Database()
        table = db.table(str, name="words")
        table.add_all(rows)
        view = table.where(lambda w: len(w) < longest).materialize("short")
        return view.write_to(ChangesFolder(tmp_path / "out"))

    begin(["to", "be"], 4).flush()
    begin(["to", "be"], 4).flush()
    begin(["to", "or", "or", "that"], 4).flush()
    assert changes_in(tmp_path / "out") == [
        [("be", 1), ("to", 1)],
        [("be", -1), ("or", 2)],
    ]
    with pytest.raises(OffloadError, match="another query, up to batch 1"):
        begin([], 5)
    (tmp_path / "out" / "batch=000000000000").rename(tmp_path / "elsewhere")
    with pytest.raises(OffloadError, match="batch 0 is missing"):
        begin([], 4)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    _, table, view = words()
    table.add("to")
    (tmp_path / "mine.parquet").write_text("rows")
    with pytest.raises(OffloadError, match="no sink has written"):
        view.write_to(ChangesFolder(tmp_path))
    sink = view.write_to(ChangesFolder(tmp_path / "out"))
    sink.flush()
    note = tmp_path / "out" / "batch=000000000000" / "_position.json"
    for text in ("", "[]", note.read_text().replace('"format": 1', '"format": 7')):
        note.write_text(text)
        with pytest.raises(OffloadError, match="none that a sink has written"):
            view.write_to(ChangesFolder(tmp_path / "out")).flush()


def test_two_writers_of_a_folder_are_told(tmp_path: Path) -> None:
    (_, one, first), (_, other, second) = words(), words()
    sinks = [view.write_to(ChangesFolder(tmp_path / "out")) for view in (first, second)]
    one.add("to")
    other.add("to")
    for sink in sinks:
        sink.flush()
    assert len(changes_in(tmp_path / "out")) == 1
    one.add("be")
    other.add("be")
    sinks[0].flush()
    with pytest.raises(OffloadError, match="another sink writes"):
        sinks[1].flush()


def test_rows_that_fit_no_columns_wait_until_they_do(tmp_path: Path) -> None:
    db = Database()
    table = db.table(tuple, name="pairs")
    sink = table.materialize("pairs").write_to(ChangesFolder(tmp_path / "out"))
    table.add((1, None))
    with pytest.raises(OffloadError, match="nothing but None"):
        sink.flush()
    table.add((2, "two"))
    sink.flush()
    table.add((3, 3))
    with pytest.raises(OffloadError, match="fit no columns"):
        sink.flush()
    table.add((4, None))
    table.remove((3, 3))
    sink.flush()
    table.add((2**70, "much"))
    with pytest.raises(OffloadError, match="beyond 64 bits"):
        sink.flush()
    assert changes_in(tmp_path / "out")[1] == [(4, None, 1)]


def test_a_field_with_the_name_of_a_column_of_the_files_is_refused(tmp_path: Path) -> None:
    db = Database()
    table = db.table(Parcel, name="parcels")
    table.add(Parcel(1, 2.5))
    sink = table.materialize().write_to(ChangesFolder(tmp_path / "out"))
    with pytest.raises(OffloadError, match="field 'weight'"):
        sink.flush()
    with pytest.raises(OffloadError, match="no Spark type"):
        ChangesFolder(tmp_path / "other", row_type=dict[str, int])


class Unsteady(ObjectStore):
    """A store that does not answer once, when a file is to be moved to where readers see it."""

    is_away = False

    def move(self, source: str, target: str) -> None:
        if self.is_away and target.endswith(".parquet"):
            self.is_away = False
            raise OSError("no answer")
        super().move(source, target)


def in_store(folder: Path) -> tuple[ChangesFolder, Unsteady]:
    target = ChangesFolder(folder / "out")
    target._files = store = Unsteady(target._files)
    return target, store


def test_a_batch_that_counts_and_is_not_in_place_is_brought_there_by_the_next_try(
    tmp_path: Path,
) -> None:
    _, table, view = words()
    target, store = in_store(tmp_path)
    sink = view.write_to(target)
    for word in ("to", "be"):
        table.add(word)
        store.is_away = True
        with pytest.raises(OSError, match="no answer"):
            sink.flush()
        sink.flush()
    assert changes_in(tmp_path / "out") == [[("to", 1)], [("be", 1)]]


def test_two_writers_of_a_folder_in_a_store_are_told_though_their_batches_look_alike(
    tmp_path: Path,
) -> None:
    (_, one, first), (_, other, second) = words(), words()
    sinks = [view.write_to(in_store(tmp_path)[0]) for view in (first, second)]
    for sink in sinks:
        sink.flush()
    one.add("to")
    sinks[0].flush()
    other.add("be")
    with pytest.raises(OffloadError, match="another sink writes"):
        sinks[1].flush()
    assert changes_in(tmp_path / "out") == [[("to", 1)]]
