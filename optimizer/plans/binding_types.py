"""What is declared of the values of each binding, as annotations: for the types of columns.

    table orders: Order                                 Order
    select (order.id, order.day > 3)                    tuple[int, bool]
    aggregate Count(), Collect(order.id) by order.town  str, int, Bag of int

It is what annotations say, which nobody has checked, and `Any` where nothing is said. A value may
be None whatever is said, as the rows of an outer join are.

Cost: O(the plan), once; the callables are read if nobody has read them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from types import GenericAlias
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    NONE,
    Attribute,
    Call,
    Conditional,
    Constant,
    Display,
    Expr,
    Function,
    Item,
    Operation,
    Parameter,
)
from optimizer.expressions.declared import ARITHMETIC
from optimizer.expressions.knowledge import TESTS, Shape, makes_record
from optimizer.expressions.naming import Naming, Nesting, RowsOf, naming_of
from optimizer.kinds.fields import hints
from optimizer.kinds.kind import ANYTHING, Scalar, item_of, kind_of, without_none
from optimizer.lifting.lift import lift
from optimizer.plans.properties import bindings, fact, shapes

Types = tuple[Any, ...]
_SAME = (
    *(plan.Where, plan.Distinct, plan.OrderBy, plan.Top, plan.SemiJoin, plan.AntiJoin, plan.View),
    *(plan.Shared, plan.Negate, plan.Previous, plan.Difference, plan.DifferenceAll, plan.Tolerate),
)
_BOTH = (plan.Union, plan.UnionAll, plan.Intersection, plan.IntersectionAll)
_PAIRS = (plan.Join, plan.OuterJoin, plan.Product)
_OF_VALUES = ("Min", "Max")
_ADDED = (int, float)
_SUMS: dict[Any, type] = {bool: int, int: int, float: float, Decimal: Decimal}
_AVERAGES: dict[Any, type] = {bool: float, int: float, float: float, Decimal: Decimal}


def binding_types(node: plan.Node) -> Types:
    """An annotation of each binding.

    >>> from reactive import Database
    >>> pairs = Database().table(tuple[int, str], name="pairs")
    >>> binding_types(pairs.select(lambda p: (p[1], p[0] > 3)).plan)
    (tuple[str, bool],)
    """
    found: Types = fact(node, "binding_types", _types)
    return found


def type_of(function: Function, node: plan.Node) -> Any:
    """An annotation of what a callable gives of the rows of a node."""
    lifted = lift(function, shapes(node)) if isinstance(function, Opaque) else function
    return _of(lifted.body, binding_types(node))


def _types(node: plan.Node) -> Types:
    of = [source.known["binding_types"] for source in node.inputs()]
    found: Types = ()
    match node:
        case plan.Table(row_type=kind):
            found = (Any if kind is object else kind,)
        case plan.Select(source, function):
            found = (_of_named(naming_of(function), of[0]) or type_of(function, source),)
        case plan.Extend(source, keep, columns):
            found = (*(of[0][place] for place in keep), *(type_of(f, source) for f in columns))
        case plan.Aggregate(source, key, aggregates):
            keys = () if key is None else (type_of(key, source),)
            found = (*keys, *(_of_aggregate(each, source) for each in aggregates))
        case plan.Join() | plan.OuterJoin() | plan.Product():
            found = (*of[0], *of[1])
        case plan.OrderBy(shown=int() as count):
            found = of[0][:count]
        case _ if isinstance(node, _SAME):
            found = of[0]
        case _ if isinstance(node, _BOTH):
            found = tuple(a if a == b else Any for a, b in zip(*of, strict=True))
    known = tuple(map(_of_shape, shapes(node)))
    return found if len(found) == bindings(node) else known


def _of_named(how: Naming | None, types: Types) -> RowsOf | None:
    """What is declared of rows of a generated class."""
    if isinstance(how, Nesting):
        return RowsOf(how.types, how.columns, how.levels)
    is_known = how is not None and how.generated and len(how.columns) == len(types)
    return RowsOf(types, how.columns) if how is not None and is_known else None


def _of_aggregate(folded: plan.Folded, node: plan.Node) -> Any:
    if folded.name == "Count":
        return int
    if folded.value is None or folded.name not in ("Collect", "Sum", "Avg", *_OF_VALUES):
        return Any
    value = type_of(folded.value, node)
    if folded.name == "Collect":
        return GenericAlias(tuple, (value, ...))
    if folded.name in _OF_VALUES:
        return value
    kind = without_none(kind_of(value)) if not isinstance(value, RowsOf) else ANYTHING
    found = kind.python if isinstance(kind, Scalar) else None
    return (_SUMS if folded.name == "Sum" else _AVERAGES).get(found, Any)


def _of_shape(shape: Shape) -> Any:
    if isinstance(shape, tuple):
        return GenericAlias(tuple, tuple(map(_of_shape, shape)))
    return Any if shape is None else shape


def _of(expr: Expr, types: Types) -> Any:
    inner = partial(_of, types=types)
    match expr:
        case Parameter(index) if index < len(types):
            return types[index]
        case Attribute(of, name):
            return _field(inner(of), name)
        case Item(of, Constant(int() as place)):
            return item_of(inner(of), place)
        case Constant(value) if value is not None:
            return type(value)
        case Display("tuple", items):
            return GenericAlias(tuple, tuple(map(inner, items)))
        case Operation(operator, operands):
            return _of_operation(operator, [inner(operand) for operand in operands])
        case Conditional(_, then, otherwise):
            return _either(then, otherwise, inner)
        case Call(Constant(type() as kind)) if makes_record(expr):
            return kind
        case _:
            return Any


def _either(then: Expr, otherwise: Expr, inner: Callable[[Expr], Any]) -> Any:
    """The annotation of one of two values; None is one of any."""
    found = [inner(each) for each in (then, otherwise) if each != NONE]
    return found[0] if found and found[0] == found[-1] else Any


def _field(of: Any, name: str) -> Any:
    if isinstance(of, RowsOf):
        return dict(zip(of.names, of.types, strict=False)).get(name, Any)
    return hints(of).get(name, Any) if isinstance(of, type) else Any


def _of_operation(operator: str, operands: Sequence[Any]) -> Any:
    if operator in TESTS:
        return bool
    if operator not in ARITHMETIC or not {*operands} <= {*_ADDED}:
        return Any
    return int if {*operands} == {int} and operator != "/" else float
