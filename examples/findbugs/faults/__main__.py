"""The command line: `.venv/bin/python -m examples.findbugs.faults [FILE]`, in the repository."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from examples.findbugs.faults.recording import record
from examples.findbugs.faults.revisions import FaultRevision, history


def main(arguments: Sequence[str] | None = None) -> None:
    """Show a history, or record it."""
    options = _parser().parse_args(arguments)
    revisions = history(options.seed, options.revisions)
    if options.file is None:
        for revision in revisions:
            print(_shown(revision))
    else:
        record(revisions, options.file)


def _shown(revision: FaultRevision) -> str:
    """Return number, classes, and findings of each analysis, then what happened."""
    counts = "".join(f"{len(keys) or '.':>2}" for keys in revision.expected.values())
    return f"{revision.number:4} {len(revision.classes):2} classes {counts}  {revision.what}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=".venv/bin/python -m examples.findbugs.faults",
        description="A history of small Java classes with faults, and what is to be found.",
    )
    add = parser.add_argument
    add("file", nargs="?", type=Path, metavar="FILE", help="record it there, as .jsonl.xz")
    add("--seed", type=int, default=0, help="of the history; default: 0")
    add("--revisions", type=int, default=500, help="how many; default: 500")
    return parser


if __name__ == "__main__":
    main()
