"""The columns of a SELECT: its items, with the columns that stars and DuckDB's COLUMNS stand for.

    select * exclude (id) from t          a column for each column of t, but for one
    select max(columns('n[0-9]')) from t  an item for each column whose name has a match
    select coalesce(*columns(*)) from t   one item, with all columns as arguments
    where columns(*) > 3                  the condition holds for all columns

An item with COLUMNS is copied for each column. The copies stand in the tree beside what they were
copied from, so that an argument of theirs that is not read is refused like any other.

Cost:   O(columns) for each item, once for each text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from optimizer.record import record
from reactive.languages.sql.queries.grouping import evaluated_constant
from reactive.languages.sql.queries.ordering import SelectColumn, name_of_column
from reactive.languages.sql.queries.query import PlannedRows
from reactive.languages.sql.queries.unnested import fields_of_struct, write_levels
from reactive.languages.sql.terms.errors import (
    nearest,
    peek,
    put,
    record_arguments,
    take,
    take_all,
)
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.types import fields_of

GROUP = re.compile(r"\\(\d)")
"""A group of a regular expression in the alias of COLUMNS."""
TESTS = (exp.Like, exp.ILike, exp.Glob, exp.SimilarTo, exp.RegexpLike)
"""Comparisons of a star, which choose columns by their names."""


@record
class _Found:
    """A column that COLUMNS stands for: its name, its node, and the match of its name."""

    column: SelectColumn
    is_replaced: bool = False
    match: re.Match[str] | None = None


def expand_columns(select: Any, rows: PlannedRows, scope: Scope) -> list[SelectColumn]:
    """Return the columns, in order.

    Raises
    ------
    PlanError: a star stands for nothing.
    """
    made = [_expand_item(node, rows, scope) for node in select.expressions]
    copies = [column.node for item in made for column in item.columns if item.is_copied]
    _keep(select, copies)
    return [column for item in made for column in item.columns]


def expand_order(order: Any, rows: PlannedRows, scope: Scope) -> None:
    """Write the columns that COLUMNS stands for into ORDER BY or DISTINCT ON."""
    if order is None or not any(map(_columns_in, order.args["expressions"])):
        return
    made = []
    for each in order.expressions:
        found = _columns_in(each)
        made += [node for _, node in _copies(each, found, rows, scope)] if found else [each]
    put(order, "expressions", made)


def expand_condition(clause: Any, rows: PlannedRows, scope: Scope) -> Any:
    """Return the condition of a clause; with COLUMNS, that of all columns."""
    found = _columns_in(clause.this)
    if not found:
        return clause.this
    made = [node for _, node in _copies(clause.this, found, rows, scope)]
    _keep(clause, made)
    return exp.and_(*(exp.Paren(this=each) for each in made), copy=False)


def chosen_columns(node: Any, rows: PlannedRows, scope: Scope) -> list[tuple[str, Any]]:
    """Return the names and copies of an item of UNPIVOT for each column that it stands for."""
    if _star(node) is not None:
        return [(c.name, c.node) for c in _expand_star(_star(node), node, rows, scope)]
    found = _columns_in(node)
    return [(c.name, made) for c, made in _copies(node, found, rows, scope)] if found else []


def _keep(node: Any, copies: list[Any]) -> None:
    """Make copies a part of the tree, so that they are checked to be read."""
    if copies:
        put(node, "copies", copies)
        node.args.get("copies")


@record
class _Item:
    """The columns of an item of SELECT, and whether they are copies of it."""

    columns: tuple[SelectColumn, ...]
    is_copied: bool = False


def _expand_item(node: Any, rows: PlannedRows, scope: Scope) -> _Item:
    """Return the columns of one item of SELECT; a star or an unnested struct has several."""
    star = _star(node)
    if star is not None:
        return _Item(tuple(_expand_star(star, node, rows, scope)))
    if scope.dialect.name == "duckdb":
        is_unnested = any(each.expressions for each in node.find_all(exp.Explode))
        leaves = write_levels(node, node.parent, scope) if is_unnested else ()
        if leaves:
            take_all(node)
            return _Item(leaves, is_copied=True)
        tested = _tested_star(node)
        if tested is not None:
            return _Item(tuple(_matching_columns(node, tested, rows, scope)))
        found = _columns_in(node)
        if found:
            return _Item(tuple(_expand_call(node, found, rows, scope)), is_copied=True)
    if isinstance(node, exp.Alias):
        return _Item((SelectColumn(node.alias, node.this, True),))
    is_star = isinstance(node, exp.Dot) and isinstance(node.expression, exp.Star)
    if is_star and scope.dialect.name == "postgres":
        take(node.expression)
        return _Item(tuple(fields_of_struct(node, scope.value(node.this), scope)))
    if isinstance(node, exp.Explode | exp.Unnest) and scope.dialect.dotted_fields:
        return _Item(tuple(_unnest_struct(node, scope)))
    if isinstance(node, exp.Column):
        return _Item((SelectColumn(node.name, node, False),))
    return _Item((SelectColumn(name_of_column(node, scope), node, False),))


def _unnest_struct(node: Any, scope: Scope) -> Iterator[SelectColumn]:
    """Yield a column for each field of an unnested struct; one column for any other value."""
    value = scope.value(node.this if isinstance(node, exp.Explode) else node.expressions[0])
    yield from fields_of_struct(node, value, scope)
    if not fields_of(value.type):
        yield SelectColumn(name_of_column(node, scope), node, False)


# Stars.


def _star(node: Any) -> Any:
    """Return the star that a node is or ends with (`t.*`); None for others."""
    if isinstance(node, exp.Star):
        return node
    return node.this if isinstance(node, exp.Column) and isinstance(node.this, exp.Star) else None


def _expand_star(star: Any, node: Any, rows: PlannedRows, scope: Scope) -> Iterator[SelectColumn]:
    """Yield the columns of `*` after EXCEPT, REPLACE and RENAME; refuse a star without columns."""
    for found in _columns_of_star(star, node, rows, scope):
        yield found.column


def _columns_of_star(star: Any, node: Any, rows: PlannedRows, scope: Scope) -> list[_Found]:
    """Return the columns of a star; refuse the names in it that are of no column."""
    take(star)
    table = node.table if isinstance(node, exp.Column) else ""
    left_out = [(c, None) for c in star.args.get("except_") or ()]
    replaced = [(a.args["alias"], a.this) for a in star.args.get("replace") or ()]
    renamed = [(a.this, a.alias) for a in star.args.get("rename") or ()]
    tests = [(word, star.args[word]) for word in ("ilike", "like") if star.args.get(word)]
    if scope.dialect.name != "duckdb" and tests:
        raise scope.error(tests[0][1], f"* {tests[0][0].upper()} is not supported", "name columns")
    _refuse_twice(left_out, replaced, renamed, scope)
    first = scope.dialect.name == "postgres"
    columns = list(_of_table(node, rows, scope) if table else rows.columns(merged_first=first))
    if not columns:
        names = [source.name for source in rows.sources]
        what = f"{table}.*" if table else "*"
        raise scope.error(node, f"{what} stands for no columns{nearest(table, names)}")
    for named, word in ((left_out, "EXCLUDE"), (replaced, "REPLACE")):
        for name, _ in named:
            if not any(_is_named(name, source, column) for source, column, _ in columns):
                near = nearest(name.name, [column for _, column, _ in columns])
                raise scope.error(name, f"{word} names no column {name.name!r}{near}")
    found = []
    for source, name, value in columns:
        if _named(left_out, source, name) is not None or not _passes(tests, name, scope):
            continue
        instead = _named(replaced, source, name)
        if instead is not None:
            found.append(_Found(SelectColumn(name, instead[1], False), is_replaced=True))
            continue
        column = exp.column(name, source or None)
        column.parent = node
        scope.values[id(column)] = value
        other = _named(renamed, source, name)
        shown = name if other is None else other[1]
        found.append(_Found(SelectColumn(shown, column, other is not None)))
    if not found and tests:
        raise scope.error(node, "no column has such a name")
    return found


def _refuse_twice(left_out: Any, replaced: Any, renamed: Any, scope: Scope) -> None:
    """Check that EXCLUDE, REPLACE and RENAME name different columns."""
    seen: dict[str, str] = {}
    for named, word in ((left_out, "EXCLUDE"), (replaced, "REPLACE"), (renamed, "RENAME")):
        for name, _ in named:
            before = seen.setdefault(name.name.casefold(), word)
            if before != word:
                raise scope.error(name, f"{before} and {word} both name {name.name!r}")


def _named(named: Any, source: str, column: str) -> Any:
    """Return the first entry whose name is of a column; None if there is none."""
    return next((each for each in named if _is_named(each[0], source, column)), None)


def _is_named(name: Any, source: str, column: str) -> bool:
    """Return True if a name, with or without its table, is of a column."""
    table = name.table if isinstance(name, exp.Column) else ""
    return name.name.casefold() == column.casefold() and (
        not table or table.casefold() == source.casefold()
    )


def _of_table(node: Any, rows: PlannedRows, scope: Scope) -> Iterator[tuple[str, str, Any]]:
    """Yield the columns of the table that a star names, or the fields of the column."""
    named = [each for each in rows.sources if each.name.casefold() == node.table.casefold()]
    for source in named:
        for name, value in source.columns:
            yield source.name, name, value
    if not named and scope.dialect.dotted_fields:
        *above, name = node.parts[:-1]
        column = exp.Column(this=name.copy(), table=above[-1].copy() if above else None)
        found = scope.of_sources(column)
        if found is not None:
            for field in fields_of(found.type):
                yield node.table, field, scope.field(found, field, node)


def _passes(tests: Any, name: str, scope: Scope) -> bool:
    """Return True if a name fulfils the LIKE and ILIKE of a star."""
    kinds = {"ilike": exp.ILike, "like": exp.Like}
    for _, pattern in tests:
        take_all(pattern)
    return all(
        _is_true(kinds[word](this=exp.Literal.string(name), expression=pattern.copy()), scope)
        for word, pattern in tests
    )


def _is_true(condition: Any, scope: Scope) -> bool:
    return evaluated_constant(condition, scope.around()) is True


def _tested_star(node: Any) -> Any:
    """Return the comparison of a star with a pattern that an item of SELECT is; None for others."""
    inner = node.this if isinstance(node, exp.Alias) else node
    inner = inner.this if isinstance(inner, exp.Not) else inner
    if isinstance(inner, exp.Escape):
        inner = inner.this
    return inner if isinstance(inner, TESTS) and _star(peek(inner, "this")) is not None else None


def _matching_columns(
    node: Any, test: Any, rows: PlannedRows, scope: Scope
) -> Iterator[SelectColumn]:
    """Yield the columns whose names a pattern matches; refuse a star that is changed, too."""
    star = _star(test.this)
    for word in ("replace", "rename"):
        if star.args.get(word):
            raise scope.error(node, f"{word.upper()} of a star that is tested by a pattern")
    condition = node.this if isinstance(node, exp.Alias) else node
    pattern = test.expression
    found = False
    for column in _expand_star(star, test.this, rows, scope):
        copy = condition.copy()
        for part in list(copy.walk()):
            if part is not copy and _star(part) is not None and isinstance(part.parent, TESTS):
                part.replace(exp.Literal.string(column.name))
        if not _is_true(copy, scope):
            continue
        found = True
        if not isinstance(node, exp.Alias):
            yield column
            continue
        match = None
        if isinstance(test, exp.SimilarTo) and condition is test:
            match = _search(f"^(?:{evaluated_constant(pattern, scope.around())})$", column.name)
        name = _name_by(node.alias, column.name, match)
        yield SelectColumn(name, column.node, True)
    take_all(condition)
    if not found:
        raise scope.error(node, "no column has such a name")


# COLUMNS.


def _columns_in(node: Any) -> list[Any]:
    """Return the calls of COLUMNS in an expression, without those of queries inside."""
    if isinstance(node, exp.Columns):
        return [node]
    if isinstance(node, exp.Query | exp.Subquery):
        return []
    return [found for part in node.iter_expressions() for found in _columns_in(part)]


def _expand_call(
    node: Any, found: list[Any], rows: PlannedRows, scope: Scope
) -> Iterator[SelectColumn]:
    """Yield the columns of an item that has COLUMNS: the item, copied for each of them."""
    whole = node.this if isinstance(node, exp.Alias) else node
    if whole is found[0] and peek(whole, "unpack"):
        raise scope.error(node, "*COLUMNS stands for arguments", "write COLUMNS(...)")
    for column, made in _copies(whole, found, rows, scope):
        if column is None:
            name = node.alias if whole is not node else name_of_column(made, scope)
            yield SelectColumn(name, made, whole is not node)
        elif whole is not node:
            yield SelectColumn(column.name, made, True)
        elif column.is_alias and whole is not found[0]:  # replaced
            yield SelectColumn(name_of_column(made, scope), made, False)
        else:
            yield SelectColumn(column.name, made, not isinstance(made, exp.Column))


def _copies(
    node: Any, found: list[Any], rows: PlannedRows, scope: Scope
) -> Iterator[tuple[Any, Any]]:
    """Yield a copy of an expression for each column that its COLUMNS stand for, with the column.

    If all of them are `*COLUMNS`, yield one copy, with None.

    Raises
    ------
    PlanError: the calls of COLUMNS differ.
    """
    first = found[0]
    if any(each.this != first.this for each in found[1:]):
        raise scope.error(found[1], "COLUMNS of one expression must all be the same")
    columns = _chosen(first, rows, scope)
    parent, alias = node.parent, ""
    if isinstance(parent, exp.Alias) and parent.this is node:
        alias = parent.alias
    take_all(node)
    if all(peek(each, "unpack") for each in found):
        yield None, _copy_with(node, columns, None, scope)
        return
    for each in columns:
        name = _name_by(alias, each.column.name, each.match) if alias else each.column.name
        shown = SelectColumn(name, each.column.node, each.is_replaced)
        yield shown, _copy_with(node, columns, each, scope)


def _copy_with(node: Any, columns: list[_Found], one: _Found | None, scope: Scope) -> Any:
    """Return a copy of a node with columns in place of COLUMNS: one, or all for `*COLUMNS`."""
    holder = exp.Paren(this=node.copy())
    for call in _columns_in(holder):
        if peek(call, "unpack"):
            _unpack(call, [_column(each, scope) for each in columns], node, scope)
        elif one is not None:
            call.replace(_column(one, scope))
    made = holder.this
    made.pop()
    record_arguments(made)
    for part in made.walk():
        if id(part) in scope.values:
            take_all(part)
    made.parent = node.parent
    return made


def _column(found: _Found, scope: Scope) -> Any:
    """Return a node of a column, which has the value of the column."""
    node = found.column.node
    made = node.copy()
    if id(node) in scope.values:
        scope.values[id(made)] = scope.values[id(node)]
    return made


def _unpack(call: Any, columns: list[Any], node: Any, scope: Scope) -> None:
    """Put columns as arguments in the place of `*COLUMNS(...)`."""
    around, place = call.parent, call.index
    if isinstance(around, exp.Struct):
        columns = [
            exp.PropertyEQ(this=exp.to_identifier(each.name), expression=each) for each in columns
        ]
    if place is not None:
        given = list(around.args[call.arg_key])
        around.set(call.arg_key, [*given[:place], *columns, *given[place + 1 :]])
        return
    if call.arg_key != "this" or not isinstance(around, exp.Func | exp.Anonymous):
        raise scope.error(node, "*COLUMNS stands for the arguments of a function")
    rest = [value for name, value in around.args.items() if name not in ("this", "expressions")]
    given = [*columns, *(around.args.get("expressions") or ())]
    places = [name for name in around.arg_types if name != "expressions"]
    if "expressions" in around.arg_types:
        around.set("this", given[0])
        around.set("expressions", given[1:])
    elif len(given) <= len(places) and not any(isinstance(each, exp.Expr) for each in rest):
        for name, value in zip(places, given, strict=False):
            around.set(name, value)
    else:
        raise scope.error(node, f"{around.sql_name().lower()}() takes fewer arguments")


def _chosen(call: Any, rows: PlannedRows, scope: Scope) -> list[_Found]:
    """Return the columns that a call of COLUMNS stands for; refuse none at all."""
    what = call.this
    star = _star(what)
    if star is not None:
        return _columns_of_star(star, what, rows, scope)
    every = [_Found(c) for c in _expand_star(exp.Star(), exp.Star(), rows, scope)]
    if isinstance(what, exp.Lambda):
        return _some(_by_lambda(what, every, scope), call, scope)
    if isinstance(what, TESTS) and isinstance(what.this, exp.Star):
        return _some(
            [e for e in every if _is_true(_tested(what, e.column.name), scope)], call, scope
        )
    if isinstance(what, exp.Array) and any(isinstance(e, exp.Column) for e in what.expressions):
        raise scope.error(call, "COLUMNS takes names as texts", "write COLUMNS(['a', 'b'])")
    wanted = evaluated_constant(what, scope.around())
    if isinstance(wanted, str):
        found = [(each, _search(wanted, each.column.name, call, scope)) for each in every]
        chosen = [_Found(e.column, match=match) for e, match in found if match is not None]
        return _some(chosen, call, scope)
    if not isinstance(wanted, tuple | list):
        raise scope.error(call, "COLUMNS takes a star, a pattern, a lambda or a list of names")
    names = {str(name).casefold() for name in wanted}
    for name in wanted:
        if all(each.column.name.casefold() != str(name).casefold() for each in every):
            near = nearest(str(name), [each.column.name for each in every])
            raise scope.error(call, f"there is no column {name!r}{near}")
    return [each for each in every if each.column.name.casefold() in names]


def _some(found: list[_Found], call: Any, scope: Scope) -> list[_Found]:
    if not found:
        raise scope.error(call, "no column has such a name")
    return found


def _by_lambda(what: Any, every: list[_Found], scope: Scope) -> list[_Found]:
    """Return the columns for whose names a lambda is TRUE."""
    if len(what.expressions) != 1:
        raise scope.error(what, "the lambda of COLUMNS has one parameter, the name of a column")
    parameter = what.expressions[0].name.casefold()
    found = []
    for each in every:
        holder = exp.Paren(this=what.this.copy())
        for part in list(holder.find_all(exp.Column, exp.Identifier)):
            is_whole = not isinstance(part.parent, exp.Column)
            if part.name.casefold() == parameter and is_whole:
                part.replace(exp.Literal.string(each.column.name))
        if _is_true(holder.this, scope):
            found.append(each)
    return found


def _tested(test: Any, name: str) -> Any:
    """Return a comparison of a star as one of a name."""
    made = test.copy()
    made.set("this", exp.Literal.string(name))
    return made


def _search(pattern: str, name: str, call: Any = None, scope: Any = None) -> re.Match[str] | None:
    """Return the match of a pattern in a name; refuse a pattern that is none."""
    try:
        return re.search(pattern, name)
    except re.error as error:
        if scope is None:
            return None
        raise scope.error(call, f"this is no regular expression: {error}") from None


def _name_by(alias: str, name: str, match: re.Match[str] | None) -> str:
    """Return the alias of a column, with its groups (`\\\\1`) replaced; `\\\\0` is the whole."""

    def group(found: re.Match[str]) -> str:
        place = int(found[1])
        if match is None:
            return name if place == 0 else ""
        return (match[place] or "") if place <= (match.re.groups or 0) else ""

    return GROUP.sub(group, alias)
