"""The value and the key of a relation over a lattice, as parts of the plan.

    class State: node, variable, value
    by=lambda s: (s.node, s.variable), of=lambda s: s.value

Both read fields only: the joined value is put into the field that `of` reads, and `by` reads all
others, so that rows of one key differ in their values only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import Enum
from operator import attrgetter, itemgetter
from typing import Any

from optimizer import plan
from optimizer.callables.captures import meaning
from optimizer.callables.opaque import Opaque, opaque
from optimizer.errors import PlanError
from optimizer.expr import Function
from optimizer.expressions.knowledge import constructor
from optimizer.plans.check_reads import believed_shapes
from optimizer.record import record
from reactive.api.columns import take_callable
from reactive.api.lattices import Lattice, with_field_of
from reactive.engine.operators.accumulators import MonoidAccumulator

Field = str | int


def joined_value(
    body: plan.Node, lattice: Lattice[Any], by: Callable[[Any], Any], of: str
) -> plan.JoinedValue:
    """Return how the rows of a body are joined by key; `of` names the relation in errors."""
    key, read = take_callable(by, 1, "by of fixpoint"), lattice.of
    keys = fields_read(by)
    if keys is None:
        raise PlanError(
            f"by={key}{of} must read fields of the row, and nothing else\n"
            "  with a lattice: by=lambda row: (row.node, row.variable)"
        )
    fields = _fields_of_shape(_row_class(body))
    keys = _by_name(fields, keys)
    if read is None:
        field = _only_other_field(fields, keys, of)
        value = opaque(_reader(field), 1, "of of a lattice")
    else:
        value = take_callable(read, 1, "of of a lattice")
        found = fields_read(read)
        if found is None or len(found) != 1 or isinstance(_probed(read), tuple):
            raise PlanError(
                f"of={value}{of} must read one field of the row, and nothing else\n"
                "  the joined value is put into this field: of=lambda row: row.value"
            )
        (field,) = _by_name(fields, found)
    if field in keys:
        raise PlanError(
            f"by={key}{of} reads the field {field!r}, which is the value that is joined\n"
            "  rows with equal keys are joined to one, so by= names all other fields"
        )
    if fields is not None and {*fields} - {field} != {*keys}:
        raise PlanError(
            f"by={key}{of} must read all fields of the row but {field!r}:"
            f" {', '.join(map(str, fields))}\n"
            "  rows with equal keys are joined to one, so that they may differ in the value only"
        )
    return plan.JoinedValue(key, value, field, replace(lattice, of=None), _functions(lattice))


def of_pairs(body: plan.Node, lattice: Lattice[Any], name: str) -> plan.JoinedValue:
    """Return how pairs of a key and a value are joined by key, in the relation of a name."""
    return joined_value(body, with_field_of(_checked(lattice), _value), _key, f" of {name!r}")


def _checked(lattice: Lattice[Any]) -> Lattice[Any]:
    """Return a lattice that joins values as they are; refuse one that is about rows."""
    if lattice.of is not None or lattice.widen_at is not None:
        given = "of=" if lattice.of is not None else "widen_at="
        raise PlanError(
            f"a lattice with {given} is about rows, and a comprehension gives it values\n"
            "  make it without; fixpoint(step, keep=lattice, by=...) takes one about rows"
        )
    return lattice


def _key(pair: Any) -> Any:
    return pair[0]


def _value(pair: Any) -> Any:
    return pair[1]


def join_of_all(lattice: Lattice[Any], value: Function | None) -> plan.Folded:
    """Return the aggregate that joins all values of a lattice."""
    combine = opaque(_JoinOrOther(_checked(lattice).join), 2, "the join of a lattice")
    finish = opaque(_Whole(lattice), 1, "the join of a lattice")
    accumulator = MonoidAccumulator(NOTHING, meaning(NOTHING), combine, finish)
    return plan.Folded("Monoid", accumulator, value, (combine, finish))


class _Nothing(Enum):
    """The join of no values."""

    NOTHING = "nothing"


NOTHING = _Nothing.NOTHING


@record
class _JoinOrOther:
    """Joins two values, of which one may be missing."""

    join: Callable[[Any, Any], Any]

    def __call__(self, a: Any, b: Any) -> Any:
        return b if a is NOTHING else a if b is NOTHING else self.join(a, b)


@record
class _Whole:
    """The value of a lattice for all values that were joined: the widened one, or the bottom."""

    lattice: Lattice[Any]

    def __call__(self, value: Any) -> Any:
        return self.lattice(() if value is NOTHING else (value,))


def _functions(lattice: Lattice[Any]) -> tuple[Opaque, ...]:
    """Return the callables of a lattice, as parts of the plan."""
    found = [opaque(lattice.join, 2, "join of a lattice")]
    if lattice.leq is not None:
        found.append(opaque(lattice.leq, 2, "leq of a lattice"))
    if lattice.widen is not None:
        found.append(opaque(lattice.widen, 1, "widen of a lattice"))
    if lattice.widen_at is not None:
        found.append(opaque(lattice.widen_at, 1, "widen_at of a lattice"))
    return tuple(found)


class _ReadRow:
    """A row that only tells which fields are read of it."""

    def __getattr__(self, name: str) -> _FieldRead:
        return _FieldRead(name)

    def __getitem__(self, place: int) -> _FieldRead:
        return _FieldRead(place)


class _FieldRead:
    """A field that was read of a row; nothing can be done with it."""

    __slots__ = ("field",)

    def __init__(self, field: Field) -> None:
        self.field = field


def _probed(function: Callable[[Any], Any]) -> Any:
    """Return what a callable makes of a row that tells its fields; None if it cannot."""
    try:
        return function(_ReadRow())
    except Exception:  # it does more than to read fields
        return None


def fields_read(function: Callable[[Any], Any]) -> tuple[Field, ...] | None:
    """Return the fields of which a callable makes a value or a tuple; None if it does more.

    >>> fields_read(lambda row: (row.node, row[1])), fields_read(lambda row: row.node + 1)
    (('node', 1), None)
    """
    made = _probed(function)
    items = made if type(made) is tuple else (made,)
    if not all(type(item) is _FieldRead and type(item.field) in (str, int) for item in items):
        return None
    return tuple(item.field for item in items)


def _row_class(body: plan.Node) -> Any:
    """Return the shape of the rows of a body, by its first branch that tells; None if none does."""
    waiting = [body]
    while waiting:
        node = waiting.pop()
        (shape,) = believed_shapes(node)
        if shape is not None:
            return shape
        if isinstance(node, plan.Union | plan.UnionAll | plan.Distinct | plan.Where):
            waiting.extend(reversed(node.inputs()))
    return None


def _fields_of_shape(shape: Any) -> tuple[Field, ...] | None:
    """Return the fields of rows of a shape; None if they are not known."""
    if isinstance(shape, tuple):
        return tuple(range(len(shape)))
    return constructor(shape) if isinstance(shape, type) else None


def _only_other_field(fields: tuple[Field, ...] | None, keys: tuple[Field, ...], of: str) -> Field:
    """Return the field that a key does not read."""
    rest = [] if fields is None else [field for field in fields if field not in keys]
    if len(rest) == 1:
        return rest[0]
    known = "are not known" if fields is None else f"are {', '.join(map(str, fields))}"
    raise PlanError(
        f"the lattice{of} does not say which field of a row has the value: the fields {known}\n"
        "  lattices.flat(lambda row: row.value), Lattice(join, of=lambda row: row.value)"
    )


def _reader(field: Field) -> Callable[[Any], Any]:
    return itemgetter(field) if isinstance(field, int) else attrgetter(field)


def _by_name(fields: tuple[Field, ...] | None, read: tuple[Field, ...]) -> tuple[Field, ...]:
    """Return the fields that were read, by name where rows have names."""
    if fields is None:
        return read
    known = range(-len(fields), len(fields))
    return tuple(fields[f] if isinstance(f, int) and f in known else f for f in read)


class EmptyResult(set[Any]):
    """Result with which a recursion begins: the empty set, or the empty dictionary."""

    def items(self) -> tuple[()]:
        """Return no pairs, keys or values."""
        return ()

    keys = values = items

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the default: no key is there."""
        return default

    def __getitem__(self, key: Any) -> Any:
        raise KeyError(key)


def without_bottoms(found: dict[Any, Any], named: Iterable[Any]) -> dict[Any, Any]:
    """Return a dictionary of a recursion without the keys that have no value.

    These have the bottom of one of the lattices among the `named` values; None without a bottom.
    """
    bottoms = [each.bottom for each in named if isinstance(each, Lattice)]
    return {key: value for key, value in found.items() if value not in bottoms}
