"""The history that processes are killed in: the contents of its views, and the kills."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from reactive import Collect, Count, Database, Sum
from tests.kills.__main__ import Run
from tests.kills.history import History, Order, Town
from tests.kills.killing import DRIVER, kill


def test_what_a_history_says_of_its_views_is_what_they_are_in_the_process() -> None:
    history, db = History(5), Database()
    orders, towns = db.table(Order, name="orders"), db.table(Town, name="towns")
    notes = db.table(tuple, name="notes")
    joined = orders.join(towns, on=lambda o, t: o.town == t.id)
    sums = joined.group_by(lambda o, t: t.name).aggregate(Count(), Sum(lambda o, t: o.amount))
    totals = sums.materialize()
    lists = notes.group_by(lambda n: n[0]).aggregate(Collect(lambda n: n[1])).materialize()
    tables = {"orders": orders, "towns": towns, "notes": notes}
    for _ in range(60):
        for name, row, weight in history.step():
            table: object = tables[name]
            getattr(table, "add" if weight > 0 else "remove")(row)
        assert Counter(dict(totals.zset().items())) == history.totals()
        assert {n: Counter(dict(some.items())) for n, some in lists} == history.notes()
    assert len(history.totals()) == 3


def test_only_what_is_below_a_process_is_killed() -> None:
    program = "import time; print(); time.sleep(60)  # pyspark.worker"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert not kill("worker", process.pid + 10**7, Random(1))
        assert not kill("JVM", process.pid, Random(1))
        assert kill("worker", process.pid, Random(1))
        assert process.wait(30) < 0
        assert not kill(DRIVER, process.pid, Random(1))


def test_a_run_goes_on_where_it_was_and_only_with_its_seed(tmp_path: Path) -> None:
    folder = tmp_path / "kills"
    first = Run(folder, 3, 200, "local[2]")
    first.go_on()
    first.done, first.kills = 17, Counter({"JVM": 2})
    first.remember()
    later = Run(folder, 3, 200, "local[2]")
    later.go_on()
    assert (later.done, later.kills) == (17, Counter({"JVM": 2}))
    with pytest.raises(SystemExit, match="is of seed 3"):
        Run(folder, 4, 200, "local[2]").go_on()
