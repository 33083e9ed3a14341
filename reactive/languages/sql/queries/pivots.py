"""PIVOT and UNPIVOT, in FROM and as statements: queries of the rows that they read.

    from s pivot (sum(x) for m in ('a', 'b') group by g)
        select g, sum(x) filter (where m = 'a') as a, sum(x) filter (where m = 'b') as b
        from s group by g
    from s unpivot (v for n in (a, b))
        select (other columns of s), n, v from s, unnest(['a', 'b'], [a, b]) as u(n, v)
        where v is not null

The columns of a view do not change, so the values of PIVOT are written out: `on m in ('a', 'b')`.
Values are compared as texts, as in DuckDB.

Cost:   that of the queries: O(aggregates of one value) for a changed row of PIVOT, O(columns) of
        UNPIVOT.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from sqlglot import exp

from reactive.languages.sql.queries.grouping import aggregates_in, evaluated_constant
from reactive.languages.sql.queries.ordering import name_of_column
from reactive.languages.sql.queries.query import PlannedRows, SelectQuery, rows_of_plan
from reactive.languages.sql.queries.select_columns import chosen_columns
from reactive.languages.sql.terms.errors import nearest, put, record_arguments, take, take_all
from reactive.languages.sql.terms.scope import Scope

SOURCE = "(pivot)"
"""The name of the rows that are pivoted, inside; no one writes such a name."""
NOT_NAMED = (exp.Window, exp.Query, exp.Subquery)


def pivot_rows(rows: PlannedRows, pivots: Sequence[Any], around: Scope) -> PlannedRows:
    """Return rows after the PIVOT and UNPIVOT clauses behind them.

    Raises
    ------
    PlanError: the values of PIVOT are not written out, or a name is of no column.
    """
    for pivot in pivots:
        rows = _pivot_once(rows, pivot, around)
    return rows


def _pivot_once(rows: PlannedRows, pivot: Any, around: Scope) -> PlannedRows:
    """Return the rows of the query that one clause stands for."""
    columns = list(rows.columns())
    names = [name for _, name, _ in columns]
    query = SelectQuery(
        rows.node, rows.scope(around), tuple(names), tuple(value for _, _, value in columns)
    )
    found = query.as_source()
    inside = around.around()
    inside.environment = around.environment.with_names({SOURCE: found})
    inner = rows_of_plan(found, SOURCE)
    if pivot.args.get("default_on_null"):
        raise around.error(pivot, "DEFAULT ON NULL is not supported", "write coalesce(...)")
    make = _unpivot if pivot.args.get("unpivot") else _pivot
    select = make(pivot, names, inner, inside)
    take_all(pivot)
    record_arguments(select)
    select.parent = pivot
    put(pivot, "copies", [select])
    pivot.args.get("copies")
    made = inside.query(select).as_source()
    alias = pivot.args.get("alias")
    given = () if alias is None else tuple(c.name for c in alias.args.get("columns") or ())
    every = around.replace_names(given, [name for name, _ in made.columns], pivot)
    return rows_of_plan(made, "" if alias is None else alias.name, every)


def _column(name: str) -> Any:
    return exp.column(exp.to_identifier(name, quoted=True))


def _query(items: list[Any], group: list[Any]) -> Any:
    """Return a SELECT of the rows that are pivoted."""
    table = exp.Table(this=exp.to_identifier(SOURCE, quoted=True))
    select = exp.Select(expressions=items, from_=exp.From(this=table))
    if group:
        select.set("group", exp.Group(expressions=[each.copy() for each in group]))
    return select


def _different(names: Sequence[str]) -> list[str]:
    """Return names, those that were there before with a number behind them."""
    made: list[str] = []
    seen: set[str] = set()
    for name in names:
        shown, count = name, 0
        while shown.casefold() in seen:
            count += 1
            shown = f"{name}_{count}"
        seen.add(shown.casefold())
        made.append(shown)
    return made


# PIVOT.


def _pivot(pivot: Any, names: list[str], rows: PlannedRows, inside: Scope) -> Any:
    """Return the SELECT of a PIVOT."""
    fields = [_values_of(field, names, inside) for field in pivot.args.get("fields") or ()]
    using = list(pivot.args.get("expressions") or ()) or [exp.Count(this=exp.Star())]
    read = {c.name.casefold() for each in using for c in each.find_all(exp.Column)}
    for field in pivot.args.get("fields") or ():
        read |= {c.name.casefold() for c in field.find_all(exp.Column)}
    group = pivot.args.get("group")
    if group is not None:
        keys = [_column(_known(each, names, inside)) for each in group.expressions]
    else:
        keys = [_column(name) for name in names if name.casefold() not in read]
    items, shown = [], [key.name for key in keys]
    for combination in product(*fields):
        test = exp.and_(*(each for _, each in combination), copy=True) if combination else None
        for each in using:
            parts = [name for name, _ in combination]
            if isinstance(each, exp.Alias) or len(using) > 1 or not parts:
                parts.append(each.alias or name_of_column(each, inside))
            shown.append("_".join(parts))
            items.append(_aggregate_where(each, test, inside))
    made = [*keys, *items]
    aliased = [
        exp.alias_(each, name, quoted=True, copy=False)
        for each, name in zip(made, _different(shown), strict=True)
    ]
    return _query(aliased, keys)


def _known(node: Any, names: Sequence[str], inside: Scope) -> str:
    """Return the name of a column as the rows have it; refuse another expression."""
    if not isinstance(node, exp.Column | exp.Identifier | exp.Literal):
        raise inside.error(node, "a column stands here, by its name", "compute it in FROM")
    found = next((name for name in names if name.casefold() == node.name.casefold()), None)
    if found is None:
        raise inside.error(node, f"there is no column {node.name!r}{nearest(node.name, names)}")
    return found


def _values_of(field: Any, names: list[str], inside: Scope) -> list[tuple[str, Any]]:
    """Return the values of a column of PIVOT: for each its name, and the test that a row has it."""
    if not isinstance(field, exp.In) or field.args.get("field") or field.args.get("query"):
        raise inside.error(
            field,
            "the columns of a live PIVOT cannot depend on its rows",
            f"write the values: ON {field.name or field.sql()} IN (value, ...)",
        )
    of = field.this
    if isinstance(of, exp.Binary):
        raise inside.error(of, "an expression of PIVOT stands in parentheses")
    parts = of.expressions if isinstance(of, exp.Tuple) else [of]
    for column in of.find_all(exp.Column):
        _known(column, names, inside)
    found: list[tuple[str, Any]] = []
    for value in field.expressions:
        written = value.this if isinstance(value, exp.PivotAlias | exp.Alias) else value
        given = written.expressions if isinstance(written, exp.Tuple) else [written]
        if len(given) != len(parts):
            raise inside.error(value, f"{len(given)} values are given for {len(parts)} columns")
        texts = [_text_of(each, inside) for each in given]
        name = "_".join("NULL" if text is None else text for text in texts)
        tests = [_is_text(part, text) for part, text in zip(parts, texts, strict=True)]
        name = value.alias if written is not value else name
        test = exp.and_(*tests, copy=False)
        if any(test == other for _, other in found):
            raise inside.error(value, f"the value {name!r} stands twice in IN")
        found.append((name, test))
    return found


def _text_of(node: Any, inside: Scope) -> str | None:
    """Return a constant of PIVOT as a text; None for NULL."""
    if isinstance(node, exp.Star | exp.Query | exp.Subquery | exp.Columns | exp.PivotAny):
        raise inside.error(node, "the values of PIVOT are written out")
    if isinstance(node, exp.Column) and not node.table:
        return str(node.name)  # `in (jan)` is `in ('jan')`
    cast = exp.cast(node.copy(), "VARCHAR", dialect="duckdb")
    cast.parent = node
    found = evaluated_constant(cast, inside.around())
    return None if found is None else str(found)


def _is_text(of: Any, text: str | None) -> Any:
    """Return the test that an expression has a text, or is NULL."""
    if text is None:
        return exp.Is(this=of.copy(), expression=exp.Null())
    cast = exp.cast(of.copy(), "VARCHAR", dialect="duckdb")
    return exp.EQ(this=cast, expression=exp.Literal.string(text))


def _aggregate_where(node: Any, test: Any, inside: Scope) -> Any:
    """Return a copy of an expression whose only aggregate is of the rows that pass a test."""
    whole = exp.Paren(this=(node.this if isinstance(node, exp.Alias) else node).copy())
    if whole.find(*NOT_NAMED):
        raise inside.error(node, "an expression of PIVOT has neither windows nor queries")
    found = list(aggregates_in(whole))
    if len(found) != 1:
        raise inside.error(node, f"an expression of PIVOT has one aggregate, and not {len(found)}")
    if test is None:
        return whole.this
    (aggregate,) = found
    holder = aggregate
    while isinstance(holder, exp.IgnoreNulls | exp.RespectNulls):
        holder = holder.this
    if isinstance(holder, exp.Filter):
        before = holder.expression.this
        holder.set("expression", exp.Where(this=exp.and_(before, test.copy())))
    else:
        place = exp.Filter(this=aggregate.copy(), expression=exp.Where(this=test.copy()))
        aggregate.replace(place)
    return whole.this


# UNPIVOT.


def _unpivot(pivot: Any, names: list[str], rows: PlannedRows, inside: Scope) -> Any:
    """Return the SELECT of an UNPIVOT."""
    name, values, given = _parts_of(pivot, inside)
    entries = [entry for each in given for entry in _entries(each, names, rows, inside)]
    for shown, parts, node in entries:
        if len(parts) != len(values):
            wrong = f"{len(parts)} columns of {shown!r} for {len(values)} names"
            raise inside.error(node, f"UNPIVOT has {wrong}")
    read = {
        column.name.casefold()
        for _, parts, _ in entries
        for part in parts
        for column in part.find_all(exp.Column)
    }
    kept = [each for each in names if each.casefold() not in read]
    arrays = [exp.Array(expressions=[exp.Literal.string(shown) for shown, _, _ in entries])]
    for place in range(len(values)):
        arrays.append(exp.Array(expressions=[parts[place].copy() for _, parts, _ in entries]))
    places = [f"(value {n})" for n in range(len(arrays))]
    alias = exp.TableAlias(
        this=exp.to_identifier("(values)", quoted=True),
        columns=[exp.to_identifier(each, quoted=True) for each in places],
    )
    items = [*map(_column, kept), *map(_column, places)]
    aliased = [
        exp.alias_(each, shown, quoted=True, copy=False)
        for each, shown in zip(items, _different([*kept, name, *values]), strict=True)
    ]
    select = _query(aliased, [])
    select.set("joins", [exp.Join(this=exp.Unnest(expressions=arrays, alias=alias))])
    if not pivot.args.get("include_nulls"):
        tests = [exp.Not(this=exp.Is(this=_column(p), expression=exp.Null())) for p in places[1:]]
        select.set("where", exp.Where(this=exp.and_(*tests, copy=False)))
    return select


def _parts_of(pivot: Any, inside: Scope) -> tuple[str, list[str], list[Any]]:
    """Return the name of the column of names, those of the values, and what is unpivoted."""
    into, fields = pivot.args.get("into"), list(pivot.args.get("fields") or ())
    if len(fields) == 1 and isinstance(fields[0], exp.In):
        (given,) = pivot.args["expressions"]
        named = given.expressions if isinstance(given, exp.Tuple) else [given]
        if isinstance(fields[0].this, exp.Tuple):
            raise inside.error(fields[0], "UNPIVOT has one column of names")
        return fields[0].this.name, [each.name for each in named], fields[0].expressions
    if fields:
        raise inside.error(pivot, "UNPIVOT has one FOR, with the columns in IN (...)")
    if into is None:
        return "name", ["value"], pivot.args["expressions"]
    named = [part for each in into.expressions for part in (each.expressions or [each])]
    return into.this.name, [each.name for each in named], pivot.args["expressions"]


def _entries(
    node: Any, names: list[str], rows: PlannedRows, inside: Scope
) -> list[tuple[str, list[Any], Any]]:
    """Return what one item of UNPIVOT stands for: a name, its values, and the item."""
    scope = rows.scope(inside)
    chosen = chosen_columns(node, rows, scope)
    if chosen:
        take(node)
        return [(name, [_inner(copy)], node) for name, copy in chosen]
    is_aliased = isinstance(node, exp.PivotAlias | exp.Alias)
    whole = node.this if is_aliased else node
    parts = whole.expressions if isinstance(whole, exp.Tuple) else [whole]
    values, shown = [], []
    for part in parts:
        if isinstance(part, exp.Literal) and part.is_string:
            part = _column(_known(part, names, inside))
        columns = [part, *part.find_all(exp.Column)] if isinstance(part, exp.Column) else []
        columns = columns[:1] or list(part.find_all(exp.Column))
        if not columns:
            raise inside.error(node, "UNPIVOT takes columns, and expressions of them")
        for column in columns:
            _known(column, names, inside)
        shown.append(_known(columns[0], names, inside))
        values.append(_inner(part))
    return [(node.alias if is_aliased else "_".join(shown), values, node)]


def _inner(node: Any) -> Any:
    """Return a copy of an expression whose columns are those of the rows that are unpivoted."""
    holder = exp.Paren(this=node.copy())
    for column in list(holder.find_all(exp.Column)):
        column.replace(_column(column.name))
    return holder.this
