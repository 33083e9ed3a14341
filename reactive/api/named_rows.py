"""Named rows: generated named tuples, one class per columns, that equal plain tuples.

aggregate(orders=Count(), total=Sum("total"))      Row(town='Bonn', orders=2, total=27)
aggregate(..., as_=Town)                           Town(town='Bonn', orders=2, total=27)
"""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Iterable
from keyword import iskeyword
from typing import Any

from optimizer.errors import PlanError
from optimizer.expressions.naming import Naming
from optimizer.kinds.class_facts import class_maker
from optimizer.rewriting.fields import declared
from reactive.engine.storage.rows import check_row_type


@class_maker
def row_class(columns: tuple[str, ...]) -> Any:
    """The class of rows with these columns.

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
    """A row with these columns."""
    return row_class(columns)(*values)


def is_row_class(kind: type) -> bool:
    """Whether a class was made by `row_class`, and is made again where its rows are unpickled."""
    return vars(kind).get("__reduce__") is _reduced


def _reduced(row: Any) -> Any:
    return named_row, (row._fields, tuple(row))


def naming_of_columns(
    key: str | None, columns: tuple[str, ...], as_: Any, role: str = "aggregate"
) -> Naming:
    """Name the rows of an aggregate, or of `select`: the key of the group first, if any.

    Raises
    ------
    PlanError: a name is no name of a field, or there twice; or `as_` does not take just these.
    """
    names = columns if key is None else (key, *columns)
    for name in names:
        _check(name, role)
    if key in columns:
        raise PlanError(
            f"aggregate names two columns {key!r}: the key of the groups, and an aggregate\n"
            "  give the aggregate another name"
        )
    if as_ is None:
        return Naming(row_class(names), names, True)
    _check_class(as_, names)
    return Naming(as_, names, False)


def _check(name: str, role: str) -> None:
    if not name.isidentifier() or iskeyword(name) or name.startswith("_"):
        why = "a keyword" if iskeyword(name) else "no name of a field of a named tuple"
        raise PlanError(
            f"{role} names a column {name!r}, which is {why}\n"
            "  a name is an identifier without an underscore before it"
        )


def _check_class(kind: Any, names: tuple[str, ...]) -> None:
    """Refuse what cannot be called with the columns, and classes without such fields."""
    if not isinstance(kind, type):
        raise PlanError(f"as_ takes the class of the rows, not {kind!r:.60}")
    check_row_type(kind)
    fields, given = declared(kind), f"the columns are {', '.join(names)}"
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
