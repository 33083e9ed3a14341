"""Recursive programs as data: terms over relations whose rows are pairs of small numbers.

`term_queries.py` makes a query of a term, `naive.py` evaluates it with plain sets, neither knows of
the other. Callables are stored by name, so that a failing example is readable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

Pair = tuple[int, int]
SIZE = 4
"""Numbers are below it, and so all programs settle."""

PREDICATES: dict[str, Callable[[Any], object]] = {
    "less": lambda r: r[0] < r[1],
    "differ": lambda r: r[0] != r[1],
    "even": lambda r: (r[0] + r[1]) % 2 == 0,
    "not_two": lambda r: r[1] != 2,
    "all": lambda r: True,
    "none": lambda r: False,
    "raises_at_three": lambda r: 1 // (r[0] - 3),
}
SELECTS: dict[str, Callable[[Any], Pair]] = {
    "swap": lambda r: (r[1], r[0]),
    "next": lambda r: ((r[0] + 1) % SIZE, r[1]),
    "twice": lambda r: (r[0], r[0]),
    "from_zero": lambda r: (0, r[1]),
    "sum": lambda r: (r[0], (r[0] + r[1]) % SIZE),
    "raises_at_three": lambda r: (r[0], r[1] + 0 // (r[1] - 3)),
}
FANS: dict[str, Callable[[Any], list[Pair]]] = {
    "both_ways": lambda r: [(r[0], r[1]), (r[1], r[0])],
    "below": lambda r: [(r[0], n) for n in range(r[1])],
    "copies": lambda r: [(r[0], r[1]), (r[0], r[1])],
    "raises_at_three": lambda r: [(r[0], 0 // (r[0] - 3))],
}
PAIRS: dict[str, Callable[[Any, Any], Pair]] = {
    "outer": lambda a, b: (a[0], b[1]),
    "inner": lambda a, b: (a[1], b[0]),
    "sum": lambda a, b: ((a[0] + b[0]) % SIZE, b[1]),
    "left": lambda a, b: (a[0], a[1]),
}


@dataclass(frozen=True)
class Match:
    """Condition of two matching rows, as the arguments of a join."""

    left_key: Callable[[Any], Any] | None = None
    right_key: Callable[[Any], Any] | None = None
    on: Callable[[Any, Any], object] | None = None

    def arguments(self, wrap: Callable[[Any], Any]) -> dict[str, Any]:
        """Return the arguments of a join, each callable wrapped."""
        return {f.name: wrap(value) for f in fields(self) if (value := getattr(self, f.name))}


MATCHES: dict[str, Match] = {
    "follows": Match(on=lambda a, b: a[1] == b[0]),
    "same_end": Match(lambda a: a[1], lambda b: b[1]),
    "follows_and_differs": Match(lambda a: a[1], lambda b: b[0], lambda a, b: a[0] != b[1]),
    "before": Match(on=lambda a, b: a[1] < b[0]),
    "always": Match(),
    "raises_at_three": Match(lambda a: a[1] + 0 // (a[1] - 3), lambda b: b[0]),
}


@dataclass(frozen=True)
class Term:
    """Base of all terms."""


@dataclass(frozen=True)
class Input(Term):
    """The rows of a table, a bag."""

    name: str


@dataclass(frozen=True)
class Var(Term):
    """The current rows of a relation that is being defined."""

    name: str


@dataclass(frozen=True)
class Where(Term):
    source: Term
    predicate: str


@dataclass(frozen=True)
class Select(Term):
    source: Term
    function: str


@dataclass(frozen=True)
class Fan(Term):
    """`select_many`, or `unnest` with a select of the row and its element."""

    source: Term
    function: str
    pairs: str | None


@dataclass(frozen=True)
class Distinct(Term):
    source: Term


@dataclass(frozen=True)
class Sets(Term):
    """A set operation, by the name of its method."""

    kind: str
    left: Term
    right: Term


@dataclass(frozen=True)
class Join(Term):
    left: Term
    right: Term
    match: str
    pairs: str


@dataclass(frozen=True)
class Chain(Term):
    """Two joins in a row: the second condition reads pairs."""

    first: Term
    second: Term
    third: Term
    match: str


@dataclass(frozen=True)
class Half(Term):
    """A `semi_join`, an `anti_join`, or a `left_join` that shows which rows had a partner."""

    kind: str
    left: Term
    right: Term
    match: str


@dataclass(frozen=True)
class Grouped(Term):
    """An aggregate of the second number by the first, or of all rows."""

    source: Term
    aggregate: str
    by_first: bool


@dataclass(frozen=True)
class Fixpoint(Term):
    """One of the relations that are defined by each other."""

    variables: tuple[str, ...]
    bodies: tuple[Term, ...]
    pick: int


@dataclass(frozen=True)
class Iterate(Term):
    """A fixed number of rounds of the body, from the start, as bags."""

    variable: str
    body: Term
    start: Term
    times: int


def parts(term: Term) -> Iterator[Term]:
    """The terms right below one."""
    for field in fields(term):
        value = getattr(term, field.name)
        for each in value if type(value) is tuple else (value,):
            if isinstance(each, Term):
                yield each


@lru_cache(maxsize=10_000)
def free(term: Term) -> frozenset[str]:
    """The variables that a term reads and does not define."""
    match term:
        case Var(name):
            return frozenset((name,))
        case Iterate(variable, body, start, _):
            return free(start) | free(body) - {variable}
    names = frozenset().union(*map(free, parts(term)))
    return names - set(term.variables) if isinstance(term, Fixpoint) else names
