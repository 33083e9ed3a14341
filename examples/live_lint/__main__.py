"""The command line: `.venv/bin/python -m examples.live_lint [PATH]`, in the repository's folder."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from examples.live_lint import show
from examples.live_lint.analyse import Analysis, analyse
from examples.live_lint.edits import can_edit
from examples.live_lint.folder import Folder, folder_at, standard_library
from examples.live_lint.project import Project
from examples.live_lint.replay import compare, replay
from examples.live_lint.screen import screen, summary
from examples.live_lint.watch import watch
from examples.terminal import console, progress
from examples.watching import MissingExtra, file_watching
from reactive import VerificationError

CLEAN, FOUND, USAGE, INTERRUPTED = 0, 1, 2, 130
DEMO_EDITS = 200
FINDINGS, EXAMPLES = 5, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the linter; gives the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.path is not None and not options.path.is_dir():
        parser.error(f"{options.path} is no folder")
    if options.replay is not None and options.replay < 1:
        parser.error("--replay takes a number of edits from 1 on")
    if options.limit is not None and options.limit < 0:
        parser.error("--limit takes a number of findings from 0 on")
    if options.watch:
        _check_watching(parser)
    folder = standard_library() if options.path is None else folder_at(options.path)
    is_demo = options.path is None and not (options.json or options.watch)
    count = options.replay or (DEMO_EDITS if is_demo else 0)
    try:
        return _run(options, folder, count)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _run(options: argparse.Namespace, folder: Folder, count: int) -> int:
    sources = folder.sources()
    if count and not can_edit(sources):
        readable = " that Python can read" if sources else ""
        print(f"no Python files{readable} in {folder.path}", file=sys.stderr)
        return USAGE
    analysis = _analysed(folder, sources)
    if options.json:
        print(show.as_json(analysis.project.findings()))
    elif options.watch:
        return _watched(analysis.project, folder)
    elif count:
        _show_examples(analysis, EXAMPLES if options.limit is None else options.limit)
        return _replayed(analysis, folder, sources, count, options.seed)
    else:
        _show_all(analysis, FINDINGS if options.limit is None else options.limit)
    return FOUND if analysis.project.findings() else CLEAN


def _analysed(folder: Folder, sources: dict[str, bytes]) -> Analysis:
    errors = console(to_errors=True)
    with progress(errors, "reading", len(sources), "file") as tick:
        return analyse(folder, sources, tick)


def _show_all(analysis: Analysis, limit: int) -> None:
    out = console()
    out.print(show.findings_by_check(analysis.project, limit))
    out.print(show.overview(analysis.project))
    out.print(show.sizes(analysis))


def _show_examples(analysis: Analysis, limit: int) -> None:
    """Show only some findings, so that the measurements after them are on one screen."""
    out = console()
    out.print(show.overview(analysis.project))
    out.print(show.examples(analysis.project, limit))
    out.print(show.sizes(analysis))


def _replayed(
    analysis: Analysis, folder: Folder, sources: dict[str, bytes], count: int, seed: int
) -> int:
    """Edit, measure, verify. Succeeds if the views are what they should be."""
    project, out, errors = analysis.project, console(), console(to_errors=True)
    with progress(errors, "editing", count, "edit") as tick:
        steps = list(replay(project, folder, sources, count, seed, tick))
    try:
        with progress(errors, "analysing again", len(sources), "file") as tick:
            fresh = compare(project, folder, sources, tick)
        with progress(errors, "verifying", len(project.views), "view") as tick:
            project.verify(tick)
    except (VerificationError, AssertionError) as error:
        errors.print(f"NOT verified: {error}", style="red", markup=False)
        return FOUND
    out.print(show.figures(steps, fresh))
    out.print(
        f"verified: after {len(steps)} edits all {len(project.views)} views equal their queries, "
        f"and the {len(project.findings()):,} findings are those of the analysis from scratch"
    )
    return CLEAN


def _watched(project: Project, folder: Folder) -> int:
    try:
        with screen(project, folder, console()) as changed:
            watch(project, folder, changed)
    except KeyboardInterrupt:
        print(summary(project, folder))
    return FOUND if project.findings() else CLEAN


def _check_watching(parser: argparse.ArgumentParser) -> None:
    try:
        file_watching()
    except MissingExtra as error:
        parser.error(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=".venv/bin/python -m examples.live_lint",
        description="Lint Python code across modules, and keep the findings up to date.",
        epilog=textwrap.dedent(
            f"""\
            Run it in the folder of the repository.

            Without PATH, --json and --watch it is a demonstration: it lints the standard library,
            makes {DEMO_EDITS} edits in memory as --replay does, and verifies the result.

            exit codes
              0  no findings
              1  findings
              2  wrong usage
            130  interrupted by Ctrl-C (which is the normal end of --watch: 0 or 1)
            With edits (--replay, or the demonstration) the findings do not count:
              0  all views were verified after the edits
              1  they were not
            """
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "path", nargs="?", type=Path, metavar="PATH", help="a folder; default: the standard library"
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--json", action="store_true", help="print the findings as a JSON list")
    mode.add_argument("--watch", action="store_true", help="keep running; follow files on disk")
    mode.add_argument(
        "--replay", type=int, metavar="N", help="make N edits in memory, measure and verify"
    )
    add(
        "--limit",
        type=int,
        help=f"findings to show per check; 0: all; default: {FINDINGS}, and {EXAMPLES} with edits; "
        "--watch and --json do without",
    )
    add("--seed", type=int, default=0, help="of the edits; default: 0")
    return parser


if __name__ == "__main__":
    sys.exit(main())
