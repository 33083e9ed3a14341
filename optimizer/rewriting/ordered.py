"""Values of rows that a guard asks for: what must not raise, and those that are compared or added.

    order by f                 f(row) is of the kind that f is declared to give, or else of the kind
    Min(f), Max(f) of k        that most rows of the group have (`comparable.py`)

Sound:  a value that is of its kind compares with all others that are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from optimizer import plan
from optimizer.expr import (
    NONE,
    Attempt,
    Call,
    Constant,
    Expr,
    Item,
    Lifted,
    Operation,
    Parameter,
    constant,
    origins,
    row_names,
)
from optimizer.expressions.attempts import FirstFault, NoFault, OrNone, hashed, lifted
from optimizer.expressions.compose import needs
from optimizer.expressions.knowledge import TESTS, Shapes
from optimizer.expressions.order_kinds import (
    ANY_KIND,
    OrderKind,
    OrderKindOf,
    SumKindOf,
    checks,
    refuse,
    refuse_later,
)
from optimizer.plans.declared_kinds import declared_kind, declared_sum_kind
from optimizer.plans.nodes.reduce import kept_by
from optimizer.plans.properties import bindings, shapes
from optimizer.record import record
from optimizer.rewriting.comparable import Comparable

Needs = Callable[[Expr, Shapes], tuple[Expr, ...]]
"""Function giving the parts of an expression that must be evaluated for its value to be usable."""


Instead = Callable[[Lifted, tuple[Expr, ...], Shapes], Lifted]


@record
class Asked:
    """A callable of a row, what must not raise in it, and what it becomes to give something else
    where that does; None if the row is left out then."""

    function: Lifted
    needs: Needs
    instead: Instead | None = None


EXTREMES, SUMS = ("Min", "Max"), ("Sum", "Avg")


@record
class Ordered:
    """A value of rows that is compared with those of other rows, and the kind that it is declared
    to have, if it is. With `nulls` None has a place among them."""

    function: Lifted
    kind: OrderKind | None
    nulls: bool
    is_extreme: bool = False

    def needs(self, expr: Expr, of: Shapes) -> tuple[Expr, ...]:
        """Return the expressions that must be evaluated for a value to be compared."""
        if self.kind is not None and _is_certain(expr):
            return needs(expr, of)
        inside = not self.is_extreme  # an order has a place for None in its keys, MIN has none
        check = Call(constant(checks(self.kind, nulls=self.nulls, inside=inside)), (expr,))
        return (*hashed(expr, of), check) if self.is_extreme and self.kind is None else (check,)

    def kind_of_value(self) -> Lifted:
        """Return the function that gives the kind of the value of a row."""
        call = constant(OrderKindOf(self.nulls, not self.is_extreme))
        of: Expr = Call(call, (self.function.body,))
        if self.is_extreme and self.nulls:  # by the policy `null` what raises is None there
            of = Attempt(of, constant(ANY_KIND))
        return self.function.with_body(of)


@record
class Added:
    """A value of rows that is added to those of other rows, and is not declared to add to them."""

    function: Lifted
    nulls: bool
    mean: bool
    may_raise: bool

    def kind_of_value(self) -> Lifted:
        """Return the callable that gives the kind of the value of a row."""
        of: Expr = Call(constant(SumKindOf(self.nulls, self.mean)), (self.function.body,))
        return self.function.with_body(Attempt(of, constant(ANY_KIND)) if self.may_raise else of)


def ordered_by(value: Lifted, source: plan.Node, *, nulls: bool) -> Ordered:
    kind = declared_kind(value.body, source)
    return Ordered(value, None if kind == ANY_KIND else kind, nulls)


def extreme(folded: plan.Folded, source: plan.Node, *, null: bool) -> Ordered:
    """Return the argument of MIN or MAX; under the policy `null` each leaves None out."""
    assert folded.value is not None
    value = lifted(folded.value)
    found = ordered_by(value, source, nulls=folded.skip_none or (null and not folded.functions))
    return replace(found, is_extreme=True)


def asked_of(ordered: Ordered, instead: Instead | None = None) -> Asked:
    return Asked(ordered.function, ordered.needs, instead)


def _is_certain(expr: Expr) -> bool:
    """Return True if a value has the known kind, whatever the rows are."""
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
    values: Sequence[Ordered | Added],
    *,
    first: bool = False,
) -> tuple[plan.Node, plan.Node, Lifted]:
    """Return the rows whose values are of the kinds that most rows of their group have, or of the
    `first` by name; the other rows; and a call that raises for these."""
    count = bindings(rows)
    names = values[0].function.names
    by = Lifted(NONE, names, (), count) if key is None else key
    kinds = tuple(each.kind_of_value() for each in values)
    extended = plan.Extend(rows, tuple(range(count)), kinds)
    widened = Lifted(by.body, (*by.names, *("",) * len(kinds)), by.origins, count + len(kinds))
    shape = (*shapes(rows), *(None for _ in kinds))

    def kept(*, refused: bool) -> plan.Node:
        group = kept_by(Comparable(len(kinds), refused, shape, first), "comparable")
        grouped = plan.Reduce(extended, widened, group)
        items = [Item(Parameter(1), constant(place)) for place in range(count)]
        columns = [Lifted(item, ("key", "row"), (), 2) for item in items]
        return plan.Extend(grouped, (), tuple(columns), names)

    asked = tuple(each.function.body for each in values)
    together = origins(*(each.function for each in values))
    call = Lifted(Call(constant(refuse_later if first else refuse), asked), names, together, count)
    return kept(refused=False), kept(refused=True), call


def added(values: Sequence[plan.Folded], source: plan.Node, *, null: bool) -> list[Added]:
    """Return the values of sums that are not declared to add."""
    return [
        Added(value, each.skip_none or null, mean=each.name == "Avg", may_raise=null)
        for each in values
        if each.name in SUMS and each.value is not None
        for value in [lifted(each.value)]
        if declared_sum_kind(value.body, source) is None
    ]


def without_faults(
    made: plan.Node, key: int, places: Sequence[int], *, null: bool
) -> tuple[plan.Node, plan.Node, Lifted]:
    """Return the groups of which no aggregate of the user's own raises, or with `null` all, with
    None in its place; the other groups, and a call that gives the `Fault` of each.

    The first `key` bindings of `made` are the key; `places` are those of such aggregates.
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
