"""Expressions over names become callables of the bindings of a query: `col("amount") > 3`.

    amount > 3                     lambda order: order.amount > 3
    left.customer == right.id      lambda order, customer: order.customer == customer.id

A front end that knows where its values stand makes the expression itself, and gives it to `stated`
with names and a place: so is `explain` in its words, and errors point into its text.

    stated(Operation(">", (Item(Parameter(0), constant(2)), constant(3))), ("o",),
           Place("<sql>", 1, "SQL", 27), "where", "o.amount > 3")
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

from optimizer.callables.opaque import Opaque
from optimizer.callables.source import Place
from optimizer.errors import PlanError
from optimizer.expr import Attribute, Expr, Item, Lifted, constant, row_names, transform
from optimizer.expressions.knowledge import Shape
from optimizer.expressions.text import text
from optimizer.plans.facts import as_row
from optimizer.record import record
from optimizer.rewriting.fields import (
    Known,
    Places,
    after_class,
    at_path,
    bindings_of,
    bindings_of_row,
    declared,
    found_field,
    have,
    names_of,
)

LEFT, RIGHT = "left", "right"


@record
class Named(Expr):
    """A value by its name, before it is known who has it: the field of a record, or a binding.

    `of` says of which binding: its number, its name, or the side of a join. A number in the place
    of the name is that of an item.
    """

    name: str | int
    of: str | int | None
    place: Place | None = field(compare=False)

    def __str__(self) -> str:
        name = f"[{self.name}]" if isinstance(self.name, int) else self.name
        between = "" if isinstance(self.name, int) else "."
        return name if self.of is None else f"{self.of}{between}{name}"


@record
class Side:
    """Bindings side by side: what they are called, where they stand in the arguments of a callable
    and what is known of them; `name` is that of a side of a join."""

    called: tuple[str, ...]
    places: Places
    known: Known
    name: str = ""


@record
class Bindings:
    """What an expression over names is about; `names` are those of the arguments."""

    sides: tuple[Side, ...]
    names: tuple[str, ...]


def of_rows(known: Known) -> Bindings:
    """The bindings of rows, an argument each."""
    names = names_of(known.certain, known.names)
    return Bindings((Side(_called(known), bindings_of(known.certain), known),), names)


def of_right(known: Known) -> Bindings:
    """The bindings of a row that is one argument."""
    return Bindings((_right(known, 0),), names_of((as_row(known.certain),)))


def of_pair(left: Known, right: Known) -> Bindings:
    """The bindings of the left of a join, an argument each, and those of a row of its right."""
    mine, theirs = left.certain, right.certain
    own = Side(_called(left), bindings_of(mine), left, LEFT)
    names = names_of((*mine, as_row(theirs)), (*left.names, None))
    if names == row_names(2):
        names = (LEFT, RIGHT)
    return Bindings((own, _right(right, len(mine))), names)


def _right(known: Known, place: int) -> Side:
    places = bindings_of_row(known.certain, place)
    return Side(_called(known), places, known, RIGHT)


def _called(known: Known) -> tuple[str, ...]:
    """What each binding is called: by itself, after its class, or by its place."""
    others = row_names(len(known.certain))
    return tuple(
        own or after_class(shape) or other
        for own, shape, other in zip(known.names, known.certain, others, strict=True)
    )


def resolved(expr: Expr, bindings: Bindings, role: str, place: Place) -> Lifted:
    """An expression over names as a callable of the bindings.

    Raises
    ------
    PlanError: a name is nobody's, or that of several.
    """

    def read(part: Expr) -> Expr:
        return _read(part, bindings.sides, role) if isinstance(part, Named) else part

    return stated(transform(expr, read), bindings.names, place, role)


def stated(
    body: Expr,
    names: Sequence[str],
    place: Place | None = None,
    role: str = "",
    label: str | None = None,
) -> Lifted:
    """An expression over the bindings of a node, a parameter each, as a callable of it.

    Parameters
    ----------
    names: what the bindings are called; as many as there are.
    place: where somebody wrote it. A text that is in no file has `Place("<sql>", line, "SQL")`.
    role: the method that it is for, as in `"where"`.
    label: how it is written there; by default as Python would be.
    """
    count = len(names)
    shown = text(body, tuple(names)) if label is None else label
    origin = Opaque(_unread, count, shown, place, (), ("stated", body), role)
    return Lifted(body, tuple(names), (origin,), count)


def _unread(*row: Any) -> Any:
    """Stands for an expression, which is no callable of anybody's."""
    raise AssertionError(f"an expression is not called: {row!r}")


def _read(named: Named, sides: tuple[Side, ...], role: str) -> Expr:
    """A name in terms of the arguments."""
    where = role if named.place is None else f"{role} ({named.place})"
    chosen = tuple(side for side in sides if side.name and side.name == named.of)
    if named.of is not None and not chosen:
        return _of_binding(named, sides, where)
    if isinstance(named.name, int):
        return _item(named, chosen or sides, where)
    return _of_any(named.name, chosen or sides, where)


def _of_any(name: str, sides: tuple[Side, ...], where: str) -> Expr:
    """What has the name among all bindings."""
    having = [side for side in sides if have(name, side.known)]
    if len(having) > 1:
        either = " or ".join(f'col("{side.name}.{name}")' for side in having)
        raise PlanError(f"{where}: both sides have {name!r}\n  say which: {either}")
    itself = [path for called, path, _ in _every(sides) if called == name]
    if not having and len(itself) == 1:
        return at_path(itself[0])
    of = having[0] if having else sides[0]
    owners = [called for called, _, shape in _every([of]) if name in declared(shape)]
    if name not in of.known.names and len(owners) > 1:
        which = " or ".join(f'col("{owner}.{name}")' for owner in owners)
        raise PlanError(
            f"{where}: {len(owners)} bindings have a field {name!r}\n  say which: {which}"
        )
    if not having and len(sides) > 1:
        lines = [f"{side.name}: {', '.join(_fields(side)) or 'unknown'}" for side in sides]
        near = _nearest(name, [field for side in sides for field in _fields(side)])
        raise PlanError(f"{where}: neither side has {name!r}{near}\n  " + "\n  ".join(lines))
    return found_field(name, of.places, of.known, where).expr


def _of_binding(named: Named, sides: tuple[Side, ...], where: str) -> Expr:
    """What one binding has of a name."""
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
    fields = declared(shape)
    has_it = named.name in fields or hasattr(shape, named.name)
    if isinstance(shape, type) and fields and not has_it:
        raise PlanError(
            f"{where}: {shape.__name__} has no field {named.name!r}"
            f"{_nearest(named.name, fields)}\n  it has {', '.join(fields)}"
        )
    return Attribute(at_path(path), named.name)


def _item(named: Named, sides: tuple[Side, ...], where: str) -> Expr:
    """An item of the only binding."""
    every = _every(sides)
    if len(every) != 1:
        called = ", ".join(f'col({named.name}, of="{name}")' for name, _, _ in every)
        raise PlanError(f"{where}: item {named.name} of which binding?\n  say which: {called}")
    return Item(at_path(every[0][1]), constant(named.name))


def _every(sides: Iterable[Side]) -> list[tuple[str, tuple[int, ...], Shape]]:
    """All bindings: what they are called, where they stand, and what is known of each."""
    return [
        (called, path, shape)
        for side in sides
        for called, (path, shape) in zip(side.called, side.places, strict=True)
    ]


def _fields(side: Side) -> list[str]:
    own = [name for name in side.known.names if name is not None]
    return [*own, *(name for shape in side.known.certain for name in declared(shape))]


def _nearest(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches  # takes longer than most modules here

    near = get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
