"""Play histories from a seed on, and count the differences by kind, for `python -m`."""

from __future__ import annotations

import json
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path


def play_all(
    play: Callable[[int], object],
    number: int,
    seed: int,
    *,
    every: int,
    state: Path | None = None,
) -> int:
    """Play each seed; print the first difference of each kind, and their number; return 1 if any.

    Parameters
    ----------
    play: seed -> ignored. It raises where something differs.
    every: number of seeds after which the progress is printed.
    state: a file that stores the progress, and the differences; the next run continues from it.
    """
    kinds: Counter[str] = Counter()
    first = seed
    if state is not None and state.exists():
        known = json.loads(state.read_text())
        first, kinds = known["next"], Counter(known["differences"])
    for each in range(first, seed + number):
        if each % every == 0:
            print(f"seed {each}", flush=True)
            if state is not None:
                state.write_text(json.dumps({"next": each, "differences": kinds}))
        try:
            play(each)
        except Exception as error:
            kind = f"{type(error).__name__}: {str(error)[:60]}"
            kinds[kind] += 1
            if kinds[kind] == 1:
                print(f"--- seed {each}", flush=True)
                traceback.print_exc(limit=-8)
    if state is not None:
        following = max(first, seed + number)
        state.write_text(json.dumps({"next": following, "differences": kinds}))
    print(f"{kinds.total()} of {number} differ")
    for kind, times in kinds.most_common(20):
        print(times, kind)
    return 1 if kinds else 0
