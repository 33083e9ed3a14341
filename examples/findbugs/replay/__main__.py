"""The command line: `.venv/bin/python -m examples.findbugs.replay [HISTORY | JAR JAR ...]`."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from examples.collector import without_collector
from examples.findbugs.analyses import ANALYSES, kinds_read
from examples.findbugs.classfile import ClassFileError
from examples.findbugs.inputs import Unreadable
from examples.findbugs.program import Program
from examples.findbugs.recorded import HistoryError
from examples.findbugs.replay import show
from examples.findbugs.replay.changes import (
    Change,
    history_at,
    name_of,
    of_history,
    of_jars,
    recorded,
)
from examples.findbugs.replay.figures import draw
from examples.findbugs.replay.mirror import Mirror
from examples.findbugs.replay.steps import Memory, NotVerifiedError, Step, check, memory, replay
from examples.findbugs.replay.summary import summary
from examples.terminal import Tick, console
from examples.watching import MissingExtra
from reactive import VerificationError

VERIFIED, DIFFERS, USAGE, INTERRUPTED = 0, 1, 2, 130
DEFAULT = "vespucci"


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay a history; gives the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    _check(parser, options)
    errors = console(to_errors=True)
    try:
        with errors.status("reading") as status, without_collector():
            changes = _changes(options, lambda what: status.update(f"reading {what}"))
        return _run(options, changes, errors)
    except (HistoryError, ClassFileError, Unreadable, OSError) as error:
        errors.print(str(error), style="red", markup=False)
        return USAGE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _changes(options: argparse.Namespace, tick: Tick) -> list[Change]:
    kinds = kinds_read(options.only)
    if _is_of_jars(options):
        return [*of_jars(options.sources, kinds, tick)]
    return [*of_history(history_at(str(options.sources[0])), kinds, tick)]


def _run(options: argparse.Namespace, changes: list[Change], errors: Console) -> int:
    steps: list[Step] = []
    wrong = _replayed(options, changes, steps)
    if wrong is None:
        _shown(options, steps, memory(_program(options), changes), errors)
        return VERIFIED
    errors.print(f"NOT verified: {wrong}", style="red", markup=False)
    return DIFFERS


def _replayed(
    options: argparse.Namespace, changes: list[Change], steps: list[Step]
) -> Exception | None:
    """Make the changes, and show each when it is made; gives what is wrong with the views."""
    out, program, mirror = console(), _program(options), Mirror()
    form = {"jars": _is_of_jars(options), "verify": options.verify}
    if not options.json:
        out.print(show.header(**form))
    try:
        for step in replay(program, mirror, changes, repeat=options.repeat, verify=options.verify):
            steps.append(step)
            if not options.json:
                findings = sum(map(len, program.views.values()))
                for text in show.lines(step, findings, jars=form["jars"]):
                    out.print(text)
        check(program, mirror, "at the end")
        for view in program.views.values() if options.stored else ():
            view.verify()
    except (NotVerifiedError, VerificationError) as error:
        return error
    return None


def _shown(options: argparse.Namespace, steps: list[Step], used: Memory, errors: Console) -> None:
    of, name = summary(steps), name_of(options.sources)
    if options.json:
        print(show.as_json(name, steps, of, used))
    else:
        out = console()
        out.print("\n".join(["", *show.totals(steps, of, used)]), markup=False)
        when = "after every revision" if options.verify else "at the end"
        out.print(f"verified: all {len(options.only)} views equal plain evaluation {when}")
    if options.figures is not None and len(steps) > 1:
        try:
            files = draw(options.figures, name, steps[1:], of.fit, used.peaks[1:])
            errors.print("figures:", *files)
        except MissingExtra as error:
            errors.print(f"no figures: {error}", markup=False)


def _program(options: argparse.Namespace) -> Program:
    return Program(options.only, stored=options.stored, optimize=not options.unoptimized)


def _is_of_jars(options: argparse.Namespace) -> bool:
    return len(options.sources) > 1


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """What is wrong with the options ends the program."""
    if options.repeat < 1:
        parser.error("--repeat takes a number from 1 on")
    if options.figures is not None and not options.figures.is_dir():
        parser.error(f"--figures takes a folder, and {options.figures} is none")
    for path in options.sources if _is_of_jars(options) else ():
        if not path.is_file():
            parser.error(f"there is no file {path}")
    if _is_of_jars(options):
        return
    source = options.sources[0]
    if source.suffix == ".jar":
        parser.error(f"{source} alone has no changes: give another jar, of a later release")
    if not history_at(str(source)).is_file():
        parser.error(f"there is no history {source}; of the example: {', '.join(recorded())}")


def _letters(text: str) -> list[str]:
    letters = [letter.upper() for letter in text.replace(",", "")]
    unknown = [letter for letter in letters if letter not in ANALYSES]
    if unknown or not letters:
        named = ", ".join(map(repr, unknown)) or "none"
        raise argparse.ArgumentTypeError(f"{named}: analyses are the letters A to O")
    return [letter for letter in ANALYSES if letter in letters]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=".venv/bin/python -m examples.findbugs.replay",
        description="Replay the history of a Java program: each revision is one transaction.",
        epilog=textwrap.dedent(
            f"""\
            HISTORY is a recorded history: {", ".join(recorded())}, or a file;
            without one: {DEFAULT}. Or give jars, from the oldest release to the newest.
            For each revision: how many class files and facts differ, how many of the facts some
            analysis reads, how long the transaction takes, and which findings came and went.

            exit codes
              0  all views equal plain evaluation from scratch
              1  some do not
              2  wrong usage
            130  interrupted by Ctrl-C
            """
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("sources", nargs="*", type=Path, default=[Path(DEFAULT)], metavar="HISTORY | JAR JAR")
    add("--only", type=_letters, default=[*ANALYSES], metavar="LETTERS", help="as AC; default: all")
    add("--verify", action="store_true", help="after every revision, and time that, too")
    add("--repeat", type=int, default=1, metavar="N", help="make each change N times: the median")
    add("--unoptimized", action="store_true", help="run the queries as they are written")
    add("--stored", action="store_true", help="keep the facts in the tables")
    add("--json", action="store_true", help="print a JSON object instead of lines")
    figures = parser.add_mutually_exclusive_group()
    here = Path()
    figures.add_argument(
        "--figures", type=Path, default=here, metavar="FOLDER", help="default: here"
    )
    figures.add_argument("--no-figures", dest="figures", action="store_const", const=None)
    return parser


if __name__ == "__main__":
    sys.exit(main())
