"""Computed bindings, and the named tuples of rows with column names.

Each tuple of column names has one generated class; its rows equal plain tuples.

aggregate(orders=Count(), total=Sum("total"))      Row(town='Bonn', orders=2, total=27)
aggregate(..., as_=Town)                           Town(town='Bonn', orders=2, total=27)
"""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.expressions.text import Naming
from optimizer.kinds.fields import class_maker
from optimizer.plans.properties import binding_names, bindings
from optimizer.plans.properties import name_columns as with_names
from optimizer.rewriting.columns import declared_fields
from reactive.api import columns
from reactive.api.columns import name_of
from reactive.engine.storage.rows import check_row_type

if TYPE_CHECKING:
    from reactive.api.relation import AnyRelation


# Computed bindings: `extend` appends them, `bind` replaces all bindings by them.

Column = Callable[..., Any] | str


def plan_extend(
    relation: AnyRelation, given: Sequence[Column], named: Mapping[str, Column]
) -> plan.Extend:
    """Return the plan of the rows with appended bindings; refuses a name that is taken."""
    node = relation.plan
    old = binding_names(node)
    for name in named:
        if name in old:
            raise PlanError(
                f"extend: there is a binding {name!r} already\n"
                "  give the new one another name, or bind(...) all that are to be there"
            )
    keep = tuple(range(bindings(node)))
    return _make_extend("extend", relation, keep, old, given, named)


def plan_bind(
    relation: AnyRelation, given: Sequence[Column], named: Mapping[str, Column]
) -> plan.Extend:
    """Return the plan of the rows with the columns in `given` and `named` as their bindings."""
    return _make_extend("bind", relation, (), (), given, named)


def select_columns(
    relation: AnyRelation, given: Sequence[Column], named: Mapping[str, Column]
) -> AnyRelation:
    """Return the relation of named tuples: one binding, with a field per column.

    Refuses columns without a name, and two columns of one name.
    """
    names = [_column_name(column) for column in given]
    if None in names:
        raise PlanError(
            "select takes one callable, or columns that have names\n"
            '  select("id", total=lambda order: ...) names them; bind(f, g) gives two bindings'
        )
    twice = next((name for name in (*names, *named) if [*names, *named].count(name) > 1), None)
    if twice is not None:
        raise PlanError(f"select: there are two columns {twice!r}\n  give one of them another name")
    every = tuple(str(name) for name in (*names, *named))
    how = naming_of_columns(None, every, None, "select")
    made = relation._new(_make_extend("select", relation, (), (), given, named))
    return made._new(with_names(made.plan, how))


def _make_extend(
    role: str,
    relation: AnyRelation,
    keep: tuple[int, ...],
    names: tuple[str | None, ...],
    given: Sequence[Column],
    named: Mapping[str, Column],
) -> plan.Extend:
    """Return the plan that keeps bindings and adds columns; refuses no columns at all."""
    if not given and not named:
        raise PlanError(
            f"{role} takes callables of the bindings, with names if they are to have some\n"
            f"  {role}(total=lambda order: order.price * order.pieces)"
        )
    every = [(_column_name(column), column) for column in given] + list(named.items())
    taken = tuple(relation._take(column, role) for _, column in every)
    return plan.Extend(relation.plan, keep, taken, (*names, *[name for name, _ in every]))


def _column_name(column: Column) -> str | None:
    """Return the name of the field that a column reads; None if it computes a value."""
    return name_of(column) if isinstance(column, str | columns.Column) else None


@class_maker
def row_class(columns: tuple[str, ...]) -> Any:
    """Return the class of rows with the given columns.

    >>> import pickle
    >>> Row = row_class(("town", "total"))
    >>> row = Row("Bonn", 27)
    >>> row, row == ("Bonn", 27), pickle.loads(pickle.dumps(row)) == row
    (Row(town='Bonn', total=27), True, True)
    >>> type(pickle.loads(pickle.dumps(row))) is Row is row_class(("town", "total"))
    True
    """
    make: Any = namedtuple
    made = make("Row", columns, module=__name__)
    made.__reduce__ = _reduced
    made.__doc__ = f"A row with the columns {', '.join(columns)}."
    return made


def named_row(columns: tuple[str, ...], values: Iterable[Any]) -> Any:
    """Return a row with the given columns."""
    return row_class(columns)(*values)


def is_row_class(kind: type) -> bool:
    """Return True if `row_class` made a class, which makes it again when its rows are unpickled."""
    return vars(kind).get("__reduce__") is _reduced


def _reduced(row: Any) -> Any:
    return named_row, (row._fields, tuple(row))


def naming_of_columns(
    key: str | None, columns: tuple[str, ...], as_: Any, role: str = "aggregate"
) -> Naming:
    """Name the rows of an aggregate, or of `select`: the key of the group first, if any.

    Raises
    ------
    PlanError: a name is not a valid field name, or is used twice; or `as_` does not take these
        columns.
    """
    names = columns if key is None else (key, *columns)
    for name in names:
        _check_column_name(name, role)
    if key in columns:
        raise PlanError(
            f"aggregate names two columns {key!r}: the key of the groups, and an aggregate\n"
            "  give the aggregate another name"
        )
    if as_ is None:
        return Naming(row_class(names), names, True)
    _check_class(as_, names)
    return Naming(as_, names, False)


def _check_column_name(name: str, role: str) -> None:
    """Refuse a column name that cannot name the field of a named tuple."""
    if not name.isidentifier() or iskeyword(name) or name.startswith("_"):
        why = "a keyword" if iskeyword(name) else "no name of a field of a named tuple"
        raise PlanError(
            f"{role} names a column {name!r}, which is {why}\n"
            "  a name is an identifier without an underscore before it"
        )


def _check_class(kind: Any, names: tuple[str, ...]) -> None:
    """Refuse objects that cannot be called with the columns, and classes without such fields."""
    if not isinstance(kind, type):
        raise PlanError(f"as_ takes the class of the rows, not {kind!r:.60}")
    check_row_type(kind)
    fields, given = declared_fields(kind), f"the columns are {', '.join(names)}"
    try:
        inspect.signature(kind).bind(**dict.fromkeys(names))
    except (TypeError, ValueError) as error:
        raise PlanError(f"as_={kind.__name__}: {error}\n  {given}") from None
    strange = [name for name in names if name not in fields]
    if strange:
        raise PlanError(
            f"as_={kind.__name__}: it has no field {', '.join(map(repr, strange))}\n"
            f"  {given}; its fields {', '.join(fields) or 'are not declared'}"
        )
