"""Refuse, when a query is built, callables that read fields which its rows cannot have.

    sales.where(lambda s: s.prise > 3)   PlanError: Sale has no field 'prise'; did you mean 'price'?
    pairs.select(lambda p: p[2])         PlanError: a tuple of 2 items has no item 2

The callables of each node are read when the node is built, with the believed shapes of their
arguments: the shapes that `knowledge.py` proves, and the types of annotations and outer joins.

Sound:  a refused read would raise for every row of every class known today. A read behind a test,
        in the same callable or in one below, is accepted if the test may tell the class of a row:
        a call of `isinstance`, `hasattr` or of a function that was not lifted, a constant, a name
        that begins with an underscore.
Cost:   a look at the code of a callable whose names all rows have; lifting any other callable, and
        a select below another node (35 us).
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator
from dataclasses import replace
from dis import opmap
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.errors import PlanError
from optimizer.expr import (
    And,
    Apply,
    Attribute,
    Call,
    Conditional,
    Constant,
    Display,
    Expr,
    First,
    Function,
    Item,
    Lifted,
    Local,
    Operation,
    Or,
    Outer,
    Parameter,
    Slot,
    SlotValue,
    Subquery,
    parts,
    reads,
    transform,
    walk,
)
from optimizer.expressions.knowledge import PURE, Shape, Shapes
from optimizer.expressions.members import has, lacks, length, makes_instances, why_unreadable
from optimizer.expressions.simplification import zoned_fields
from optimizer.expressions.text import text
from optimizer.kinds.fields import hints, is_record, members
from optimizer.kinds.kind import Places, Struct, kind_of, without_none
from optimizer.lifting.lift import lift, lift_all
from optimizer.lifting.readings import kin_of, of_code
from optimizer.plans import fingerprint
from optimizer.plans.facts import as_row
from optimizer.plans.forms import form_of
from optimizer.plans.properties import fact, nodes
from optimizer.traverse import called, substituted

TELLING = frozenset({isinstance, issubclass, type, repr, str, hash})
SUBSCRIPTION = {opmap.get("BINARY_SUBSCR", opmap["BINARY_OP"])}
"""Opcodes that ask for an item."""
PLAIN = PURE - TELLING
"""Built-in functions whose result does not depend on the class of a row."""
LIBRARY = frozenset({"optimizer", "reactive"})
AROUND = Local("outer")
"""Name, in messages, of the row around a query."""


def check_reads(node: plan.Node) -> None:
    """Refuse a node if its callables read a field or item that its rows cannot have.

    The inputs of the node have been checked.

    Raises
    ------
    PlanError: a row cannot have the field or item.
    """
    if isinstance(node, plan.Component):
        node = node.input
    if "checked" in node.known:
        return
    form = form_of(node)
    if form is None or "checked" not in form.known:
        given = [believed_shapes(source) for source in node.inputs()]
        found = [_check(function, of, node.inputs()) for function, of in called(node, given)]
        if isinstance(node, plan.Fixpoint):
            _check_again(node)
        if form is not None and all(found) and _are_general(node.inputs()):
            form.known["checked"] = True
    node.known["checked"] = True


def check_every_read(root: plan.Node) -> None:
    """Check the nodes of a plan that have not been checked."""
    for node in _unchecked_nodes(root):
        check_reads(node)


def take_as_checked(root: plan.Node) -> None:
    """Mark all nodes of a plan as checked."""
    for node in _unchecked_nodes(root):
        node.known["checked"] = True


def _unchecked_nodes(root: plan.Node) -> list[plan.Node]:
    return nodes(root, until=lambda node: "checked" in node.known)


def _are_general(inputs: Iterable[plan.Node]) -> bool:
    """Return True if the shapes of the nodes' rows depend on no value of a callable."""
    return all(form is not None and form.is_general for form in map(form_of, inputs))


def check_callable(function: Function, node: plan.Node) -> None:
    """Refuse a callable that reads what the rows of a node cannot have; see `check_reads`."""
    _check(function, believed_shapes(node), (node,))


def believed_shapes(node: plan.Node) -> Shapes:
    """Return the shapes of the bindings by annotations; a binding of an outer join may also be
    None."""
    found: Shapes = fact(node, "believed", _compute_believed)
    return found


def _compute_believed(node: plan.Node) -> Shapes:
    """Return the shapes of a node's rows, if the declared types of tables and fields are
    believed."""
    inputs = [source.known["believed"] for source in node.inputs()]
    match node:
        case plan.Known():
            return node.facts.shapes(node, inputs)
        case plan.Table():
            return (_declared_shape(node.row_type),)
        case plan.Select(_, function):
            given = inputs[0]
            return (_shape(_lift_if_opaque(function, given).body, given),)
        case plan.Extend(_, keep, columns):
            of = inputs[0]
            made = [_shape(_lift_if_opaque(column, of).body, of) for column in columns]
            return (*[of[place] for place in keep], *made)
        case plan.OuterJoin():
            return (*inputs[0], as_row(inputs[1]))
        case plan.Component(plan.Fixpoint() as fixpoint, index):
            return believed_shapes(fixpoint.bodies[index])
        case plan.Component(plan.Iterate() as iterate, index):
            return (None,) * len(believed_shapes(iterate.bodies[index]))
        case _:
            return node.facts.shapes(node, inputs)


def _declared_shape(annotation: Any) -> Shape:
    """Return the shape of an annotation: a record or a tuple, also if it may be None."""
    match without_none(kind_of(annotation)):
        case Places(items) if items:
            return tuple(map(_declared_shape, items))
        case Struct(python):
            return python
        case _:
            return None


def _shape(expr: Expr, of: Shapes) -> Shape:
    """Return the believed shape of the value of an expression, or None."""
    match expr:
        case Parameter(index):
            return of[index] if index < len(of) else None
        case Outer(_, shape):
            return shape  # type: ignore[no-any-return]
        case Display("tuple", items):
            return tuple([_shape(item, of) for item in items])
        case Call(Constant(type() as made)) if is_record(made):
            return made if makes_instances(made) else None
        case First(_, then):
            return _shape(then, of)
        case Attribute(inner, name):
            kind = _shape(inner, of)
            return _declared_shape(hints(kind).get(name)) if isinstance(kind, type) else None
        case Item(inner, key):
            outer, position = _shape(inner, of), _position(key)
            if position is None or not isinstance(outer, tuple):
                return None
            return outer[position] if _fits(position, len(outer)) else None
        case _:
            return None


def _check(function: Function, of: Shapes, below: Iterable[plan.Node]) -> bool:
    """Refuse a callable with a wrong read.

    Return True if it has none, whatever the values of its variables.
    """
    if not _is_suspicious(function, of):
        return True
    known = of_code(function, of) if isinstance(function, Opaque) else {}
    if "is right" in known:
        return True
    lifted = _lift_if_opaque(function, of)
    wrongs = []
    if any(isinstance(e, Subquery) or _wrong(e, of) for e in walk(lifted.body)):
        for expr in _asked_parts(lifted.body, of):
            if wrong := _wrong(expr, of):
                shown = transform(expr, lambda e: AROUND if isinstance(e, Outer) else e)
                wrongs.append((text(shown, lifted.names), wrong))
            elif isinstance(expr, Subquery):
                wrongs += _wrong_inside(expr, lifted, of)
    if not wrongs:
        known["is right"] = True
    for read, wrong in wrongs:
        if not any(map(_is_told, below)):
            origin = lifted.origins[0]
            raise PlanError(f"{wrong}\n  in {origin.role}: {origin} reads {read}")
    return not wrongs and isinstance(function, Opaque) and _is_right_for_all(function, of)


def _wrong_inside(expr: Subquery, around: Lifted, of: Shapes) -> list[tuple[str, str]]:
    """Return the wrong reads of a sub-query, of its own rows and of the row around it.

    Return none if one of its callables may tell the class of a row.
    """
    outer = tuple([_shape(argument, of) for argument in expr.arguments])
    parts_of, wrongs = [], []
    for node in nodes(expr.query):
        given = [believed_shapes(source) for source in node.inputs()]
        for function, own in called(node, given):
            lifted, every = _lift_if_opaque(function, own), (*own, *outer)
            inner = list(walk(_arguments_as_parameters(lifted)))
            parts_of.append((inner, every))
            wrongs += [(part, lifted, w) for part in inner if (w := _wrong(part, every))]
    if not wrongs or any(
        _tells(part, every)
        for inner, every in parts_of
        for part in inner
        if not _wrong(part, every)
    ):
        return []
    names = tuple([text(argument, around.names) for argument in expr.arguments])
    return [(text(part, (*lifted.names, *names)), wrong) for part, lifted, wrong in wrongs]


def _arguments_as_parameters(function: Lifted) -> Expr:
    """Return the body of a callable, with its reads of the row around it as parameters after its
    own."""
    width = function.parameters
    return transform(
        function.body, lambda e: Parameter(width + e.index) if isinstance(e, Outer) else e
    )


def _is_right_for_all(function: Opaque, of: Shapes) -> bool:
    """Return True if a callable without a wrong read has none for other values of its variables."""
    kin = kin_of(function)
    if kin is None or not kin.values:
        return kin is not None
    reading = lift_all(function, of)
    if reading is None:
        return False
    held: dict[int, SlotValue] = {}

    def share_slot(part: Expr) -> Expr:  # kin share one reading
        if not isinstance(part, Slot):
            return part
        return Slot(held.setdefault(id(part.held), SlotValue(part.held.value)), part.name)

    body = transform(reading[0], share_slot)
    is_right = not any(_wrong(expr, of) for expr in _asked_parts(body, of))
    return is_right and not any(each.is_asked for each in held.values())


def _asked_parts(expr: Expr, of: Shapes) -> Iterator[Expr]:
    """Iterate over the parts of an expression, except those behind a test that may tell a row's
    class."""
    yield expr
    match expr:
        case And(inner) | Or(inner):
            for part in inner:
                yield from _asked_parts(part, of)
                if _may_tell(part, of):
                    return
        case Conditional(test, then, otherwise):
            yield from _asked_parts(test, of)
            if not _may_tell(test, of):
                yield from _asked_parts(then, of)
                yield from _asked_parts(otherwise, of)
        case _:
            for part in parts(expr):
                yield from _asked_parts(part, of)


def _may_tell(test: Expr, of: Shapes) -> bool:
    """Return True if a test may depend on more than the values of the rows' fields."""
    return not reads(test) or any(_tells(part, of) for part in walk(test))


def _tells(part: Expr, of: Shapes) -> bool:
    """Return True if a part may tell the class of a row, as a call or an undeclared attribute
    may."""
    match part:
        case Apply():
            return True
        case Call(Constant(value)):
            is_plain = isinstance(value, types.BuiltinFunctionType | type) and value in PLAIN
            return not (is_plain or _is_of_the_library(value))
        case Call(Attribute(inner)):
            return isinstance(inner, Parameter) or isinstance(_shape(inner, of), type)
        case Attribute(inner, name):
            kind = _shape(inner, of)
            is_other = isinstance(kind, type) and name not in members(kind)
            return name.startswith("_") or is_other
        case _:
            return False


def _is_of_the_library(value: Any) -> bool:
    """Return True if a function belongs to a package that builds plans, and not to the user."""
    return str(getattr(value, "__module__", "")).partition(".")[0] in LIBRARY


def _wrong(expr: Expr, of: Shapes) -> str | None:
    """Return the message for a read of a missing field or item, or for a compared naive time.

    The naive time is a constant compared with an instant. Return None if neither is certain.
    """
    match expr:
        case Attribute(inner, name):
            kind = _shape(inner, of)
            return _no_field(kind, name) if isinstance(kind, type) and lacks(kind, name) else None
        case Item(inner, key):
            outer, position = _shape(inner, of), _position(key)
            size = _size(outer)
            if position is None or size is None or _fits(position, size):
                return None
            name = outer.__name__ if isinstance(outer, type) else "a tuple"
            return f"{name} of {size} item{'s' * (size != 1)} has no item {position}"
        case _:
            return fingerprint.without_zone(expr, lambda inner: _shape(inner, of))


def _no_field(kind: type, name: str) -> str:
    """Return the message for a field that a class does not have, with a similar name if any."""
    why = why_unreadable(kind, name)
    if why is not None:
        return why
    from difflib import get_close_matches  # slow to import, and needed for mistakes only

    known = members(kind)
    near = get_close_matches(name, [*known, *(n for n in dir(kind) if not n.startswith("_"))], 1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(known)}"
    return f"{kind.__name__} has no field {name!r}{hint if near or known else ''}"


def _position(key: Expr) -> int | None:
    """Return the constant position of an item; None if it is not constant."""
    match key:
        case Constant(value) if type(value) is int:
            return value
        case Operation("-", (Constant(value),)) if type(value) is int:
            return -value
        case _:
            return None


def _fits(position: int, size: int) -> bool:
    return -size <= position < size


def _size(shape: Shape) -> int | None:
    return len(shape) if isinstance(shape, tuple) else None if shape is None else length(shape)


def _is_told(root: plan.Node) -> bool:
    """Return True if the rows have passed a predicate that may tell their class."""
    for each in nodes(root):
        given = [believed_shapes(source) for source in each.inputs()]
        predicate = _predicate_of(each)
        for function, of in called(each, given) if predicate is not None else ():
            if function is predicate and _may_tell(_lift_if_opaque(function, of).body, of):
                return True
    return False


def _predicate_of(node: plan.Node) -> Function | None:
    """Return the condition of a `where` or a join; None for other nodes."""
    match node:
        case plan.Where(predicate=predicate):
            return predicate
        case plan.Join() | plan.OuterJoin() | plan.SemiJoin() | plan.AntiJoin():
            return node.match.on
        case _:
            return None


def _check_again(node: plan.Fixpoint) -> None:
    """Check the bodies once more, with the shapes of the recursive relations."""
    rows = [believed_shapes(body) for body in node.bodies]
    known = {id(part) for body in node.bodies for part in nodes(body)}

    def add_shapes(part: plan.Recursive) -> plan.Node:
        return replace(part, of=rows[part.index]) if any(rows[part.index]) else part

    for body in node.bodies:
        for part in nodes(substituted(body, node.level, add_shapes)):
            if id(part) not in known:
                check_reads(part)


def _is_suspicious(function: Function, of: Shapes) -> bool:
    """Return True if a callable may read a missing field: a name that some row does not have."""
    if not any(of):
        return False
    code = _plain_code(function)
    if code is None or not SUBSCRIPTION.isdisjoint(code.co_code[::2]) or any(map(zoned_fields, of)):
        return True
    for shape in of:
        for name in () if shape is None else code.co_names:
            if not isinstance(shape, type) or not has(shape, name):
                return True
    return False


def _plain_code(function: Function) -> types.CodeType | None:
    """Return the code of a callable, or None.

    Return None if it holds other callables than functions that it reads by global name.
    """
    called = function.function if isinstance(function, Opaque) else None
    if not isinstance(called, types.FunctionType):
        return None
    captured = [*(called.__defaults__ or ()), *(called.__kwdefaults__ or {}).values()]
    captured += [cell.cell_contents for cell in called.__closure__ or () if _is_filled_cell(cell)]
    nested = types.CodeType in map(type, called.__code__.co_consts)
    return None if nested or any(map(callable, captured)) else called.__code__


def _is_filled_cell(cell: types.CellType) -> bool:
    """Return True if a cell has a value."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _lift_if_opaque(function: Function, of: Shapes) -> Lifted:
    return function if isinstance(function, Lifted) else lift(function, of)


# Branches of a recursion.


def check_branches(node: plan.Fixpoint) -> None:
    """Raise `PlanError` if two branches of a relation give rows of different classes.

    The step reads its own rows by the fields of one class: rows of the other one would raise in
    the second round of some commit. Classes may share a base other than `tuple`, as those of a
    union do.
    """
    for name, body in zip(node.names, node.bodies, strict=True):
        found: dict[type, None] = {}
        for branch in _branches(body):
            shape = believed_shapes(branch)[0]
            if shape is not None:
                found[tuple if isinstance(shape, tuple) else shape] = None
        first, *others = found or (None,)
        for other in others:
            if first is not None and not _are_related(first, other):
                raise PlanError(
                    f"fixpoint {name!r} has rows of {_class_text(first)} "
                    f"and of {_class_text(other)}\n"
                    "  select() makes rows of one class: the step reads all rows alike"
                )


def _branches(body: plan.Node) -> Iterator[plan.Node]:
    """Iterate over the nodes whose rows are together the rows of a body, of one binding."""
    waiting = [body]
    while waiting:
        node = waiting.pop()
        match node:
            case plan.Union(left, right) | plan.UnionAll(left, right):
                waiting += [right, left]
            case plan.Distinct(source) | plan.Where(source):
                waiting.append(source)
            case _ if len(believed_shapes(node)) == 1:
                yield node


def _are_related(one: type, other: type) -> bool:
    """Return True if a class is a base of the other, or both have a base of the user's."""
    if issubclass(one, other) or issubclass(other, one):
        return one is other or tuple not in (one, other)
    shared = set(one.__mro__) & set(other.__mro__)
    return any(base.__module__ not in ("builtins", "typing", "abc") for base in shared)


def _class_text(kind: type) -> str:
    return "tuple" if kind is tuple else kind.__qualname__
