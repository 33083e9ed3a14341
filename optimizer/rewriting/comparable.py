"""Keep the rows whose values compare with most others of their order, if no kind is declared.

    group of a key    rows with the kinds of their values (`order_kinds.py`)
                      number 4 times, text twice           shown: the rows with numbers
                      number 4 times, text 5 times         shown: the rows with texts

At each place of a value (each item of a tuple) the kind of most rows wins; among kinds with equally
many rows, the first by name. So the refused rows depend on the present rows, not on the order in
which they were inserted. The law is that of `reduce` by a function that keeps its groups.

Values of a class with operators of its own are compared with one another. The rows that clash with
most others are refused; of two that clash only with one another, both.

State:  the rows, by the kinds of their values; the number of rows of each kind; the clashes.
Cost:   O(1) for a changed row; if another kind wins, all rows that are shown or hidden. For values
        with operators of their own, O(such rows of the group).

`GuardedKey`, `OrderedValue` and `SummedValue` are values of rows that a guard checks before they
are compared or added.

    order by f                 f(row) is of the declared kind of f, or else of the kind of most rows
    Min(f), Median(f) of k     of the group

Sound:  a value that is of its kind compares with all others that are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from optimizer import plan
from optimizer.expr import (
    NONE,
    Attempt,
    Call,
    Constant,
    Display,
    Expr,
    Function,
    Item,
    Lifted,
    Operation,
    Parameter,
    constant,
    origins,
    row_names,
    tuple_of,
)
from optimizer.expressions.attempts import (
    FirstFault,
    NoFault,
    OrNone,
    as_lifted,
    hash_needs,
    or_none,
)
from optimizer.expressions.knowledge import TESTS, Shape, Shapes
from optimizer.expressions.order_kinds import (
    ANY_KIND,
    OrderKind,
    OrderKindOf,
    OwnKind,
    SumKindOf,
    checks,
    leaves,
    refuse,
    refuse_later,
)
from optimizer.expressions.text import needs
from optimizer.plans.declared_kinds import declared_kind, declared_sum_kind
from optimizer.plans.nodes.groups import kept_by
from optimizer.plans.properties import bindings, nodes, shapes
from optimizer.record import record

Pair: TypeAlias = tuple[Any, int]
Kinds: TypeAlias = "tuple[OrderKind, ...]"
Leaf: TypeAlias = "tuple[int, tuple[int, ...]]"


@record
class Comparable:
    """State of a group in `reduce`: the rows of most kinds, or of the `first` by name.

    If `refused`, all other rows. The last `count` items of a row are the kinds of its values.
    """

    count: int
    refused: bool
    shape: Shape = None
    first: bool = False

    def __call__(self, key: Any, rows: Any) -> list[Any]:
        shown = self.kept()().step([(row, 1) for row in rows])
        return [row for row, weight in shown for _ in range(weight)]

    def kept(self) -> Callable[[], ComparableRows]:
        return lambda: ComparableRows(self.count, refused=self.refused, first=self.first)

    def limited(self, item: int, most: int) -> None:
        return None

    def dropping(self) -> Comparable:
        return self


class ComparableRows:
    """One group."""

    __slots__ = (
        "_clashes",
        "_count",
        "_first",
        "_hidden",
        "_own",
        "_refused",
        "_rows",
        "_was",
        "_wins",
    )

    def __init__(self, count: int, *, refused: bool, first: bool = False) -> None:
        self._count = count
        self._first = first
        self._refused = refused
        self._rows: dict[Kinds, dict[Any, int]] = {}
        self._own: dict[Any, dict[Leaf, OwnKind]] = {}
        self._clashes: dict[Any, set[Any]] = {}
        self._hidden: set[Any] = set()
        self._wins: dict[Leaf, str] = {}
        self._was: list[Pair] = []

    @property
    def is_empty(self) -> bool:
        return not self._rows

    def step(self, changes: Sequence[Pair]) -> list[Pair]:
        """Return the changes of the shown rows."""
        self._was = list(changes)
        before, hidden = self._wins, self._hidden
        for row, weight in changes:
            self._add(row, weight)
        self._wins, self._hidden = self._most(), self._clashing()
        if hidden or self._hidden:
            return self._difference_of_rows(changes, before, hidden)
        if self._wins == before:
            return [pair for pair in changes if self._shows(self._kinds(pair[0]), before)]
        return self._difference(changes, before)

    def undo(self) -> None:
        """Restore the state before the last step."""
        for row, weight in self._was:
            self._add(row, -weight)
        self._was, self._wins, self._hidden = [], self._most(), self._clashing()

    def commit(self) -> None:
        self._was = []

    def contents(self) -> Iterable[Pair]:
        """Return the shown rows of the group, with their weights."""
        if self._hidden:
            changes = [pair for rows in self._rows.values() for pair in rows.items()]
            return [pair for pair in changes if self._shows_row(pair[0], self._wins, self._hidden)]
        return [
            pair
            for kinds, rows in self._rows.items()
            if self._shows(kinds, self._wins)
            for pair in rows.items()
        ]

    def footprint(self) -> tuple[int, int]:
        """Return the number of rows in the group, and the bytes of their dictionaries."""
        held = [len(rows) for rows in self._rows.values()]
        return sum(held), sum(map(sys.getsizeof, self._rows.values()))

    def _kinds(self, row: Any) -> Kinds:
        return row[-self._count :]  # type: ignore[no-any-return]

    def _add(self, row: Any, weight: int) -> None:
        """Add a weight to a row: compare a new row's values with the others, remove a row of weight
        0."""
        kinds = self._kinds(row)
        rows = self._rows.setdefault(kinds, {})
        if row not in rows:
            self._meet(row, kinds)
        rows[row] = rows.get(row, 0) + weight
        if not rows[row]:
            del rows[row]
            self._leave(row)
        if not rows:
            del self._rows[kinds]

    def _meet(self, row: Any, kinds: Kinds) -> None:
        """Compare the values with operators of their own of a row and of the other rows."""
        own = {leaf: name for leaf, name in _places(kinds) if isinstance(name, OwnKind)}
        if not own:
            return
        for other, others in self._own.items():
            if any(
                leaf in others and others[leaf] == name and name.clashes(others[leaf])
                for leaf, name in own.items()
            ):
                self._clashes.setdefault(row, set()).add(other)
                self._clashes.setdefault(other, set()).add(row)
        self._own[row] = own

    def _leave(self, row: Any) -> None:
        """Forget the values of a row that is removed, and its clashes with other rows."""
        self._own.pop(row, None)
        for other in self._clashes.pop(row, ()):
            clashes = self._clashes[other]
            clashes.discard(row)
            if not clashes:
                del self._clashes[other]

    def _clashing(self) -> set[Any]:
        """Return the rows to refuse so that no two others clash: rows that clash with most."""
        hidden: set[Any] = set()
        left = {row: len(others) for row, others in self._clashes.items()}
        while most := max(left.values(), default=0):
            worst = [row for row, count in left.items() if count == most]
            hidden.update(worst)
            for row in worst:
                del left[row]
            for row in worst:
                for other in self._clashes[row]:
                    if other in left:
                        left[other] -= 1
        return hidden

    def _most(self) -> dict[Leaf, str]:
        """Return the kind that most distinct rows have at each place; the first by name of
        several."""
        if len(self._rows) == 1:
            (kinds,) = self._rows
            return dict(_places(kinds))
        counts: dict[Leaf, dict[str, int]] = {}
        for kinds, rows in self._rows.items():
            for leaf, name in _places(kinds):
                found = counts.setdefault(leaf, {})
                found[name] = found.get(name, 0) + len(rows)
        if self._first:
            return {leaf: min(of) for leaf, of in counts.items()}
        return {leaf: min(of, key=lambda name: (-of[name], name)) for leaf, of in counts.items()}

    def _shows(self, kinds: Kinds, wins: dict[Leaf, str]) -> bool:
        """Return True if rows of these kinds are shown, given the winning kind at each place."""
        is_comparable = all(wins.get(leaf) == name for leaf, name in _places(kinds))
        return is_comparable is not self._refused

    def _shows_row(self, row: Any, wins: dict[Leaf, str], hidden: set[Any]) -> bool:
        return self._refused if row in hidden else self._shows(self._kinds(row), wins)

    def _difference(self, changes: Sequence[Pair], before: dict[Leaf, str]) -> list[Pair]:
        """Return the changes of the shown rows after another kind became that of most rows."""
        changed: dict[Kinds, dict[Any, int]] = {}
        for row, weight in changes:
            of = changed.setdefault(self._kinds(row), {})
            of[row] = of.get(row, 0) + weight
        out: list[Pair] = []
        for kinds in {**self._rows, **changed}:
            was, now = self._shows(kinds, before), self._shows(kinds, self._wins)
            rows, delta = self._rows.get(kinds, {}), changed.get(kinds, {})
            if was and now:
                out += delta.items()
            elif now:
                out += rows.items()
            elif was:
                for row in {**rows, **delta}:
                    out.append((row, delta.get(row, 0) - rows.get(row, 0)))
        return [(row, weight) for row, weight in out if weight]

    def _difference_of_rows(
        self, changes: Sequence[Pair], before: dict[Leaf, str], hidden: set[Any]
    ) -> list[Pair]:
        """Return the changes of the shown rows where rows clash, before or now."""
        delta: dict[Any, int] = {}
        for row, weight in changes:
            delta[row] = delta.get(row, 0) + weight
        out: list[Pair] = []
        now_there = {row: weight for rows in self._rows.values() for row, weight in rows.items()}
        for row in {**now_there, **delta}:
            weight = now_there.get(row, 0)
            now = weight if self._shows_row(row, self._wins, self._hidden) else 0
            was = weight - delta.get(row, 0) if self._shows_row(row, before, hidden) else 0
            if now != was:
                out.append((row, now - was))
        return out


def _places(kinds: Kinds) -> list[tuple[Leaf, str]]:
    return [((n, at), name) for n, kind in enumerate(kinds) for at, name in leaves(kind)]


Needs = Callable[[Expr, Shapes], tuple[Expr, ...]]
"""Returns the parts of an expression that must be evaluated for its value to be usable."""


Instead = Callable[[Lifted, tuple[Expr, ...], Shapes], Lifted]


@record
class GuardedKey:
    """A callable of a row, the parts of it that must not raise, and a replacement for rows that
    raise.

    Without replacement such a row is left out.
    """

    function: Lifted
    needs: Needs
    instead: Instead | None = None


def timed_sides(root: plan.Node) -> frozenset[int]:
    """Return the ids of the inputs of as-of joins, whose rows are beside their keys and times."""
    every = nodes(root, until=lambda node: isinstance(node, plan.View))
    joins = [node for node in every if isinstance(node, plan.AsofJoin)]
    return frozenset([id(side) for join in joins for side in join.inputs()])


def keyed_and_timed(f: Function) -> list[GuardedKey]:
    """Return the key of an as-of join beside its row, and the time, which is None if it raises."""
    called = as_lifted(f)
    assert isinstance(called.body, Display)
    *keyed, time = called.body.items
    return [
        GuardedKey(called.with_body(tuple_of(*keyed)), hash_needs),
        GuardedKey(called.with_body(time), hash_needs, or_none),
    ]


def beside_row(keyed: Lifted, time: Lifted) -> Lifted:
    """Return the function that puts a row beside its key and its time."""
    assert isinstance(keyed.body, Display)
    return keyed.with_body(tuple_of(*keyed.body.items, time.body))


EXTREMES, SUMS = ("Min", "Max", "Median", "Quantile"), ("Sum", "Avg")
PLACED = ("ArgMin", "ArgMax", "FirstBy", "LastBy", "StringJoin")
"""Aggregates of pairs, which are ordered by the first item."""


@record
class OrderedValue:
    """A value of rows that is compared across rows, and its declared kind or None.

    With `nulls` None has a place among them.
    """

    function: Lifted
    kind: OrderKind | None
    nulls: bool
    is_extreme: bool = False

    def needs(self, expr: Expr, of: Shapes) -> tuple[Expr, ...]:
        """Return the expressions that must be evaluated for a value to be compared."""
        if self.kind is not None and _has_certain_kind(expr):
            return needs(expr, of)
        inside = not self.is_extreme  # an order has a place for None in its keys, MIN has none
        check = Call(constant(checks(self.kind, nulls=self.nulls, inside=inside)), (expr,))
        return (*hash_needs(expr, of), check) if self.is_extreme and self.kind is None else (check,)

    def kind_of_value(self) -> Lifted:
        """Return the function that returns the kind of the value of a row."""
        call = constant(OrderKindOf(self.nulls, not self.is_extreme))
        of: Expr = Call(call, (self.function.body,))
        if self.is_extreme and self.nulls:  # by the policy `null` a value that raises is None there
            of = Attempt(of, constant(ANY_KIND))
        return self.function.with_body(of)


@record
class SummedValue:
    """A value of rows that is added up across rows, and is not declared to be of one kind."""

    function: Lifted
    nulls: bool
    mean: bool
    may_raise: bool

    def kind_of_value(self) -> Lifted:
        """Return the callable that returns the kind of the value of a row."""
        of: Expr = Call(constant(SumKindOf(self.nulls, self.mean)), (self.function.body,))
        return self.function.with_body(Attempt(of, constant(ANY_KIND)) if self.may_raise else of)


def ordered_by(value: Lifted, source: plan.Node, *, nulls: bool) -> OrderedValue:
    kind = declared_kind(value.body, source)
    return OrderedValue(value, None if kind == ANY_KIND else kind, nulls)


def extreme(folded: plan.Folded, source: plan.Node, *, null: bool) -> OrderedValue:
    """Return the argument of MIN or MAX; under the policy `null` each leaves None out."""
    assert folded.value is not None
    value = as_lifted(folded.value)
    found = ordered_by(value, source, nulls=folded.skip_none or (null and not folded.functions))
    return replace(found, is_extreme=True)


def place(folded: plan.Folded, source: plan.Node) -> OrderedValue:
    """Return what the pairs of an aggregate are ordered by."""
    assert folded.value is not None
    value = as_lifted(folded.value)
    first = value.body.items[0] if isinstance(value.body, Display) else value.body
    return replace(ordered_by(value.with_body(first), source, nulls=True), is_extreme=True)


def asked_of(ordered: OrderedValue, instead: Instead | None = None) -> GuardedKey:
    return GuardedKey(ordered.function, ordered.needs, instead)


def _has_certain_kind(expr: Expr) -> bool:
    """Return True if a value has the known kind for all rows."""
    match expr:
        case Constant():
            return True
        case Operation(operator):
            return operator in TESTS
        case Call(Constant(value)):
            return any(value is known for known in (int, len, ord, str))
        case _:
            return False


def by_most_kinds(
    rows: plan.Node,
    key: Lifted | None,
    values: Sequence[OrderedValue | SummedValue],
    *,
    first: bool = False,
) -> tuple[plan.Node, plan.Node, Lifted]:
    """Return the rows with values of most kinds, the other rows, and a call that raises for the
    others.

    Values are of the kinds that most rows of the group have, or of the `first` by name.
    """
    count = bindings(rows)
    names = values[0].function.names
    by = Lifted(NONE, names, (), count) if key is None else key
    kinds = tuple(each.kind_of_value() for each in values)
    extended = plan.Extend(rows, tuple(range(count)), kinds)
    widened = Lifted(by.body, (*by.names, *("",) * len(kinds)), by.origins, count + len(kinds))
    shape = (*shapes(rows), *(None for _ in kinds))

    def keep_comparable(*, refused: bool) -> plan.Node:
        group = kept_by(Comparable(len(kinds), refused, shape, first), "comparable")
        grouped = plan.Reduce(extended, widened, group)
        items = [Item(Parameter(1), constant(place)) for place in range(count)]
        columns = [Lifted(item, ("key", "row"), (), 2) for item in items]
        return plan.Extend(grouped, (), tuple(columns), names)

    asked = tuple(each.function.body for each in values)
    together = origins(*(each.function for each in values))
    call = Lifted(Call(constant(refuse_later if first else refuse), asked), names, together, count)
    return keep_comparable(refused=False), keep_comparable(refused=True), call


def undeclared_sums(
    values: Sequence[plan.Folded], source: plan.Node, *, null: bool
) -> list[SummedValue]:
    """Return the values of sums that are not declared to add."""
    return [
        SummedValue(value, each.skip_none or null, mean=each.name == "Avg", may_raise=null)
        for each in values
        if each.name in SUMS and each.value is not None
        for value in [as_lifted(each.value)]
        if declared_sum_kind(value.body, source) is None
    ]


def without_faults(
    made: plan.Node, key: int, places: Sequence[int], *, null: bool
) -> tuple[plan.Node, plan.Node, Lifted]:
    """Return the groups without faults, the other groups, and a call that returns the `Fault` of
    each.

    A group has a fault if an aggregate of the user's own raises; with `null` it is kept, with None
    in its place. The first `key` bindings of `made` are the key; `places` are the places of
    such aggregates.
    """
    count = bindings(made)
    names = row_names(count) if count > 1 else ("group",)
    fault = Lifted(Call(constant(FirstFault()), tuple(map(Parameter, places))), names, (), count)
    is_one = Operation("is not", (fault.body, NONE))
    failed = plan.Extend(plan.Where(made, fault.with_body(is_one)), tuple(range(key)), (fault,))
    call = Lifted(Parameter(key), row_names(key + 1), (), key + 1)
    if not null:
        made = plan.Where(made, fault.with_body(Operation("not", (is_one,))))
    value = constant(OrNone() if null else NoFault())
    columns = [Call(value, (Parameter(n),)) if n in places else Parameter(n) for n in range(count)]
    made = plan.Extend(made, (), tuple(Lifted(each, names, (), count) for each in columns))
    return made, failed, call


def folded_as(folded: plan.Folded, value: Lifted | None, *, null: bool) -> plan.Folded:
    """Return an aggregate of a value, which leaves None out under the policy `null`."""
    if folded.tolerant is not None:
        return replace(folded, value=value, accumulator=folded.tolerant)
    if not null or value is None or folded.functions:
        return replace(folded, value=value)
    skipping = replace(folded.accumulator, skip_none=True)
    return replace(folded, value=value, accumulator=skipping, skip_none=True)


def sort_keys(keys: Sequence[plan.SortKey], of: Sequence[Lifted]) -> tuple[plan.SortKey, ...]:
    """Return the keys of an order with other callables."""
    pairs = zip(keys, of, strict=True)
    return tuple(replace(key, function=function) for key, function in pairs)
