"""Play scripts: `python -m tests.languages.sql [--queries 2000] [--seed 0] [FILE ...]`.

Without files it draws the queries; `--write FOLDER` writes the drawn scripts instead.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from time import process_time

from tests.languages.sql.generate import scripts
from tests.languages.sql.player import Report, play
from tests.languages.sql.script import ENGINES, Script, parsed, read


def main(arguments: Sequence[str] | None = None) -> int:
    """Play scripts, and print the differences; return 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.languages.sql", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commits", type=int, default=40)
    parser.add_argument("--engine", choices=ENGINES)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args(arguments)
    if given.write is not None:
        given.write.mkdir(parents=True, exist_ok=True)
        for name, text in scripts(given.queries, given.seed):
            (given.write / name).write_text(text)
        return 0
    total = Report()
    for script in _scripts(given):
        for engine in [given.engine] if given.engine else ENGINES:
            begun = process_time()
            report = play(script, engine, Random(given.seed), given.commits)
            if report.queries:
                print(
                    f"{script.name} {engine} {process_time() - begun:.1f} s: {report}", flush=True
                )
            total.add(report)
    print(str(total).splitlines()[0])
    return bool(total.wrong or total.refused)


def _scripts(given: argparse.Namespace) -> Iterator[Script]:
    if given.files:
        yield from map(read, given.files)
    else:
        yield from (parsed(name, text) for name, text in scripts(given.queries, given.seed))


if __name__ == "__main__":
    sys.exit(main())
