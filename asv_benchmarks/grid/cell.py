"""A cell of the grid: a query, its rows and their changes.

It also has the pieces of text for the query and its twin.
"""

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
"""The field of each table that refers to the next one, and the field of that table."""
LAST = ("key", "region", "nation", "name")
"""The grouping field of the last table."""
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
"""The conditions that a row must satisfy; `opaque` calls a function that cannot be lifted."""
PAIRS = ("pair",)
"""The conditions that read two tables."""
GROUPED = ("sum", "count", "avg", "min_max", "count_distinct")


@dataclass(frozen=True, slots=True)
class Cell:
    """A query, its rows and their changes.

    Parameters
    ----------
    ask: an aggregate per group, or `rows`, `distinct`, `order`, `top`.
    joins: the number of tables joined to the orders, each to the one before.
    match: the kind of the first join; only `join` is followed by others.
    partners: the number of customers with one key.
    value, key: the types of the aggregated or ordered value, and of the join key, or of the
        grouping key without a join.
    rows: the class of rows; `untyped` are named tuples whose fields have no types.
    conditions: the conditions of rows, in this order; `split`: each in its own `where`; `early`:
        each in a `where` of the table that it reads, below the joins.
    selects: the number of projections between the conditions and the result.
    above: the query of the groups: `where`, `select`, `group` or `top`.
    groups: the number of groups; 0: one aggregate of all rows.
    ties: the number of rows with one value. skew: True if half of the rows share a key.
    batch: rows that change in one transaction. changed: the number of the changing table.
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
        """Return the expression of a field of a table's binding."""
        return str(getattr(self.names()[BINDINGS[table]], name))

    def names(self) -> dict[str, Binding]:
        return {
            name: Binding(name, FIELDS[table], self.rows) for table, name in enumerate(BINDINGS)
        }

    def condition(self, name: str) -> str:
        return CONDITIONS[name].format(**self.names())

    def depth(self, name: str) -> int:
        """Return the number of the last table that a condition reads."""
        return max(table for table, b in enumerate(BINDINGS) if f"{{{b}." in CONDITIONS[name])

    def group(self) -> str:
        """Return the expression of the grouping key."""
        if self.match in ("semi_join", "anti_join"):
            return self.field(0, "group")
        text = self.field(self.joins, LAST[self.joins])
        return f"None if c is None else {text}" if self.match == "left_join" else text


class Binding:
    """Read fields by name, or by place if rows are tuples: `{o.key}` in a format."""

    def __init__(self, name: str, names: tuple[str, ...], rows: str) -> None:
        self._name, self._names, self._rows = name, names, rows

    def __getattr__(self, name: str) -> str:
        if self._rows == "tuple":
            return f"{self._name}[{self._names.index(name)}]"
        return f"{self._name}.{name}"


def differences(one: Cell, other: Cell) -> dict[str, tuple[Any, Any]]:
    """Return the fields in which two cells differ."""
    pairs = {f.name: (getattr(one, f.name), getattr(other, f.name)) for f in fields(Cell)}
    return {name: (a, b) for name, (a, b) in pairs.items() if a != b}
