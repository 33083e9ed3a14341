"""Play histories one after the other, and print the seeds that differ.

python -m tests.soak --histories 1000 --seed 1
python -m tests.soak --seconds 60 --workers 2
python -m tests.soak --histories 100000 --workers 2 --state .soak.json     continues from its state
python -m tests.soak --one 4711
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from tests.soak.cases import case_of
from tests.soak.play import play
from tests.soak.report import described
from tests.soak.shrink import fails_alike, shrunk
from tests.soak.work import Played, played, played_one, quiet, serve

CHUNK = 20
"""Histories that a process plays at a time."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if anything differs."""
    options = _options(arguments)
    if options.one is not None:
        return _one(options.one, options.shrink)
    first, known = _begin(options)
    histories, commits, began, last = 0, 0, time.monotonic(), 0.0
    differences: list[int] = [*known]
    for done in _played(options, first):
        histories, commits = histories + len(done.seeds), commits + done.commits
        for seed, told in done.differences:
            differences.append(seed)
            print(f"DIFFERENCE {told}\nagain: python -m tests.soak --one {seed}", flush=True)
        _remember(options, done.seeds.stop, differences)
        if len(differences) >= len(known) + options.stop:
            break
        now = time.monotonic()
        if now - last > options.every:
            last = now
            _tell(histories, commits, len(differences), now - began)
    _tell(histories, commits, len(differences), time.monotonic() - began)
    return 1 if differences else 0


def _options(arguments: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seed", type=int, default=1, help="of the first history")
    parser.add_argument("--histories", type=int, help="how many")
    parser.add_argument("--seconds", type=float, help="for how long")
    parser.add_argument("--one", type=int, metavar="SEED", help="this one, and make it smaller")
    parser.add_argument("--shrink", type=float, default=60, help="seconds to make it smaller")
    parser.add_argument("--stop", type=int, default=10, help="differences after which it ends")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--every", type=float, default=10, help="seconds between two lines")
    parser.add_argument("--state", type=Path, help="a file that remembers how far this has come")
    return parser.parse_args(arguments)


def _one(seed: int, seconds: float) -> int:
    quiet()
    case = case_of(seed)
    told = played_one(seed)[1]
    if told is None:
        print(f"seed {seed}: nothing differs")
        return 0
    print(told)
    case = shrunk(case, seconds, fails_alike(case))
    try:
        play(case)
    except Exception:
        told = traceback.format_exc()[-3_000:]
    print(described(case, told))
    return 1


def _begin(options: Any) -> tuple[int, list[int]]:
    """The first seed, and the seeds that differed in the runs before."""
    if options.state is None or not options.state.exists():
        return options.seed, []
    state = json.loads(options.state.read_text())
    return state["next"], state["differences"]


def _remember(options: Any, following: int, differences: list[int]) -> None:
    if options.state is not None:
        options.state.write_text(json.dumps({"next": following, "differences": differences}))


def _tell(histories: int, commits: int, differences: int, seconds: float) -> None:
    rate = histories / seconds if seconds else 0
    told = f"{histories} histories, {commits} commits, {differences} differences"
    print(f"{told}, {seconds:.0f} s, {rate:.1f} histories per s", flush=True)


def _played(options: Any, first: int) -> Iterator[Played]:
    """Yield the results of the histories, in order of their seeds."""
    count = 10**9 if options.histories is None else options.seed + options.histories - first
    end = time.monotonic() + (10**9 if options.seconds is None else options.seconds)
    last = first + max(count, 0)
    starts = range(first, last, CHUNK)
    chunks = (range(start, min(start + CHUNK, last)) for start in starts)
    if options.workers == 1:
        quiet()
        for chunk in chunks:
            if time.monotonic() > end:
                return
            yield played(chunk)
        return
    yield from _shared(chunks, options.workers, end)


def _shared(chunks: Iterator[range], workers: int, end: float) -> Iterator[Played]:
    """Yield the results of chunks that several processes play, in order of the chunks.

    Each process has a pipe of its own: the queues of an executor are shared, and histories throw
    exceptions and signals.
    """
    context = multiprocessing.get_context("spawn")
    known: dict[range, Played] = {}
    order: deque[range] = deque()
    busy: dict[Any, Any] = {}

    def give(pipe: Any) -> None:
        chunk = next(chunks, None) if time.monotonic() < end else None
        pipe.send(chunk)
        if chunk is None:
            busy.pop(pipe).join()
        else:
            order.append(chunk)

    for _ in range(workers):
        mine, theirs = context.Pipe()
        busy[mine] = context.Process(target=serve, args=(theirs,), daemon=True)
        busy[mine].start()
        give(mine)
    while order:
        ready: list[Any] = wait(list(busy))
        for pipe in ready:
            done: Played = pipe.recv()
            known[done.seeds] = done
            give(pipe)
        while order and order[0] in known:
            yield known.pop(order.popleft())


if __name__ == "__main__":
    sys.exit(main())
