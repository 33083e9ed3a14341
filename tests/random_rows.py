"""Tables of random rows: few values, so that rows meet, some of which make conditions raise.

A row has a kind: "T" for a frozen dataclass, whose fields are known to be there, "O" for an object
of a class of which nothing is known, "P" for a tuple that may be too short, "V" for any other
value, and a tuple of kinds for a row of several bindings that is one binding of a join.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from hypothesis import strategies as st

from reactive import Collect, Count, CountDistinct, Database, Multiset, Sum, Table

Kind: TypeAlias = "str | tuple[Kind, ...]"
NAN = math.nan


@dataclass(frozen=True, slots=True)
class T:
    """A row whose fields can be read without raising."""

    a: Any
    b: Any

    @property
    def missing(self) -> Any:
        """What is found to be missing only when it is read."""
        raise AttributeError("missing")


class O:  # noqa: E742
    """A row of which nothing is known; a field of it may have no hash."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a = a
        self.b = b

    def __eq__(self, other: object) -> bool:
        return isinstance(other, O) and (self.a, self.b) == (other.a, other.b)

    def __hash__(self) -> int:
        return hash(self.a)

    def __repr__(self) -> str:
        return f"O({self.a!r}, {self.b!r})"


class Hidden:
    """A callable that cannot be read."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *row: Any) -> Any:
        return self.function(*row)


def n(value: Any) -> Any:
    return 0 if value is None else value


def rank(value: Any) -> Any:
    """A place among all values; that of equal ones is the same."""
    match value:
        case None:
            return (0,)
        case int() | float():
            return (1, value) if value == value else (2,)
        case tuple() | list():
            return (3, *map(rank, value))
        case T() | O():
            return (4, rank(value.a), rank(value.b))
        case Multiset():
            return (5, *sorted(map(rank, value)))
    return (6, repr(value))


def odd(value: Any) -> Any:
    if value is None:
        raise LookupError("nothing is neither odd nor even")
    for digit in (value,):
        return digit % 2 == 1
    return None


NAMES: dict[str, Any] = {
    "T": T,
    "O": O,
    "Hidden": Hidden,
    "n": n,
    "rank": rank,
    "odd": odd,
    "nan": NAN,
    "Count": Count,
    "CountDistinct": CountDistinct,
    "Collect": Collect,
    "Sum": Sum,
}
TABLES: dict[str, Kind] = {"t": "T", "u": "T", "k": "T", "p": "P", "o": "O"}


def tables(db: Database) -> dict[str, Table[Any]]:
    """Two multisets and a keyed table of records, one of tuples and one of objects."""
    return {
        "t": db.table(T, name="t"),
        "u": db.table(T, name="u"),
        "k": db.table(T, name="k", key=lambda r: r.a),
        "p": db.table(tuple, name="p"),
        "o": db.table(O, name="o", identity=True),
    }


VALUES = st.sampled_from([0, 1, 1, 2, 0, None, NAN])
LISTS = VALUES | st.just([1])
ROWS = {
    "T": st.builds(T, VALUES, VALUES),
    "P": st.tuples(VALUES, VALUES) | st.tuples(VALUES, VALUES) | st.tuples(VALUES),
    "O": st.builds(O, VALUES, LISTS),
}
Change = tuple[str, Any, int]
"""A table, a row, and how many of it come; if negative, some row of the table goes."""


def apply(own: dict[str, Table[Any]], change: Change) -> None:
    """One change of the tables of a database; the same in every database that equals it."""
    name, row, count = change
    table = own[name]
    if name == "k":
        key = row.a
        if key != key:
            return  # a table refuses NaN as a key
        if count > 0:
            table.upsert(row)
        elif key in table:
            table.delete(key)
    elif count > 0:
        table.add(row, count)
    else:
        held = sorted(table.items(), key=repr)
        if held:
            table.remove(held[sum(map(ord, repr(row))) % len(held)][0])
