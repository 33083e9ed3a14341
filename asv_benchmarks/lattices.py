"""Constants and intervals of a program: load and edit, beside a worklist by hand.

python -m asv_benchmarks.lattices [--nodes 400 4000] [--edits 60]

The program has functions of 20 nodes, in each mostly straight code with branches and a loop, over
six variables. A load is compared with a worklist over the same rows, and so is an edit: by hand
there is nothing to continue from. The worklist and the load are the best of five; the first load of
a process also generates code. Asked: a load of at most 3 times the worklist, an edit of a tenth.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from statistics import median
from time import process_time
from typing import Any, NamedTuple

from reactive import Database, Relation, fixpoint
from reactive.lattices import TOP, Lattice, flat, interval

VARIABLES = 6
MOST = 50
"""Intervals end here."""
LOADS = 5


class Flow(NamedTuple):
    u: int
    v: int


class Constant(NamedTuple):
    n: int
    dst: str
    value: int


class Copied(NamedTuple):
    n: int
    dst: str
    src: str


class Added(NamedTuple):
    n: int
    dst: str
    a: str
    b: str


class Known(NamedTuple):
    """A value of a variable before a node."""

    n: int
    var: str
    value: Any


Facts = tuple[set[Any], ...]
"""The rows of `Flow`, `Constant`, `Copied` and `Added`."""
KINDS = (Flow, Constant, Copied, Added)
Join = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Analysis:
    """A lattice, the value of a constant, and the sum of two values."""

    lattice: Lattice[Any]
    of: Callable[[int], Any]
    plus: Join


def _sum(a: Any, b: Any) -> Any:
    return TOP if a is TOP or b is TOP else a + b


def _itself(value: int) -> Any:
    return value


def _point(value: int) -> Any:
    return (value, value)


def _add_ends(a: Any, b: Any) -> Any:
    return (max(a[0] + b[0], -MOST), min(a[1] + b[1], MOST))


ANALYSES = {
    "constants": Analysis(flat(lambda k: k.value), _itself, _sum),
    "intervals": Analysis(interval(lambda k: k.value), _point, _add_ends),
}


def program(nodes: int, random: Random) -> Facts:
    """Return the rows of a random program."""
    facts: Facts = (set(), set(), set(), set())
    flow, constants, copies, sums = facts
    for base in range(0, nodes, 20):
        names = [f"f{base // 20}.{k}" for k in range(VARIABLES)]
        for n in range(base, base + 19):
            flow.add(Flow(n, n + 1))
            if random.random() < 0.15:
                flow.add(Flow(n, random.randrange(base, base + 20)))
        for n in range(base, base + 20):
            kind = random.random()
            if kind < 0.35:
                constants.add(Constant(n, random.choice(names), random.randrange(4)))
            elif kind < 0.6:
                copies.add(Copied(n, random.choice(names), random.choice(names)))
            elif kind < 0.75:
                sums.add(Added(n, *(random.choice(names) for _ in range(3))))
    return facts


def query(tables: tuple[Relation[Any], ...], analysis: Analysis) -> Relation[Any]:
    """Return what each variable is before each node, as a recursion over a lattice."""
    flow, constants, copies, sums = tables
    of, plus = analysis.of, analysis.plus
    assigned = (
        constants.select(lambda x: (x.n, x.dst))
        .union(copies.select(lambda x: (x.n, x.dst)))
        .union(sums.select(lambda x: (x.n, x.dst)))
    )

    def step(known: Relation[Any]) -> Relation[Any]:
        kept = known.anti_join(assigned, on=lambda k, x: (k.n, k.var) == x)
        copied = known.join(copies, on=lambda k, x: k.n == x.n and k.var == x.src).select(
            lambda k, x: Known(k.n, x.dst, k.value)
        )
        added = (
            known.join(sums, on=lambda k, x: k.n == x.n and k.var == x.a)
            .join(known, on=lambda k, x, t: t.n == x.n and t.var == x.b)
            .select(lambda k, x, t: Known(k.n, x.dst, plus(k.value, t.value)))
        )
        new = constants.select(lambda x: Known(x.n, x.dst, of(x.value)))
        after = kept.union_all(new).union_all(copied).union_all(added)
        return after.join(flow, on=lambda k, e: k.n == e.u).select(
            lambda k, e: Known(e.v, k.var, k.value)
        )

    return fixpoint(step, keep=analysis.lattice, by=lambda k: (k.n, k.var))


def by_hand(facts: Facts, analysis: Analysis) -> set[Any]:
    """Return the same by a worklist over the nodes."""
    join, of, plus = analysis.lattice.join, analysis.of, analysis.plus
    following = defaultdict[int, list[int]](list)
    for edge in facts[0]:
        following[edge.u].append(edge.v)
    constants, copies, sums = (defaultdict[int, list[Any]](list) for _ in range(3))
    for kind, rows in zip((constants, copies, sums), facts[1:], strict=True):
        for row in rows:
            kind[row.n].append(row)
    state = defaultdict[int, dict[str, Any]](dict)
    work = [*{n for edge in facts[0] for n in edge}]
    while work:
        n = work.pop()
        before = state[n]
        assigned = {row.dst for kind in (constants, copies, sums) for row in kind[n]}
        after = {var: value for var, value in before.items() if var not in assigned}
        made = [(x.dst, of(x.value)) for x in constants[n]]
        made += [(x.dst, before[x.src]) for x in copies[n] if x.src in before]
        made += [
            (x.dst, plus(before[x.a], before[x.b]))
            for x in sums[n]
            if x.a in before and x.b in before
        ]
        for var, value in made:
            after[var] = join(after[var], value) if var in after else value
        for other in following[n]:
            held, is_changed = state[other], False
            for var, value in after.items():
                new = join(held[var], value) if var in held else value
                if var not in held or new != held[var]:
                    held[var], is_changed = new, True
            if is_changed:
                work.append(other)
    return {Known(n, var, value) for n, held in state.items() for var, value in held.items()}


@dataclass(frozen=True)
class Times:
    """Seconds: the first load, the best one, the worklist, and each edit."""

    first: float
    load: float
    worklist: float
    edits: list[float]


def measure(name: str, nodes: int, edits: int, seed: int = 1) -> Times:
    """Measure an analysis; every edit is checked against the worklist."""
    analysis, random = ANALYSES[name], Random(seed)
    facts, others = program(nodes, random), program(nodes, Random(seed + 1))
    loads = []
    for _ in range(LOADS):
        db = Database()
        tables = tuple(db.table(kind, name=kind.__name__) for kind in KINDS)
        view = query(tables, analysis).materialize()
        start = process_time()
        with db.transaction():
            for table, rows in zip(tables, facts, strict=True):
                table.add_all(rows)
        loads.append(process_time() - start)
    assert set(view) == by_hand(facts, analysis)
    worklist = min(_seconds(facts, analysis) for _ in range(LOADS))
    times = []
    for _ in range(edits):
        place = random.randrange(len(tables))
        row = random.choice(sorted(facts[place] | others[place]))
        change = tables[place].remove if row in facts[place] else tables[place].add
        facts[place].symmetric_difference_update({row})
        start = process_time()
        change(row)
        times.append(process_time() - start)
        assert set(view) == by_hand(facts, analysis)
    db.close()
    return Times(loads[0], min(loads), worklist, times)


def _seconds(facts: Facts, analysis: Analysis) -> float:
    start = process_time()
    by_hand(facts, analysis)
    return process_time() - start


def main() -> None:
    """Print a table: milliseconds, and ratios to the worklist."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="*", default=[400, 4_000])
    parser.add_argument("--edits", type=int, default=60)
    options = parser.parse_args()
    print("| analysis | nodes | worklist, ms | first load, times | load, times ", end="")
    print("| edit, ms | times faster | worst, ms |")
    print("|---|---|---|---|---|---|---|---|")
    for name in ANALYSES:
        for nodes in options.nodes:
            found = measure(name, nodes, options.edits)
            edit, hand = median(found.edits), found.worklist
            print(
                f"| {name} | {nodes:,} | {hand * 1e3:.1f} "
                f"| {found.first / hand:.1f} | {found.load / hand:.1f} "
                f"| {edit * 1e3:.2f} | {hand / edit:.0f} | {max(found.edits) * 1e3:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
