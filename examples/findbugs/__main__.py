"""The command line: `.venv/bin/python -m examples.findbugs [PATH...]`, in the repository."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from examples.findbugs import show
from examples.findbugs.analyses import ANALYSES
from examples.findbugs.archives import shown_path
from examples.findbugs.classpath import ClassPath
from examples.findbugs.finding import Finding, findings
from examples.findbugs.inputs import Inputs, count, installed_jars, problem_of
from examples.findbugs.letters import letters
from examples.findbugs.load import Loaded, load
from examples.findbugs.program import Program
from examples.findbugs.screen import screen, summary
from examples.findbugs.watch import begin, watch
from examples.terminal import Tick, console, progress
from examples.watching import MissingExtra, file_watching

CLEAN, FOUND, USAGE, INTERRUPTED = 0, 1, 2, 130
FINDINGS = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the analyses; gives the exit code."""
    parser = _parser()
    options = parser.parse_intermixed_args(arguments)
    _check(parser, options)
    inputs = _inputs(parser, options)
    try:
        return _run(options, inputs)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _run(options: argparse.Namespace, inputs: Inputs) -> int:
    program = Program(options.only)
    if options.watch:
        return _watched(program, inputs)
    loaded = _loaded(program, inputs)
    if not loaded.classes:
        _complain(_nothing(inputs))
        return USAGE
    found = findings(program, loaded.library.__contains__)
    if options.json:
        print(show.as_json(found))
    else:
        _show(options, loaded, found)
    return FOUND if found else CLEAN


def _loaded(program: Program, inputs: Inputs) -> Loaded:
    files = inputs.files()
    library = {file for file in files if inputs.is_library(file)}
    with _reading(files) as tick:
        return load(program, files, tick, lambda place, text: _complain(text), library)


def _show(options: argparse.Namespace, loaded: Loaded, found: list[Finding]) -> None:
    out = console()
    out.print(show.overview(options.only, found))
    out.print(show.findings_by_analysis(found, options.limit, tables=out.is_terminal))
    out.print("\n".join([show.sizes(loaded, len(found)), *show.left_out(loaded)]), markup=False)
    if options.all:
        out.print(show.peak_memory())


def _watched(program: Program, inputs: Inputs) -> int:
    classpath = ClassPath(inputs, program.kinds)
    with _reading(inputs.files()) as tick:
        begin(program, classpath, tick)
    for problem in classpath.problems():
        _complain(problem)
    try:
        with screen(program, classpath, console()) as changed:
            watch(program, classpath, changed)
    except KeyboardInterrupt:
        print(summary(program, classpath))
    return FOUND if findings(program, classpath.is_library) else CLEAN


def _reading(files: Iterable[Path]) -> AbstractContextManager[Tick]:
    return progress(console(to_errors=True), "reading", sum(map(count, files)), "class file")


def _nothing(inputs: Inputs) -> str:
    """Why there is nothing to analyse."""
    where = ", ".join(map(shown_path, inputs.roots))
    advice = "; there is Java source: compile it first" if inputs.has_sources() else ""
    return f"no class file that can be read in {where}{advice}"


def _complain(problem: str) -> None:
    print(problem, file=sys.stderr, flush=True)


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.limit < 0:
        parser.error("--limit takes a number of findings from 0 on")
    if options.all and options.path:
        parser.error("--all goes without PATH")
    if options.watch and not options.path:
        parser.error("--watch needs a PATH to follow, such as the folder that a build writes to")
    for path in options.path + options.library:
        if problem := problem_of(path):
            parser.error(problem)
    if options.watch:
        try:
            file_watching()
        except MissingExtra as error:
            parser.error(str(error))


def _inputs(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Inputs:
    """Return the given files; by default the jars that come with Python packages."""
    if options.path:
        return Inputs(_paths(options, options.path), _paths(options, options.library))
    packages = ["py4j", "pyspark"] if options.all else ["py4j"]
    try:
        jars = tuple(jar for package in packages for jar in installed_jars(package))
    except MissingExtra as error:
        parser.error(str(error))
    return Inputs(jars, _paths(options, options.library))


def _paths(options: argparse.Namespace, paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(path.resolve() if options.watch else path for path in paths)


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
    add(
        "--library",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="as PATH, of classes that yours extend: only their superclasses and interfaces are "
        "read, and nothing is reported of them; may be given several times",
    )
    add(
        "--only",
        type=letters,
        default=[*ANALYSES],
        metavar="A,C",
        help="the letters or names of the analyses to run; default: all",
    )
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
