"""The tables of a query, their rows, and rows that come and go."""

from __future__ import annotations

import linecache
from collections import defaultdict, namedtuple
from collections.abc import Callable
from dataclasses import make_dataclass
from datetime import date
from decimal import Decimal
from itertools import count
from random import Random
from types import GenericAlias
from typing import Any, NamedTuple

from asv_benchmarks.neighbours.query import FIELDS, TABLES, Query
from asv_benchmarks.neighbours.texts import text_of
from reactive import Avg, Count, CountDistinct, Database, Max, Sum, fixpoint

SEED = 42
PER_CUSTOMER, NATIONS, REGIONS = 10, 25, 100
FRESH = 1_000
"""The number of rows of a table that come and go."""
DAY = 730_120
"""The number of the first day of 2000."""
PLACES = 3
"""Places per customer: each range of places covers those of one customer."""
AMOUNTS: dict[str, Callable[[int], Any]] = {
    "int": int,
    "float": lambda number: number / 100,
    "Decimal": lambda number: Decimal(number).scaleb(-2),
    "str": lambda number: f"{number:06d}",
    "date": lambda number: date.fromordinal(DAY + number),
}
KEYS: dict[str, Callable[[int], Any]] = {
    "int": int,
    "str": lambda number: f"K{number:06d}",
    "float": float,
    "Decimal": Decimal,
    "date": lambda number: date.fromordinal(DAY + number),
    "tuple": lambda number: (number // 8, number % 8),
}
LITERALS = {
    "int": "500",
    "float": "5.0",
    "Decimal": "500",
    "str": "'000500'",
    "date": "date(2001, 5, 15)",
}
"""The constant that half of the amounts exceed, of each type."""
NAMES: dict[str, Any] = {
    **{each.__name__: each for each in (Avg, Count, CountDistinct, Max, Sum)},
    "fixpoint": fixpoint,
    "defaultdict": defaultdict,
    "Decimal": Decimal,
    "date": date,
}
"""The names that texts of queries use."""
MOVED = {"o": 4, "c": 2, "n": 1, "e": 1}
"""The place of the field that an update changes: amount, tier, continent, end of an edge."""
_numbers = count(1)


TYPES: dict[str, Any] = {
    "int": int,
    "str": str,
    "float": float,
    "Decimal": Decimal,
    "date": date,
    "tuple": tuple[int, int],
}


class Rows(NamedTuple):
    """The rows of a table.

    Parameters
    ----------
    first: the rows that it has at first. fresh: the rows that come and go.
    moved: the first rows, each with another value in one field.
    """

    first: list[Any]
    fresh: list[Any]
    moved: list[Any]


class World:
    """The tables of a query, filled, and the functions that make its views."""

    def __init__(self, query: Query, size: int) -> None:
        self.query = query
        self.db = Database()
        self.rows = _rows(query, size)
        self.tables = {
            name: self.db.table(_declared(query, name), name=TABLES[name]) for name in FIELDS
        }
        for name in ("n", "c", "o", "e"):
            self.tables[name].add_all(self.rows[name].first)

    def relation(self, number: int = 0) -> Any:
        """Return a relation of the query with its constant of that number."""
        literal, value = _constant(self.query, number)
        text = text_of(self.query, literal)
        name = f"<neighbour {next(_numbers)}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        names = dict(NAMES)
        exec(compile(text, name, "exec"), names)
        tables = [self.tables[each] for each in ("o", "c", "n", "e")]
        return names["make"](self.db, *tables, value)


def _constant(query: Query, number: int) -> tuple[str, Any]:
    """Return the constant as a literal and as a value."""
    if "region" in query.conditions:
        value: Any = f"R{number % REGIONS:03d}"
        return repr(value), value
    if "nation" in query.conditions:
        value = f"N{number % NATIONS:02d}"
        return repr(value), value
    literal = LITERALS[query.amount]
    return literal, eval(literal, NAMES)


def _rows(query: Query, size: int) -> dict[str, Rows]:
    random = Random(SEED)
    customers = max(2, size // PER_CUSTOMER)
    amount, key = AMOUNTS[query.amount], KEYS[query.key]
    made = {name: _class(query, name) for name in FIELDS}

    def order(number: int) -> tuple[Any, ...]:
        customer = 0 if query.hot and random.random() < 0.5 else random.randrange(customers)
        return (
            number,
            None if query.nones and random.random() < 0.05 else key(customer),
            key(random.randrange(customers)),
            f"R{random.randrange(REGIONS):03d}",
            amount(random.randrange(10) * 100 if query.ties else random.randrange(1_000)),
            random.randrange(1, 11),
            customer * PLACES + random.randrange(PLACES),
        )

    def customer(number: int) -> tuple[Any, ...]:
        at = number % customers
        low = at * PLACES
        name = f"N{random.randrange(NATIONS):02d}"
        return key(at), name, random.randrange(number % 7 + 1), low, low + PLACES

    nodes = max(4, size // 10)
    edges = {
        (a, min(nodes - 1, a + random.randrange(1, 9)))
        for a in (random.randrange(nodes - 1) for _ in range(size // 20))
    }
    new = {(a, a + 1) for a in range(0, nodes - 1, 3)} - edges
    values: dict[str, tuple[list[Any], list[Any]]] = {
        "o": ([*map(order, range(size))], [*map(order, range(size, size + FRESH))]),
        "c": (
            [*map(customer, range(customers))],
            [customer(customers + number) for number in range(min(FRESH, customers))],
        ),
        "n": ([(f"N{n:02d}", f"C{n % 5}") for n in range(NATIONS)], []),
        "e": (sorted(edges), sorted(new)),
    }
    return {
        name: Rows(
            *([made[name](*row) for row in some] for some in (first, fresh, _moved(first, at)))
        )
        for name, at in MOVED.items()
        for first, fresh in [values[name]]
    }


def _moved(rows: list[tuple[Any, ...]], at: int) -> list[tuple[Any, ...]]:
    """Return the rows, each with the value that the next row has at a place."""
    following = [*rows[1:], *rows[:1]]
    return [
        (*row[:at], next_[at], *row[at + 1 :]) for row, next_ in zip(rows, following, strict=True)
    ]


def _types(query: Query, name: str) -> dict[str, Any]:
    """Return the declared types of a table's fields."""
    amount, key = TYPES[query.amount], TYPES[query.key]
    maybe = key | None if query.nones else key
    types: dict[str, dict[str, Any]] = {
        "o": {"id": int, "customer": maybe, "seller": key, "region": str, "amount": amount},
        "c": {"id": key, "nation": str},
        "n": {"name": str, "continent": str},
        "e": {},
    }
    return {field: types[name].get(field, int) for field in FIELDS[name]}


def _declared(query: Query, name: str) -> Any:
    if query.rows == "tuple":
        return GenericAlias(tuple, tuple(_types(query, name).values()))
    return _class(query, name)


_classes: dict[tuple[str, str, str, str, bool], Any] = {}


def _class(query: Query, name: str) -> Any:
    """Return the class of a table's rows, one for all queries with the same types."""
    told = (query.rows, name, query.amount, query.key, query.nones)
    if told not in _classes:
        _classes[told] = _made(query.rows, name, _types(query, name))
    return _classes[told]


def _made(kind: str, name: str, types: dict[str, Any]) -> Any:
    called = TABLES[name].title()
    match kind:
        case "tuple":
            return lambda *values: values
        case "untyped":
            return namedtuple(called, tuple(types))
        case "named":
            made = namedtuple(called, tuple(types))  # type: ignore[misc]
            made.__annotations__ = types
            return made
        case "dataclass":
            return make_dataclass(called, list(types.items()), frozen=True, slots=True)
        case "attrs":
            import attrs

            fields = {field: attrs.field(type=of) for field, of in types.items()}
            return attrs.make_class(called, fields, frozen=True, slots=True)
        case "msgspec":
            import msgspec

            return msgspec.defstruct(called, list(types.items()), frozen=True)
        case "pydantic":
            return _pydantic(called, types)
    raise ValueError(f"no such rows: {kind}")


def _pydantic(called: str, types: dict[str, Any]) -> Any:
    """Return a model whose fields can be given by place, as those of the other classes."""
    import pydantic

    class Row(pydantic.BaseModel, frozen=True):
        def __init__(self, *values: Any) -> None:
            super().__init__(**dict(zip(types, values, strict=True)))

    fields: dict[str, Any] = {field: (of, ...) for field, of in types.items()}
    return pydantic.create_model(called, __base__=Row, **fields)
