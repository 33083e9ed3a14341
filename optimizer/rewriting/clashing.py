"""Refuse rows with values that clash: values of one hash whose `==` raises for one another.

    rows with values whose class has an `__eq__` of its own
      by the hash of each value     rows with values that clash are refused
    all other rows                  pass

Any operator may look such a value up beside another one: a key, a projection of rows, a counted
value. So all inputs of a query are checked together. A value that does not compare with a copy of
itself is refused, and so are all values that clash with another one.

A commit may insert a value and delete one that it clashes with: a delta of both would raise, too.
Then the new value is refused until its rows are deleted, although no row clashes with it now.
Operators and checks of the same inputs share the memory of such values (`RefusedValues`).

Inputs whose fields are declared as classes of Python, or as records of these, are not checked.

Sound:  a value that compares with each other value of its hash is found by every look-up.
State:  for rows with such a value, the row, twice, and each of its values once.
Cost:   a look at the classes of values that are not declared; for a row with a value to compare,
        O(different values of its hash), and two look-ups of the row.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from functools import partial
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from optimizer import plan
from optimizer.expr import (
    Attribute,
    Call,
    Constant,
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
from optimizer.kinds.kind import Anything, Instance, Kind, Members, Struct, inside_of, kind_of
from optimizer.plans.declared_kinds import binding_types
from optimizer.plans.nodes.groups import kept_by
from optimizer.plans.properties import bindings, nodes
from optimizer.record import record
from optimizer.rewriting.own_values import (
    OURS,
    OWN,
    HasOwn,
    compares,
    compares_surely,
    hash_of,
    is_equal,
    module_of,
    own_values,
    pure,
    refuse,
    way,
)

Row: TypeAlias = tuple[int, Any]
"""The number of an input, and a row of it."""


class Values(tuple[Any, ...]):
    """Values of a row, beside the row: entries with equal rows are equal, whatever their values."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Values)

    def __ne__(self, other: object) -> bool:
        return not isinstance(other, Values)

    def __hash__(self) -> int:
        return 0


Entry: TypeAlias = tuple[int, int, Any, Values]
"""The hash of values, the row that has them, and the values."""


@record
class Entries(Pure):
    """A callable of expressions: a row under the hash of each value whose `==` may raise."""

    number: int

    def __call__(self, *row: Any) -> tuple[Entry, ...]:
        by_hash: dict[int, list[Any]] = {}
        for value in row:
            for found in own_values(value):
                by_hash.setdefault(hash(found), []).append(found)
        whole = row[0] if len(row) == 1 else row
        return tuple([(of, self.number, whole, Values(v)) for of, v in by_hash.items()])

    def __repr__(self) -> str:
        return "by_hashes"


@record
class OneEntry(Pure):
    """A callable of expressions: a row under the hash of a value that is looked up."""

    def __call__(self, number: int, value: Any, *row: Any) -> Entry:
        return hash_of(value), number, row[0] if len(row) == 1 else row, Values((value,))

    def __repr__(self) -> str:
        return "by_hash"


class RefusedValues:
    """Refused values by their hashes, each until its last row is deleted.

    They were inserted in one commit with the deletion of a value that they clash with.
    """

    __slots__ = ("__weakref__", "_values", "leaving")

    def __init__(self) -> None:
        self._values: dict[int, list[Any]] = {}
        self.leaving: dict[int, list[Any]] = {}
        """Values of rows that the current commit deletes, by their hashes."""

    def has(self, of: int, value: Any) -> bool:
        return self._place(of, value) is not None

    @property
    def has_any(self) -> bool:
        return bool(self._values)

    def has_hash(self, of: int) -> bool:
        return of in self._values

    def add(self, of: int, value: Any) -> None:
        if not self.has(of, value):
            self._values.setdefault(of, []).append(value)

    def discard(self, of: int, value: Any) -> None:
        """Remove a value of hash `of`, and the hash with its last value; nothing if it is
        missing."""
        place = self._place(of, value)
        if place is not None:
            del self._values[of][place]
            if not self._values[of]:
                del self._values[of]

    def _place(self, of: int, value: Any) -> int | None:
        """Return the place of an equal value among those of a hash; None if there is none."""
        if not self._values:
            return None
        there = enumerate(self._values.get(of, ()))
        return next((n for n, each in there if each is value or is_equal(each, value)), None)


REFUSED: WeakValueDictionary[tuple[Any, ...], RefusedValues] = WeakValueDictionary()
"""The memory for the inputs of a query, or for values that are looked up together, while a plan has
it."""


@record
class LookUpHash(Pure):
    """A callable of expressions: the hash that a value is looked up by, and the memory for it."""

    memory: RefusedValues

    def __call__(self, value: Any) -> int:
        return hash_of(value)

    def __repr__(self) -> str:
        return "hash"


@record
class Clashing:
    """A function of `reduce` that keeps its groups: the rows to refuse among values of one hash."""

    memory: RefusedValues

    @property
    def shape(self) -> None:
        return None

    def __call__(self, key: Any, rows: Any) -> list[Any]:
        shown = self.kept()().step([(row, 1) for row in rows])
        return [row for row, weight in shown for _ in range(weight)]

    def kept(self) -> Callable[[], ClashingRows]:
        return partial(ClashingRows, self.memory)

    def limited(self, item: int, most: int) -> None:
        return None

    def dropping(self) -> Clashing:
        return self


class _Value:
    """A value, the rows with values equal to it, and the values that make its `==` raise.

    `is_refused` if it was inserted with the deletion of one of these.
    """

    __slots__ = ("clashes", "is_refused", "rows", "value")

    def __init__(self, value: Any, clashes: set[_Value], *, is_refused: bool) -> None:
        self.value = value
        self.rows: set[Row] = set()
        self.clashes = clashes
        self.is_refused = is_refused


class ClashingRows:
    """Rows with values of one hash."""

    __slots__ = ("_forgotten", "_made", "_marked", "_memory", "_rows", "_shown", "_values", "_was")

    def __init__(self, memory: RefusedValues) -> None:
        self._memory = memory
        self._rows: dict[Row, tuple[int, list[_Value]]] = {}
        self._values: list[_Value] = []
        self._shown: dict[Row, int] = {}
        self._was: list[tuple[Entry, int]] = []
        self._made: list[_Value] = []
        self._marked: list[tuple[int, Any]] = []
        self._forgotten: list[tuple[int, Any]] = []

    @property
    def is_empty(self) -> bool:
        return not self._rows

    def step(self, changes: Sequence[tuple[Entry, int]]) -> list[tuple[Row, int]]:
        """Return the changes of the rows that are refused."""
        self.commit()
        self._was = list(changes)
        before = self._shown
        self._take(changes, 1)
        now = self._shown
        changed = [(row, now.get(row, 0) - before.get(row, 0)) for row in {**before, **now}]
        return [pair for pair in changed if pair[1]]

    def undo(self) -> None:
        """Restore the state before the last step."""
        for of, value in self._marked:
            self._memory.discard(of, value)
        for of, value in self._forgotten:
            self._memory.add(of, value)
        was = self._was
        self.commit()
        self._take(was, -1)
        self.commit()

    def commit(self) -> None:
        self._was, self._marked, self._forgotten = [], [], []

    def contents(self) -> Iterable[tuple[Row, int]]:
        return self._shown.items()

    def footprint(self) -> tuple[int, int]:
        return len(self._rows), sys.getsizeof(self._rows) + 56 * len(self._rows)

    def _take(self, changes: Sequence[tuple[Entry, int]], sign: int) -> None:
        """Insert rows first, and then delete rows, so that inserted rows meet deleted ones."""
        self._made = []
        leaving = []
        for (of, number, whole, found), weight in changes:
            if sign * weight > 0:
                self._add(of, (number, whole), found, sign * weight)
            else:
                leaving.append((of, (number, whole), found, sign * weight))
        met = self._met_shown() if sign > 0 and leaving else []
        for entry in leaving:
            self._add(*entry)
        for value, others in met:
            if value.rows and not all(other.rows for other in others):
                self._mark(changes[0][0][0], value)
        gone = self._memory.leaving.get(changes[0][0][0], ()) if changes and sign > 0 else ()
        for value in self._made if gone else ():
            if value.rows and any(is_equal(value.value, each) is None for each in gone):
                self._mark(changes[0][0][0], value)
        if len(self._values) > 1 or self._shown or any(v.is_refused for v in self._values):
            shown = {
                row
                for value in self._values
                if value.clashes or value.is_refused
                for row in value.rows
            }
            self._shown = {row: self._rows[row][0] for row in shown}

    def _met_shown(self) -> list[tuple[_Value, list[_Value]]]:
        """Return the new values, each with the values that it clashes with and that were shown."""
        old = set(self._values).difference(self._made)
        shown = {value for value in old if any(row not in self._shown for row in value.rows)}
        return [(value, [*value.clashes & shown]) for value in self._made]

    def _mark(self, of: int, value: _Value) -> None:
        """Refuse a value, and record that for `undo`."""
        value.is_refused = True
        self._memory.add(of, value.value)
        self._marked.append((of, value.value))

    def _add(self, of: int, row: Row, found: Values, weight: int) -> None:
        """Add a weight to a row; its values are met if it is new, and leave with their last row."""
        before, values = self._rows.get(row, (0, []))
        if not before:
            values = [self._met(of, value) for value in found]
            for value in values:
                value.rows.add(row)
        if before + weight:
            self._rows[row] = before + weight, values
            return
        del self._rows[row]
        for value in values:
            value.rows.discard(row)
            if not value.rows and value in self._values:
                self._leave(of, value)

    def _leave(self, of: int, value: _Value) -> None:
        """Remove a value that no row has; if it was refused, the memory forgets it."""
        self._values.remove(value)
        for other in value.clashes:
            other.clashes.discard(value)
        if value.is_refused:
            self._memory.discard(of, value.value)
            self._forgotten.append((of, value.value))

    def _met(self, of: int, value: Any) -> _Value:
        """Return the `_Value` for a value, an existing one or a new one."""
        same: list[_Value] = []
        clashes: set[_Value] = set()
        for other in self._values:
            if other.value is value:
                return other
            found = is_equal(value, other.value)
            if found is None:
                clashes.add(other)
            elif found:
                same.append(other)
        for other in same:
            if other.clashes == clashes:
                return other
        is_refused = self._memory.has(of, value) or not compares_surely(value)
        made = _Value(value, clashes, is_refused=is_refused)
        for other in clashes:
            other.clashes.add(made)
        self._values.append(made)
        self._made.append(made)
        return made


_ASKS_NOTHING = (plan.Where, plan.Extend, plan.Unnest, plan.OrderBy)
"""Nodes that look up no value, except the kinds of values of an order."""


class Asks(IntEnum):
    """A check of the values of a kind; none if their classes are known not to raise."""

    NOTHING = 0
    UNDECLARED = 1
    """There is no declaration: values may be of a class with an `__eq__` of its own."""
    OWN = 2
    """The class has an `__eq__` of its own."""


@record
class Input:
    """An input of a query, the values of its rows that may raise, and the check that they need."""

    rows: plan.Node
    values: tuple[Expr, ...]
    asks: Asks


def inputs_to_ask(root: plan.Node) -> list[Input]:
    """Return the inputs of a query with values whose `==` may raise; none if it looks no values
    up."""
    every = nodes(root, until=_is_input)
    if all(_is_input(node) or isinstance(node, _ASKS_NOTHING) for node in every):
        return []
    found = [_asked_of(node) for node in every if _is_input(node)]
    return [each for each in found if each.asks]


def _is_input(node: plan.Node) -> bool:
    return isinstance(node, plan.Table | plan.View)


def _asked_of(node: plan.Node) -> Input:
    """Return an input with the values of its rows whose `==` may raise, and the strictest check."""
    if isinstance(node, plan.View):
        tables = [each for each in nodes(node.input) if isinstance(each, plan.Table)]
        if not any(_asked_of(each).asks for each in tables):
            return Input(node, (), Asks.NOTHING)
    values: dict[Expr, Asks] = {}
    for place, of in enumerate(binding_types(node)):
        kind = kind_of(of)
        if isinstance(kind, Struct) and way(kind.python) is not OWN:
            fields = kind.fields.items()
            values |= {Attribute(Parameter(place), name): asks_of(of) for name, of in fields}
        else:
            values[Parameter(place)] = asks_of(kind)
    asked = tuple(value for value, asks in values.items() if asks)
    return Input(node, asked, max(values.values(), default=Asks.NOTHING))


def asks_of(kind: Kind, around: frozenset[Any] = frozenset()) -> Asks:
    """Return the check that values of a kind need.

    `around` are the classes that contain it; one may contain itself.
    """
    match kind:
        case Anything():
            return Asks.UNDECLARED
        case Struct(python) | Instance(python) | Members(python) if way(python) is OWN:
            return Asks.OWN
        case Struct(python) if python in around:
            return Asks.NOTHING
        case Struct(python):
            around |= {python}
    found = max([asks_of(each, around) for each in inside_of(kind)], default=Asks.NOTHING)
    is_ours = module_of(getattr(kind, "python", None)) in OURS
    return Asks.NOTHING if is_ours and found is Asks.UNDECLARED else found


# The query.


@record
class Parts:
    """An input of a query: its rows without own values, its other rows, and expressions of the
    latter that must not raise."""

    written: plan.Node
    plain: plan.Node
    own: plan.Node
    needed: tuple[Expr, ...]


def parts_of_input(source: Input) -> Parts:
    """Return the two parts of an input."""
    asked = Call(pure(HasOwn()), source.values)
    of = _callable_of_source(source.rows, asked)
    return Parts(
        source.rows,
        plan.Where(source.rows, of.with_body(Operation("not", (asked,)))),
        plan.Where(source.rows, of),
        tuple([Call(constant(compares), (value,)) for value in source.values]),
    )


def split_inputs(parts: Sequence[Parts]) -> list[tuple[plan.Node, plan.Node, Lifted]]:
    """Return for each input the rows to keep, the rows to refuse, and a call that raises for
    refused rows.

    The values in the `own` rows of the inputs must compare with copies of themselves.
    """
    if not parts:
        return []
    memory = REFUSED.setdefault(tuple([each.written for each in parts]), RefusedValues())
    entries = [
        plan.SelectMany(each.own, _call_with_row(pure(Entries(n)), each.own))
        for n, each in enumerate(parts)
    ]
    every: plan.Node = entries[0]
    for rows in entries[1:]:
        every = plan.UnionAll(every, rows)
    by_hash = Lifted(Item(Parameter(0), constant(0)), ("entry",), (), 1)
    groups = plan.Reduce(every, by_hash, kept_by(Clashing(memory), "clashing"))
    clashing = plan.Select(groups, Lifted(Parameter(1), ("hash", "row"), (), 2))
    made: list[tuple[plan.Node, plan.Node, Lifted]] = []
    for n, each in enumerate(parts):
        count = bindings(each.written)
        whole = Parameter(0) if count == 1 else tuple_of(*map(Parameter, range(count)))
        key = _callable_of_source(each.written, tuple_of(constant(n), whole))
        match = plan.Match(key, Lifted(Parameter(0), ("row",), (), 1))
        kept = plan.UnionAll(each.plain, plan.AntiJoin(each.own, clashing, match))
        refused = plan.SemiJoin(each.own, clashing, match)
        made.append((kept, refused, _call_with_row(constant(refuse), each.written)))
    return made


def _call_with_row(function: Constant, source: plan.Node, *given: Expr) -> Lifted:
    return _callable_of_source(source, Call(function, (*given, *all_parameters(bindings(source)))))


def _callable_of_source(source: plan.Node, body: Expr) -> Lifted:
    count = bindings(source)
    return Lifted(body, row_names(count), (), count)
