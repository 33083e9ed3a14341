"""A live shell for SQL.

    python -m reactive.sql shop.sql              the statements of a file, and then a prompt
    python -m reactive.sql orders.csv            the table `orders`, and a prompt
    python -m reactive.sql shop.sql -c           the statements of a file, and no prompt

Each query is a view that is printed whenever a statement changes it. Exit codes: 0, or 1 if a
statement of a file could not be run, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from reactive import Database, ReactiveError
from reactive.languages.sql.shell.session import Shell, is_file, lines_of, load_file
from reactive.languages.sql.terms.common_types import DIALECTS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line `arguments`, by default the process's; return the exit code."""
    given = _build_parser().parse_args(arguments)
    console = Console()
    with Database(dialect=given.dialect) as db:
        return _run_files(given, db, console)


def _run_files(given: argparse.Namespace, db: Database, console: Console) -> int:
    """Run the files, then statements from the prompt; return 1 as soon as a file fails, else 0."""
    shell = Shell(db, console)
    for path in given.files:
        try:
            done = load_file(db, path) is not None if is_file(path) else shell.run(_file_text(path))
        except (OSError, ReactiveError) as error:
            console.print(f"[red]{escape(str(error))}[/]", highlight=False)
            done = False
        if not done:
            return 1
    if given.close:
        return 0
    for text in lines_of(sys.stdin, console):
        shell.run(text)
    return 0


def _file_text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def _build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line: files, `--dialect` and `--close`."""
    parser = argparse.ArgumentParser(prog="python -m reactive.sql", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("files", nargs="*", help=".sql, .csv or .parquet, in this order")
    parser.add_argument("--dialect", choices=sorted(DIALECTS), default="duckdb")
    parser.add_argument("-c", "--close", action="store_true", help="no prompt behind the files")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
