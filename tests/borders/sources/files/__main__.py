"""Many random histories of files: python -m tests.borders.sources.files COUNT SEED."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.borders.sources.files.histories import run
from tests.thresholds import LOWEST, thresholds


def main(count: int, seed: int) -> None:
    for number in range(seed, seed + count):
        for suffix in (".jsonl", ".csv"):
            with tempfile.TemporaryDirectory() as folder, thresholds(LOWEST):
                run(Path(folder) / "in", suffix, number, length=20)
    print(f"{count:,} histories of each format, as read from scratch")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
