"""All moments of a transaction of two commits, and many histories.

python -m tests.borders.two_commits COUNT SEED     COUNT histories from SEED on
"""

from __future__ import annotations

import logging
import signal
import sys
import tempfile
import warnings
from pathlib import Path
from random import Random

from tests.borders.two_commits.test_faults import STEPS, TWICE, history, moments, ring


def main(count: int, seed: int) -> None:
    """Raise at the first one that is not right."""
    signal.signal(signal.SIGALRM, ring)
    warnings.simplefilter("ignore")
    logging.disable()
    sys.unraisablehook = lambda _: None
    folder = Path(tempfile.mkdtemp())
    for fails in (False, True):
        print(f"{moments(folder, fails, 1)} moments, the block fails: {fails}", flush=True)
    for number in (*TWICE, *range(seed, seed + count)):
        history(folder, Random(number), STEPS)
        if (number + 1 - seed) % 20 == 0:
            print(f"{number + 1 - seed} histories of {STEPS} transactions", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
