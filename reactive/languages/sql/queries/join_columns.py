"""The columns of a join: those of both sides, and those that USING or NATURAL makes one."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from optimizer.expr import Conditional, Expr, conjunction
from reactive.languages.sql.expressions.casts import align, equal_types
from reactive.languages.sql.expressions.comparisons import compare_values
from reactive.languages.sql.queries.query import PlannedRows
from reactive.languages.sql.terms.errors import nearest
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.values import TypedValue, as_optional, nullable_value, present


def side_by_side(left: PlannedRows, right: PlannedRows, kind: str | None) -> PlannedRows:
    """Return the columns of both sides of a join; those of a side that may miss are nullable."""
    mine = left.missing() if kind in ("right", "full") else left
    theirs = right.rebind(left.bindings, missing=kind in ("left", "full"))
    both = (*mine.sources, *theirs.sources)
    return PlannedRows(left.node, left.bindings + 1, both, {**theirs.merged, **mine.merged})


def shared_columns(
    left: PlannedRows, right: PlannedRows, join: Any, around: Scope
) -> tuple[list[Expr], list[tuple[str, TypedValue, TypedValue]]]:
    """Return the equations of USING or NATURAL, and their columns; refuse an absent one."""
    names = [column.name for column in join.args.get("using") or ()]
    if (join.method or "").upper() == "NATURAL":
        theirs = {name.casefold() for _, name, _ in right.columns()}
        names = [name for _, name, _ in left.columns() if name.casefold() in theirs]
    if not names:
        return [], []
    moved = right.rebind(left.bindings, missing=False)
    mine, theirs_scope = left.scope(around), moved.scope(around)
    shared = []
    for name in names:
        column = exp.column(name)
        column.parent = join
        pair = [scope.of_sources(column) for scope in (mine, theirs_scope)]
        for value, side in zip(pair, (left, moved), strict=True):
            if value is None:
                every = [column for _, column, _ in side.columns()]
                raise around.error(
                    join,
                    f"USING names {name!r}, which one side does not have{nearest(name, every)}",
                )
        left_one, right_one = align(join, around, *filter(None, pair))
        shared.append((name, left_one, right_one))
    return [compare_values("==", a, b) for _, a, b in shared], shared


def merge_columns(
    rows: PlannedRows,
    shared: list[tuple[str, TypedValue, TypedValue]],
    kind: str | None,
    join: Any,
    around: Scope,
) -> dict[str, TypedValue]:
    """Return the merged columns of USING: the left, for RIGHT the right, for FULL the present."""
    merged = {}
    for name, _, _ in shared:
        found = [v for s in rows.sources for v in s.columns_named(name)]
        first, last = rows.merged.get(name.casefold(), found[0]), found[-1]
        if kind == "full" or around.dialect.name == "postgres":
            (first, last), _ = equal_types((first, last), around, join)
        if kind == "right":
            first = last
        elif kind == "full":
            first = nullable_value(
                Conditional(conjunction(present(first)), first.expr, as_optional(last)),
                first.type,
            )
        merged[name.casefold()] = first
    return merged
