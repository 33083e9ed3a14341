"""The command line: `python -m examples.graphs.points_to [PATH]`."""

from __future__ import annotations

import argparse
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from examples.graphs.points_to import real, small
from examples.live_lint.folder import folder_at

PACKAGE = "asyncio"
EDITS = 100


def main(arguments: Sequence[str] | None = None) -> int:
    """Show a small program first, then real code; return 0 if all is verified."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.graphs.points_to",
        description="Which objects variables may hold: of a small program, then of real code.",
    )
    parser.add_argument(
        "path", nargs="?", type=Path, help=f"a folder of Python files; default: Python's {PACKAGE}"
    )
    parser.add_argument("--edits", type=int, default=EDITS, help=f"how many; default: {EDITS}")
    parser.add_argument("--seed", type=int, default=0, help="of the edits; default: 0")
    options = parser.parse_args(arguments)
    if options.path is None:
        small.show()
    elif not options.path.is_dir():
        parser.error(f"{options.path} is no folder")
    path = options.path or Path(sysconfig.get_path("stdlib")) / PACKAGE
    return 0 if real.show(folder_at(path), options.edits, options.seed) else 1


if __name__ == "__main__":
    sys.exit(main())
