"""Play texts: `python -m tests.comprehensions 100000 [first seed] [depth]`."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import Any

from tests.comprehensions.play import play_many

AT_A_TIME = 500


def main() -> int:
    given = [int(argument) for argument in sys.argv[1:]]
    number, seed, depth = given + [1000, 0, 3][len(given) :]
    found: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    begun = time.process_time()

    def report(each: int, text: str, error: Any) -> None:
        first = str(error).splitlines()[0] if str(error) else repr(error)
        kind = f"{type(error).__name__}: {first[-60:]}"
        kinds[kind] += 1
        if kinds[kind] <= 2:
            print(
                f"--- seed {each}\n{text}{type(error).__name__}: {str(error)[:600]}\n", flush=True
            )

    for begin in range(seed, seed + number, AT_A_TIME):
        found += play_many(min(AT_A_TIME, seed + number - begin), begin, depth, report=report)
        print(
            f"{begin + AT_A_TIME - seed}: {dict(found)}, {time.process_time() - begun:.0f} s",
            flush=True,
        )
    for kind, times in kinds.most_common(20):
        print(times, kind)
    return 1 if found["differs"] else 0


if __name__ == "__main__":
    sys.exit(main())
