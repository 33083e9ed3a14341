"""A process may end between any two steps of a batch: the next one loses and doubles nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from reactive import OffloadError, Sink, View
from reactive.api.view import AnyView
from reactive.borders.sinks.durable_outbox import CalledTarget
from spark_backend import RowsFolder
from spark_backend.sinks import rows_folder
from spark_backend.sinks.changes_folder import ChangesFolder
from spark_backend.sinks.outbox import FileOutbox
from tests.borders.sinks.crashing import Crashing, ObjectStore, crash_at_every_step
from tests.borders.sinks.histories import VIEWS, Sale, Shop, Town, bag, named, the_rows

ROUNDS = 5
CLASSES: dict[Callable[[Any], AnyView], type] = {the_rows: Sale, named: Town}
"""Row classes of the views whose query does not state them."""
Make = Callable[[Path, Callable[[Any], Any]], "Kind"]


class Kind:
    """A kind of sink over a folder: how to make it, and how to read its target."""

    def __init__(self, folder: Path, row_type: Any, wrapped: Callable[[Any], Any]) -> None:
        self.folder, self.row_type, self.wrapped = folder, row_type, wrapped

    def sink(self, view: View[Any]) -> Sink:
        return view.write_to(self.target())

    def target(self) -> Any:
        raise NotImplementedError

    def content(self) -> Counter[Any]:
        """Return the rows of the receiver, as a bag; each batch is there completely."""
        raise NotImplementedError


class Changes(Kind):
    """A folder of changes."""

    def target(self) -> Any:
        target = ChangesFolder(self.folder / "out", row_type=self.row_type)
        target._files = self.wrapped(target._files)
        return target

    def content(self) -> Counter[Any]:
        found: Counter[Any] = Counter()
        for path in sorted(self.folder.glob("out/batch=*/*.parquet")):
            for row, weight in batch_of(path):
                found[row] += weight
            assert min(found.values()) >= 0, "nothing goes that is not there"
        return +found


class Objects(Changes):
    """A folder of changes in an object store."""

    def target(self) -> Any:
        target = ChangesFolder(self.folder / "out", row_type=self.row_type)
        target._files = self.wrapped(ObjectStore(target._files))
        return target


class Rows(Kind):
    """A folder of rows."""

    def target(self) -> Any:
        target = RowsFolder(self.folder / "out", row_type=self.row_type)
        target._files = self.wrapped(target._files)
        return target

    def content(self) -> Counter[Any]:
        if not (self.folder / "out" / "_spark_metadata" / "0").exists():
            return Counter()
        table = RowsFolder(self.folder / "out").read()
        rows = zip(*(table.column(n).to_pylist() for n in table.column_names), strict=True)
        return bag(rows)


class Called(Kind):
    """A function that stores the batch number together with its effect."""

    def __init__(self, folder: Path, row_type: Any, wrapped: Callable[[Any], Any]) -> None:
        super().__init__(folder, row_type, wrapped)
        self.last, self.found = -1, Counter[Any]()
        self.told: dict[int, Counter[Any]] = {}
        self.files: Any = None

    def target(self) -> Any:
        outbox = FileOutbox(str(self.folder / "box"), row_type=self.row_type)
        outbox._files = self.files = self.wrapped(outbox._files)
        return CalledTarget(self.receive, outbox)

    def receive(self, number: int, changes: list[tuple[Any, int]]) -> None:
        self.files.step()
        net: Counter[Any] = Counter()
        for row, weight in changes:
            for shown in bag([row]):
                net[shown] += weight
        assert self.told.setdefault(number, net) == net, "the same changes under the same number"
        if number > self.last:
            assert number == self.last + 1
            self.last = number
            self.found = Counter(
                {r: n for r in {*self.found, *net} if (n := self.found[r] + net[r])}
            )
        self.files.step()

    def content(self) -> Counter[Any]:
        return self.found


def batch_of(path: Path) -> list[tuple[Any, int]]:
    table = pq.ParquetFile(path).read()
    rows = zip(*(table.column(n).to_pylist() for n in table.column_names), strict=True)
    found = []
    for *row, weight in rows:
        (shown,) = bag([tuple(row)])
        found.append((shown, weight))
    return found


KINDS: tuple[type[Kind], ...] = (Changes, Objects, Rows, Called)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make_view", VIEWS)
def test_a_process_may_end_at_any_step(
    kind: type[Kind], make_view: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_folder, "PER_BUCKET", 1)
    monkeypatch.setattr(rows_folder, "GROWTH", 2)
    crash_at_every_step(partial(run, kind, make_view), tmp_path, histories=8)


def run(kind: type[Kind], make_view: Any, folder: Path, seed: int, at: int) -> bool:
    """Run a history in which the process ends at a step, and the next process at a later one."""
    files: list[Crashing] = []

    def wrapped(found: Any) -> Any:
        steps = sum(f.steps for f in files)
        times = (at, at + 3)
        files.append(Crashing(found, times[len(files)] - steps if len(files) < 2 else None))
        return files[-1]

    made = kind(folder, VIEWS[make_view], wrapped)
    shop = Shop(Random(seed), make_view, made.sink)
    shop.begin_again()
    for _ in range(ROUNDS):
        shop.change()
        shop.surely(lambda: flush(shop, made))
        assert made.content() == bag(shop.view)
        if shop.random.random() < 0.2:
            shop.surely(shop.begin)  # it ends between two batches
    return shop.crashes > 0


def flush(shop: Shop, made: Kind) -> None:
    """Flush the sink; pass the types of the rows once an empty view requires them."""
    try:
        shop.sink.flush()
    except OffloadError as error:
        assert "row_type=RowType" in str(error)
        assert made.row_type is None and not len(shop.view)
        made.row_type = CLASSES[shop.make_view]
        shop.begin_again()
        shop.sink.flush()
