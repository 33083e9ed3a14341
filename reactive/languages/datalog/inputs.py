"""What comes into a program from the database: rows of any class, as those of a relation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.expr import Attribute, Expr, Parameter, all_parameters
from optimizer.plans.properties import is_set
from optimizer.rewriting.fields import declared, known_shapes
from reactive.languages.datalog.expressions import call, item, lifted
from reactive.languages.datalog.kinds import Field

ROW = Parameter(0)


def as_rows(node: plan.Node, name: str, fields: Sequence[Field], kind: Any) -> plan.Node:
    """The rows of a query, each once, as rows of a class with some columns.

    Several bindings are the columns; so are the fields of a row by their names, the items of a
    plain tuple by their places, and a value that is neither, of a relation with one column.
    """
    of = known_shapes(node).certain
    if of != (kind,):
        values = all_parameters(len(of)) if len(of) > 1 else _values(of[0], name, fields)
        if len(values) != len(fields):
            raise PlanError(
                f"relation {name!r} has {len(fields)} columns, and its rows {len(values)} bindings"
            )
        node = plan.Select(node, lifted(call(kind, values), _names(len(of))))
    return node if is_set(node) else plan.Distinct(node)


def _values(shape: Any, name: str, fields: Sequence[Field]) -> Sequence[Expr]:
    names = declared(shape)
    if names:
        missing = [each.name for each in fields if each.name not in names]
        if missing:
            raise PlanError(
                f"relation {name!r} has columns that {shape.__name__} lacks: {', '.join(missing)}\n"
                f"  it has {', '.join(names)}"
            )
        return [Attribute(ROW, each.name) for each in fields]
    if shape is tuple or (isinstance(shape, tuple) and len(shape) == len(fields)):
        return [item(ROW, place) for place in range(len(fields))]
    if len(fields) == 1 and shape is not None:
        return [ROW]
    raise PlanError(
        f"relation {name!r} has columns, and nothing is known of the rows that it is to have\n"
        "  declare the class of the table's rows, or select() such rows"
    )


def _names(count: int) -> list[str]:
    return [f"row{place or ''}" for place in range(count)]
