"""The long form: `python -m tests.borders.frames COUNT SEED`."""

from __future__ import annotations

import sys

from hypothesis import given, seed, settings

from tests.borders.frames.cases import frames
from tests.borders.frames.test_history import check_log
from tests.borders.frames.test_sync import check_history
from tests.borders.frames.test_table_from import check_round_trip


def main(count: int, first: int) -> None:
    """Check random histories of syncs and of logs, and round trips of `count` frames."""
    for number in range(first, first + count):
        check_history(number, 30)
        check_log(number, 60)
    run = settings(max_examples=count, deadline=None, database=None)
    run(seed(first)(given(frames(rows=30))(check_round_trip)))()
    print(f"{count} histories of each kind from seed {first} on, and {count} frames: no difference")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
