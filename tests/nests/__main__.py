"""Play nested queries: `python -m tests.nests 10000 [first seed] [depth]`."""

from __future__ import annotations

import sys
import traceback
from collections import Counter

from tests.nests.play import play


def main() -> int:
    given = [int(argument) for argument in sys.argv[1:]]
    number, seed, depth = given + [1000, 0, 3][len(given) :]
    kinds: Counter[str] = Counter()
    for each in range(seed, seed + number):
        if each % 100 == 0:
            print(f"seed {each}", flush=True)
        try:
            play(each, depth)
        except Exception as error:
            kind = f"{type(error).__name__}: {str(error)[:60]}"
            kinds[kind] += 1
            if kinds[kind] == 1:
                print(f"--- seed {each}", flush=True)
                traceback.print_exc(limit=-4)
    print(f"{kinds.total()} of {number} differ")
    for kind, times in kinds.most_common(20):
        print(times, kind)
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
