"""Expressions and plans that cannot raise, as the classes of their rows declare.

`is_calm` proves that an expression cannot raise if fields have values of their declared types.

    o.customer == c.id                          calm
    o.amount > 3             amount: float      calm
    o.amount > 3             amount: Any        may raise
    o.paid is not None and o.paid > day         calm, also where paid: date | None
    o.amount / o.pieces                         may raise

A calm expression may be evaluated for more rows than in Python: a query whose rows are grouped by
the side of an equation computes all groups. Declarations are trusted, as in `simplification.py`.

`forms` finds the classes of values in the bindings of a plan's rows.

    select o.total                  total: float        (float or int,)
    aggregate Count(), Max(o.day)   day: date           (int,), (date or None,)
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeAlias, cast

from optimizer import plan
from optimizer.expr import (
    NONE,
    And,
    Attribute,
    Call,
    Conditional,
    Constant,
    Display,
    Expr,
    First,
    Function,
    Item,
    Operation,
    Or,
    Outer,
    Parameter,
    conjuncts,
    parts,
)
from optimizer.expressions.attempts import Unpacks
from optimizer.expressions.knowledge import Foldable, Shape, Shapes, makes_record, shape_of, total
from optimizer.kinds.fields import members
from optimizer.kinds.kind import Choice, Either, Places, class_of, hints_of, kind_of
from optimizer.plans.join_lists import outputs
from optimizer.plans.properties import fact, nodes, shapes
from optimizer.record import record
from optimizer.subqueries.keyed_rows import as_expression, outers
from optimizer.traverse import with_called

Kinds = frozenset[Any]
"""The classes that a value may have; empty if unknown."""


@record
class RowFacts:
    """Facts about the bindings of a row, by shape and by form, and about the arguments of the
    query."""

    shapes: Shapes
    arguments: tuple[Kinds, ...] = ()
    bindings: tuple[Form, ...] = ()


@record
class NullableParts:
    """A tuple, or None: the form of each item if it is a tuple."""

    items: tuple[Form, ...]


Form: TypeAlias = "Kinds | tuple[Form, ...] | NullableParts"
"""Facts about a value: its classes, or the form of each item of a tuple."""
Known = frozenset[Expr]
"""Expressions that an earlier test has found not to be None."""

UNKNOWN: Kinds = frozenset()
NOTHING = type(None)
NUMBERS: Kinds = frozenset({int, float, bool})
EXACT: Kinds = frozenset({int, bool, Decimal})
WHOLE: Kinds = frozenset({int, bool})
STRINGS: Kinds = frozenset({str})
ORDERED = (
    NUMBERS,
    EXACT,
    STRINGS,
    *(frozenset({kind}) for kind in (bytes, date, datetime, time, timedelta)),
)
"""Classes whose values can be compared with each other."""
ORDERS = frozenset({"<", "<=", ">", ">="})
SUMS = frozenset({"+", "-", "*"})
MEMBERSHIP = frozenset({"in", "not in"})
METHODS = frozenset({"startswith", "endswith", "lower", "upper", "strip", "lstrip", "rstrip"})
CALLS = (str, repr, bool, len, abs)


def is_calm(expr: Expr, of: RowFacts, known: Known = frozenset()) -> bool:
    """Return True if evaluating an expression raises nothing, for rows of the given shapes."""
    if total(expr, of.shapes):
        return True
    match expr:
        case And(inner):
            return _are_calm_in_turn(inner, of, known, is_true=True)
        case Or(inner):
            return _are_calm_in_turn(inner, of, known, is_true=False)
        case Conditional(test, then, otherwise):
            return (
                is_calm(test, of, known)
                and is_calm(then, of, known | present_expressions(test, is_true=True))
                and is_calm(otherwise, of, known | present_expressions(test, is_true=False))
            )
        case Operation(operator, operands):
            every = all(is_calm(operand, of, known) for operand in operands)
            return every and _operation_is_calm(operator, operands, of, known)
        case Display("tuple" | "list") | First():
            return all(is_calm(part, of, known) for part in parts(expr))
        case Call() if makes_record(expr):
            return all(is_calm(part, of, known) for part in parts(expr)[1:])
        case Call(Attribute(text, method), arguments, ()):
            return method in METHODS and all(
                is_calm(part, of, known) and kinds(part, of, known) == STRINGS
                for part in (text, *arguments)
            )
        case Call(Constant(value), (argument,), ()):
            return is_calm(argument, of, known) and _call_is_calm(value, argument, of, known)
        case Item(inner, Constant(int() as place)) if isinstance(
            found := form(inner, of, known), tuple
        ):
            return is_calm(inner, of, known) and place in range(len(found))
        case Attribute(inner) | Item(inner, Constant()):
            return is_calm(inner, of, known) and bool(kinds(expr, of, known))
        case _:
            return False


def present_expressions(test: Expr, *, is_true: bool) -> Known:
    """Return the expressions that cannot be None if the test has the truth value `is_true`."""
    match test:
        case Operation("is not", (inner, other)) if other == NONE:
            return frozenset({inner} if is_true else ())
        case Operation("is", (inner, other)) if other == NONE:
            return frozenset(() if is_true else {inner})
        case Operation("not", (inner,)):
            return present_expressions(inner, is_true=not is_true)
        case And(inner) if is_true:
            return frozenset[Expr]().union(*(present_expressions(t, is_true=True) for t in inner))
        case Or(inner) if not is_true:
            return frozenset[Expr]().union(*(present_expressions(t, is_true=False) for t in inner))
        case _:
            return frozenset()


def kinds(expr: Expr, of: RowFacts, known: Known = frozenset()) -> Kinds:
    """Return the declared classes of the value; none if unknown."""
    found = form(expr, of, known)
    if isinstance(found, NullableParts):
        return frozenset({tuple, NOTHING})
    return found if isinstance(found, frozenset) else frozenset({tuple})


def form(expr: Expr, of: RowFacts, known: Known = frozenset()) -> Form:
    """Return the form of the value."""
    match expr:
        case Parameter(index) if index < len(of.bindings):
            found = of.bindings[index] or UNKNOWN
        case Parameter(index) if index < len(of.shapes):
            found = of_shape(of.shapes[index])
        case Display("tuple", items):
            return tuple([form(item, of, known) for item in items])
        case Item(inner, Constant(int() as place)):
            outer = form(inner, of, known)
            is_inside = isinstance(outer, tuple) and 0 <= place < len(outer)
            found = outer[place] if is_inside else _kinds(expr, of, known)  # type: ignore[index]
        case _:
            found = _kinds(expr, of, known)
    if expr in known:
        return found - {NOTHING} if isinstance(found, frozenset) else _without_none(found)
    return found


def _without_none(found: tuple[Form, ...] | NullableParts) -> Form:
    return found.items if isinstance(found, NullableParts) else found


def _kinds(expr: Expr, of: RowFacts, known: Known) -> Kinds:
    """Return the classes that the value of an expression may have; `UNKNOWN` if not declared."""
    match expr:
        case Constant(value):
            return frozenset({type(value)})
        case Outer(index):
            return of.arguments[index] if index < len(of.arguments) else UNKNOWN
        case Attribute(inner, name):
            kind = shape_of(inner, of.shapes)
            return _of_member(kind, name) if isinstance(kind, type) else UNKNOWN
        case Item(inner, Constant(int() as place)):
            kind = shape_of(inner, of.shapes)
            if isinstance(kind, tuple) or not isinstance(kind, type):
                return UNKNOWN
            names = members(kind) if issubclass(kind, tuple) and hasattr(kind, "_fields") else []
            inside = 0 <= place < len(names)
            return _of_member(kind, names[place]) if inside else UNKNOWN
        case Operation(operator, (a, b)) if operator in SUMS:
            both = kinds(a, of, known), kinds(b, of, known)
            each = both[0] | both[1]
            return each if all(both) and is_numeric(each) else UNKNOWN
        case Operation("-" | "+" | "~", (a,)):
            return signed_classes(kinds(a, of, known))
        case Conditional(test, then, otherwise):
            yes = kinds(then, of, known | present_expressions(test, is_true=True))
            no = kinds(otherwise, of, known | present_expressions(test, is_true=False))
            return yes | no if yes and no else UNKNOWN
        case Call(Attribute(inner, method)) if method in METHODS:
            is_text = kinds(inner, of, known) == STRINGS
            tests = method in ("startswith", "endswith")
            return UNKNOWN if not is_text else frozenset({bool}) if tests else STRINGS
        case Call(Constant(value)) if value in (str, repr):
            return STRINGS
        case Call(Constant(value)) if value is len:
            return frozenset({int})
        case Call(Constant(value), (inner,), ()) if value is abs:
            return signed_classes(kinds(inner, of, known))
        case First(_, then):
            return kinds(then, of, known)
        case _:
            return UNKNOWN


def _of_member(kind: type, name: str) -> Kinds:
    """Return the declared classes of a member; none without a declaration."""
    return declared_classes(hints_of(kind).get(name, Any))


def declared_classes(hint: Any) -> Kinds:
    """Return the classes that an annotation names."""
    match kind_of(hint):
        case Either(kinds):
            every = [declared_classes(each) for each in kinds]
            return frozenset().union(*every) if all(every) else UNKNOWN
        case Choice(values):
            return frozenset(map(type, values))
        case kind:
            return of_class(class_of(kind))


def of_shape(shape: Shape) -> Form:
    """Return the form of a value of some shape."""
    return tuple(map(of_shape, shape)) if isinstance(shape, tuple) else of_class(shape)


def of_class(kind: Any) -> Kinds:
    """Return the classes of a value of a declared class; an integer may stand for a float."""
    if kind is float:
        return frozenset({float, int})
    return frozenset({kind}) if isinstance(kind, type) and kind is not object else UNKNOWN


def is_numeric(found: Form) -> bool:
    """Return True if values of the classes `found` can be added to each other as numbers."""
    return isinstance(found, frozenset) and (found <= NUMBERS or found <= EXACT)


def signed_classes(found: Kinds) -> Kinds:
    """Return the classes of `-x` for the classes `found` of `x`; else UNKNOWN."""
    if not is_numeric(found):
        return UNKNOWN
    return frozenset({int if kind is bool else kind for kind in found})


def is_ordered(found: Form) -> bool:
    """Return True if values of the given classes can be compared with each other; tuples item by
    item."""
    if isinstance(found, tuple):
        return all(map(is_ordered, found))
    if isinstance(found, NullableParts):
        return False
    return bool(found) and any(found <= order for order in ORDERED)


def _are_calm_in_turn(
    tests: tuple[Expr, ...], of: RowFacts, known: Known, *, is_true: bool
) -> bool:
    """Return True if no test raises, given that those before it are true, or false."""
    for test in tests:
        if not is_calm(test, of, known):
            return False
        known |= present_expressions(test, is_true=is_true)
    return True


def _operation_is_calm(
    operator: str, operands: tuple[Expr, ...], of: RowFacts, known: Known
) -> bool:
    """Return True if an operation raises for no operands of the declared classes."""
    if operator in {"not", "==", "!=", "is", "is not"}:
        return True
    found = [kinds(operand, of, known) for operand in operands]
    if len(operands) == 1:
        return bool(signed_classes(found[0])) and (operator != "~" or found[0] <= WHOLE)
    if not all(found):
        return operator in MEMBERSHIP and _is_collection_of_any(operands[1])
    each = found[0] | found[1]
    if operator in ORDERS:
        return is_ordered(each)
    if operator in SUMS:
        return is_numeric(each) or (operator == "+" and each == STRINGS)
    if operator in MEMBERSHIP:
        return _is_collection_of_any(operands[1]) or each == STRINGS
    divides = operator in {"/", "//", "%"} and each <= NUMBERS
    return divides and isinstance(operands[1], Constant) and bool(operands[1].value)


def _is_collection_of_any(expr: Expr) -> bool:
    """Return True for a collection whose items can be compared with any value."""
    match expr:
        case Display("tuple" | "list"):
            return True
        case Constant(value):
            return isinstance(value, tuple | list | frozenset | set | dict)
        case _:
            return False


def _call_is_calm(value: Any, argument: Expr, of: RowFacts, known: Known) -> bool:
    """Return True if a known built-in raises for no argument of the declared classes."""
    if not any(value is call for call in CALLS):
        return False
    found = kinds(argument, of, known)
    if value is len:
        return bool(found) and found <= {str, bytes, tuple, frozenset, list, set, dict}
    if value is abs:
        return bool(found) and found <= NUMBERS
    return True


Forms = tuple[Form, ...]
TUPLES: Kinds = frozenset({tuple})


def forms(node: plan.Node, arguments: tuple[Kinds, ...] = ()) -> Forms:
    """Return the forms of the bindings of a query's rows, given the classes of its arguments."""
    if not outers(node):
        found: Forms = fact(node, "forms", _of_closed)
        return found
    made: dict[int, Forms] = {}
    for part in nodes(node, until=lambda part: not outers(part)):
        below = [made[id(source)] for source in part.inputs()] if outers(part) else []
        made[id(part)] = _forms(part, below, arguments) if outers(part) else forms(part)
    return made[id(node)]


def known_of(node: plan.Node, arguments: tuple[Kinds, ...] = ()) -> RowFacts:
    """Return the facts about the rows of a node, for callables of the rows."""
    return RowFacts(shapes(node), arguments, forms(node, arguments))


def binding_may_be_none(node: plan.Node, place: int) -> bool:
    """Return True unless the binding at `place` is declared to be never None."""
    found = forms(node)[place]
    if isinstance(found, frozenset):
        return not found or NOTHING in found
    return isinstance(found, NullableParts)


def _of_closed(node: plan.Node) -> Forms:
    return _forms(node, [source.known["forms"] for source in node.inputs()], ())


def _forms(node: plan.Node, below: list[Forms], arguments: tuple[Kinds, ...]) -> Forms:
    """Return the forms of a node's bindings, given those of its inputs and of the arguments."""
    match node:
        case plan.Table(row_type=row_type):
            return (_form_of_rows(row_type),)
        case plan.Select(source) | plan.Extend(source):
            of = RowFacts(shapes(source), arguments, below[0])
            lifted = cast("plan.Select | plan.Extend", with_called(node, as_expression))
            made = outputs(lifted)
            return tuple([form(expr, of) for expr in made])
        case plan.Where(source, p):
            return _unpack_forms(below[0], as_expression(p, shapes(source)).body)
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
            return _forms_of_groups(node, RowFacts(shapes(source), arguments, below[0]))
        case _:
            return tuple(map(of_shape, shapes(node)))


def _unpack_forms(of: Forms, test: Expr) -> Forms:
    """Return the forms of rows that pass a test: unpacked tuples have a number of items."""
    found = list(of)
    for part in conjuncts(test):
        match part:
            case Call(Constant(Unpacks(count)), (Parameter(place),)) if of[place] == TUPLES:
                found[place] = (UNKNOWN,) * count
    return tuple(found)


def _form_of_rows(annotation: Any) -> Form:
    """Return the form of a table's rows as declared; for tuples of fixed length, of their items."""
    kind = kind_of(annotation)
    if isinstance(kind, Places) and kind.items:
        return tuple(map(_form_of_rows, kind.items))
    return declared_classes(kind)


def _as_row(of: Forms) -> Form:
    return of[0] if len(of) == 1 else of


def _or_none(of: Form) -> Form:
    """Return the form of a value that may also be None."""
    if isinstance(of, tuple):
        return NullableParts(of)
    if isinstance(of, NullableParts):
        return of
    return of | {NOTHING} if of else UNKNOWN


def _forms_of_groups(node: plan.Aggregate, of: RowFacts) -> Forms:
    """Return the forms of an aggregate's bindings; without a key, its results may be of no rows."""
    if node.row is not None:
        return (UNKNOWN,)
    key = () if node.key is None else (form(_body_of(node.key, of), of),)
    is_empty = node.key is None
    return (*key, *[_classes_of_fold(folded, of, is_empty=is_empty) for folded in node.aggregates])


def _classes_of_fold(folded: plan.Folded, of: RowFacts, *, is_empty: bool) -> Kinds:
    """Return the classes of an aggregate's result, which may be its result for no rows."""
    if folded.name in ("Count", "CountDistinct"):
        return frozenset({int})
    if folded.name == "Collect" and not folded.skip_none and not folded.functions:
        return frozenset({Foldable})
    value = Parameter(0) if folded.value is None else _body_of(folded.value, of)
    found = kinds(value, of)
    if not found:
        return UNKNOWN
    if folded.name == "Sum":
        found -= {NOTHING}
        return found | {int} if is_numeric(found) else UNKNOWN
    if folded.name in ("Min", "Max"):
        return found | {NOTHING} if is_empty or folded.skip_none else found
    return UNKNOWN


def _body_of(f: Function, of: RowFacts) -> Expr:
    return as_expression(f, of.shapes).body
