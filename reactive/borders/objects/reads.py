"""The attributes of a table's rows that queries read; assignments to others are not commits.

    orders.where(lambda o: o.total > 3).select(lambda o: o.id)     id, total
    orders.where(lambda o: o.total > 3)                            all: its rows are in the result
    orders.select(name_of)                                         all: the callable is opaque

A row is followed through a plan as long as it is a binding of its own. If it becomes part of
another one, or reaches an opaque callable or a node that is not listed here, all attributes count
as read.

State:  none.
Cost:   O(plans of the current views), once after these have changed.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, TypeAlias

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    Attribute,
    Constant,
    Expr,
    Lifted,
    Parameter,
    Quantified,
    Subquery,
    Within,
)
from optimizer.kinds.fields import members
from optimizer.lifting.lift import lift
from optimizer.plans.properties import bindings, tables
from optimizer.rewriting.columns import field_read
from optimizer.traverse import called
from reactive.engine.operators.accumulators import CountAccumulator

Marks: TypeAlias = tuple[bool, ...]
"""For each binding, True if it is a row of the table."""


class UnknownRead:
    """The marker for attributes that are not determined yet."""


UNKNOWN = UnknownRead()


class _All(Exception):
    """All attributes may be read."""


def attributes_read(engine: Any, table: Any) -> frozenset[str] | None:
    """Return the attributes of a table's rows that queries read; None for all."""
    if engine.graph.forgets or engine.moments or engine.offloading.is_possible:
        return None
    if engine.journal is not None:  # a durable store holds all attributes
        return None
    found: set[str] = set()
    try:
        if table.plan.key is not None:
            _add_name(found, field_read(table.plan.key.function))
        for leaf in engine.graph.leaves():
            written = leaf.leaf.plan
            is_below = table.plan in tables(written)
            if any(_mark_bindings(written, table.plan, found)) or leaf.leaf.base is not written:
                return None
            if not is_below and table._node in leaf.upstream():
                return None
    except _All:
        return None
    kind = getattr(table.row_type, "__origin__", table.row_type)
    known = {name for name in members(kind) if not _is_computed(kind, name)}
    return frozenset(found) if found <= known else None


def _is_computed(kind: Any, name: str) -> bool:
    return isinstance(inspect.getattr_static(kind, name, None), property)


def _mark_bindings(node: plan.Node, table: plan.Table, found: set[str]) -> Marks:
    """Mark the bindings of a node that are rows of the table; collect the attributes it reads.

    Raises `_All` if it, or a node below it, may read all attributes.
    """
    if table not in tables(node):
        return (False,) * bindings(node)
    given = [_mark_bindings(each, table, found) for each in node.inputs()]
    if node.inputs() and not any(map(any, given)):
        return (False,) * bindings(node)
    match node:
        case plan.Known():
            raise _All
        case plan.Table():
            return (True,)
        case plan.View():
            return given[0]
        case plan.Where() | plan.SemiJoin() | plan.AntiJoin():
            marks = given[0]
        case plan.Product() | plan.Join() | plan.OuterJoin():
            marks = (*given[0], *given[1])
        case plan.Unnest():
            marks = (*given[0], False)
        case plan.Select() | plan.SelectMany():
            marks = (False,) * bindings(node)
        case plan.Aggregate():
            if any(map(_folds_rows, node.aggregates)):
                raise _All
            marks = (False,) * bindings(node)
        case _:
            raise _All
    for function, of in called(node, given):  # type: ignore[arg-type]
        _collect_reads(function, of, found)  # type: ignore[arg-type]
    return marks


def _folds_rows(folded: plan.Folded) -> bool:
    """Return True if an aggregate reads the rows themselves, and not only their number."""
    return folded.value is None and type(folded.accumulator) is not CountAccumulator


def _collect_reads(function: Any, of: Sequence[bool], found: set[str]) -> None:
    """Collect the attributes that a callable reads of rows of the table.

    Raises `_All` if the callable is opaque, or may read all.
    """
    if not any(of):
        return
    read = lift(function) if isinstance(function, Opaque) else function
    if not isinstance(read, Lifted):
        raise _All
    _walk(read.body, of, found)


def _walk(part: Any, of: Sequence[bool], found: set[str]) -> None:
    """Add the attributes that an expression reads of parameters marked in `of` to `found`.

    Raises `_All` if it uses such a parameter as a whole.
    """
    match part:
        case Attribute(Parameter(index), name):
            if of[index]:
                _add_name(found, name)
        case Parameter(index):
            if of[index]:
                raise _All
        case Constant():
            pass
        case Subquery() | Quantified() | Within():
            raise _All
        case Expr():
            for inner in _subexpressions(part):
                _walk(inner, of, found)


def _subexpressions(part: Expr) -> list[Any]:
    names: Any = type(part).__match_args__
    return [each for name in names for each in _expressions_in(getattr(part, name))]


def _expressions_in(value: Any) -> list[Any]:
    """Return the expressions in a field of an expression."""
    if isinstance(value, tuple):
        return [inner for each in value for inner in _expressions_in(each)]
    return [value] if isinstance(value, Expr) else []


def _add_name(found: set[str], name: str | None) -> None:
    """Add the name of an attribute; raise `_All` if the name is not known."""
    if name is None:
        raise _All
    found.add(name)
