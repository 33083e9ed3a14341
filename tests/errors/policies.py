"""Operators, kinds of failures and policies: the outcome of a row on which a callable raises.

    operator x failure   -->   the outcome by "raise", by "drop" and by "null"

Each case is played: good rows, then a bad one in their group and one in a group of its own, each
before and after the others. Outcomes are classified by comparison with the view of the good rows
alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from reactive import (
    Aggregate,
    Avg,
    Collect,
    Count,
    CountDistinct,
    Database,
    Max,
    Min,
    Monoid,
    Sum,
    fixpoint,
    iterate,
)

Policy = Literal["raise", "drop", "null"]
Value = Callable[[Any], Any]
POLICIES: tuple[Policy, ...] = ("raise", "drop", "null")


class Row(NamedTuple):
    id: int
    town: str
    x: Any


class Odd:
    """A value whose methods raise once it is `bad`."""

    def __init__(self, number: float, *bad: str) -> None:
        self.number, self.bad = number, bad

    def __repr__(self) -> str:
        return f"Odd({self.number})"

    def _asked(self, method: str, other: Any = None) -> None:
        if method in self.bad or method in getattr(other, "bad", ()):
            raise ArithmeticError(f"no {method} of {self!r}")

    def __lt__(self, other: Any) -> bool:
        self._asked("<", other)
        return bool(self.number < other.number)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Odd):
            return self.number == other
        if other is not self:
            self._asked("==", other)
        return self.number == other.number

    def __hash__(self) -> int:
        self._asked("hash")
        return hash(self.number)

    def __add__(self, other: Any) -> Any:
        return Odd(self.number + _number(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return Odd(self.number - _number(other))

    def __rsub__(self, other: Any) -> Any:
        return Odd(_number(other) - self.number)

    def __mul__(self, times: int) -> Any:
        return self if times == 1 else Odd(self.number * times)

    def __truediv__(self, times: int) -> Any:
        return Odd(self.number / times)


def _number(value: Any) -> Any:
    return value.number if isinstance(value, Odd) else value


class Pair(Odd):
    """A value that does not compare with some others, though it does with itself."""

    def __lt__(self, other: Any) -> bool:
        if self.number != other.number and "<" in (*self.bad, *other.bad):
            raise ArithmeticError(f"{self!r} and {other!r}")
        return bool(self.number < other.number)


class Coin(Odd):
    """A value that does not compare by `==` with one of its number and another `mint`."""

    def __init__(self, number: float, mint: str) -> None:
        super().__init__(number)
        self.mint = mint

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Coin) and other.mint != self.mint and other.number == self.number:
            raise ArithmeticError(f"{self!r} of {self.mint} and of {other.mint}")
        return super().__eq__(other)

    __hash__ = Odd.__hash__


@dataclass(frozen=True)
class Failure:
    """A kind of failure: the bad value among good ones, and how a query reads it.

    clash: the bad value clashes with the first good one: "beside" it, or as it "replaces" it in
        one commit.
    """

    good: Sequence[Any]
    bad: Any
    value: Value = lambda row: row.x
    clash: Literal["", "beside", "replaces"] = ""


FAILURES: dict[str, Failure] = {
    "the callable raises": Failure(("7", "3", "5"), "x", lambda row: int(row.x)),
    "no hash": Failure((7, 3, 5), "x", lambda row: [row.x] if row.x == "x" else row.x),
    "a hash that raises": Failure(
        (7, 3, 5), "x", lambda row: Odd(1, "hash") if row.x == "x" else row.x
    ),
    "None": Failure((7, 3, 5), None),
    "a text among numbers": Failure((7, 3, 5), "x"),
    "a float among decimals": Failure((Decimal(7), Decimal(3), Decimal(5)), 0.5),
    "`<` raises": Failure((Odd(7), Odd(3), Odd(5)), Odd(4, "<")),
    "`<` raises for some": Failure((Pair(7), Pair(3), Pair(5)), Pair(4, "<")),
    "`==` raises": Failure((Odd(7), Odd(3), Odd(5)), Odd(7, "==")),
    "`==` raises for another": Failure(
        (Coin(7, "A"), Coin(3, "A"), Coin(5, "A")), Coin(7, "B"), clash="beside"
    ),
    "`==` raises for what it replaces": Failure(
        (Coin(7, "A"), Coin(3, "A"), Coin(5, "A")), Coin(7, "B"), clash="replaces"
    ),
}


OPERATORS: dict[str, Callable[[Any, Any, Value], Any]] = {
    "where": lambda t, u, f: t.where(lambda r: f(r) < f(r) or True),
    "select": lambda t, u, f: t.select(lambda r: f(r)),
    "extend": lambda t, u, f: t.extend(f),
    "select, distinct": lambda t, u, f: t.select(lambda r: (r.town, f(r))).distinct(),
    "select_many": lambda t, u, f: t.select_many(lambda r: [f(r)]),
    "unnest": lambda t, u, f: t.unnest(lambda r: [f(r)]),
    "join by keys": lambda t, u, f: t.join(u, left_key=f, right_key=lambda r: r[0]),
    "left_join by keys": lambda t, u, f: t.left_join(u, left_key=f, right_key=lambda r: r[0]),
    "join on": lambda t, u, f: t.join(u, on=lambda r, v: f(r) == v[0] and (f(r) < f(r) or True)),
    "semi_join": lambda t, u, f: t.semi_join(u, left_key=f, right_key=lambda r: r[0]),
    "anti_join": lambda t, u, f: t.anti_join(u, left_key=f, right_key=lambda r: r[0]),
    "group_by": lambda t, u, f: t.group_by(f).aggregate(Count()),
    "Sum": lambda t, u, f: t.group_by("town").aggregate(Count(), Sum(f)),
    "Avg": lambda t, u, f: t.group_by("town").aggregate(Count(), Avg(f)),
    "Min": lambda t, u, f: t.group_by("town").aggregate(Count(), Min(f)),
    "Max": lambda t, u, f: t.group_by("town").aggregate(Count(), Max(f)),
    "CountDistinct": lambda t, u, f: t.group_by("town").aggregate(Count(), CountDistinct(f)),
    "Collect": lambda t, u, f: (
        t.group_by("town").aggregate(Count(), Collect(f)).select(lambda k, n, c: (k, n, len(c)))
    ),
    "Aggregate": lambda t, u, f: t.group_by("town").aggregate(
        Count(), Aggregate(0, lambda s, v: s + v, lambda s, v: s - v, of=f)
    ),
    "Aggregate, whose result raises": lambda t, u, f: t.group_by("town").aggregate(
        Count(),
        Aggregate((), _with, _without, lambda s: max(s, default=None), of=f),
    ),
    "Monoid": lambda t, u, f: t.group_by("town").aggregate(Count(), Monoid(None, _greater, of=f)),
    "reduce": lambda t, u, f: t.group_by("town").reduce(
        lambda key, rows: [max(f(r) for r in rows)]
    ),
    "order_by": lambda t, u, f: t.order_by(f),
    "limit": lambda t, u, f: t.order_by(f).limit(2),
    "top": lambda t, u, f: t.group_by("town").top(1, by=f),
    "each": lambda t, u, f: t.group_by("town").each(lambda g: g.group_by(f).aggregate(Count())),
    "fixpoint": lambda t, u, f: fixpoint(
        lambda path: t.select(lambda r: (r.id, f(r))).union(
            path.where(lambda p: p[0] < 100).select(lambda p: (p[0] + 100, p[1]))
        )
    ),
    "fixpoint, keep=": lambda t, u, f: fixpoint(
        lambda path: t.select(lambda r: (r.town, f(r), r.id)).union(
            path.where(lambda p: p[2] < 100).select(lambda p: (p[0], p[1], p[2] + 100))
        ),
        by=lambda p: p[0],
        keep=Min(lambda p: p[1]),
    ),
    "iterate": lambda t, u, f: iterate(
        lambda n: n.select(lambda p: (p[0], p[1])), t.select(lambda r: (r.id, f(r))), times=2
    ),
}


def _with(state: Any, value: Any) -> Any:
    return (*state, value)


def _without(state: Any, value: Any) -> Any:
    """A state less one of a value."""
    place = max(n for n, each in enumerate(state) if each is value or each == value)
    return (*state[:place], *state[place + 1 :])


def _greater(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    return other if one < other else one


def played(operator: str, name: str, policy: Policy) -> str:
    """Return the outcome of a bad row among good ones.

    A bad row alone in its group is played too, but not part of the outcome.

    Raises if state, errors, or orders of arrival do not fit.
    """
    failure = FAILURES[name]
    towns = ("Bonn", "Bonn", "Köln")
    good = [Row(n, town, x) for n, (town, x) in enumerate(zip(towns, failure.good, strict=True))]
    found = {}
    for town in ("Ulm", "Bonn"):
        bad = Row(10, town, failure.bad)
        orders = ([bad, *good], [*good, bad])
        if failure.clash:
            found[town] = {_of_clash(operator, failure, policy, rows, bad) for rows in orders}
        else:
            found[town] = {_outcome(operator, failure, policy, rows, bad) for rows in orders}
        if len(found[town]) > 1:
            raise AssertionError(f"by the order of arrival: {found[town]}")
    return found["Bonn"].pop()


def _outcome(operator: str, failure: Failure, policy: Policy, rows: Sequence[Row], bad: Row) -> str:
    db = Database()
    t, u = db.table(Row, name="t"), db.table(tuple, name="u")
    view = OPERATORS[operator](t, u, failure.value).materialize(on_error=policy)
    errors = None if policy == "raise" else view.errors
    u.add_all([(3, "three"), (9, "nine")])
    for row in rows:
        try:
            t.add(row)
        except Exception:
            if errors is not None:
                raise
            return REFUSED
        view.verify()
        if errors is not None:
            errors.verify()
    now, told = _shown(view), 0 if errors is None else len(errors)
    t.remove(bad)
    view.verify()
    assert not errors, f"{list(errors or ())} without the bad row"
    without = _shown(view)
    for row in list(t):
        t.remove(row)
        view.verify()
    return _said(without - now, now - without) if told else TAKEN


def _of_clash(
    operator: str, failure: Failure, policy: Policy, rows: Sequence[Row], bad: Row
) -> str:
    """Return the outcome of a row that clashes with a good one, by the rows that are errors."""
    db = Database()
    t, u = db.table(Row, name="t"), db.table(tuple, name="u")
    view = OPERATORS[operator](t, u, failure.value).materialize(on_error=policy)
    errors = None if policy == "raise" else view.errors
    u.add_all([(Coin(7, "A"), "seven"), (Coin(3, "A"), "three"), (9, "nine")])
    good = next(row for row in rows if row.x.number == bad.x.number and row is not bad)
    try:
        if failure.clash == "beside":
            for row in rows:
                t.add(row)
                view.verify()
        else:
            t.add_all(row for row in rows if row is not bad)
            with db.transaction():  # in either order
                for row in sorted((good, bad), key=rows.index):
                    t.remove(row) if row is good else t.add(row)
    except Exception:
        if errors is not None:
            raise
        return REFUSED
    view.verify()
    if errors is not None:
        errors.verify()
    told = set() if errors is None else {getattr(error.row, "id", 0) for error in errors}
    for row in list(t):
        t.remove(row)
        view.verify()
    assert not told or not list(errors or ())
    return _CLASHES[frozenset(told)]


REFUSED = "the commit is refused"
TAKEN = "is taken"
_CLASHES = {
    frozenset(): TAKEN,
    frozenset({10}): "is left out",
    frozenset({0, 10}): "both are left out",
}


def _said(gone: Counter[str], more: Counter[str]) -> str:
    """Return the words for the rows that a view lost and gained by a row in its errors."""
    if not gone and not more:
        return "is left out"
    if gone and not more:
        return "its group is left out"
    if any("None" in row for row in more):
        return "None"
    if not gone:
        return "nothing is left of its group"
    (old,), (new,) = gone, more
    assert old.rpartition(", ")[2] == new.rpartition(", ")[2], (old, new)
    return "the aggregate leaves it out"


def _shown(view: Any) -> Counter[str]:
    return Counter(map(repr, view))


_SHORT = {
    "is left out": "left out",
    "both are left out": "both left out",
    "the aggregate leaves it out": "not in this aggregate",
}


def page() -> str:
    """Return the table of docs: the effect of "drop" and "null" by operator and failure."""
    lines = [f"| operator | {' | '.join(FAILURES)} |", f"|---|{'---|' * len(FAILURES)}"]
    lines += [f"| {operator} | {' | '.join(cells(operator))} |" for operator in OPERATORS]
    return "\n".join(lines) + "\n"


def cells(operator: str) -> list[str]:
    """The cells of one line."""
    return [cell(operator, failure) for failure in FAILURES]


def cell(operator: str, failure: str) -> str:
    """The outcome of a kind of failure in an operator, by "drop" and "null"."""
    drop, null = (played(operator, failure, policy) for policy in POLICIES[1:])
    drop, null = _SHORT.get(drop, drop), _SHORT.get(null, null)
    return drop if drop == null else f"{drop}; null: {null}"
