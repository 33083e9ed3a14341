"""The command line of a replay."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from pathlib import Path

from examples.findbugs.analyses import ANALYSES
from examples.findbugs.letters import letters
from examples.findbugs.replay.sources import problem_of_sources, recorded

DEFAULT = "vespucci"
FINDINGS = 5


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options; a wrong one ends the program."""
    parser = _parser()
    options = parser.parse_intermixed_args(arguments)
    if options.repeat < 1:
        parser.error("--repeat takes a number of times from 1 on")
    if options.limit < 0:
        parser.error("--limit takes a number of findings from 0 on")
    if options.figures is not None and not options.figures.is_dir():
        parser.error(f"--figures takes a folder, and {options.figures} is none")
    if problem := problem_of_sources(options.sources):
        parser.error(problem)
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=".venv/bin/python -m examples.findbugs.replay",
        description="Replay the history of a Java program: each revision is one transaction.",
        epilog=textwrap.dedent(
            f"""\
            HISTORY is a recorded history: {", ".join(recorded())}, or a file;
            without one: {DEFAULT}. Or give builds of a program, from the oldest to the newest:
            jars, or folders of class files.
            For each revision: how many class files and facts differ, how many of the facts some
            analysis reads (with --stored: all), how long the transaction takes, and which findings
            came (+) and went (-).

            exit codes
              0  the views equal plain evaluation, from scratch in plain Python
              1  some do not
              2  wrong usage, or a file that cannot be read
            130  interrupted by Ctrl-C
            """
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("sources", nargs="*", type=Path, default=[Path(DEFAULT)], metavar="HISTORY | BUILD BUILD")
    _add_what(parser)
    add("--json", action="store_true", help="print a JSON object instead of lines")
    add(
        "--limit",
        type=int,
        default=FINDINGS,
        metavar="N",
        help="findings to show per analysis and revision; 0: all; "
        f"default: {FINDINGS}; --json does without",
    )
    add(
        "--no-memory",
        dest="memory",
        action="store_false",
        help="do not replay a second time to trace memory, which takes longer than the first time",
    )
    figures = parser.add_mutually_exclusive_group()
    figures.add_argument(
        "--figures",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="where to write two figures, of the time and the memory of each change over its "
        "facts, as PNG files; default: the current folder",
    )
    figures.add_argument(
        "--no-figures", dest="figures", action="store_const", const=None, help="write no figures"
    )
    return parser


def _add_what(parser: argparse.ArgumentParser) -> None:
    """Add the options for the analyses and the measurement."""
    add = parser.add_argument
    add(
        "--only",
        type=letters,
        default=[*ANALYSES],
        metavar="A,C",
        help="the letters or names of the analyses to run; default: all",
    )
    add(
        "--verify",
        action="store_true",
        help="compare the views with plain evaluation after every revision, not only after the "
        "last one, and show how long that evaluation takes",
    )
    add(
        "--repeat",
        type=int,
        default=1,
        metavar="N",
        help="make each revision N times, taking it back in between, and show the median time",
    )
    add("--unoptimized", action="store_true", help="run the queries as they are written")
    add("--stored", action="store_true", help="keep all facts in the tables")
