"""Measure queries beside their neighbours, and print the worst.

python -m asv_benchmarks.neighbours                         all; some five minutes of a processor
python -m asv_benchmarks.neighbours --only ranges closure   families, by words of their names
python -m asv_benchmarks.neighbours --plans                 with the plans of the worst
"""

from __future__ import annotations

import argparse
import sys

from asv_benchmarks.neighbours.costs import Costs, costs_of
from asv_benchmarks.neighbours.judged import Pair, different, pairs_of, report, told, ways_of
from asv_benchmarks.neighbours.query import Query
from asv_benchmarks.neighbours.texts import text_of
from asv_benchmarks.neighbours.variations import families
from asv_benchmarks.table import DOCS, machine, publish

SIZE, WORST = 4_000, 20


def main(arguments: list[str] | None = None) -> int:
    """Run the measurements that the command line selects; return 1 if a bound is exceeded."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.neighbours")
    parser.add_argument("--only", nargs="*", metavar="WORD", help="families with such a word")
    parser.add_argument("--size", type=int, default=SIZE, help="the number of orders")
    parser.add_argument("--worst", type=int, default=WORST, help="the number of pairs to print")
    parser.add_argument("--plans", action="store_true", help="print the plans of the worst")
    parser.add_argument("--write", action="store_true", help=f"put the table into {DOCS.name}")
    options = parser.parse_args(arguments)
    warm_up()
    pairs: list[Pair] = []
    wrong = 0
    for family in families():
        if options.only and not any(word in family.first.family for word in options.only):
            continue
        first = costs_of(family.first, options.size)
        others = [found for query in family.others if (found := tried(query, options.size))]
        wrong_ones = different(first, others)
        wrong += len(wrong_ones)
        for other in wrong_ones:
            print(f"DIFFERS: {other.query.name}", file=sys.stderr)
        some = list(pairs_of(first, others))
        some += (pair for each in (first, *others) for pair in ways_of(each))
        pairs += some
        beyond = sorted((pair for pair in some if pair.beyond > 1), key=lambda pair: -pair.beyond)
        print(f"{family.first.family}: {len(others)} neighbours", file=sys.stderr)
        for pair in beyond:
            print(f"    {told(pair)}", file=sys.stderr, flush=True)
    table = report(pairs, options.worst)
    publish(f"{options.size:,} orders. {machine()}\n\n{table}", "neighbours", write=options.write)
    if options.plans:
        print_plans(pairs, options.worst)
    return int(wrong > 0 or any(pair.times > pair.asked for pair in pairs))


def warm_up() -> None:
    """Make a small view in each spelling, so that imports are no part of a first view."""
    for spelling in ("methods", "comprehension", "sql", "datalog"):
        costs_of(Query("groups", result="sum", join="join", spelling=spelling), 20)


def tried(query: Query, size: int) -> Costs | None:
    """Return the costs of a query; None if it is refused, which is told."""
    try:
        return costs_of(query, size)
    except Exception as error:
        print(f"REFUSED: {query.name}: {type(error).__name__}: {error!s:.200}", file=sys.stderr)
        return None


def print_plans(pairs: list[Pair], worst: int) -> None:
    """Print the text and the plan of each of the worst queries once."""
    seen: set[str] = set()
    for pair in sorted(pairs, key=lambda pair: -pair.beyond)[:worst]:
        name = pair.other.query.name
        if name not in seen:
            seen.add(name)
            print("", f"## {name}", text_of(pair.other.query, "..."), pair.other.plan, sep="\n")


if __name__ == "__main__":
    sys.exit(main())
