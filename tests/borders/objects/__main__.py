"""Play histories of objects that change: `python -m tests.borders.objects 10000 [first seed]`."""

from __future__ import annotations

import sys

from tests.borders.objects import histories, inner_histories, shared_histories
from tests.seeds import play_all
from tests.thresholds import WAYS, thresholds

KINDS = (histories, inner_histories, histories, shared_histories)


def play(seed: int) -> None:
    with thresholds([*WAYS.values()][seed // 4 % 4]):
        KINDS[seed % 4].play(seed)


def main() -> int:
    given = [int(argument) for argument in sys.argv[1:]]
    number, seed = given + [1000, 0][len(given) :]
    return play_all(play, number, seed, every=500)


if __name__ == "__main__":
    sys.exit(main())
