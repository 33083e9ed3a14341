"""Rows of a cell and how they change: classes of each kind, values of each type."""

from __future__ import annotations

from collections import deque, namedtuple
from collections.abc import Callable, Iterator
from dataclasses import make_dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple, cast

from asv_benchmarks.churn import take
from asv_benchmarks.grid.cell import BINDINGS, FIELDS, TABLES, Cell
from asv_benchmarks.workload import Change, Row, Rows, TableDelta

EPOCH = datetime(2020, 1, 1)
PRIME = 1_000_003
"""More than there are rows: multiples of a number modulo a prime scatter and do not repeat."""
STRIDE = 7_919
PER_CUSTOMER = 10
WINDOW = 8
"""The number of new rows before the first of them is deleted; all are among the first ten."""
VALUES: dict[str, tuple[type[Any] | Any, Callable[[int], Any]]] = {
    "int": (int, int),
    "float": (float, lambda n: n / 100),
    "mixed": (float, lambda n: n if n % 2 else float(n)),
    "big": (int, lambda n: n << 70),
    "str": (str, lambda n: f"v{n:09d}"),
    "Decimal": (Decimal, lambda n: Decimal(n).scaleb(-2)),
    "None": (int | None, lambda n: n if n % 5 else None),
    "tuple": (tuple[int, int], lambda n: (n // 10, n % 10)),
    "datetime": (datetime, lambda n: EPOCH + timedelta(seconds=n)),
}
"""The annotation of each type of values, and the value of a number, in increasing order."""
KEYS = VALUES | {"None": (int | None, lambda n: n or None)}
"""The annotations and values of keys, which do not repeat."""


def passes(quantity: int) -> bool:
    """More than 1, in a way that the optimizer does not read."""
    for _ in range(1):
        quantity -= 1
    return quantity > 0


class Data:
    """The rows of a cell, and an endless stream of changes."""

    def __init__(self, cell: Cell, size: int, random: Random) -> None:
        self.cell = cell
        self._size, self._random = size, random
        self._value, self._key = VALUES[cell.value][1], KEYS[cell.key][1]
        self.classes: list[Any] = [row_class(cell, table) for table in range(cell.tables)]
        self._groups = cell.groups or 1_000
        customers = max(cell.partners, size // PER_CUSTOMER)
        self._keys = customers // cell.partners if cell.joins else self._groups
        counts = (size, customers, self._groups, self._groups)
        makers = (self._order, self._customer, self._region, self._nation)
        self.rows: Rows = tuple(
            [make(n) for n in range(count)]
            for make, count in zip(makers[: cell.tables], counts, strict=False)
        )
        self._customers: dict[Any, list[Row]] = {}
        for row in self.rows[1] if cell.joins else ():
            self._customers.setdefault(self._read(row, 1, "key"), []).append(row)
        self._next, self._best = size, 0
        names = ", ".join(BINDINGS[: cell.tables])
        texts = " and ".join(map(cell.condition, cell.conditions)) or "True"
        self._wanted = eval(f"lambda {names}: {texts}", {"passes": passes})

    def changes(self) -> Iterator[Change]:
        """Insert a new row and delete a row in turn; both satisfy the conditions.

        For a query of extremes, the new rows are extreme, and are deleted after a few others. For
        joined tables, a row of the second is deleted, and inserted again with another region.
        """
        if self.cell.changed:
            return self._replaced()
        if self.cell.ask in ("top", "min_max"):
            return self._extremes()
        return self._random_ones()

    def batches(self) -> Iterator[tuple[TableDelta, ...]]:
        """Insert half of the rows, then delete half: at most half of the table."""
        rows = self.rows[0].copy()
        half = max(1, min(self.cell.batch, len(rows)) // 2)
        while True:
            gone = [take(rows, self._random.randrange(len(rows))) for _ in range(half)]
            came = [self._fresh() for _ in range(half)]
            rows += came
            yield TableDelta(came, gone), *[TableDelta()] * self.cell.joins

    def _random_ones(self) -> Iterator[Change]:
        rows = [row for row in self.rows[0] if self._passes(row)]
        while True:
            new = self._fresh(passing=True)
            rows.append(new)
            yield Change(0, new, 1)
            yield Change(0, take(rows, self._random.randrange(len(rows))), -1)

    def _extremes(self) -> Iterator[Change]:
        there: deque[Row] = deque()
        while True:
            there.append(self._fresh(passing=True, extreme=True))
            yield Change(0, there[-1], 1)
            if len(there) > WINDOW:
                yield Change(0, there.popleft(), -1)

    def _replaced(self) -> Iterator[Change]:
        rows = self.rows[1].copy()
        while True:
            place = self._random.randrange(len(rows))
            old = rows[place]
            yield Change(1, old, -1)
            number, key, region, *more = (self._read(old, 1, name) for name in FIELDS[1])
            rows[place] = self.classes[1](number, key, (region + 1) % self._groups, *more)
            yield Change(1, rows[place], 1)

    def _passes(self, row: Row) -> bool:
        """Return True if a row passes; of the joined tables, conditions read only customers."""
        if all(self.cell.depth(name) == 0 for name in self.cell.conditions):
            return bool(self._wanted(*[row] * self.cell.tables))
        customers = self._customers.get(self._read(row, 0, "key"), ())
        return any(self._wanted(row, *[customer] * self.cell.joins) for customer in customers)

    def _read(self, row: Row, table: int, name: str) -> Any:
        return row[FIELDS[table].index(name)] if self.cell.rows == "tuple" else getattr(row, name)

    def _fresh(self, *, passing: bool = False, extreme: bool = False) -> Row:
        while True:
            row = self._order(self._next, extreme=extreme)
            self._next += 1
            if not passing or self._passes(row):
                self._best += 1
                return row

    def _order(self, number: int, *, extreme: bool = False) -> Row:
        pick, cell = self._random.randrange, self.cell
        dangling = cell.joins > 0 and cell.match != "join"
        key = pick(2 * self._keys if dangling else self._keys)
        if cell.skew and pick(2):
            key = 0
        scattered = number * STRIDE % PRIME
        value = scattered if cell.ties == 1 else scattered % max(1, self._size // cell.ties)
        if extreme:
            value = self._extreme()
        quantity, status = 1 + pick(5), pick(5)
        make = self.classes[0]
        return make(
            number, self._key(key), pick(self._groups), self._value(value), quantity, status
        )

    def _extreme(self) -> int:
        best = 5 * (self._best // self.cell.ties) + 1  # never None
        return -best if self.cell.ask == "min_max" and self._best % 2 else PRIME + best

    def _customer(self, number: int) -> Row:
        pick = self._random.randrange
        key = self._key(number // self.cell.partners)
        return self.classes[1](number, key, pick(self._groups), number % 4 > 0, 1 + pick(3))

    def _region(self, number: int) -> Row:
        return self.classes[2](number, self._groups - 1 - number)

    def _nation(self, number: int) -> Row:
        return self.classes[3](number, self._groups - 1 - number)


def row_class(cell: Cell, table: int) -> Callable[..., Row]:
    """Return the function from the fields of a table to a row."""
    name = TABLES[table].removesuffix("s").capitalize()
    key, value = KEYS[cell.key][0], VALUES[cell.value][0]
    types = {"active": bool, "value": value, "key": key}
    columns = [(field, types.get(field, int)) for field in FIELDS[table]]
    match cell.rows:
        case "dataclass":
            return make_dataclass(name, columns, frozen=True, slots=True)
        case "namedtuple":
            return cast(Any, NamedTuple)(name, columns)  # type: ignore[no-any-return]
        case "untyped":
            return namedtuple(name, FIELDS[table])
        case "Struct":
            import msgspec  # only for cells of this class

            return msgspec.defstruct(name, columns, frozen=True)
        case "tuple":
            return _tuple
    raise ValueError(f"no class of rows: {cell.rows}")


def _tuple(*values: Any) -> tuple[Any, ...]:
    return values
