"""Play histories of inputs through a program, and compare its relations after every commit."""

from __future__ import annotations

from random import Random
from typing import Any

from reactive import Database
from tests.languages.datalog.naive import Naive, Row, Rows

VALUES: dict[str, list[Any]] = {
    "number": [0, 1, 2, 3, 4, 5, 6],
    "unsigned": [0, 1, 2, 3, 4, 4294967295],
    "float": [0.0, 0.5, 1.0, 2.25, -1.0],
    "symbol": ["a", "b", "c", "da", "12"],
}


def random_rows(naive: Naive, random: Random, count: int) -> Rows:
    """Some rows of each input."""
    found: Rows = {}
    for name in naive.inputs:
        kinds = [naive.base(column.type) for column in naive.declared[name].columns]
        rows = [tuple(random.choice(VALUES[kind]) for kind in kinds) for _ in range(count)]
        found[name] = set(rows)
    return found


class Player:
    """A program, live and naive."""

    def __init__(self, text: str, *, bits: int | None = None, optimize: bool = True) -> None:
        self.naive = Naive(text, bits)
        db = Database(optimize=optimize)
        self.program = db.datalog(text, bits=bits)
        self.views = {name: self.program[name].materialize(name) for name in self.naive.outputs}
        self.db = db
        self.facts: Rows = {name: set() for name in self.naive.inputs}

    def change(self, add: Rows, remove: Rows) -> None:
        """One commit, and a comparison."""
        with self.db.transaction():
            for name in self.naive.inputs:
                table, row = self.program.tables[name], self.program.row(name)
                gone = remove.get(name, set()) & self.facts[name]
                come = add.get(name, set()) - self.facts[name]
                table.remove_all([row(*each) for each in gone])
                table.add_all([row(*each) for each in come])
                self.facts[name] = (self.facts[name] - gone) | come
        self.compare()

    def compare(self) -> None:
        expected = self.naive.evaluate(self.facts)
        for name, view in self.views.items():
            found = sorted(map(plain, view), key=repr)
            assert found == sorted(map(plain, expected[name]), key=repr), (name, self.facts)

    def verify(self) -> None:
        for view in self.views.values():
            view.verify()


def plain(row: Any) -> Any:
    """A row without its classes."""
    return tuple(map(plain, row)) if isinstance(row, tuple) else row


def half(rows: Rows, random: Random) -> Rows:
    """About half of some rows."""
    return {
        name: {row for row in sorted(some) if random.random() < 0.5} for name, some in rows.items()
    }


def play(text: str, seed: int, *, bits: int | None = None, optimize: bool = True) -> None:
    """Insert in some commits, delete half, reinsert, replace, empty."""
    random = Random(seed)
    player = Player(text, bits=bits, optimize=optimize)
    player.compare()
    rows = random_rows(player.naive, random, random.choice([3, 6]))
    for name, some in rows.items():
        for row in sorted(some)[:2]:
            player.change({name: {row}}, {})
    player.change(rows, {})
    gone = half(rows, random)
    player.change({}, gone)
    player.verify()
    player.change(gone, {})
    player.change(random_rows(player.naive, random, 3), half(rows, random))
    player.verify()
    player.change({}, {name: set[Row](some) for name, some in player.facts.items()})
