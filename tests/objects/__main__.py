"""Play histories of objects that change: `python -m tests.objects 10000 [first seed]`."""

from __future__ import annotations

import sys
import traceback
from collections import Counter

from tests.objects import histories, inner_histories, shared_histories
from tests.thresholds import WAYS, thresholds

KINDS = (histories, inner_histories, histories, shared_histories)


def main() -> int:
    given = [int(argument) for argument in sys.argv[1:]]
    number, seed = given + [1000, 0][len(given) :]
    kinds: Counter[str] = Counter()
    for each in range(seed, seed + number):
        if each % 500 == 0:
            print(f"seed {each}", flush=True)
        try:
            with thresholds([*WAYS.values()][each // 4 % 4]):
                KINDS[each % 4].play(each)
        except Exception as error:
            kind = f"{type(error).__name__}: {str(error)[:60]}"
            kinds[kind] += 1
            if kinds[kind] == 1:
                print(f"--- seed {each}", flush=True)
                traceback.print_exc(limit=-8)
    print(f"{kinds.total()} of {number} differ")
    for kind, times in kinds.most_common(20):
        print(times, kind)
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
