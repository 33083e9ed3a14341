"""The command line: `.venv/bin/python -m examples.findbugs [PATH...]`, in the repository."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from examples.findbugs import show
from examples.findbugs.analyses import ANALYSES, name_of
from examples.findbugs.classpath import ClassPath
from examples.findbugs.finding import findings
from examples.findbugs.inputs import Inputs, count, installed_jars, problem_of
from examples.findbugs.inputs import name_of as file_name
from examples.findbugs.load import Loaded, load
from examples.findbugs.program import Program
from examples.findbugs.screen import screen, summary
from examples.findbugs.watch import begin, watch
from examples.terminal import console, progress
from examples.watching import MissingExtra, file_watching

CLEAN, FOUND, USAGE, INTERRUPTED = 0, 1, 2, 130
FINDINGS = 5
INSTALL = {
    "py4j": "pip install 'reactive-collections[findbugs]', or pip install py4j",
    "pyspark": "pip install 'reactive-collections[spark]', or pip install pyspark",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the analyses; gives the exit code."""
    parser = _parser()
    options = parser.parse_intermixed_args(arguments)
    _check(parser, options)
    letters = _letters(parser, options.only)
    inputs = Inputs(_roots(parser, options))
    try:
        return _run(options, inputs, letters)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _run(options: argparse.Namespace, inputs: Inputs, letters: Sequence[str]) -> int:
    program = Program(letters)
    if options.watch:
        return _watched(program, inputs)
    loaded = _loaded(program, inputs)
    if not loaded.classes:
        where = ", ".join(map(file_name, options.path)) or "the installed jars"
        print(f"no class file that can be read in {where}", file=sys.stderr)
        return USAGE
    found = findings(program)
    if options.json:
        print(show.as_json(found))
    else:
        _show(options, program, loaded, len(found))
    return FOUND if found else CLEAN


def _loaded(program: Program, inputs: Inputs) -> Loaded:
    errors = console(to_errors=True)
    files = inputs.files()
    with progress(errors, "reading", sum(map(count, files)), "class files") as tick:
        return load(program, files, tick, lambda place, text: _complain(text))


def _show(options: argparse.Namespace, program: Program, loaded: Loaded, found: int) -> None:
    out = console()
    out.print(show.overview(program))
    out.print(show.findings_by_analysis(program, options.limit))
    for line in [show.sizes(loaded, found), *show.left_out(loaded)]:
        out.print(line, markup=False)
    if options.all:
        out.print(show.peak_memory())


def _watched(program: Program, inputs: Inputs) -> int:
    classpath = ClassPath(inputs, program.kinds)
    files = inputs.files()
    with progress(
        console(to_errors=True), "reading", sum(map(count, files)), "class files"
    ) as tick:
        begin(program, classpath, tick)
    for problem in classpath.problems():
        _complain(problem)
    try:
        with screen(program, classpath, console()) as changed:
            watch(program, classpath, changed)
    except KeyboardInterrupt:
        print(summary(program, classpath))
    return FOUND if findings(program) else CLEAN


def _complain(problem: str) -> None:
    print(problem, file=sys.stderr, flush=True)


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.limit < 0:
        parser.error("--limit takes a number of findings from 0 on")
    if options.all and options.path:
        parser.error("--all goes without PATH")
    if options.watch and not options.path:
        parser.error("--watch needs a PATH to follow, such as the folder that a build writes to")
    for path in options.path:
        if problem := problem_of(path):
            parser.error(problem)
    if options.watch:
        try:
            file_watching()
        except MissingExtra as error:
            parser.error(str(error))


def _letters(parser: argparse.ArgumentParser, only: str | None) -> list[str]:
    """The analyses that are asked for, in their order."""
    if only is None:
        return list(ANALYSES)
    asked = [letter.strip().upper() for letter in only.split(",")]
    for letter in asked:
        if letter not in ANALYSES:
            known = "".join(f"\n  {key} {name_of(of)}" for key, of in ANALYSES.items())
            parser.error(f"--only: there is no analysis {letter!r}, but{known}")
    return [letter for letter in ANALYSES if letter in asked]


def _roots(parser: argparse.ArgumentParser, options: argparse.Namespace) -> tuple[Path, ...]:
    """What was given; otherwise the jars that come with Python packages."""
    if options.path:
        return tuple(path.resolve() if options.watch else path for path in options.path)
    packages = ["py4j", "pyspark"] if options.all else ["py4j"]
    try:
        return tuple(jar for package in packages for jar in installed_jars(package))
    except MissingExtra as error:
        parser.error(f"no jar of the package {error} is installed: {INSTALL[str(error)]}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=".venv/bin/python -m examples.findbugs",
        description="Find bugs in Java class files by fifteen analyses of FindBugs.",
        epilog=textwrap.dedent(
            """\
            Run it in the folder of the repository. Without PATH it analyses the jar of py4j.

            exit codes
              0  no findings
              1  findings
              2  wrong usage, or no class file that can be read
            130  interrupted by Ctrl-C (which is the normal end of --watch: 0 or 1)
            Files that cannot be read are named, and the others are analysed. Jars in jars are not
            read, and of a jar for several versions of Java the classes for the oldest one.
            """
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "path",
        nargs="*",
        type=Path,
        metavar="PATH",
        help="a jar, a class file, or a folder that has some at any depth; of classes of the same "
        "name the first one counts",
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--json", action="store_true", help="print the findings as a JSON list")
    mode.add_argument("--watch", action="store_true", help="keep running; follow files on disk")
    add(
        "--all", action="store_true", help="the jars of pyspark too, with more than 100,000 classes"
    )
    add("--only", metavar="A,C", help="the letters of the analyses to run; default: all")
    add(
        "--limit",
        type=int,
        default=FINDINGS,
        metavar="N",
        help=f"findings to show per analysis; 0: all; default: {FINDINGS}; "
        "--watch and --json do without",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
