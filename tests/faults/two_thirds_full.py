"""A process that is two thirds full moves an operator; a program that runs under a memory limit.

State tables are written here; a job that would read the transferred rows returns nothing.
"""

from __future__ import annotations

import gc
import resource
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest

from reactive import Count, Database, Sum
from spark_backend.bucketed import remote as bucketed
from spark_backend.bucketed.bucket_changes import CHANGES, FAILED, OUTPUT, ROWS
from spark_backend.parts import spilled
from tests.borders.offload.conftest import small_pieces
from tests.faults.in_process import COLUMNS, Frame, Offload, Operator, in_process

WARM, PIECE = 20_000, 2_000


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    customer: int
    amount: float


def moved(rows: int) -> None:
    """Move an operator over `rows` rows within half of their memory."""
    with tempfile.TemporaryDirectory() as folder, _without_jobs():
        db = Database(offload=Offload(folder))
        for name, count in (("warm", WARM), ("orders", rows)):
            before = _data()
            orders = db.table(Order, name=name)
            by_customer = orders.group_by(lambda o: o.customer)
            view = by_customer.aggregate(Count(), Sum(lambda o: o.amount)).materialize(name)
            for start in range(0, count, PIECE):
                some = range(start, start + PIECE)
                orders.add_all(Order(n, n // 10, n / 8) for n in some)
            gc.collect()
            if name == "orders":
                most = _data() + (_data() - before) // 2
                resource.setrlimit(resource.RLIMIT_DATA, (most, most))
            view.offload()
            assert len(orders) == count and orders.count(Order(1, 0, 1 / 8)) == 1


def _data() -> int:
    """Bytes of data of the process, as they are limited."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmData:")) * 1024


@contextmanager
def _without_jobs() -> Iterator[None]:
    """Leave out the jobs, which would run elsewhere."""
    nothing = {name: CHANGES.empty_table().select(COLUMNS) for name in (ROWS, OUTPUT, FAILED)}
    with (
        in_process(),
        pytest.MonkeyPatch.context() as small,
        patch.object(spilled, "WRITTEN", PIECE),
        patch.object(bucketed, "union_frames", lambda frames: Frame(CHANGES.empty_table())),
        patch.object(Operator, "_staged_here", lambda *given: {}),
        patch.object(Operator, "_changes", lambda *given: nothing),
    ):
        small_pieces(small, PIECE)
        yield


if __name__ == "__main__":
    moved(int(sys.argv[1]))
