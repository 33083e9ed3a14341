"""Tables in a list with conditions, as FROM and WHERE have them, equal the query as written.

For any order of joins, any existence test, and any consequence of constants: rows, weights, and
failing commits equal those of the plan without rules.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from reactive import Database, fixpoint
from tests.budget import seeds

LETTERS = "abcd"
VALUES = (0, 1, 1, 2, None)


@dataclass(frozen=True, slots=True)
class Row:
    """A row whose fields are known."""

    k: Any
    n: Any


class Drawn:
    """A query as text, over rows whose fields are known, or are items of tuples."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.is_known = random.random() < 0.6
        self.tables = [random.choice(LETTERS) for _ in range(random.choice((2, 3, 3, 4)))]
        self.names = [f"x{place}" for place in range(len(self.tables))]
        self.text = random.choice(
            (self.plain, self.selected, self.distinct, self.union, self.existing, self.recursion)
        )()

    def field(self, name: str) -> str:
        if self.is_known:
            return f"{name}.{self.random.choice('kn')}"
        return f"{name}[{self.random.choice((0, 0, 1, 1, -1))}]"

    def test(self) -> str:
        one, other = self.random.choice(self.names), self.random.choice(self.names)
        match self.random.randrange(12):
            case 0 | 1:
                return f"{self.field(one)} == {self.random.randrange(3)}"
            case 2:
                return f"{self.field(one)} < {self.field(other)}"
            case 3:
                return f"({self.equation()} and {self.test()} or {self.equation()})"
            case 4:
                same = self.equation()
                return f"({same} and {self.field(one)} != 1 or {same} and {self.field(other)} != 2)"
            case 5:
                return f"{self.field(one)} is not None"
            case _:
                return self.equation()

    def equation(self) -> str:
        one, other = self.random.sample(self.names, 2)
        return f"{self.field(one)} == {self.field(other)}"

    def listed(self) -> str:
        """Return the text of the tables with their conditions, above them or at their joins."""
        joined = [self.source(self.tables[0])]
        for count, table in enumerate(self.tables[1:], 2):
            on = ""
            if self.random.random() < 0.2:
                names = ", ".join(self.names[:count])
                left = self.random.choice(self.names[: count - 1])
                equal = f"{self.field(left)} == {self.field(self.names[count - 1])}"
                on = f", on=lambda {names}: {equal}"
            joined.append(f".join({self.source(table)}{on})")
        tests = " and ".join(self.test() for _ in range(self.random.choice((1, 2, 2, 3))))
        return f"{''.join(joined)}.where(lambda {', '.join(self.names)}: {tests})"

    def source(self, table: str) -> str:
        if self.random.random() < 0.2:
            return f"{table}.where(lambda x: {self.field('x')} == {self.random.randrange(3)})"
        return table

    def row(self) -> str:
        """Return the text of a row made of some of the rows."""
        some = self.random.sample(self.names, self.random.choice((1, 1, 2)))
        items = [name if self.random.random() < 0.3 else self.field(name) for name in some]
        return f"lambda {', '.join(self.names)}: ({', '.join(items)},)"

    def plain(self) -> str:
        return self.listed()

    def selected(self) -> str:
        return f"{self.listed()}.select({self.row()})"

    def distinct(self) -> str:
        return f"{self.selected()}.distinct()"

    def union(self) -> str:
        other = self.random.choice(LETTERS)
        return f"{self.selected()}.union({other}.select(lambda x: ({self.field('x')},)))"

    def existing(self) -> str:
        test = f"{self.field('x')} == y[0]"
        how = self.random.choice(("semi_join", "anti_join"))
        return f"{self.random.choice(LETTERS)}.{how}({self.selected()}, on=lambda x, y: {test})"

    def recursion(self) -> str:
        """Return a recursion over the list, in which it replaces the first table."""
        start, to = self.random.choice(LETTERS), self.random.choice(self.names)
        names = ", ".join(self.names)
        tables = "".join(f".join({table})" for table in self.tables[1:])
        tests = " and ".join(self.equation() for _ in range(self.random.choice((1, 2, 3))))
        step = f"r{tables}.where(lambda {names}: {tests}).select(lambda {names}: {to})"
        return f"fixpoint(lambda r: {start} | {step})"


class Side:
    """A database with the query, run with rules or without."""

    def __init__(self, drawn: Drawn, *, optimize: bool) -> None:
        self.db = Database(optimize=optimize)
        kind: Any = Row if drawn.is_known else tuple
        self.tables: dict[str, Any] = {name: self.db.table(kind, name=name) for name in LETTERS}
        self.relation = eval(drawn.text, {**self.tables, "fixpoint": fixpoint})
        self.view: Any = self.relation.materialize()

    def commit(self, changes: list[tuple[str, Any, int]]) -> bool:
        try:
            with self.db.transaction():
                for table, row, weight in changes:
                    (self.tables[table].add if weight > 0 else self.tables[table].remove)(row)
        except Exception:
            return False
        return True

    def rows(self) -> Counter[Any]:
        return Counter(dict(self.view.zset().items()))


def changes(random: Random, held: dict[str, list[Any]], drawn: Drawn) -> list[Any]:
    found = []
    for _ in range(random.choice((1, 1, 2, 5))):
        table = random.choice(LETTERS)
        if held[table] and random.random() < 0.35:
            row = held[table].pop(random.randrange(len(held[table])))
            found.append((table, row, -1))
            continue
        values = (random.choice(VALUES), random.choice(VALUES))
        row = Row(*values) if drawn.is_known else values[: random.choice((1, 2, 2, 2, 2, 2))]
        held[table].append(row)
        found.append((table, row, 1))
    return found


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_a_list_of_tables_equals_the_query_as_written(part: int) -> None:
    for seed in seeds(400, share=16):
        random = Random(4 * seed + part)
        drawn = Drawn(random)
        sides = [Side(drawn, optimize=True), Side(drawn, optimize=False)]
        held: dict[str, list[Any]] = {name: [] for name in LETTERS}
        for _ in range(10):
            before = {name: list(rows) for name, rows in held.items()}
            made = changes(random, held, drawn)
            outcomes = [side.commit(made) for side in sides]
            assert outcomes[0] == outcomes[1], (seed, part, drawn.text)
            if not outcomes[0]:
                held = before
            assert sides[0].rows() == sides[1].rows(), (seed, part, drawn.text)
        sides[0].view.verify()
