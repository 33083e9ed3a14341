"""Play COUNT histories of edits from SEED on.

`python -m tests.borders.objects.containers COUNT SEED`
"""

from __future__ import annotations

import sys

from tests.borders.objects.containers import test_in_views
from tests.borders.objects.containers.test_containers import play
from tests.thresholds import LOWEST, SHIPPED, thresholds

count, first = map(int, sys.argv[1:]) if sys.argv[2:] else (1_000, 0)
for seed in range(first, first + count):
    with thresholds(LOWEST if seed % 2 else SHIPPED):
        play(seed, 80)
        if seed % 10 == 0:
            test_in_views.play(seed, 30)
print(f"{count} histories of edits from {first} on")
