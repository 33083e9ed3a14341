"""A program on a small cluster, one of whose executors is killed; a test runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from reactive import Database, Max
from spark_backend import SparkOffload

CONFIG = {
    "spark.driver.memory": "1g",
    "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path),
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}


def executors() -> list[int]:
    """The processes of the executors below this one."""
    command = ["ps", "-ww", "-eo", "pid,ppid,args"]  # whole lines, also where COLUMNS is set
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [line.split(None, 2) for line in found.stdout.splitlines()[1:]]
    parents = {int(pid): int(parent) for pid, parent, *_ in lines}
    kind = "CoarseGrainedExecutorBackend"
    pids = [int(line[0]) for line in lines if kind in line[-1]]
    return [pid for pid in pids if os.getpid() in ancestors(pid, parents)]


def ancestors(pid: int, parents: dict[int, int]) -> list[int]:
    """The processes above one."""
    found = []
    while pid in parents:
        pid = parents[pid]
        found.append(pid)
    return found


def main() -> None:
    """Flush, kill an executor, flush, and compare with plain Python."""
    offload = SparkOffload(master="local-cluster[2,1,1024]", config=CONFIG, threshold_rows=None)
    with Database(offload=offload) as db:
        table = db.table(tuple, name="rows")
        view = table.group_by(lambda r: r[0]).aggregate(Max(lambda r: r[1])).materialize("largest")
        table.add_all([(n % 10, n) for n in range(200)])
        view.offload()
        running = executors()
        assert running, "no executor is running"
        os.kill(running[0], signal.SIGKILL)
        table.add_all([(n % 10, -n) for n in range(50)])
        view.verify()
        print(f"right after one of {len(running)} executors was killed")


if __name__ == "__main__":
    main()
