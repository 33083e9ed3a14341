"""Play a history on Spark, and report after each flush that its views are right.

    python -m tests.kills.victim FOLDER SEED DONE FLUSHES MASTER

This process may be killed; the next one continues after the last reported flush, from the state in
the folder.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from reactive import Collect, Count, Database, OffloadError, Sum
from spark_backend import SparkOffload
from tests.kills.history import Change, History, Order, Town
from tests.spark.ways import way

CONFIG = {
    "spark.driver.memory": "1g",
    "spark.executor.memory": "512m",
    "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path),
}
TRIES = 5
"""Number of attempts at a flush before it must succeed: each attempt may be hit by a kill."""


class Victim:
    """The database, its views, and where one of them is written to."""

    def __init__(self, folder: Path, history: History, master: str) -> None:
        state = folder / "state"
        offload = SparkOffload(
            master=master, checkpoint=state, trust=True, threshold_rows=None, config=CONFIG
        )
        self.history, self._changes = history, folder / "changes"
        self.db = Database(offload=offload)
        types: dict[str, Any] = {"orders": Order, "towns": Town, "notes": tuple}
        self._tables: dict[str, Any] = {n: self.db.table(of, name=n) for n, of in types.items()}
        for name, rows in history.tables.items():
            self._tables[name].add_all(rows.elements())
        self.totals, self.notes = self._views()
        self._sink = self.totals.write_to(str(self._changes), "changes")

    def _views(self) -> tuple[Any, Any]:
        orders, towns, notes = self._tables.values()
        joined = orders.join(towns, on=lambda o, t: o.town == t.id)
        sums = joined.group_by(lambda o, t: t.name).aggregate(Count(), Sum(lambda o, t: o.amount))
        lists = notes.group_by(lambda n: n[0]).aggregate(Collect(lambda n: n[1]))
        return sums.materialize("totals"), lists.materialize("notes")

    def move(self) -> None:
        """Offload the views; the state there may be older or newer: the local tables count."""
        for view in (self.totals, self.notes):
            _again(partial(view.offload, adopt="process"))

    def flush(self, changes: list[Change]) -> None:
        """All changes in one commit, and one flush."""
        with self.db.transaction():
            for name, row, weight in changes:
                table = self._tables[name]
                (table.add if weight > 0 else table.remove)(row)
        _again(self.db.flush)

    def check(self) -> None:
        """Compare all with plain Python."""
        wanted = self.history.totals()
        _same("totals", Counter(dict(self.totals.zset().items())), wanted)
        found = {number: Counter(dict(some.items())) for number, some in self.notes}
        _same("notes", found, self.history.notes())
        _again(self._sink.flush)
        _same("what is written", self._written(), wanted)

    def _written(self) -> Counter[Any]:
        """Return the sum of the written batches."""
        net: Counter[Any] = Counter()
        if self._changes.exists():
            for *row, weight in map(dict.values, ds.dataset(self._changes).to_table().to_pylist()):
                net[tuple(row)] += weight
        return Counter({row: n for row, n in net.items() if n})


def _same(what: str, found: Any, wanted: Any) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: {found}\nand by plain Python: {wanted}")


def _again(act: Callable[[], object]) -> None:
    """Retry, as a user does whom an error advises to retry."""
    for _ in range(TRIES):
        try:
            act()
        except OffloadError as error:
            print(json.dumps({"told": str(error)[:300]}), flush=True)
        else:
            return
    act()


def main(folder: str, seed: str, done: str, flushes: str, master: str) -> None:
    history = History(int(seed))
    for _ in range(int(done)):
        history.step()
    victim = Victim(Path(folder), history, master)
    victim.move()
    for number in range(int(done), int(flushes) + 1):
        if number > int(done):
            with way(is_job=number % 3 > 0):  # so that there is a job to kill
                victim.flush(history.step())
        victim.check()
        print(json.dumps({"flush": number}), flush=True)
    victim.db.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
