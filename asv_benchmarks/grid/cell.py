"""A cell of the grid: what a query asks, of what rows, and how these change; and the pieces of text
that the query and its twin are composed of."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

BINDINGS = ("o", "c", "r", "n")
TABLES = ("orders", "customers", "regions", "nations")
FIELDS = (
    ("id", "key", "group", "value", "quantity", "status"),
    ("id", "key", "region", "active", "least"),
    ("id", "nation"),
    ("id", "name"),
)
LINKS = (("key", "key"), ("region", "id"), ("nation", "id"))
"""The field of each table that refers to the next one, and the one of that."""
LAST = ("key", "region", "nation", "name")
"""The field of the last table by which rows are grouped."""
CONDITIONS = {
    "quantity": "{o.quantity} > 1",
    "status": "{o.status} != 3",
    "equal": "{o.status} == 1",
    "in": "{o.status} in (0, 1, 2)",
    "not": "not {o.quantity} <= 1",
    "either": "({o.quantity} > 1 or {o.status} == 0)",
    "both": "({o.quantity} > 1) & ({o.status} != 3)",
    "range": "1 < {o.quantity} <= 5",
    "divided": "6 // {o.quantity} < 6",
    "opaque": "passes({o.quantity})",
    "active": "{c.active}",
    "pair": "{o.quantity} > {c.least}",
}
"""Of these a row must pass all; `opaque` calls what the optimizer does not read."""
PAIRS = ("pair",)
"""Those that read two tables."""
GROUPED = ("sum", "count", "avg", "min_max", "count_distinct")


@dataclass(frozen=True, slots=True)
class Cell:
    """What a query asks, of what rows, and how these change.

    Parameters
    ----------
    ask: an aggregate per group, or `rows`, `distinct`, `order`, `top`.
    joins: how many tables are joined to the orders, each to the one before.
    match: how the first of them is joined; only `join` is followed by others.
    partners: how many customers have the same key.
    value, key: the type of what is aggregated or ordered, and of what is joined, or grouped by
        where nothing is joined.
    rows: the class of rows; `untyped` are named tuples whose fields have no types.
    conditions: what rows must pass, in this order; `split`: each in a `where` of its own; `early`:
        each in a `where` of the table that it reads, below the joins.
    selects: how many projections stand between the conditions and what is asked.
    above: what is asked of the groups: `where`, `select`, `group` or `top`.
    groups: how many there are; 0: one aggregate of all rows.
    ties: how many rows share a value. skew: whether half of the rows share a key.
    batch: rows that change in one transaction. changed: the number of the table that changes.
    """

    ask: str
    joins: int = 0
    match: str = "join"
    partners: int = 1
    value: str = "int"
    key: str = "int"
    rows: str = "dataclass"
    conditions: tuple[str, ...] = ("quantity",)
    split: bool = False
    early: bool = False
    selects: int = 0
    above: str = ""
    groups: int = 1_000
    ties: int = 1
    skew: bool = False
    batch: int = 1
    changed: int = 0

    @property
    def tables(self) -> int:
        return 1 + self.joins

    @property
    def bindings(self) -> tuple[str, ...]:
        """The names of the bindings after the joins."""
        return BINDINGS[: 1 if self.match in ("semi_join", "anti_join") else self.tables]

    @property
    def grouped(self) -> bool:
        return self.ask in GROUPED

    def field(self, table: int, name: str) -> str:
        """How a field of the binding of a table is read."""
        return str(getattr(self.names()[BINDINGS[table]], name))

    def names(self) -> dict[str, Binding]:
        return {
            name: Binding(name, FIELDS[table], self.rows) for table, name in enumerate(BINDINGS)
        }

    def condition(self, name: str) -> str:
        return CONDITIONS[name].format(**self.names())

    def depth(self, name: str) -> int:
        """The number of the last table that a condition reads."""
        return max(table for table, b in enumerate(BINDINGS) if f"{{{b}." in CONDITIONS[name])

    def group(self) -> str:
        """What rows are grouped by."""
        if self.match in ("semi_join", "anti_join"):
            return self.field(0, "group")
        text = self.field(self.joins, LAST[self.joins])
        return f"None if c is None else {text}" if self.match == "left_join" else text


class Binding:
    """Reads fields by name, or by place where rows are tuples: `{o.key}` in a format."""

    def __init__(self, name: str, names: tuple[str, ...], rows: str) -> None:
        self._name, self._names, self._rows = name, names, rows

    def __getattr__(self, name: str) -> str:
        if self._rows == "tuple":
            return f"{self._name}[{self._names.index(name)}]"
        return f"{self._name}.{name}"


def differences(one: Cell, other: Cell) -> dict[str, tuple[Any, Any]]:
    """The fields in which two cells differ."""
    pairs = {f.name: (getattr(one, f.name), getattr(other, f.name)) for f in fields(Cell)}
    return {name: (a, b) for name, (a, b) in pairs.items() if a != b}
