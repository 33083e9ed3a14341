"""The command line: `.venv/bin/python -m examples.findbugs.replay [HISTORY | BUILD BUILD ...]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console

from examples.collector import without_collector
from examples.findbugs.archives import Unreadable
from examples.findbugs.classfile import ClassFileError
from examples.findbugs.program import Program
from examples.findbugs.recorded import HistoryError, Revision
from examples.findbugs.replay import show
from examples.findbugs.replay.figures import draw
from examples.findbugs.replay.mirror import Mirror, without_plain
from examples.findbugs.replay.options import parsed
from examples.findbugs.replay.show import Layout
from examples.findbugs.replay.sources import (
    history_at,
    is_of_builds,
    of_builds,
    of_history,
    title_of,
)
from examples.findbugs.replay.steps import Memory, NotVerifiedError, Step, check, memory, replay
from examples.findbugs.replay.summary import Summary, summary
from examples.terminal import Tick, console, say
from examples.watching import MissingExtra
from reactive import VerificationError

VERIFIED, DIFFERS, USAGE, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay a history; gives the exit code."""
    options = parsed(arguments)
    errors = console(to_errors=True)
    try:
        with errors.status("reading") as status, without_collector():
            revisions = _revisions(options.sources, lambda what: status.update(f"reading {what}"))
        return _run(options, revisions, errors)
    except (HistoryError, ClassFileError, Unreadable, OSError) as error:
        errors.print(str(error), style="red", markup=False)
        return USAGE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _revisions(sources: Sequence[Path], tick: Tick) -> list[Revision]:
    if is_of_builds(sources):
        return [*of_builds(sources, tick)]
    return [*of_history(history_at(str(sources[0])), tick)]


def _run(options: argparse.Namespace, revisions: list[Revision], errors: Console) -> int:
    program, mirror = _program(options), Mirror()
    making = replay(program, mirror, revisions, repeat=options.repeat, verify=options.verify)
    try:
        steps = [*making] if options.json else _shown(making, _layout(options, revisions))
        check(program, mirror, "at the end")
        for view in program.views.values() if options.stored else ():
            view.verify()
    except (NotVerifiedError, VerificationError) as error:
        errors.print(f"NOT verified: {error}", style="red", markup=False)
        return DIFFERS
    of, used = summary(steps), memory(_program(options), revisions) if options.memory else None
    _tell(options, steps, of, used)
    for letter in without_plain(options.only):
        errors.print(f"no plain evaluation for {letter}", style="yellow", markup=False)
    _draw(options, steps, of, used, errors)
    return VERIFIED


def _layout(options: argparse.Namespace, revisions: Sequence[Revision]) -> Layout:
    names = max(len(revision.name) for revision in revisions)
    return Layout(names, is_of_builds(options.sources), options.verify, options.limit)


def _shown(making: Iterable[Step], layout: Layout) -> list[Step]:
    """Return the steps; each is shown as soon as it is made."""
    out, steps = console(), []
    say(out, show.header(layout))
    for step in making:
        say(out, *show.lines(layout, step))
        steps.append(step)
    return steps


def _tell(options: argparse.Namespace, steps: list[Step], of: Summary, used: Memory | None) -> None:
    if options.json:
        print(show.as_json(title_of(options.sources), steps, of, used))
        return
    compared = [letter for letter in options.only if letter not in without_plain(options.only)]
    said = ["", *show.totals(steps, of, used)]
    if compared:
        said.append(show.verified(compared, always=options.verify))
    console().print("\n".join(said), markup=False)


def _draw(
    options: argparse.Namespace, steps: list[Step], of: Summary, used: Memory | None, on: Console
) -> None:
    if options.figures is None or len(steps) == 1:
        return
    peaks = None if used is None else used.peaks[1:]
    try:
        files = draw(options.figures, title_of(options.sources), steps[1:], of.fit, peaks)
        on.print("figures:", *files)
    except MissingExtra as error:
        on.print(f"no figures: {error}", markup=False)


def _program(options: argparse.Namespace) -> Program:
    return Program(options.only, stored=options.stored, optimize=not options.unoptimized)


if __name__ == "__main__":
    sys.exit(main())
