"""Look-ups of the first condition of a chain over a table, in indexes that many readers share.

    where o.customer == 7 | where o.paid          look up 7 | where o.paid
    where o.qty > 3 and o.customer == 8      ->   look up 8 | where o.qty > 3
      table orders                                  index of orders by customer

Needs:  a stored table; a field compared with constants, such that earlier conditions do not raise
        (`optimizer.plans.field_values`), or not for rows whose other fields have certain classes,
        which the index checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from optimizer import plan
from optimizer.expr import Call, Expr, First, Lifted, SlotValue, conjunction, conjuncts, constant
from optimizer.plans import multiway as multiways
from optimizer.plans import side_conditions
from optimizer.plans.field_paths import Path, path_expression
from optimizer.plans.field_values import AnyOf, Between, FieldValues, Needs, find_values
from optimizer.plans.properties import shapes
from optimizer.plans.side_conditions import SideTerm
from optimizer.record import record
from reactive.engine.collections.index import Range
from reactive.engine.collections.zset import UnorderedError, family_of
from reactive.engine.compiler.physical import (
    Lookup,
    Op,
    PhysicalIndex,
    PhysicalRangeIndex,
    Scan,
)
from reactive.engine.compiler.row_tests import first_tests
from reactive.engine.operators import join
from reactive.engine.operators.plain import PipelineSource, Side


@record
class Candidate:
    """A possible look-up in an index by a field, or a first join that others may share.

    Of several, the one of the greatest `kind` is used, and of these the one with most values.
    """

    kind: int
    index: PhysicalIndex | PhysicalRangeIndex
    field: Path | None = None
    equations: tuple[multiways.Equation, ...] = ()
    """Without a field: the equations of the joins that share one."""


ValuesWanted = Callable[[Candidate], int]
"""Returns the number of distinct values of a field in an index of a table.

Without the index: the number of values that readers look for, if they are enough for an index to
pay; else 0. Without a field: the number of multiway joins of the equations, if they are enough.
"""


Asked = tuple[tuple[Candidate, ...], int | None]
FieldIndex = tuple[PhysicalIndex | PhysicalRangeIndex, Path]
"""An index of a table, and its field."""


def best_of(candidates: Sequence[Candidate], values_wanted: ValuesWanted) -> int | None:
    """Return the position of the candidate to look up; None if none pays."""
    many = [values_wanted(each) for each in candidates]
    places = [place for place, count in enumerate(many) if count]
    return max(places, key=lambda p: (candidates[p].kind, many[p]), default=None)


@record
class FoundLookup:
    """A possible look-up of the first condition of a chain over a table."""

    below: PipelineSource
    test: Lifted
    what: FieldValues
    candidate: Candidate

    def use(self) -> tuple[PipelineSource, Lookup]:
        """Return the rest of the chain, and the look-up below it."""
        rest = _rest(self.below, self.test, self.what)
        index = self.candidate.index
        return rest, Lookup(rest.base, index, self.what.values, Op(rest.base))


def with_tests_in_chain(below: PipelineSource, side: Side) -> tuple[PipelineSource, Side]:
    """Return a chain with the first tests of a side as its condition, and the rest of the side.

    Return both unchanged unless the chain is a table without conditions.
    """
    found = [] if below.chain else first_tests(side, shapes(below.base))
    if not found:
        return below, side
    written, terms = side
    test = found[0].function.with_body(conjunction(tuple(each.function.body for each in found)))
    chain = (plan.Where(below.base, test),)
    rest = tuple(term for term in terms if term not in found)
    return PipelineSource(chain, below.base), (written, rest)


def find_lookups(below: PipelineSource) -> list[FoundLookup]:
    """Return the possible look-ups of the first condition of a chain over a table."""
    test = _first_test(below)
    if test is None:
        return []
    found = []
    for what in find_values(conjuncts(test.body), shapes(below.base)):
        index = _plan_field_index(below.base, test, what)
        if index is not None:
            candidate = Candidate(_rank_lookup(what), index, what.field)
            found.append(FoundLookup(below, test, what, candidate))
    return found


def _first_test(below: PipelineSource) -> Lifted | None:
    """Return the condition at the start of a chain over a stored table; None if it has none."""
    base, chain = below.base, below.chain
    if not (isinstance(base, plan.Table) and base.stored and chain):
        return None
    first = chain[0]
    is_read = isinstance(first, plan.Where) and isinstance(first.predicate, Lifted)
    return first.predicate if is_read else None  # type: ignore[attr-defined]


def _rank_lookup(what: FieldValues) -> int:
    """Return the rank of a look-up: one value 3, several 2, a range with both ends 1, else 0."""
    match what.values:
        case AnyOf():
            return 2
        case Between(None, _) | Between(_, None):
            return 0
        case Between():
            return 1
        case _:
            return 3


def _rest(below: PipelineSource, test: Lifted, what: FieldValues) -> PipelineSource:
    """Return the rest of a chain, over the part of the condition that is looked up."""
    parts, rest = conjuncts(test.body), below.chain[1:]
    others = tuple(part for place, part in enumerate(parts) if place not in what.places)
    has_others = isinstance(what.values, Between) or bool(what.needs)
    asked = parts[: what.asked] if has_others else tuple(parts[place] for place in what.places)
    first = plan.Where(below.base, test.with_body(conjunction(asked)))
    if others:
        rest = (plan.Where(first, test.with_body(conjunction(others))), *rest)
    return PipelineSource(rest, first)


def _needed(needs: Needs) -> tuple[Expr, ...]:
    """Return expressions that raise for a row if a field cannot be read or has another class."""
    found = []
    for field, classes in sorted(needs.items(), key=str):
        read = path_expression(field)
        of = (read, constant(classes))
        found.append(read if classes is None else Call(constant(join.of_classes), of))
    return tuple(found)


def _is_of_one_family(values: Between) -> bool:
    """Return True if the ends of a range have a common order."""
    try:
        ends = [
            end.value if isinstance(end, SlotValue) else end for end in (values.low, values.high)
        ]
        return len({family_of(end) for end in ends if end is not None}) == 1
    except UnorderedError:
        return False


def _plan_field_index(
    table: plan.Node, test: Lifted, what: FieldValues
) -> PhysicalIndex | PhysicalRangeIndex | None:
    """Return the index of a table by a field; None for a range whose ends have no common order.

    Rows have no key if an earlier condition may raise for the classes of their other fields.
    """
    source, below = Scan(table, Op(table)), PipelineSource((), table)
    needs, field = _needed(what.needs), path_expression(what.field)
    by = test.with_body(First(needs, field) if needs else field)
    if isinstance(what.values, Between):
        if not _is_of_one_family(what.values):
            return None
        span, in_order = side_conditions.Span(by, by), Range("point", "interval")
        return PhysicalRangeIndex(table, source, below, (), 1, span, in_order)
    side: Side = (None, (SideTerm(by, is_key=True),))
    return PhysicalIndex(table, source, below, side, 1)
