"""Fields and columns by name: `"total"` and `col("amount") > 3` become callables of bindings.

`resolve_names` turns expressions over names into callables of the bindings of a query.

    amount > 3                     lambda order: order.amount > 3
    left.customer == right.id      lambda order, customer: order.customer == customer.id

A front end that knows the places of its values builds the expression itself, and passes it to
`state_expression` with names and a place: `explain` then shows its words, and errors point into its
text.

    state_expression(Operation(">", (Item(Parameter(0), constant(2)), constant(3))), ("o",),
           Place("<sql>", 1, "SQL", 27), "where", "o.amount > 3")

`field` and others take fields by their names where a query takes a callable:

    group_by("town")           lambda order, customer: customer.town
    where(town="Bonn")         lambda order, customer: customer.town == "Bonn"
    join(..., on="id")         lambda order, line: order.id == line.id

A name is the name of a binding that `extend` or `bind` gave, or else a field that the class of one
binding declares. The result is the expression that the callable would be lifted to, so that other
modules need not handle names.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field as dataclass_field
from keyword import iskeyword
from operator import attrgetter
from types import FunctionType
from typing import Any

from optimizer import plan
from optimizer.callables.captures import copy_container
from optimizer.callables.opaque import Opaque
from optimizer.callables.source import Place, caller
from optimizer.errors import PlanError
from optimizer.expr import (
    Attribute,
    Expr,
    Item,
    Lifted,
    Operation,
    Parameter,
    conjunction,
    constant,
    row_names,
    transform,
)
from optimizer.expressions.knowledge import Shape, Shapes
from optimizer.expressions.text import text
from optimizer.kinds.fields import by_class, members
from optimizer.kinds.instants import with_instants
from optimizer.plans.check_reads import believed_shapes
from optimizer.plans.facts import as_row
from optimizer.plans.properties import Names, binding_names, fact, shapes
from optimizer.record import record
from optimizer.rules.read_callables import read_callables
from optimizer.traverse import with_inputs

LEFT, RIGHT = "left", "right"


@record
class NamedValue(Expr):
    """A value by its name, before its owner is known: the field of a record, or a binding.

    `of` is its binding: its number, its name, or the side of a join. A number as `name` is the
    position of an item.
    """

    name: str | int
    of: str | int | None
    place: Place | None = dataclass_field(compare=False)

    def __str__(self) -> str:
        name = f"[{self.name}]" if isinstance(self.name, int) else self.name
        between = "" if isinstance(self.name, int) else "."
        return name if self.of is None else f"{self.of}{between}{name}"


@record
class Side:
    """Bindings side by side: their names, their places in the arguments of a callable and facts
    about them.

    `name` is the name of a side of a join.
    """

    called: tuple[str, ...]
    places: Places
    known: BindingFacts
    name: str = ""


@record
class Bindings:
    """The bindings of an expression over names; `names` are the names of the arguments."""

    sides: tuple[Side, ...]
    names: tuple[str, ...]


def name_bindings(known: BindingFacts) -> Bindings:
    """Return the bindings of rows, an argument each."""
    names = parameter_names(known.certain, known.names)
    return Bindings((Side(_names_of_bindings(known), bindings_of(known.certain), known),), names)


def name_right_bindings(known: BindingFacts) -> Bindings:
    """Return the bindings of a row that is one argument."""
    return Bindings((_right(known, 0),), parameter_names((as_row(known.certain),)))


def name_pair_bindings(left: BindingFacts, right: BindingFacts) -> Bindings:
    """Return the bindings of the left of a join, an argument each, and the bindings of a row of its
    right."""
    mine, theirs = left.certain, right.certain
    own = Side(_names_of_bindings(left), bindings_of(mine), left, LEFT)
    names = parameter_names((*mine, as_row(theirs)), (*left.names, None))
    if names == row_names(2):
        names = (LEFT, RIGHT)
    return Bindings((own, _right(right, len(mine))), names)


def _right(known: BindingFacts, place: int) -> Side:
    places = bindings_of_row(known.certain, place)
    return Side(_names_of_bindings(known), places, known, RIGHT)


def _names_of_bindings(known: BindingFacts) -> tuple[str, ...]:
    """Return a name for each binding: its own, after its class, or by its place."""
    others = row_names(len(known.certain))
    return tuple(
        own or after_class(shape) or other
        for own, shape, other in zip(known.names, known.certain, others, strict=True)
    )


def resolve_names(expr: Expr, bindings: Bindings, role: str, place: Place) -> Lifted:
    """Return an expression over names as a callable of the bindings.

    Raises
    ------
    PlanError: no binding has a name, or several have it.
    """

    def resolve_part(part: Expr) -> Expr:
        return _resolve_name(part, bindings.sides, role) if isinstance(part, NamedValue) else part

    return state_expression(transform(expr, resolve_part), bindings.names, place, role)


def state_expression(
    body: Expr,
    names: Sequence[str],
    place: Place | None = None,
    role: str = "",
    label: str | None = None,
) -> Lifted:
    """Return an expression over the bindings of a node, a parameter each, as a callable of it.

    Parameters
    ----------
    names: the names of the bindings.
    place: its place. A text that is in no file has `Place("<sql>", line, "SQL")`.
    role: the method that it is for, as in `"where"`.
    label: its text there; by default as Python would write it.
    """
    count = len(names)
    shown = text(body, tuple(names)) if label is None else label
    origin = Opaque(_unread, count, shown, place, (), ("stated", body), role)
    return Lifted(body, tuple(names), (origin,), count)


def _unread(*row: Any) -> Any:
    """Stand-in for the callable of an expression that has none."""
    raise AssertionError(f"an expression is not called: {row!r}")


def _resolve_name(named: NamedValue, sides: tuple[Side, ...], role: str) -> Expr:
    """Return a name in terms of the arguments."""
    where = role if named.place is None else f"{role} ({named.place})"
    chosen = tuple(side for side in sides if side.name and side.name == named.of)
    if named.of is not None and not chosen:
        return _field_of_binding(named, sides, where)
    if isinstance(named.name, int):
        return _item_of_binding(named, chosen or sides, where)
    return _of_any(named.name, chosen or sides, where)


def _of_any(name: str, sides: tuple[Side, ...], where: str) -> Expr:
    """Return the field or binding of this name among all bindings; raise `PlanError` unless there
    is one."""
    having = [side for side in sides if have(name, side.known)]
    if len(having) > 1:
        either = " or ".join(f'col("{side.name}.{name}")' for side in having)
        raise PlanError(f"{where}: both sides have {name!r}\n  say which: {either}")
    itself = [path for called, path, _ in _every(sides) if called == name]
    if not having and len(itself) == 1:
        return at_path(itself[0])
    of = having[0] if having else sides[0]
    owners = [called for called, _, shape in _every([of]) if name in declared_fields(shape)]
    if name not in of.known.names and len(owners) > 1:
        which = " or ".join(f'col("{owner}.{name}")' for owner in owners)
        raise PlanError(
            f"{where}: {len(owners)} bindings have a field {name!r}\n  say which: {which}"
        )
    if not having and len(sides) > 1:
        lines = [f"{side.name}: {', '.join(_fields_of_side(side)) or 'unknown'}" for side in sides]
        near = _nearest(name, [field for side in sides for field in _fields_of_side(side)])
        raise PlanError(f"{where}: neither side has {name!r}{near}\n  " + "\n  ".join(lines))
    return found_field(name, of.places, of.known, where).expr


def _field_of_binding(named: NamedValue, sides: tuple[Side, ...], where: str) -> Expr:
    """Return the field of this name of one binding; raise `PlanError` if the binding or field is
    missing."""
    every = _every(sides)
    if isinstance(named.of, int):
        found = every[named.of : named.of + 1]
    else:
        found = [binding for binding in every if binding[0] == named.of]
    if len(found) != 1:
        called = [name for name, _, _ in every]
        called += [side.name for side in sides if side.name]
        raise PlanError(
            f"{where}: {named} is of {'no' if not found else 'more than one'} binding"
            f"{_nearest(str(named.of), called)}\n  there are {', '.join(called)}"
        )
    _, path, shape = found[0]
    if isinstance(named.name, int):
        return Item(at_path(path), constant(named.name))
    fields = declared_fields(shape)
    has_it = named.name in fields or hasattr(shape, named.name)
    if isinstance(shape, type) and fields and not has_it:
        raise PlanError(
            f"{where}: {shape.__name__} has no field {named.name!r}"
            f"{_nearest(named.name, fields)}\n  it has {', '.join(fields)}"
        )
    return Attribute(at_path(path), named.name)


def _item_of_binding(named: NamedValue, sides: tuple[Side, ...], where: str) -> Expr:
    """Return an item of the only binding; raise `PlanError` if there are several."""
    every = _every(sides)
    if len(every) != 1:
        called = ", ".join(f'col({named.name}, of="{name}")' for name, _, _ in every)
        raise PlanError(f"{where}: item {named.name} of which binding?\n  say which: {called}")
    return Item(at_path(every[0][1]), constant(named.name))


def _every(sides: Iterable[Side]) -> list[tuple[str, tuple[int, ...], Shape]]:
    """Return all bindings: their names, places and shapes."""
    return [
        (called, path, shape)
        for side in sides
        for called, (path, shape) in zip(side.called, side.places, strict=True)
    ]


def _fields_of_side(side: Side) -> list[str]:
    own = [name for name in side.known.names if name is not None]
    return [*own, *(name for shape in side.known.certain for name in declared_fields(shape))]


def _nearest(name: str, known: Sequence[str]) -> str:
    """Return a question that proposes the most similar known name; empty if none is similar."""
    from difflib import get_close_matches  # takes longer than most modules here

    near = get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


@record
class BindingFacts:
    """Facts about the bindings of rows: certain shapes, likely shapes, and names.

    The likely shapes hold if annotations are right and each row of an outer join has a partner.
    """

    certain: Shapes
    likely: Shapes
    names: Names


def field(name: str, of: BindingFacts, role: str) -> Lifted:
    """Return the value of a field, of the only binding that has it.

    Raises
    ------
    PlanError: no binding is known to have it, or several are.
    """
    found = found_field(name, bindings_of(of.certain), of, role)
    return _lift_by_name(found.expr, found, parameter_names(of.certain, of.names), role)


def field_of_row(name: str, of: BindingFacts, role: str) -> Lifted:
    """Return the value of a field of a row as one value, a tuple if it has several bindings."""
    found = found_field(name, bindings_of_row(of.certain, 0), of, role)
    return _lift_by_name(found.expr, found, parameter_names((as_row(of.certain),)), role)


def equal_to(values: Mapping[str, Any], of: BindingFacts, role: str) -> Lifted:
    """Return the test that fields equal values; the values are copied."""
    places = [found_field(name, bindings_of(of.certain), of, role) for name in values]
    given = [with_instants(copy_container(value)) for value in values.values()]
    tests = [Operation("==", (p.expr, constant(v))) for p, v in zip(places, given, strict=True)]
    call = Equal(tuple((p, _Always(v)) for p, v in zip(places, given, strict=True)))
    return _lift_by_name(
        conjunction(tuple(tests)), call, parameter_names(of.certain, of.names), role
    )


def equal_fields(
    pairs: Sequence[tuple[str, str]], left: BindingFacts, right: BindingFacts, role: str
) -> Lifted:
    """Return the test that fields of a row of the left equal fields of one of the right."""
    mine, theirs = left.certain, right.certain
    both = [
        (
            found_field(one, bindings_of(mine), left, f"{role}, left side"),
            found_field(other, bindings_of_row(theirs, len(mine)), right, f"{role}, right side"),
        )
        for one, other in pairs
    ]
    tests = [Operation("==", (a.expr, b.expr)) for a, b in both]
    names = parameter_names((*mine, as_row(theirs)), (*left.names, None))
    return _lift_by_name(conjunction(tuple(tests)), Equal(tuple(both)), names, role)


def have(name: str, of: BindingFacts) -> bool:
    """Return True if a binding is known to have a field."""
    return name in of.names or any(name in declared_fields(shape) for shape in of.certain)


def known_shapes(node: plan.Node) -> BindingFacts:
    """Return the facts about the bindings, with the callables below lifted."""
    certain, names = shapes(node), binding_names(node)
    if None not in certain:
        return BindingFacts(certain, certain, names)
    return BindingFacts(shapes(fact(node, "read", _read_node)), believed_shapes(node), names)


def _read_node(node: plan.Node) -> plan.Node:
    return read_callables(with_inputs(node, [n.known["read"] for n in node.inputs()]))


def declared_fields(kind: Shape) -> tuple[str, ...]:
    """Return the fields of a record's class, in their order; none for other values.

    >>> from typing import NamedTuple
    >>> declared_fields(NamedTuple("Point", [("x", int), ("y", int)])), declared_fields(int)
    (('x', 'y'), ())
    """
    return _declared_members(kind) if isinstance(kind, type) else ()


@by_class
def _declared_members(kind: Any) -> tuple[str, ...]:
    return tuple(members(kind))


def field_read(function: Any) -> str | None:
    """Return the field of a callable that only reads a field of one argument: `lambda o: o.town`.

    >>> field_read(lambda o: o.town), field_read(attrgetter("town")), field_read(len)
    ('town', 'town', None)
    """
    if isinstance(function, attrgetter):
        names = function.__reduce__()[1]
        return names[0] if len(names) == 1 and names[0].isidentifier() else None
    if not isinstance(function, FunctionType):
        return None
    steps = [i for i in dis.get_instructions(function) if i.opname not in ("RESUME", "NOP")]
    if [step.opname.removesuffix("_BORROW") for step in steps] != _READS:
        return None
    name: str = steps[1].argval
    return name


_READS = ["LOAD_FAST", "LOAD_ATTR", "RETURN_VALUE"]


@record
class FieldOf:
    """A field of the object at a path of positions in the arguments; the object itself without a
    name."""

    path: tuple[int, ...]
    name: str | None

    @property
    def expr(self) -> Expr:
        of = at_path(self.path)
        return of if self.name is None else Attribute(of, self.name)

    def __call__(self, *row: Any) -> Any:
        of: Any = row
        for position in self.path:
            of = of[position]
        return of if self.name is None else getattr(of, self.name)


@record
class Equal:
    """Test that several pairs of callables return equal values for a row."""

    pairs: tuple[tuple[Callable[..., Any], Callable[..., Any]], ...]

    def __call__(self, *row: Any) -> bool:
        return all(left(*row) == right(*row) for left, right in self.pairs)


@record
class _Always:
    """Callable that returns one value for every row."""

    value: Any

    def __call__(self, *row: Any) -> Any:
        return self.value


Places = list[tuple[tuple[int, ...], Shape]]
"""The places of bindings in the arguments, with their shapes."""


def at_path(path: tuple[int, ...]) -> Expr:
    """Return the object at a path of positions in the arguments."""
    first, *rest = path
    of: Expr = Parameter(first)
    for position in rest:
        of = Item(of, constant(position))
    return of


def bindings_of(of: Shapes) -> Places:
    return [((index,), shape) for index, shape in enumerate(of)]


def bindings_of_row(of: Shapes, index: int) -> Places:
    """Return the bindings of a row that is one argument."""
    if len(of) == 1:
        return [((index,), of[0])]
    return [((index, position), shape) for position, shape in enumerate(of)]


def found_field(name: str, places: Places, known: BindingFacts, role: str) -> FieldOf:
    """Return the reader of a named binding, or of the field of the only binding that has it.

    Raise `PlanError`, with a remedy, if no binding or several have the field.
    """
    called = [path for (path, _), own in zip(places, known.names, strict=True) if own == name]
    if called:
        return FieldOf(called[0], None)
    found = [FieldOf(path, name) for path, shape in places if name in declared_fields(shape)]
    of, likely = known.certain, [a or b for a, b in zip(known.certain, known.likely, strict=True)]
    having = [
        _describe_binding(shape, n)
        for n, shape in enumerate(likely, 1)
        if name in declared_fields(shape)
    ]
    if len(having) == 1 and found:
        return found[0]
    if found:
        raise PlanError(
            f"{role}: {len(having)} bindings have a field {name!r}\n"
            f"  {_lines(having)}\n  say which: {_lambda_text(of, name)}"
        )
    from difflib import get_close_matches  # takes longer than most modules here

    if name[:1] in ("-", "+"):
        hint = f'desc("{name[1:]}")' if name[0] == "-" else repr(name[1:])
        raise PlanError(
            f"{role}: no binding has a field {name!r}\n"
            f"  {hint} has this direction: from reactive import desc"
        )
    if name and not name.isidentifier():
        word = next(filter(str.isidentifier, name.replace("(", " ").split()), "total")
        raise PlanError(
            f"{role} takes the name of a field, or a callable, not the text {name!r:.100}\n"
            f"  an expression over names is col({word!r}) ..., as in where(col({word!r}) > 5)\n"
            '  a text of SQL is a query: db.sql("SELECT ... FROM ... WHERE ...")'
        )
    every = [field for shape in of for field in declared_fields(shape)]
    near = get_close_matches(name, [*every, *filter(None, known.names)], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    named = list(zip(of, known.names, strict=True))
    lines = [_describe_binding(shape, n, own) for n, (shape, own) in enumerate(named, 1)]
    if any((not declared_fields(s) and own is None) or hasattr(s, name) for s, own in named):
        lines.append(f"what is no declared field is read by a callable: {_lambda_text(of, name)}")
    raise PlanError(f"{role}: no binding has a field {name!r}{hint}\n  {_lines(lines)}")


def _lines(lines: list[str]) -> str:
    return "\n  ".join(lines)


def _describe_binding(shape: Shape, number: int, called: str | None = None) -> str:
    """Return what is known of a binding, for an error message."""
    names = declared_fields(shape)
    if called is not None:
        return f"binding {number} is {called!r}"
    if isinstance(shape, type):
        return (
            f"{shape.__name__} has {', '.join(names)}"
            if names
            else (f"{shape.__name__} declares no fields")
        )
    what = "is a tuple" if isinstance(shape, tuple) else "may be anything"
    return f"binding {number} {what}"


def _lambda_text(of: Shapes, name: str) -> str:
    """Return the text of a callable that reads the field of one of the bindings."""
    names = parameter_names(of)
    having = [i for i, s in enumerate(of) if name in declared_fields(s) or not declared_fields(s)]
    return f"lambda {', '.join(names)}: {names[(having or [0])[-1]]}.{name}"


def after_class(shape: Shape) -> str:
    """Return a name for a binding after the class of its records; empty if that is unknown."""
    return shape.__name__.lower() if isinstance(shape, type) and declared_fields(shape) else ""


def parameter_names(of: Shapes, called: Names = ()) -> tuple[str, ...]:
    """Return names for the bindings: their own, or after their classes."""
    named = [after_class(shape) for shape in of]
    if any(called):
        others = [name or row for name, row in zip(named, row_names(len(of)), strict=True)]
        named = [own or other for own, other in zip(called, others, strict=True)]
    names = tuple(named)
    usable = all(name.isidentifier() and not iskeyword(name) for name in names)
    if usable and len(set(names)) == len(names):
        return names
    return row_names(len(of))


def _lift_by_name(
    body: Expr, call: Callable[..., Any], names: tuple[str, ...], role: str
) -> Lifted:
    """Return an expression over named fields as a lifted callable, equal for equal bodies."""
    if isinstance(call, FieldOf) and call.name and call.path == (0,) and len(names) == 1:
        call = attrgetter(call.name)
    identity = ("by name", body)
    made = Opaque(call, len(names), text(body, names), caller(), (), identity, role)
    return Lifted(body, names, (made,), len(names), made)
