"""Write the classes of the rows of Postgres tables to a file, for type checkers.

    python -m reactive.sources.postgres URL                        of all tables, to the terminal
    python -m reactive.sources.postgres URL orders shop.users --outfile rows.py
    python -m reactive.sources.postgres URL orders shop.users --check rows.py

The classes are those of `PostgresSource(URL, ...).row_class()`. Exit codes: 0; 1 if `--check` finds
a file that differs from what the server says, which is printed; 2 if there is no answer.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

from optimizer.errors import ReactiveError
from reactive.borders.sources.postgres.rows import module_text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    given = _parser().parse_args(arguments)
    try:
        text = module_text(given.url, given.tables, is_queried=given.generated)
        if given.check is not None:
            return _compare(Path(given.check), text)
        if given.outfile is None:
            sys.stdout.write(text)
        else:
            Path(given.outfile).write_text(text, encoding="utf-8")
    except (OSError, ReactiveError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _compare(path: Path, text: str) -> int:
    """Print how a file differs from the text; return 1 if it does."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    changed = difflib.unified_diff(
        lines, text.splitlines(keepends=True), str(path), "what the server says"
    )
    found = "".join(changed)
    sys.stdout.write(found)
    return 1 if found else 0


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; the module's docstring is its description."""
    parser = argparse.ArgumentParser(
        prog="python -m reactive.sources.postgres",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("url", help="where the database is: postgresql://user@host/name")
    parser.add_argument(
        "tables", nargs="*", help="names of tables, as in SQL; all, if there is none"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--outfile", metavar="FILE", help="write this file")
    where.add_argument("--check", metavar="FILE", help="compare with this file, and write nothing")
    parser.add_argument(
        "--generated", action="store_true", help="with generated columns, for NotifySource"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
