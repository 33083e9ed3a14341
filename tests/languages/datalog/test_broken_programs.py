"""Programs with words deleted, doubled and swapped are results or a `PlanError`.

python -m tests.languages.datalog.test_broken_programs COUNT SEED [STATE]
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from random import Random

from reactive import Database, PlanError
from tests.seeds import play_all

PROGRAMS = Path(__file__).parent / "programs"
WORD = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|[A-Za-z_]\w*|\d[\w.]*|\s+|:-|<:|[<>!]=|.', re.DOTALL)
OTHERS = ("nil", "_", "-1", '"a"', "count", "x", "0", "1.5", "(", "}", ",", ".", "!", "$A", "[")
LONGEST = 2_000
COUNT = 250


@cache
def _texts() -> list[list[str]]:
    """Return the words of each program that is not long."""
    texts = [path.read_text() for path in sorted(PROGRAMS.rglob("*.dl"))]
    return [WORD.findall(text) for text in texts if len(text) <= LONGEST]


def broken(random: Random) -> str:
    """Return a valid program after a few random changes."""
    words = list(random.choice(_texts()))
    for _ in range(random.choice((1, 1, 2, 3))):
        places = [n for n, word in enumerate(words) if not word.isspace()]
        place, other = random.choice(places), random.choice(places)
        match random.randrange(5):
            case 0:
                del words[place]
            case 1:
                words.insert(place, words[place] + " ")
            case 2:
                words[place], words[other] = words[other], words[place]
            case 3:
                words[place] = words[other]
            case _:
                words[place] = random.choice(OTHERS)
    return "".join(words)


def play(seed: int) -> str:
    """Read a broken program, and make its views: "made" or "refused"."""
    text = broken(Random(seed))
    try:
        program = Database().datalog(text)
        for relation in program.values():
            relation.materialize().close()
    except PlanError:
        return "refused"
    except Exception as error:
        error.add_note(text)
        raise
    return "made"


def test_a_broken_program_raises_nothing_of_its_own() -> None:
    said = [play(seed) for seed in range(COUNT)]
    assert "made" in said
    assert said.count("refused") > COUNT / 10


if __name__ == "__main__":
    remembered = Path(sys.argv[3]) if len(sys.argv) > 3 else None
    sys.exit(play_all(play, int(sys.argv[1]), int(sys.argv[2]), every=500, state=remembered))
