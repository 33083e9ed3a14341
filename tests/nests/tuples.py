"""Nested queries over plain tuples of two to five typed places, and their results in Python.

Each level has a link to the row around it, by any place of either, and then an operation on its
rows: a value of any place, sets of values, groups, an order. Levels are nested up to four deep.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from reactive import Bag, Count, Database
from tests.written import evaluated

KINDS: tuple[tuple[Any, tuple[Any, ...]], ...] = (
    (str, ("a", "b", "c")),
    (int, (0, 1, 2)),
    (float, (0.0, 1.0, 2.5)),
    (bool, (False, True)),
    (bytes, (b"", b"a")),
    (tuple[int, str], ((0, "a"), (1, "a"))),
    (int | None, (0, 1, None)),
)
TABLES = "ab"
LAST: dict[str, tuple[str, Callable[[list[Any], int, int], Any]]] = {
    "rows": ("{}", lambda rows, v, x: Bag(rows)),
    "value": ("{}.select(lambda t: t[{v}])", lambda rows, v, x: Bag(t[v] for t in rows)),
    "pair": (
        "{}.select(lambda t: (t[{x}], t[{v}]))",
        lambda rows, v, x: Bag((t[x], t[v]) for t in rows),
    ),
    "set": (
        "{}.select(lambda t: t[{v}]).distinct()",
        lambda rows, v, x: Bag({t[v] for t in rows}),
    ),
    "union": (
        "{0}.select(lambda t: t[{v}]).union({0}.select(lambda t: t[{x}]))",
        lambda rows, v, x: Bag({t[v] for t in rows} | {t[x] for t in rows}),
    ),
    "difference": (
        "{0}.select(lambda t: t[{v}]).difference({0}.select(lambda t: t[{x}]))",
        lambda rows, v, x: Bag({t[v] for t in rows} - {t[x] for t in rows}),
    ),
    "intersection": (
        "{0}.select(lambda t: t[{v}]).intersection({0}.select(lambda t: t[{x}]))",
        lambda rows, v, x: Bag({t[v] for t in rows} & {t[x] for t in rows}),
    ),
    "bag difference": (
        "{0}.difference_all({0}.where(lambda t: t[{v}] == t[{x}]).distinct())",
        lambda rows, v, x: Bag(_without(rows, {t for t in rows if t[v] == t[x]})),
    ),
    "count": (
        "{}.select(lambda t: t[{v}]).distinct().aggregate(Count())",
        lambda rows, v, x: Bag([len({t[v] for t in rows})]),
    ),
    "first": (
        "{}.order_by(lambda t: repr((t[{v}], t))).limit(2)",
        lambda rows, v, x: tuple(sorted(rows, key=lambda t: repr((t[v], t)))[:2]),
    ),
    "ordered": (
        "{}.distinct().order_by(lambda t: repr((t[{x}], t)))",
        lambda rows, v, x: tuple(sorted(set(rows), key=lambda t: repr((t[x], t)))),
    ),
    "groups": (
        "{}.group_by(lambda t: t[{v}]).rows(lambda g: g.select(lambda t: t[{x}]).distinct())",
        lambda rows, v, x: Bag(
            (key, Bag({t[x] for t in rows if t[v] == key})) for key in {t[v] for t in rows}
        ),
    ),
    "each": (
        "{}.group_by(lambda t: t[{v}]).each(lambda g: g.select(lambda t: t[{x}]).distinct())",
        lambda rows, v, x: Bag({(t[v], t[x]) for t in rows}),
    ),
}
"""The last operations of nests on their rows, as text and by plain Python."""


def _without(rows: list[Any], gone: set[Any]) -> list[Any]:
    """Return rows without one copy of each of some."""
    left = list(rows)
    for row in gone:
        left.remove(row)
    return left


def _tuple_of(kinds: list[Any]) -> Any:
    """Return the type of tuples with these places."""
    return tuple.__class_getitem__(tuple(kinds))


@dataclass(frozen=True)
class Level:
    """A table, equations with rows around as (place, level, place), and a test of two places."""

    table: str
    links: tuple[tuple[int, int, int], ...]
    apart: tuple[int, int] | None


class Case:
    """Tables of tuples, and a nest of them."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.db = Database(optimize=random.random() < 0.8)
        some = random.choice((KINDS[:2], KINDS[:1], KINDS[1:4], KINDS))
        self.kinds = {
            name: [random.choice(some) for _ in range(random.randint(2, 5))] for name in TABLES
        }
        self.tables: dict[str, Any] = {
            name: self.db.table(_tuple_of([kind for kind, _ in kinds]), name=name)
            for name, kinds in self.kinds.items()
        }
        self.levels = [Level(random.choice(TABLES), (), None)]
        for _ in range(random.randint(1, 3)):
            self.levels.append(self._level())
        width = self._width(self.levels[-1])
        self.last = random.choice([*LAST])
        self.v, self.x = random.randrange(width), random.randrange(width)

    def _width(self, level: Level) -> int:
        return len(self.kinds[level.table])

    def _level(self) -> Level:
        random, table = self.random, self.random.choice(TABLES)
        width = len(self.kinds[table])
        links = []
        for _ in range(random.choice((1, 1, 1, 2))):
            far = len(self.levels) - 1
            if random.random() < 0.3:
                far = random.randrange(len(self.levels))
            links.append(
                (random.randrange(width), far, random.randrange(self._width(self.levels[far])))
            )
        apart = None
        if random.random() < 0.3:
            apart = random.randrange(width), random.randrange(width)
        return Level(table, tuple(links), apart)

    def text(self) -> str:
        """The query of all levels."""
        return self._text(0)

    def _text(self, at: int) -> str:
        level = self.levels[at]
        made = level.table
        if level.links:
            tests = [f"t[{mine}] == r{far}[{theirs}]" for mine, far, theirs in level.links]
            if level.apart:
                tests.append("t[{}] != t[{}]".format(*level.apart))
            made = f"{made}.where(lambda t: {' and '.join(tests)})"
        if at == len(self.levels) - 1:
            return LAST[self.last][0].format(made, v=self.v, x=self.x)
        return f"{made}.nest(y=lambda r{at}: {self._text(at + 1)})"

    def expected(self, at: int = 0, around: tuple[Any, ...] = ()) -> Any:
        """The rows of a level, for the rows around."""
        level = self.levels[at]
        rows = [
            t
            for t in self.tables[level.table]
            if all(t[mine] == around[far][theirs] for mine, far, theirs in level.links)
            and (level.apart is None or t[level.apart[0]] != t[level.apart[1]])
        ]
        if at == len(self.levels) - 1:
            return LAST[self.last][1](rows, self.v, self.x)
        return Bag((t, self.expected(at + 1, (*around, t))) for t in rows)

    def change(self) -> None:
        """Insert rows, or delete some that are there."""
        random = self.random
        with self.db.transaction():
            for _ in range(random.randint(1, 5)):
                name = random.choice(TABLES)
                held = list(self.tables[name])
                if held and random.random() < 0.35:
                    self.tables[name].remove(random.choice(held))
                else:
                    row = tuple(random.choice(values) for _, values in self.kinds[name])
                    self.tables[name].add(row)


def play_tuples(seed: int) -> None:
    """Compare a nest with plain Python after every commit, and a late view in the end."""
    case = Case(Random(seed))
    case.change()
    text = case.text()
    relation = evaluated(text, {**case.tables, "Count": Count})
    view = relation.materialize()
    for _ in range(5):
        assert Bag(view) == case.expected(), (
            seed,
            text,
            {k: list(t) for k, t in case.tables.items()},
        )
        view.verify()
        case.change()
    assert Bag(relation.materialize()) == case.expected(), (seed, text)
