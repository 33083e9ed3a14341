"""Processes that store a view all the time are killed; the next one begins with a right view.

Commit `n` is the same in each process, so that the version of a file determines its contents.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from math import inf
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pytest

from reactive import Database
from reactive.borders.durable import kept_views
from reactive.borders.durable.sqlite_tables import Cost
from tests.budget import cases, seeds
from tests.engine.operators.test_operator_state import RELATIONS, Arc

PROGRAM = f"import sys, {__name__} as test; test.live(sys.argv[1], sys.argv[2])"
ROOT = Path(__file__).parents[3]
NAMES = ["closure", "rules", "shortest ways", "settled", "sums of a join"]
NODES = 9
KILLS = 3
STORED = mock.patch.multiple(kept_views, EVERY=1e-3, SHARE=0)
PAYS = mock.patch.object(Cost, "pays", property(lambda cost: cost.reading != inf))


@contextmanager
def opened(path: Path, name: str) -> Iterator[tuple[Database, Any, Any]]:
    with Database(path, keep=1_000_000) as db:
        arcs = db.table(Arc, name="arcs")
        yield db, arcs, RELATIONS[name](arcs).materialize("top", kept=True)


def drawn(number: int) -> tuple[list[Arc], list[Arc]]:
    """Return the arcs of commit `number`, which are inserted if absent, and deleted if present."""
    random = Random(number)
    arcs = {Arc(random.randrange(NODES), random.randrange(NODES)) for _ in range(4)}
    return sorted(arcs)[:2], sorted(arcs)[2:]


def commit(arcs: Any, number: int) -> None:
    for some in drawn(number):
        for arc in some:
            if arc in arcs:
                arcs.remove(arc)
            else:
                arcs.add(arc)


def after(version: int) -> Counter[Arc]:
    held: Counter[Arc] = Counter()
    for number in range(version):
        for arc in (arc for some in drawn(number) for arc in some):
            held[arc] ^= 1
    return +held


def live(path: str, name: str) -> None:
    """Commit, and say so, until the process is killed; the view is stored all the time."""
    with STORED, PAYS, opened(Path(path), name) as (db, arcs, _):
        while True:
            with db.transaction():
                commit(arcs, db.version)
            print(db.version, flush=True)


def killed(path: Path, name: str, commits: int) -> int:
    """Kill a process after some commits, and return the last one that it reported."""
    command = [sys.executable, "-c", PROGRAM, str(path), name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        told = max(map(int, islice(process.stdout, commits)))
        process.kill()
        with suppress(ValueError):  # a line that was cut
            told = max([told, *map(int, process.stdout)])
    return told


@pytest.mark.long
@pytest.mark.parametrize("name", cases(*NAMES))
def test_views_are_right_after_kills_and_stay_right(name: str, tmp_path: Path) -> None:
    path, found = tmp_path / "a.db", Counter[str]()
    for seed in seeds(2):
        random = Random(seed)
        for _ in range(KILLS):
            told = killed(path, name, random.randint(1, 80))
            with PAYS, opened(path, name) as (db, arcs, view):
                assert db.version >= told > 0
                assert Counter(arcs) == after(db.version)
                db.verify()
                found[view.kept_state().state] += 1
                for _ in range(3):
                    with db.transaction():
                        commit(arcs, db.version)
                    db.verify()
    assert found["read"], found
