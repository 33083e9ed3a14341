"""The tables of the texts, and rows to insert and delete."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from reactive import Database


class A(NamedTuple):
    """A named tuple, in a bag."""

    k: int
    v: int
    s: str


@dataclass(frozen=True, slots=True, order=True)
class B:
    """A dataclass with a number that may be missing, in a bag."""

    k: int
    v: int
    x: int | None


@dataclass(frozen=True, slots=True)
class D:
    """A row with a key, and with collections."""

    id: int
    k: int
    tags: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]


class Tables:
    """A database with all tables, and views of some."""

    def __init__(self) -> None:
        self.db = Database()
        self.a = self.db.table(A, name="a")
        self.b = self.db.table(B, name="b")
        self.d = self.db.table(D, name="d", key="id")
        self.t = self.db.table(tuple, name="t")
        self.n = self.db.table(int, name="n")
        self.big = self.a.where(lambda row: row.v > 2)
        self.view = self.b.select(lambda row: (row.k, row.v)).materialize("view")

    def names(self) -> dict[str, Any]:
        """Return the names that texts use."""
        tables = {name: getattr(self, name) for name in ("a", "b", "d", "t", "n")}
        return tables | {"big": self.big, "view": self.view}

    def change(self, random: Random) -> list[tuple[Any, bool, Any]]:
        """Return the changes of a commit: tables, True for an insert, and rows."""
        changes = []
        for _ in range(random.choice((1, 1, 2, 3, 6))):
            name = random.choice("abdtn")
            table = getattr(self, name)
            rows = list(table)
            if rows and random.random() < 0.4:
                changes.append((table, False, random.choice(rows)))
            else:
                changes.append((table, True, row(name, random)))
        return changes


def row(name: str, random: Random) -> Any:
    """A row for a table."""
    few = random.randrange
    match name:
        case "a":
            return A(few(4), few(5), random.choice("xyz"))
        case "b":
            return B(few(4), few(5), random.choice((None, 0, 1, 2)))
        case "d":
            tags = tuple(few(4) for _ in range(few(4)))
            return D(few(6), few(4), tags, tuple((few(4), few(3)) for _ in range(few(3))))
        case "t":
            return (few(4), few(4))
        case _:
            return few(6)


def apply(changes: list[tuple[Any, bool, Any]], db: Database) -> None:
    """Make the changes that can be made, in one transaction."""
    with db.transaction():
        for table, comes, each in changes:
            if not comes:
                table.discard(each)
            elif table.name == "d":
                table.replace_all([r for r in table if r.id != each.id] + [each])
            else:
                table.add(each)
