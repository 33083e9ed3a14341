"""A monitor of sensors: `.venv/bin/python -m examples.monitor`, in the repository's folder.

Open http://127.0.0.1:8010: alerts come and go, wait for somebody who acknowledges them, and follow
the limits. Time passes ten times as fast as it is (`--speed`). Stop it with Ctrl-C, or with
kill -9: started again it goes on where it was, and `monitor.jsonl`, the file of notices, has each
of them once.

    --fast      no page: time passes as fast as the process can, a simulated person acknowledges
                alerts, and notices are printed
    --live      no simulation: the clock is that of the machine, and readings come by POST /readings

Exit codes: 0 when it was stopped, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

from examples.arguments import positive
from examples.monitor.monitor import Monitor
from examples.monitor.outbox import Outbox
from examples.monitor.sensors import (
    STEP,
    acknowledge_some,
    moment_of,
    readings_at,
    sensors_at,
    tick_of,
)
from examples.monitor.service import serve
from examples.terminal import console, number, printable, say, signed
from reactive import Database, DurabilityError

STOPPED, USAGE = 0, 2
BEGIN = datetime(2024, 5, 1, 12, tzinfo=UTC)
"""The moment at which time begins with `--fast`."""
FILE_NAME = "monitor.db"
FILE = "of the database, beside that of the notices; default: monitor.db, none with --fast"
SIGNS = {"raised": "+", "escalated": "!", "acknowledged": "=", "ended": "-"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the monitor until it is stopped; gives the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.fast and options.live:
        parser.error("--fast simulates, and --live does not: give one of them")
    with tempfile.TemporaryDirectory() as folder:
        usual = Path(folder, FILE_NAME) if options.fast else Path(FILE_NAME)
        return _run(parser, options, options.file or usual)


def _run(parser: argparse.ArgumentParser, options: argparse.Namespace, file: Path) -> int:
    try:
        db = Database(file)
    except DurabilityError as error:
        parser.error(str(error))
    begin = BEGIN if options.fast else datetime.now(UTC)
    told = file.with_suffix(".jsonl")
    with (
        db,
        closing(Outbox(told, _print_notice)) as outbox,
        closing(Monitor(db, moment_of(tick_of(begin)), outbox)) as monitor,
        suppress(KeyboardInterrupt),
    ):
        _watch(monitor, is_fast=options.fast)
        if options.fast:
            _run_fast(monitor, options)
        else:
            _run_with_page(parser, monitor, options)
    return STOPPED


def _watch(monitor: Monitor, *, is_fast: bool) -> None:
    """Watch the sensors; after a time in which nobody watched, silence begins anew."""
    present = monitor.now if is_fast else max(monitor.now, moment_of(tick_of(datetime.now(UTC))))
    if not monitor.sensors or present - monitor.now > STEP:
        monitor.watch(sensors_at(present), present)


def _run_fast(monitor: Monitor, options: argparse.Namespace) -> None:
    begin, taken = time.perf_counter(), 0

    def tick() -> None:
        nonlocal taken
        acknowledge_some(monitor, options.seed)
        taken += _tick(monitor, options.seed)

    _repeat(tick, options.seconds, lambda: False)
    passed = time.perf_counter() - begin
    console().print(
        f"{number(taken, 'reading')} up to {monitor.now:%H:%M:%S}, "
        f"{number(len(monitor.incidents), 'incident')}, {len(monitor.alerts)} of them open, "
        f"in {passed:.1f} s"
    )


def _run_with_page(
    parser: argparse.ArgumentParser, monitor: Monitor, options: argparse.Namespace
) -> None:
    stopped = Event()
    with ExitStack() as served:
        try:
            address = served.enter_context(serve(monitor, options.host, options.port))
        except (OSError, OverflowError) as error:
            parser.error(f"no page at {options.host}, port {options.port}: {error}")
        console().print(f"the page is {address}")
        if options.live:
            monitor.db.clock.run()
            stopped.wait(options.seconds)
            return

        def tick() -> None:
            _tick(monitor, options.seed)

        pause = STEP.total_seconds() / options.speed
        _repeat(tick, options.seconds, lambda: stopped.wait(pause))


def _repeat(tick: Callable[[], None], seconds: int | None, pause: Callable[[], Any]) -> None:
    left = None if seconds is None else timedelta(seconds=seconds) // STEP
    while left is None or left > 0:
        tick()
        pause()
        left = None if left is None else left - 1


def _tick(monitor: Monitor, seed: int) -> int:
    """Let time pass by a step; return the number of new readings."""
    tick = tick_of(monitor.now) + 1
    return monitor.take(readings_at(tick, seed), moment_of(tick)).new


def _print_notice(notice: dict[str, Any]) -> None:
    by = f" by {printable(notice['by'])}" if notice["by"] else ""
    moment = datetime.fromisoformat(notice["at"])
    text = f"{moment:%H:%M:%S}  {notice['sensor']:<8} {notice['rule']:<8} {notice['what']}{by}"
    say(console(), signed(SIGNS[notice["what"]], text))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=".venv/bin/python -m examples.monitor",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--file", type=Path, metavar="PATH", help=FILE)
    add("--host", default="127.0.0.1")
    add("--port", type=int, default=8010, metavar="N", help="of the page; 0: any that is free")
    add("--seed", type=int, default=1, metavar="N", help="of the simulation; default: 1")
    add("--seconds", type=positive, metavar="N", help="stop after that much of the monitor's time")
    add("--speed", type=positive, default=10, metavar="N", help="times as fast; default: 10")
    add("--fast", action="store_true", help="no page, as fast as the process can")
    add("--live", action="store_true", help="no simulation: readings come by POST /readings")
    return parser


if __name__ == "__main__":
    sys.exit(main())
