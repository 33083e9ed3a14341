"""Rows that a recursion touches, against nested loops over indexes in Soufflé's default order.

Each rule is evaluated semi-naively: once per recursive atom that reads the new rows. An atom whose
variables are all bound is tested next, otherwise the first one of the text is looked up by its
bound columns. A row that is looked at counts once, and so does a fact.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import Any

import pytest

from optimizer.plans.components import strongly_connected
from reactive import Database

Row = tuple[Any, ...]
Atom = tuple[str, list[str]]
Facts = dict[str, set[Row]]
MOST = 3
"""Touched rows for each row that the nested loops look at."""


class Indexed:
    """Rows with an index for each combination of columns that is asked for."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.rows: set[Row] = set()
        self._indexes: dict[tuple[int, ...], dict[Row, list[Row]]] = {}
        self.add(rows)

    def add(self, rows: Iterable[Row]) -> None:
        new = set(rows) - self.rows
        self.rows |= new
        for columns, index in self._indexes.items():
            for row in new:
                index[tuple(row[n] for n in columns)].append(row)

    def look_up(self, columns: tuple[int, ...], key: Row) -> Sequence[Row]:
        if columns not in self._indexes:
            index = self._indexes[columns] = defaultdict(list)
            for row in self.rows:
                index[tuple(row[n] for n in columns)].append(row)
        return self._indexes[columns].get(key, ())


class NestedLoops:
    """Evaluates a program of atoms with variables and numbers, and counts."""

    def __init__(self, text: str, facts: Facts) -> None:
        self.looked_at = sum(map(len, facts.values()))
        self.relations = defaultdict(Indexed, {n: Indexed(rows) for n, rows in facts.items()})
        rules = [_atoms(line) for line in text.splitlines() if ":-" in line]
        graph: dict[str, list[str]] = {head[0]: [] for head, *_ in rules}
        for head, *body in rules:
            graph[head[0]] += [name for name, _ in body if name in graph]
        for group in strongly_connected({n: [*dict.fromkeys(r)] for n, r in graph.items()}):
            self._run(set(group), [rule for rule in rules if rule[0][0] in group])

    def _run(self, group: set[str], rules: list[list[Atom]]) -> None:
        new = {name: Indexed() for name in group}
        for head, *body in rules:
            if not any(name in group for name, _ in body):
                new[head[0]].add(self._derive(head, body, None, new))
        while any(each.rows for each in new.values()):
            for name, each in new.items():
                self.relations[name].add(each.rows)
            found: Facts = {name: set() for name in group}
            for head, *body in rules:
                for place, (name, _) in enumerate(body):
                    if name in group:
                        found[head[0]].update(self._derive(head, body, place, new))
            new = {n: Indexed(rows - self.relations[n].rows) for n, rows in found.items()}

    def _derive(
        self, head: Atom, body: list[Atom], delta: int | None, new: dict[str, Indexed]
    ) -> Iterator[Row]:
        order: list[int] = []
        bound: set[str] = set()
        waiting = [*range(len(body))]
        while waiting:
            tests = [n for n in waiting if {v for v in body[n][1] if v.isalpha()} <= bound]
            order.append((tests or waiting)[0])
            waiting.remove(order[-1])
            bound |= {v for v in body[order[-1]][1] if v.isalpha()}
        sources = [new[body[n][0]] if n == delta else self.relations[body[n][0]] for n in order]
        yield from self._loop(head, [body[n][1] for n in order], sources, {})

    def _loop(
        self, head: Atom, atoms: list[list[str]], sources: list[Indexed], values: dict[str, Any]
    ) -> Iterator[Row]:
        if not atoms:
            yield tuple(values[v] if v.isalpha() else int(v) for v in head[1])
            return
        (arguments, *rest), (source, *others) = atoms, sources
        known = [n for n, v in enumerate(arguments) if v in values or v.isdigit()]
        key = tuple(values.get(arguments[n], arguments[n]) for n in known)
        key = tuple(int(each) for each in key)
        rows = source.look_up(tuple(known), key) if known else source.rows
        is_test = all(n in known or v == "_" for n, v in enumerate(arguments))
        for row in [*rows][:1] if is_test else rows:
            self.looked_at += 1
            more = {v: row[n] for n, v in enumerate(arguments) if v.isalpha()}
            yield from self._loop(head, rest, others, values | more)


def _atoms(line: str) -> list[Atom]:
    found = re.findall(r"(\w+)\(([^)]*)\)", line)
    return [(name, [each.strip() for each in columns.split(",")]) for name, columns in found]


def pairs(random: Random, most: int, count: int, *, skewed: bool = False) -> set[Row]:
    """Draw pairs of numbers; a few numbers are in many pairs if they are skewed."""

    def draw() -> int:
        return min(most, int(random.paretovariate(0.7))) if skewed else random.randrange(most)

    return {(draw(), draw()) for _ in range(count)}


POINTS_TO = """
points(v, o) :- new(v, o).
points(v, o) :- assign(w, v), points(w, o).
points(v, o) :- load(v, a), points(a, p), memory(p, o).
points(v, o) :- external(a, v), reach(a, o).
memory(p, o) :- store(v, a), points(v, o), points(a, p).
reach(v, o) :- points(v, o).
reach(v, o) :- memory(p, o), reach(v, p).
escaped(o) :- escapes(v), reach(v, o).
kept(v, a) :- load(v, a), points(a, o), escaped(o).
escaped(o) :- kept(_, v), points(v, o).
"""
ON_THE_FLY = """
called(m) :- main(m).
points(v, o) :- called(m), new(v, o, m).
points(v, o) :- assign(w, v), points(w, o).
points(t, o) :- called(m), call(i, b, s, m), points(b, o), type(o, y), method(y, s, q), this(q, t).
edge(i, q) :- called(m), call(i, b, s, m), points(b, o), type(o, y), method(y, s, q).
called(q) :- edge(_, q).
points(t, o) :- edge(i, q), given(i, n, v), taken(q, n, t), points(v, o).
"""
CHAINS = """
p(x, y) :- s(x, y).
p(x, w) :- {}.
"""


def of_c(random: Random) -> Facts:
    drawn = {"assign": 90, "load": 30, "store": 20, "external": 5, "new": 20}
    facts = {name: pairs(random, 70, count) for name, count in drawn.items()}
    return facts | {"escapes": {(random.randrange(70),) for _ in range(6)}}


def of_java(random: Random) -> Facts:
    def rows(count: int, *most: int) -> set[Row]:
        return {tuple(map(random.randrange, most)) for _ in range(count)}

    return {
        "main": {(0,), (1,)},
        "new": rows(60, 120, 60, 20),
        "assign": rows(160, 120, 120),
        "call": rows(80, 60, 120, 6, 20),
        "type": {(o, random.randrange(8)) for o in range(60)},
        "method": {(t, s, random.randrange(20)) for t in range(8) for s in range(6)},
        "this": {(m, random.randrange(120)) for m in range(20)},
        "given": rows(90, 60, 2, 120),
        "taken": rows(40, 20, 2, 120),
    }


def of_pairs(random: Random) -> Facts:
    facts = {name: pairs(random, 60, 150) for name in "abc"}
    return facts | {"s": {(0, 1), (2, 2), (3, 9)}}


def of_hubs(random: Random) -> Facts:
    facts = {name: pairs(random, 60, 200, skewed=True) for name in "abc"}
    return facts | {"s": {(1, 1), (2, 2), (3, 9)}}


SHAPES: dict[str, tuple[str, Callable[[Random], Facts]]] = {
    "points-to of C": (POINTS_TO, of_c),
    "call graph on the fly": (ON_THE_FLY, of_java),
    "new rows last": (CHAINS.format("a(x, y), b(y, z), c(z, u), p(u, w)"), of_pairs),
    "new rows between": (CHAINS.format("a(x, y), b(y, z), p(z, u), c(u, w)"), of_pairs),
    "new rows at both ends": (CHAINS.format("p(x, y), a(y, z), b(z, u), p(u, w)"), of_pairs),
    "constants": (CHAINS.format("a(x, y), b(y, 3), c(x, z), b(z, u), p(u, w)"), of_pairs),
    "same generation": (CHAINS.format("a(x, y), p(y, z), b(w, z)"), of_pairs),
    "star": (CHAINS.format("a(x, y), b(x, z), c(x, w), p(y, z)"), of_hubs),
    "cycle of hubs": (CHAINS.format("a(x, y), b(y, w), p(x, u), c(u, w)"), of_hubs),
    "hubs": (CHAINS.format("a(x, y), b(y, z), c(z, u), p(u, w)"), of_hubs),
}
QUICK = frozenset({"call graph on the fly", "new rows last", "constants", "hubs"})


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in QUICK else pytest.mark.long, id=name)
        for name in SHAPES
    ],
)
def test_a_recursion_touches_about_the_rows_of_nested_loops(name: str) -> None:
    rules, draw = SHAPES[name]
    facts = draw(Random(7))
    loops = NestedLoops(rules, facts)
    columns = {each: len(next(iter(r.rows))) for each, r in loops.relations.items() if r.rows}
    declared = "".join(
        f".decl {each}({', '.join(f'c{n}: number' for n in range(count))})\n"
        f".{'input' if each in facts else 'output'} {each}\n"
        for each, count in columns.items()
    )
    db = Database()
    program = db.datalog(declared + rules)
    views = {each: program[each].materialize() for each in program}
    with db.transaction():
        for each, table in program.tables.items():
            table.add_all(map(program.row(each)._make, facts[each]))
    for each, view in views.items():
        assert set(map(tuple, view)) == loops.relations[each].rows
    touched = max(view.stats().touched for view in views.values())
    assert touched <= MOST * loops.looked_at, (touched, loops.looked_at)
