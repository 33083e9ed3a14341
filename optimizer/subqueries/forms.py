"""What is known of the bindings of a plan's rows beside their classes: of what classes values are.

select o.total                  total: float        (float or int,)
aggregate Count(), Max(o.day)   day: date           (int,), (date or None,)
"""

from __future__ import annotations

from typing import Any

from optimizer import plan
from optimizer.expr import Call, Constant, Expr, Function, Parameter, conjuncts
from optimizer.expressions.unpacks import Unpacks
from optimizer.kinds.kind import Places, kind_of
from optimizer.plans.extended import outputs
from optimizer.plans.properties import fact, nodes, shapes
from optimizer.subqueries.calm import (
    NOTHING,
    UNKNOWN,
    Form,
    Kinds,
    Of,
    OrNone,
    declared,
    form,
    is_number,
    kinds,
    of_shape,
)
from optimizer.subqueries.keyed import read
from optimizer.subqueries.outers import outers

Forms = tuple[Form, ...]
TUPLES: Kinds = frozenset({tuple})


def forms(node: plan.Node, arguments: tuple[Kinds, ...] = ()) -> Forms:
    """What is known of the bindings of the rows of a query whose arguments are of these classes."""
    if not outers(node):
        found: Forms = fact(node, "forms", _of_closed)
        return found
    made: dict[int, Forms] = {}
    for part in nodes(node, until=lambda part: not outers(part)):
        below = [made[id(source)] for source in part.inputs()] if outers(part) else []
        made[id(part)] = _forms(part, below, arguments) if outers(part) else forms(part)
    return made[id(node)]


def known_of(node: plan.Node, arguments: tuple[Kinds, ...] = ()) -> Of:
    """What is known of the rows of a node, for callables of these."""
    return Of(shapes(node), arguments, forms(node, arguments))


def may_be_none(node: plan.Node, place: int) -> bool:
    """Whether a binding of the rows may be None, for all that is declared."""
    found = forms(node)[place]
    if isinstance(found, frozenset):
        return not found or NOTHING in found
    return isinstance(found, OrNone)


def _of_closed(node: plan.Node) -> Forms:
    return _forms(node, [source.known["forms"] for source in node.inputs()], ())


def _forms(node: plan.Node, below: list[Forms], arguments: tuple[Kinds, ...]) -> Forms:
    match node:
        case plan.Table(row_type=row_type):
            return (_of_rows(row_type),)
        case plan.Select(source) | plan.Extend(source):
            of = Of(shapes(source), arguments, below[0])
            made = outputs(node)
            return tuple([form(expr, of) for expr in made])
        case plan.Where(source, p):
            return _unpacked(below[0], read(p, shapes(source)).body)
        case plan.Distinct() | plan.Top() | plan.SemiJoin() | plan.AntiJoin() | plan.View():
            return below[0]
        case plan.DifferenceAll(_, plan.Empty()):
            return below[0]
        case plan.OrderBy(shown=shown):
            return below[0][:shown]
        case plan.Product() | plan.Join():
            return (*below[0], _as_row(below[1]))
        case plan.OuterJoin(kind="left"):
            return (*below[0], _or_none(_as_row(below[1])))
        case plan.Aggregate(source):
            return _of_groups(node, Of(shapes(source), arguments, below[0]))
        case _:
            return tuple(map(of_shape, shapes(node)))


def _unpacked(of: Forms, test: Expr) -> Forms:
    """The same of rows for which a test is true: of tuples that it unpacks the number of items."""
    found = list(of)
    for part in conjuncts(test):
        match part:
            case Call(Constant(Unpacks(count)), (Parameter(place),)) if of[place] == TUPLES:
                found[place] = (UNKNOWN,) * count
    return tuple(found)


def _of_rows(annotation: Any) -> Form:
    """What the rows of a table are declared as; of tuples of some width, their items."""
    kind = kind_of(annotation)
    if isinstance(kind, Places) and kind.items:
        return tuple(map(_of_rows, kind.items))
    return declared(kind)


def _as_row(of: Forms) -> Form:
    return of[0] if len(of) == 1 else of


def _or_none(of: Form) -> Form:
    if isinstance(of, tuple):
        return OrNone(of)
    if isinstance(of, OrNone):
        return of
    return of | {NOTHING} if of else UNKNOWN


def _of_groups(node: plan.Aggregate, of: Of) -> Forms:
    if node.row is not None:
        return (UNKNOWN,)
    key = () if node.key is None else (form(_body(node.key, of), of),)
    is_empty = node.key is None
    return (*key, *[_of_folded(folded, of, is_empty=is_empty) for folded in node.aggregates])


def _of_folded(folded: plan.Folded, of: Of, *, is_empty: bool) -> Kinds:
    """What an aggregate shows, which may be that of no rows."""
    if folded.name in ("Count", "CountDistinct"):
        return frozenset({int})
    value = Parameter(0) if folded.value is None else _body(folded.value, of)
    found = kinds(value, of)
    if not found:
        return UNKNOWN
    if folded.name == "Sum":
        found -= {NOTHING}
        return found | {int} if is_number(found) else UNKNOWN
    if folded.name in ("Min", "Max"):
        return found | {NOTHING} if is_empty or folded.skip_none else found
    return UNKNOWN


def _body(f: Function, of: Of) -> Expr:
    return read(f, of.shapes).body
