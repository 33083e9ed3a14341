"""Declared types of expressions and bindings, as kinds of values and as annotations.

`declared_kind` returns the declared kind of values (`order_kinds.py`) of an expression.

    order.total, of int                 "number"
    order.total * 2                     "number"
    count(*), sum(order.total)          "number"
    order.note if order.id else None    the kind of order.note
    order.note, of Any or int | str     None: not known

Declarations are not checked: a value of another kind is an error.

Cost: O(the plan above the declaration) for an expression.

`binding_types` returns the declared type of each binding, for the types of columns.

    table orders: Order                                 Order
    select (order.id, order.day > 3)                    tuple[int, bool]
    aggregate Count(), Collect(order.id) by order.town  str, int, Bag of int

It is the annotation, unchecked, and `Any` where there is none. A value may be None in spite of its
annotation, as in the rows of an outer join.

Cost: O(the plan), once; callables that were not lifted before are lifted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from types import BuiltinFunctionType, FunctionType, GenericAlias, MethodType, NoneType
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    NONE,
    And,
    Apply,
    Attempt,
    Attribute,
    Call,
    Conditional,
    Constant,
    Display,
    Expr,
    First,
    Formatted,
    Function,
    Item,
    Lifted,
    Operation,
    Or,
    Parameter,
    Text,
)
from optimizer.expressions.knowledge import TESTS, Shape, makes_record, record_field
from optimizer.expressions.order_kinds import (
    ANY_KIND,
    BINARY,
    DECIMAL,
    ITEMS,
    NUMBER,
    TEXT,
    OrderKind,
    order_kind,
)
from optimizer.expressions.simplification import ARITHMETIC
from optimizer.expressions.text import Level, Naming, Nesting, RowsOf, naming_of
from optimizer.kinds.fields import hints, returned_by
from optimizer.kinds.kind import (
    ANYTHING,
    Choice,
    Either,
    Instance,
    Items,
    Kind,
    Places,
    Scalar,
    Struct,
    classes_of,
    is_uuid,
    item_of,
    kind_of,
    without_none,
)
from optimizer.lifting.lift import lift
from optimizer.plans.properties import bindings, fact, shapes

_BOTH = (plan.Union, plan.UnionAll, plan.Intersection, plan.IntersectionAll)
_PAIRS = (plan.Join, plan.OuterJoin, plan.Product)


_OF_TYPES: dict[Any, str] = {
    **dict.fromkeys((int, float, bool, Decimal, Fraction), NUMBER),
    str: TEXT,
    bytes: "bytes",
    date: "date",
    timedelta: "duration",
}
_FAMILIES: dict[Any, frozenset[str]] = {
    **dict.fromkeys((int, bool, NoneType), frozenset()),
    **dict.fromkeys((float, Fraction), frozenset({"binary"})),
    Decimal: frozenset({"decimal"}),
}
_OF_CALLS: dict[Any, str] = {
    **dict.fromkeys((int, float, len, ord, bool, hash), NUMBER),
    **dict.fromkeys((str, repr, chr, format), TEXT),
}
_SAME_ROWS = (plan.Where, plan.Distinct, plan.OrderBy, plan.Top, plan.SemiJoin, plan.AntiJoin)
MOST = 40
"""Nodes that are searched for the declaration of a binding."""


def declared_kind(expr: Expr, node: plan.Node, most: int = MOST) -> OrderKind | None:
    """Return the kind that an expression over the rows of `node` is declared to have, or None.

    `ANY_KIND` is the kind of None alone.
    """
    match expr:
        case Parameter(index):
            return _kind_of_binding(node, index, most)
        case Attribute(Parameter(index), name):
            return _of_field(node, index, name, most)
        case Conditional(_, then, otherwise):
            return _common([declared_kind(each, node, most) for each in (then, otherwise)])
        case And(inner) | Or(inner):
            return _common([declared_kind(each, node, most) for each in inner])
        case First(_, then):
            return declared_kind(then, node, most)
        case Attempt(of, otherwise):
            return _common([declared_kind(each, node, most) for each in (of, otherwise)])
        case Constant(value):
            return _of_constant(value)
        case Text() | Formatted():
            return TEXT
        case Display("tuple", items):
            found = [declared_kind(item, node, most) for item in items]
            return None if None in found else ("tuple", *[each for each in found if each])
        case Operation(operator, operands):
            return _of_operation(operator, [declared_kind(each, node, most) for each in operands])
        case Call(Constant(value)):
            return _of_call(value)
        case Apply(function):
            return _kind_of_returned(function)
        case Item(Parameter(), Constant()):
            return kind_of_type(_type_of(expr, node))
        case _:
            return None


def declared_sum_kind(expr: Expr, node: plan.Node) -> OrderKind | None:
    """Return the one kind of sums (`sum_kind`) of the values that an expression over the rows of
    `node` is declared to have; None if they mix kinds, or are not declared.
    """
    found = _families(expr, node)
    if found is None or found == {"binary", "decimal"}:
        return None
    return DECIMAL if found == {"decimal"} else BINARY


def _families(expr: Expr, node: plan.Node) -> frozenset[str] | None:
    """Return the families of numbers, beside integers, of an expression; None if not declared."""
    match expr:
        case Constant(None):
            return frozenset()
        case Constant(value):
            return _FAMILIES.get(type(value))
        case Conditional(_, then, otherwise):
            return _all_families([then, otherwise], node)
        case And(inner) | Or(inner):
            return _all_families(inner, node)
        case First(_, then):
            return _families(then, node)
        case Attempt(of, otherwise):
            return _all_families([of, otherwise], node)
        case Operation(operator) if operator in TESTS:
            return frozenset()
        case Operation(operator, operands) if operator in ARITHMETIC:
            found = _all_families(operands, node)
            return frozenset({"binary"}) if operator == "/" and found == frozenset() else found
        case Call(Constant(value)) if any(value is known for known in (int, len, ord, bool, hash)):
            return frozenset()
        case Call(Constant(value)) if value is float:
            return frozenset({"binary"})
        case Apply(function):
            return _families_of_type(returned_annotation(function))
        case _:
            return _families_of_type(_type_of(expr, node))


def _all_families(exprs: Sequence[Expr], node: plan.Node) -> frozenset[str] | None:
    """Return the families of all expressions together; None if one of them is not declared."""
    found: frozenset[str] = frozenset()
    for expr in exprs:
        families = _families(expr, node)
        if families is None:
            return None
        found |= families
    return found


def _families_of_type(annotation: Any) -> frozenset[str] | None:
    """Return the families of numbers of a type's values; None if some have none."""
    match kind_of(annotation):
        case Either(kinds):
            found = [_families_of_type(each) for each in kinds]
        case Choice(values):
            found = [_FAMILIES.get(type(value)) for value in values]
        case Scalar(python) | Instance(python):
            found = [_FAMILIES.get(python)]
        case _:
            return None
    return None if None in found else frozenset().union(*[each for each in found if each])


def kind_of_type(annotation: Any) -> OrderKind | None:
    """Return the kind of the values of a type, None aside; None if that is not one.

    >>> kind_of_type(int | None), kind_of_type(tuple[int, str]), kind_of_type(int | str)
    ('number', ('tuple', 'number', 'text'), None)
    """
    if isinstance(annotation, RowsOf | Level):
        return None
    match kind_of(annotation):
        case Either(kinds):
            return _common([kind_of_type(each) for each in kinds])
        case Choice(values):
            return _common([_of_constant(value) for value in values])
        case Places(items):
            return _of_items("tuple", items)
        case Items(python, item) if python is tuple:
            return _of_items(ITEMS, (item,))
        case Struct(python) as record if issubclass(python, tuple):
            return _of_items("tuple", tuple(record.fields.values()))
        case Scalar(_, zone) if zone is not None:
            return "instant"
        case Scalar(python) if is_uuid(python):
            return f"{python.__module__}.{python.__qualname__}"
        case Scalar(python) | Instance(python):
            return ANY_KIND if python is NoneType else _OF_TYPES.get(python)
        case _:
            return None


def _of_items(word: str, items: Sequence[Kind]) -> OrderKind | None:
    """Return the order kind of a tuple with the given items; None if one has none, or it is
    empty."""
    found = [kind_of_type(item) for item in items]
    if None in found or not found:
        return None
    return (word, *[each for each in found if each])


def _of_constant(value: Any) -> OrderKind | None:
    """Return the order kind of a constant; None if it has no order."""
    try:
        return order_kind(value, nulls=True)
    except TypeError:
        return None


def _common(kinds: Sequence[OrderKind | None]) -> OrderKind | None:
    """Return the one kind of all values that are not None alone; None if there are several."""
    found = {kind for kind in kinds if kind != ANY_KIND}
    return found.pop() if len(found) == 1 else ANY_KIND if not found else None


def _of_operation(operator: str, kinds: Sequence[OrderKind | None]) -> OrderKind | None:
    """Return the order kind of an operation's result, given those of its operands; None if
    unknown."""
    if operator in TESTS:
        return NUMBER
    is_known = operator in ARITHMETIC or operator in ("**", "&", "|", "^", "<<", ">>", "~")
    if is_known and kinds and set(kinds) == {NUMBER}:
        return NUMBER
    return TEXT if operator == "+" and set(kinds) == {TEXT} else None


def _of_call(value: Any) -> OrderKind | None:
    """Return the order kind of a known function's result; None for other or unhashable values."""
    try:
        return _OF_CALLS.get(value)
    except TypeError:
        return None


def _kind_of_returned(function: Opaque) -> OrderKind | None:
    """Return the order kind that a callable declares to return; None if it declares none."""
    return kind_of_type(returned_annotation(function))


def returned_annotation(function: Opaque) -> Any:
    """Return the annotation of a callable's result."""
    called = function.function
    if not isinstance(called, FunctionType | MethodType | BuiltinFunctionType | type):
        called = type(called).__call__
    return returned_by(called)


def _kind_of_binding(node: plan.Node, place: int, most: int) -> OrderKind | None:
    """Return the order kind of a binding, searched at most `most` nodes deep; None if not
    declared."""
    known = _declared_of(node, place)
    if known is not None or not most:
        return known
    match node:
        case _ if isinstance(node, _SAME_ROWS):
            return _kind_of_binding(node.inputs()[0], place, most - 1)
        case _ if isinstance(node, _BOTH):
            return _common([_kind_of_binding(each, place, most - 1) for each in node.inputs()])
        case _ if isinstance(node, _PAIRS):
            count = bindings(node.left)
            if place < count:
                return _kind_of_binding(node.left, place, most - 1)
            return _kind_of_binding(node.right, place - count, most - 1)
        case plan.Extend(source, keep, columns):
            if place < len(keep):
                return _kind_of_binding(source, keep[place], most - 1)
            return _of_function(columns[place - len(keep)], source, most - 1)
        case plan.Select(source, function):
            return _of_function(function, source, most - 1)
        case plan.Aggregate(source, key, aggregates):
            if key is not None and place == 0:
                return _of_function(key, source, most - 1)
            return _of_fold(aggregates[place - (key is not None)], source, most - 1)
        case _:
            return None


def _declared_of(node: plan.Node, place: int) -> OrderKind | None:
    """Return the order kind of the declared type of binding `place`; None if it has none."""
    types = binding_types(node)
    return kind_of_type(types[place]) if place < len(types) else None


def _of_field(node: plan.Node, place: int, name: str, most: int) -> OrderKind | None:
    """Return the order kind of field `name` of a binding; None if not declared within `most`
    nodes."""
    names = (f"row{n}" for n in range(bindings(node)))
    reads = Lifted(Attribute(Parameter(place), name), tuple(names), (), bindings(node))
    known = kind_of_type(type_of(reads, node))
    if known is not None or not most:
        return known
    while isinstance(node, _SAME_ROWS):
        node = node.inputs()[0]
    if isinstance(node, plan.Select) and isinstance(node.function, Lifted):
        field = record_field(node.function.body, name)
        return None if field is None else declared_kind(field, node.input, most - 1)
    return None


def _type_of(expr: Expr, node: plan.Node) -> Any:
    names = tuple(f"row{n}" for n in range(bindings(node)))
    return type_of(Lifted(expr, names, (), bindings(node)), node)


def _of_function(function: Any, node: plan.Node, most: int) -> OrderKind | None:
    """Return the order kind of a callable's result; None if it is not lifted or not declared."""
    if not isinstance(function, Lifted):
        return None
    return declared_kind(function.body, node, most)


def _of_fold(folded: plan.Folded, node: plan.Node, most: int) -> OrderKind | None:
    """Return the order kind of an aggregate's result; None if unknown."""
    if folded.name in ("Count", "CountDistinct"):
        return NUMBER
    if folded.value is None or folded.name not in ("Sum", "Avg", "Min", "Max"):
        return None
    found = _of_function(folded.value, node, most)
    return found if found == NUMBER or folded.name in ("Min", "Max") else None


Types = tuple[Any, ...]
_SAME = (
    *(plan.Where, plan.Distinct, plan.OrderBy, plan.Top, plan.SemiJoin, plan.AntiJoin, plan.View),
    *(plan.Shared, plan.Negate, plan.Previous, plan.Difference, plan.DifferenceAll, plan.Tolerate),
)
_OF_VALUES = ("Min", "Max")
_ADDED = (int, float)
_SUMS: dict[Any, type] = {bool: int, int: int, float: float, Decimal: Decimal}
_AVERAGES: dict[Any, type] = {bool: float, int: float, float: float, Decimal: Decimal}


def binding_types(node: plan.Node) -> Types:
    """Return an annotation for each binding.

    >>> from reactive import Database
    >>> pairs = Database().table(tuple[int, str], name="pairs")
    >>> binding_types(pairs.select(lambda p: (p[1], p[0] > 3)).plan)
    (tuple[str, bool],)
    """
    found: Types = fact(node, "binding_types", _types)
    return found


def type_of(function: Function, node: plan.Node) -> Any:
    """Return an annotation of a callable's result for the rows of a node."""
    lifted = lift(function, shapes(node)) if isinstance(function, Opaque) else function
    return _type_of_expr(lifted.body, binding_types(node))


def declared_classes(function: Function, node: plan.Node) -> frozenset[type]:
    """Return the classes that a callable's results for the rows of a node are declared to have,
    None aside; nothing if they are not declared, or values of other classes are admitted."""
    return (classes_of(kind_of(type_of(function, node))) or frozenset()) - {NoneType}


def _types(node: plan.Node) -> Types:
    """Return the declared types of a node's bindings; where not declared, the types of their
    shapes."""
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
    """Return the declared type of rows of a generated class; None for other rows."""
    if isinstance(how, Nesting):
        return RowsOf(how.types, how.columns, how.levels)
    is_known = how is not None and how.generated and len(how.columns) == len(types)
    return RowsOf(types, how.columns) if how is not None and is_known else None


def _of_aggregate(folded: plan.Folded, node: plan.Node) -> Any:
    """Return the type of an aggregate's result; `Any` if unknown."""
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
    """Return the type of values of a shape; `Any` if it is unknown."""
    if isinstance(shape, tuple):
        return GenericAlias(tuple, tuple(map(_of_shape, shape)))
    return Any if shape is None else shape


def _type_of_expr(expr: Expr, types: Types) -> Any:
    """Return the type of an expression over bindings of the given types; `Any` if unknown."""
    inner = partial(_type_of_expr, types=types)
    match expr:
        case Parameter(index) if index < len(types):
            return types[index]
        case Attribute(of, name):
            return _type_of_field(inner(of), name)
        case Item(of, Constant(int() as place)):
            return item_of(inner(of), place)
        case Constant(value) if value is not None:
            return type(value)
        case Display("tuple", items):
            return GenericAlias(tuple, tuple(map(inner, items)))
        case Operation(operator, operands):
            return _type_of_operation(operator, [inner(operand) for operand in operands])
        case Conditional(_, then, otherwise):
            return _common_type(then, otherwise, inner)
        case Call(Constant(type() as kind)) if makes_record(expr):
            return kind
        case _:
            return Any


def _common_type(then: Expr, otherwise: Expr, inner: Callable[[Expr], Any]) -> Any:
    """Return the common annotation of two values; None fits each annotation."""
    found = [inner(each) for each in (then, otherwise) if each != NONE]
    return found[0] if found and found[0] == found[-1] else Any


def _type_of_field(of: Any, name: str) -> Any:
    """Return the declared type of a field; `Any` if there is none."""
    if isinstance(of, RowsOf):
        return dict(zip(of.names, of.types, strict=False)).get(name, Any)
    return hints(of).get(name, Any) if isinstance(of, type) else Any


def _type_of_operation(operator: str, operands: Sequence[Any]) -> Any:
    """Return the type of an operation's result: bool for tests, a number's type, or `Any`."""
    if operator in TESTS:
        return bool
    if operator not in ARITHMETIC or not {*operands} <= {*_ADDED}:
        return Any
    return int if {*operands} == {int} and operator != "/" else float
