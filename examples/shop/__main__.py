"""A shop with a leaderboard that is live in browsers.

    .venv/bin/python -m examples.shop [--file shop.db] [--port 8000]

Open http://127.0.0.1:8000 in two windows, and order something in one. Stop it with Ctrl-C, or with
kill -9: the orders are in the file, and appear again after the next start.

Needs the packages of the extra `shop`. Exit codes: 0 when it was stopped, 2 for wrong usage and
where a package is missing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

USAGE = 2
LARGEST_FRAME = 1_000
"""The most bytes of a message that a browser may send through a WebSocket."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the shop until it is stopped; gives the exit code."""
    options = _parser().parse_args(arguments)
    try:
        import uvicorn

        from examples.shop.service import service
    except ImportError as error:
        print(f"{error}\n  pip install '.[shop]'", file=sys.stderr)
        return USAGE
    bound = {"host": options.host, "port": options.port}
    uvicorn.run(service(options.file), **bound, log_level="warning", ws_max_size=LARGEST_FRAME)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m examples.shop", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--file", type=Path, default=Path("shop.db"), help="of SQLite")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    return parser


if __name__ == "__main__":
    sys.exit(main())
