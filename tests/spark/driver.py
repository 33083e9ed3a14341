"""A script that is killed and started again: an operator of rows whose class is in the script.

python driver.py FOLDER begin    on a small cluster, one of whose executors it kills
python driver.py FOLDER go-on    wherever Spark is then
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass

from reactive import Database, OffloadError
from reactive.engine.remote.fragments import offloaded_fragment
from spark_backend import SparkOffload
from spark_backend.cluster.session import Session

QUICKLY = os.environ.get("SPARK_SUBMIT_OPTS", "").split()
CLUSTER = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": " ".join(o for o in QUICKLY if not o.startswith("-Dspark")),
    "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path),
}


@dataclass(frozen=True)
class Order:
    """A row."""

    number: int
    customer: str


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


def told(offload: SparkOffload) -> str:
    """Return the error for a folder that each process has for itself, as each machine has its
    `/tmp`."""
    session = Session(session=offload.session.spark, folder="/proc/self/cwd/apart")
    try:
        return f"{session.spark} was made"
    except OffloadError as error:
        return str(error).partition(":")[0]


def main(folder: str, what: str) -> None:
    if what == "begin":
        offload = SparkOffload(
            master="local-cluster[2,1,512]", checkpoint=folder, trust=True, config=CLUSTER
        )
    else:
        offload = SparkOffload(master="local[2]", checkpoint=folder, trust=True)
    offload.open()
    part = offloaded_fragment(Database().table(Order, name="orders").distinct().plan)
    remote = offload.begin(part, "orders")

    def apply(number: int, changes: list[tuple[int, int]]) -> list[tuple[Order, int]]:
        rows = [(Order(order, "somebody"), weight) for order, weight in changes]
        entries = [(0, *remote.pack(0, row, row), weight) for row, weight in rows]
        return list(remote.apply(number, entries))

    def say(**found: object) -> None:
        rows = sum(1 for _ in remote.contents())
        print(json.dumps({**found, "rows": rows}), flush=True)

    if what == "begin":
        apply(0, [(order, 1) for order in range(10)])
        running = executors()
        os.kill(running[0], signal.SIGKILL)
        apply(1, [(order, 1) for order in range(10, 20)])
        say(resumed=remote.resumed, executors=len(running), told=told(offload))
        apply(2, [(order, 1) for order in range(20, 25)])
        sys.stdin.read()  # until it is killed
        return
    say(resumed=remote.resumed)
    delta = apply(3, [(100, 1), (4, -1)])
    say(delta=sorted((order.number, weight) for order, weight in delta))
    offload.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
