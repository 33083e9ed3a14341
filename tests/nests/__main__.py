"""Play nested queries: `python -m tests.nests 10000 [first seed] [depth]`.

A depth of 0 plays those over plain tuples.
"""

from __future__ import annotations

import sys

from tests.nests.play import play
from tests.nests.tuples import play_tuples
from tests.seeds import play_all


def main() -> int:
    given = [int(argument) for argument in sys.argv[1:]]
    number, seed, depth = given + [1000, 0, 3][len(given) :]
    return play_all(
        lambda each: play(each, depth) if depth else play_tuples(each), number, seed, every=100
    )


if __name__ == "__main__":
    sys.exit(main())
