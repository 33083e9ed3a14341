"""Compare points-to analyses of a Java program, then edit it class by class.

    python -m examples.doop              the program in examples/doop/program
    python -m examples.doop app.jar ...  the classes of jars, from their `main` methods

The table has what an analysis finds: fewer is more exact, but for reachable methods of a program
whose libraries are not given. Then each class is deleted and inserted again, one commit each, and
its time stands beside that of a worklist in plain Python, which starts from scratch.
"""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from statistics import median
from time import perf_counter

from examples.doop.analysis import ANALYSES, SHAPES, PointsTo, classes, merge
from examples.doop.worklist import solve
from reactive import Database

COUNTED = ("ReachableMethod", "Calls", "Polymorphic", "PointsToHeap", "MayFail", "VarPointsTo")


def main() -> None:
    """Print what the analyses find, and what edits cost."""
    parser = ArgumentParser(prog="python -m examples.doop", description=__doc__)
    parser.add_argument("jars", nargs="*", type=Path, metavar="JAR", default=[SHAPES])
    by_class = {
        place: facts for jar in parser.parse_args().jars for place, facts in classes(jar).items()
    }
    whole = merge(by_class.values())
    print(f"{len(by_class)} classes, {sum(map(len, whole.values()))} facts\n")
    print("".join(f"{name:>17}" for name in ("", *COUNTED)))
    times = []
    for analysis in ANALYSES:
        found = PointsTo(Database())
        views = [found.relation(analysis, name).materialize() for name in COUNTED]
        load = _timed(lambda found=found: found.replace({}, whole))
        print(f"{analysis:>17}" + "".join(f"{len(view):17}" for view in views))
        edits = []
        for place in by_class:
            rest = merge(facts for other, facts in by_class.items() if other != place)
            edits.append(_timed(lambda rest=rest, found=found: found.replace(whole, rest)))
            edits.append(_timed(lambda rest=rest, found=found: found.replace(rest, whole)))
        scratch = median(_timed(lambda a=analysis: solve(whole, a)) for _ in range(5))
        times.append((analysis, load, median(edits), max(edits), scratch))
    print("\n" + "".join(f"{name:>17}" for name in ("ms", "load", "edit", "largest", "scratch")))
    for analysis, *each in times:
        print(f"{analysis:>17}" + "".join(f"{1000 * seconds:17.1f}" for seconds in each))


def _timed(action: object) -> float:
    assert callable(action)
    start = perf_counter()
    action()
    return perf_counter() - start


if __name__ == "__main__":
    main()
