"""The section of the report about Spark, or parts of it.

python -m asv_benchmarks.offload [flush ...] [--rows 1000000] [--rounds 20] [--runs 1]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from asv_benchmarks.offload.flush import ROUNDS
from asv_benchmarks.offload.measure import NAMES, in_process
from asv_benchmarks.offload.report import offload


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.offload", description="Measure Spark.")
    parser.add_argument("names", nargs="*", help=f"of {' '.join(NAMES)}; all by default")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of a table")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="flushes of a kind")
    parser.add_argument("--runs", type=int, default=1, help="medians are taken over these")
    parser.add_argument("--figure", type=Path, help="draw the increments to this file")
    options = parser.parse_args()
    unknown = {*options.names} - {*NAMES}
    if unknown:
        parser.error(f"no measurement: {' '.join(sorted(unknown))}")
    print(
        offload(
            in_process,
            names=options.names or NAMES,
            size=options.rows,
            runs=options.runs,
            rounds=options.rounds,
            figure=options.figure,
        )
    )


if __name__ == "__main__":
    main()
