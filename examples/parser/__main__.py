"""The command line: `.venv/bin/python -m examples.parser`, in the repository's folder."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from examples.parser import figure_demo, show, statements_demo
from examples.parser.programs import SHORTEST
from examples.parser.steps import NotVerifiedError
from examples.parser.workbench import Options

VERIFIED, NOT_VERIFIED, INTERRUPTED = 0, 1, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstrations; gives the exit code."""
    options = _options(arguments)
    out = show.console()
    try:
        figure_demo.run(out)
        statements_demo.run(out, options)
    except NotVerifiedError as error:
        show.console(to_errors=True).print(f"NOT verified: {error}", style="red", markup=False)
        return NOT_VERIFIED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    return VERIFIED


def _options(arguments: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser(
        prog=".venv/bin/python -m examples.parser",
        description="Parse live: first the sentence of the paper, then a long program.",
        epilog="exit codes: 0 the edges are those of a parse from scratch, 1 they are not, "
        "2 wrong usage, 130 interrupted",
    )
    add = parser.add_argument
    add("--tokens", type=int, default=2_000, metavar="N", help="words of the program; %(default)s")
    add("--edits", type=int, default=500, metavar="N", help="edits of it; %(default)s")
    add("--shown", type=int, default=6, metavar="N", help="edits shown in detail; %(default)s")
    add("--seed", type=int, default=0, help="of the program and the edits; %(default)s")
    add(
        "--verify",
        action="store_true",
        help="parse from scratch after every edit, not only at the end",
    )
    given = parser.parse_args(arguments)
    if given.tokens < SHORTEST:
        parser.error(f"--tokens takes a number from {SHORTEST} on")
    if given.edits < 1:
        parser.error("--edits takes a number from 1 on")
    if given.shown < 0:
        parser.error("--shown takes a number from 0 on")
    return Options(given.tokens, given.edits, given.shown, given.seed, given.verify)


if __name__ == "__main__":
    sys.exit(main())
