"""Rows of which a value raises when it is compared by `==` with another one of the same hash.

    rows with values whose class has an `__eq__` of its own
      by the hash of each value     those whose `==` raises for one another: refused
    all other rows                  pass

Any operator may look such a value up beside another one: a key, a projection of rows, what an
aggregate counts. So it is asked where rows come in, of all inputs of a query together. A value is
refused that does not compare with a copy of itself, and so are all that clash with another one: if
the majority stayed, a commit could bring it and take what it clashes with, and that would raise.

Inputs whose fields are declared to be of classes of Python, or of records of these, are not asked.
Of a value of which nothing is declared it is only asked whether it compares with a copy of itself.

Sound:  a value that compares with each other one of its hash is found by every look-up.
State:  of rows with such a value, the row, twice, and each of its values once.
Cost:   a look at the classes of values that are not declared; for a row with a value to compare,
        O(different values of its hash), and two look-ups of the row.
"""

from __future__ import annotations

import copy
import datetime
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from enum import IntEnum
from types import WrapperDescriptorType
from typing import Any, TypeAlias
from uuid import UUID

from optimizer import plan
from optimizer.expr import (
    TRUE,
    Attribute,
    Call,
    Expr,
    Item,
    Lifted,
    Operation,
    Parameter,
    all_parameters,
    constant,
    row_names,
    tuple_of,
)
from optimizer.expressions.knowledge import Pure
from optimizer.kinds.class_facts import by_recent_class
from optimizer.kinds.fields import compared, is_record
from optimizer.kinds.kind import Anything, Instance, Kind, Members, Struct, inside_of, kind_of
from optimizer.plans.binding_types import binding_types
from optimizer.plans.nodes.reduce import kept_by
from optimizer.plans.properties import bindings, nodes
from optimizer.record import record

Row: TypeAlias = tuple[int, Any]
"""The number of an input, and a row of it."""
Entry: TypeAlias = tuple[int, int, Any]
"""The hash of a value, and the row that has it."""
_ASKS_NOTHING = (plan.Where, plan.Extend, plan.Unnest, plan.OrderBy)
"""Nodes that look no value up, but for the kinds of values of an order."""


class Asks(IntEnum):
    """A question to the values of a kind; none if their classes are known not to raise."""

    NOTHING = 0
    ITSELF = 1
    """Nothing is declared: whether a value compares with a copy of itself."""
    OTHERS = 2
    """The class has an `__eq__` of its own: whether a value compares with the others."""


@record
class Input:
    """An input of a query, the values of its rows that may raise, and what is asked of them."""

    rows: plan.Node
    values: tuple[Expr, ...]
    asks: Asks


def inputs_to_ask(root: plan.Node) -> list[Input]:
    """Return the inputs of a query in which such values may be, if it looks any values up."""
    every = nodes(root, until=_is_input)
    if all(_is_input(node) or isinstance(node, _ASKS_NOTHING) for node in every):
        return []
    found = [_asked_of(node) for node in every if _is_input(node)]
    return [each for each in found if each.asks]


def _is_input(node: plan.Node) -> bool:
    return isinstance(node, plan.Table | plan.View)


def _asked_of(node: plan.Node) -> Input:
    if isinstance(node, plan.View):
        tables = [each for each in nodes(node.input) if isinstance(each, plan.Table)]
        if not any(_asked_of(each).asks for each in tables):
            return Input(node, (), Asks.NOTHING)
    values: dict[Expr, Asks] = {}
    for place, of in enumerate(binding_types(node)):
        kind = kind_of(of)
        if isinstance(kind, Struct) and _way(kind.python) is not _OWN:
            fields = kind.fields.items()
            values |= {Attribute(Parameter(place), name): _asks(of) for name, of in fields}
        else:
            values[Parameter(place)] = _asks(kind)
    asked = tuple(value for value, asks in values.items() if asks)
    return Input(node, asked, max(values.values(), default=Asks.NOTHING))


def _asks(kind: Kind, around: frozenset[Any] = frozenset()) -> Asks:
    """Return what is asked of values of a kind; `around` are the classes that hold it, of which one
    may hold itself."""
    match kind:
        case Anything():
            return Asks.ITSELF
        case Struct(python) | Instance(python) | Members(python) if _way(python) is _OWN:
            return Asks.OTHERS
        case Struct(python) if python in around:
            return Asks.NOTHING
        case Struct(python):
            around |= {python}
    found = max([_asks(each, around) for each in inside_of(kind)], default=Asks.NOTHING)
    is_ours = _module_of(getattr(kind, "python", None)) in _OURS
    return Asks.NOTHING if is_ours and found is Asks.ITSELF else found


# Values with an `__eq__` of their own.

_PLAIN, _ITEMS, _OWN = (), ("items",), ("own",)
_SURE = frozenset(
    {int, str, float, bool, type(None), bytes, datetime.date, datetime.datetime, Decimal, UUID}
)
"""Classes of most values, all of them `_PLAIN`: they pass before anything else is asked."""


_OURS = frozenset({"reactive", "optimizer"})
"""Packages whose containers compare by what is declared to be inside of them."""


@by_recent_class(64)
def _way(kind: type) -> tuple[str, ...]:
    """Return how values of a class compare: `_PLAIN` if they do not raise, `_ITEMS` or the names of
    fields if others inside are compared, `_OWN` if it is not known."""
    if issubclass(kind, tuple | frozenset) and kind.__eq__ in (tuple.__eq__, frozenset.__eq__):
        return _ITEMS
    equals: Any = kind.__eq__
    is_of_python = isinstance(equals, WrapperDescriptorType)
    code = getattr(equals, "__code__", None)
    if is_record(kind) and (is_of_python or (code and code.co_filename.startswith("<"))):
        return tuple(compared(kind))
    module = _module_of(equals)
    return _PLAIN if is_of_python or module in sys.stdlib_module_names | _OURS else _OWN


def _module_of(of: Any) -> str:
    return str(getattr(of, "__module__", "")).partition(".")[0]


def own_values(value: Any) -> Iterator[Any]:
    """Yield the values inside a value whose `==` may raise."""
    way = _way(value.__class__)
    if way is _PLAIN:
        return
    if way is _OWN:
        yield value
    elif way is _ITEMS:
        for item in value:
            yield from own_values(item)
    else:
        for name in way:
            yield from own_values(getattr(value, name))


@record
class HasOwn(Pure):
    """A callable of expressions: True if a row has a value whose `==` may raise."""

    def __call__(self, *row: Any) -> bool:
        return any(True for value in row for _ in own_values(value))

    def __repr__(self) -> str:
        return "has_own_equality"


def compares(value: Any) -> bool:
    """Raise what `==` raises for a value and a copy of it."""
    kind = value.__class__
    if kind in _SURE or (kind is tuple and _SURE.issuperset(map(type, value))):
        return True
    for found in own_values(value):
        try:
            other = copy.copy(found)
        except Exception:  # there are no copies
            continue
        bool(found == other) and bool(other == found)
    return True


@record
class Entries(Pure):
    """A callable of expressions: a row under the hash of each value whose `==` may raise."""

    number: int

    def __call__(self, *row: Any) -> tuple[Entry, ...]:
        hashes = dict.fromkeys(hash(found) for value in row for found in own_values(value))
        whole = row[0] if len(row) == 1 else row
        return tuple([(each, self.number, whole) for each in hashes])

    def __repr__(self) -> str:
        return "by_hashes"


@record
class Clashing:
    """A function of `reduce` that keeps its groups: the rows to refuse among those with values of
    one hash."""

    shape = None

    def __call__(self, key: Any, rows: Any) -> list[Any]:
        shown = ClashingRows().step([(row, 1) for row in rows])
        return [row for row, weight in shown for _ in range(weight)]

    def kept(self) -> Callable[[], ClashingRows]:
        return ClashingRows

    def limited(self, item: int, most: int) -> None:
        return None

    def dropping(self) -> Clashing:
        return self


class _Value:
    """A value, the rows with those that are equal to it, and those for which its `==` raises."""

    __slots__ = ("clashes", "rows", "value")

    def __init__(self, value: Any, clashes: set[_Value]) -> None:
        self.value = value
        self.rows: set[Row] = set()
        self.clashes = clashes


class ClashingRows:
    """Rows with values of one hash."""

    __slots__ = ("_rows", "_shown", "_values", "_was")

    def __init__(self) -> None:
        self._rows: dict[Row, tuple[int, list[_Value]]] = {}
        self._values: list[_Value] = []
        self._shown: dict[Row, int] = {}
        self._was: list[tuple[Entry, int]] = []

    @property
    def is_empty(self) -> bool:
        return not self._rows

    def step(self, changes: Sequence[tuple[Entry, int]]) -> list[tuple[Row, int]]:
        """Return the changes of the rows that are refused."""
        self._was = list(changes)
        before = self._shown
        self._take(changes, 1)
        now = self._shown
        changed = [(row, now.get(row, 0) - before.get(row, 0)) for row in {**before, **now}]
        return [pair for pair in changed if pair[1]]

    def undo(self) -> None:
        """Be as before the last step."""
        self._take(self._was, -1)
        self._was = []

    def commit(self) -> None:
        self._was = []

    def contents(self) -> Iterable[tuple[Row, int]]:
        return self._shown.items()

    def footprint(self) -> tuple[int, int]:
        return len(self._rows), sys.getsizeof(self._rows) + 56 * len(self._rows)

    def _take(self, changes: Sequence[tuple[Entry, int]], sign: int) -> None:
        for (of, number, whole), weight in changes:
            self._add(of, (number, whole), sign * weight)
        if len(self._values) > 1 or self._shown:
            shown = {row for value in self._values if value.clashes for row in value.rows}
            self._shown = {row: self._rows[row][0] for row in shown}

    def _add(self, of: int, row: Row, weight: int) -> None:
        before, values = self._rows.get(row, (0, []))
        if not before:
            found = [value for value in own_values(row[1]) if hash(value) == of]
            values = list(map(self._met, found))
            for value in values:
                value.rows.add(row)
        if before + weight:
            self._rows[row] = before + weight, values
            return
        del self._rows[row]
        for value in values:
            value.rows.discard(row)
            if not value.rows and value in self._values:
                self._values.remove(value)
                for other in value.clashes:
                    other.clashes.discard(value)

    def _met(self, value: Any) -> _Value:
        """Return what stands for a value among those that are there."""
        same: list[_Value] = []
        clashes: set[_Value] = set()
        for other in self._values:
            if other.value is value:
                return other
            is_equal = _is_equal(value, other.value)
            if is_equal is None:
                clashes.add(other)
            elif is_equal:
                same.append(other)
        for other in same:
            if other.clashes == clashes:
                return other
        made = _Value(value, clashes)
        for other in clashes:
            other.clashes.add(made)
        self._values.append(made)
        return made


def _is_equal(value: Any, other: Any) -> bool | None:
    """Return None if `==` raises, from either side."""
    try:
        return bool(value == other) and bool(other == value)
    except Exception:
        return None


def refuse(*row: Any) -> None:
    """Raise for a row with a value that does not compare with another one of the same hash."""
    value = next(each for value in row for each in own_values(value))
    raise TypeError(f"{value!r:.60} does not compare by == with another value of the same hash")


# The query.


def values_that_compare(source: Input) -> tuple[Lifted, tuple[Expr, ...]]:
    """Return a callable of the rows of an input, and what must not raise in it."""
    count = bindings(source.rows)
    needed = tuple([Call(constant(compares), (value,)) for value in source.values])
    return Lifted(TRUE, row_names(count), (), count), needed


def without_clashes(inputs: Sequence[plan.Node]) -> list[tuple[plan.Node, plan.Node, Lifted]]:
    """Return for each input of a query, of values that compare with copies of themselves: it
    without rows to refuse, these, and a call that raises for them."""
    own = [plan.Where(each, _called(HasOwn(), each)) for each in inputs]
    entries = [plan.SelectMany(each, _called(Entries(n), each)) for n, each in enumerate(own)]
    every: plan.Node = entries[0]
    for rows in entries[1:]:
        every = plan.UnionAll(every, rows)
    by_hash = Lifted(Item(Parameter(0), constant(0)), ("entry",), (), 1)
    groups = plan.Reduce(every, by_hash, kept_by(Clashing(), "clashing"))
    clashing = plan.Select(groups, Lifted(Parameter(1), ("hash", "row"), (), 2))
    made: list[tuple[plan.Node, plan.Node, Lifted]] = []
    for n, source in enumerate(inputs):
        has_own, count = _called(HasOwn(), source), bindings(source)
        whole = Parameter(0) if count == 1 else tuple_of(*map(Parameter, range(count)))
        key = has_own.with_body(tuple_of(constant(n), whole))
        match = plan.Match(key, Lifted(Parameter(0), ("row",), (), 1))
        plain = plan.Where(source, has_own.with_body(Operation("not", (has_own.body,))))
        kept = plan.UnionAll(plain, plan.AntiJoin(own[n], clashing, match))
        refused = plan.SemiJoin(own[n], clashing, match)
        made.append((kept, refused, _called(refuse, source)))
    return made


def _called(function: Any, source: plan.Node) -> Lifted:
    count = bindings(source)
    body = Call(constant(function), all_parameters(count))
    return Lifted(body, row_names(count), (), count)
