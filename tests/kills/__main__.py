"""Kill processes of a history on Spark, at random moments, and check its results.

python -m tests.kills --flushes 200 --seed 1 --folder .soak.kills     continues from its state
python -m tests.kills --master 'local-cluster[2,1,512]'               executors are killed, too

Nothing may be lost or doubled: after each flush the views, and the files that one of them is
written to, are compared with plain Python. The seed determines the history, and the kills.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import IO

from reactive import OffloadError
from spark_backend.cluster.session import check_spark
from tests.kills.killing import DRIVER, kill

OFTEN = 3
"""One flush in `OFTEN` has a kill."""
WEIGHTS = {"worker": 4, "executor": 3, "JVM": 2, DRIVER: 3}
FIRST = 10.0
"""Assumed seconds of a flush until the first one was measured."""


@dataclass
class Run:
    """Progress of a history, and the processes killed meanwhile."""

    folder: Path
    seed: int
    flushes: int
    master: str
    done: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    told: int = 0

    @property
    def file(self) -> Path:
        """The file of the saved progress."""
        return self.folder / "kills.json"

    def remember(self) -> None:
        state = {"seed": self.seed, "done": self.done, "kills": self.kills, "told": self.told}
        self.file.write_text(json.dumps(state))

    def go_on(self) -> None:
        """Load the state of an earlier run, if it has the same seed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.file.exists():
            return
        state = json.loads(self.file.read_text())
        if state["seed"] != self.seed:
            raise SystemExit(f"{self.folder} is of seed {state['seed']}: take another folder")
        self.done, self.kills, self.told = state["done"], Counter(state["kills"]), state["told"]

    def __str__(self) -> str:
        kills = ", ".join(f"{n} {kind}" for kind, n in sorted(self.kills.items())) or "nothing"
        return f"{self.done} flushes; killed: {kills}; {self.told} errors told, and made up for"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if anything differs, or the program ends by itself; 0 also without Java."""
    run = _run(arguments)
    try:
        check_spark()
    except OffloadError as missing:
        print(f"not run: {missing}")
        return 0
    run.go_on()
    began = time.monotonic()
    while run.done < run.flushes:
        before = run.kills[DRIVER]
        error = _play(run)
        if run.kills[DRIVER] == before and (error or run.done < run.flushes):
            print(f"DIFFERENCE after flush {run.done} of seed {run.seed}\n{error}")
            return 1
    print(f"{run}; {time.monotonic() - began:.0f} s; 0 lost, 0 doubled")
    return 0


def _run(arguments: Sequence[str] | None) -> Run:
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--flushes", type=int, default=200)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--folder", type=Path, help="of the state; a new one if it is not given")
    given = parser.parse_args(arguments)
    folder = given.folder or Path(mkdtemp(prefix="kills"))
    return Run(folder.absolute(), given.seed, given.flushes, given.master)


def _play(run: Run) -> str:
    """Start the program, and kill until it ends; return the end of its stderr."""
    options = map(str, (run.folder, run.seed, run.done, run.flushes, run.master))
    errors = run.folder / "errors.txt"
    with errors.open("w") as file:
        program = subprocess.Popen(
            [sys.executable, "-m", "tests.kills.victim", *options],
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        )
    try:
        assert program.stdout is not None
        _watch(run, program.stdout, program.pid)
    finally:
        program.kill()
        program.wait()
    return errors.read_text()[-3000:]


def _watch(run: Run, lines: IO[str], pid: int) -> None:
    """Record the output of the program, and kill in some of its flushes."""
    last, seconds = time.monotonic(), FIRST
    for line in lines:
        said = json.loads(line)
        if "flush" not in said:
            run.told += 1
            print(f"told: {said['told']}", flush=True)
            continue
        now = time.monotonic()
        last, seconds = now, max(now - last, 0.1)
        run.done = said["flush"]
        run.remember()
        draw = Random(f"{run.seed} {run.done} {sum(run.kills.values())}")
        if draw.randrange(OFTEN) == 0 and run.done < run.flushes:
            timer = threading.Timer(draw.random() * seconds, _kill, (run, pid, draw))
            timer.daemon = True
            timer.start()


def _kill(run: Run, pid: int, draw: Random) -> None:
    (kind,) = draw.choices(list(WEIGHTS), list(WEIGHTS.values()))
    if kind == "executor" and not run.master.startswith("local-cluster"):
        kind = "JVM"
    if kill(kind, pid, draw):
        run.kills[kind] += 1
        print(f"flush {run.done + 1}: killed a {kind}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
