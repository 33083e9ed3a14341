"""The text of a cell's query, as one would write it."""

from __future__ import annotations

from asv_benchmarks.grid.cell import BINDINGS, LINKS, TABLES, Cell

ABOVE = {
    "where": ".where(lambda k, s, n: s > {least})",
    "select": ".select(lambda k, s, n: (k, s // 100))",
    "group": ".group_by(lambda k, s, n: n).aggregate(Sum(lambda k, s, n: s), Count())",
    "top": ".order_by(lambda k, s, n: s, descending=True).limit(10)",
}
LEAST = 1_000_000


def query_text(cell: Cell) -> str:
    """Return a function from the tables to the relation."""
    lines = [f"def query({', '.join(TABLES[: cell.tables])}):", "    asked = orders"]
    lines += [
        f"    asked = asked{call}" for call in (*_early(cell, 0), *_joins(cell), *_wheres(cell))
    ]
    lines += [f"    return asked{''.join(_selects(cell))}{_asked(cell)}{_above(cell)}"]
    return "\n".join(lines) + "\n"


def _joins(cell: Cell) -> list[str]:
    calls = []
    for number, (link, to) in enumerate(LINKS[: cell.joins]):
        names = ", ".join(BINDINGS[: number + 2])
        on = f"{cell.field(number, link)} == {cell.field(number + 1, to)}"
        method = "join" if number else cell.match
        other = "".join([TABLES[number + 1], *_early(cell, number + 1)])
        calls.append(f".{method}({other}, on=lambda {names}: {on})")
    return calls


def _early(cell: Cell, table: int) -> list[str]:
    """Return the conditions of one table, if they are below the joins."""
    names = [name for name in cell.conditions if cell.early and cell.depth(name) == table]
    return [f".where(lambda {BINDINGS[table]}: {cell.condition(name)})" for name in names]


def _wheres(cell: Cell) -> list[str]:
    texts = [cell.condition(name) for name in cell.conditions if not cell.early]
    if texts and not cell.split:
        texts = [" and ".join(texts)]
    return [f".where({_lambda(cell)} {text})" for text in texts]


def _selects(cell: Cell) -> list[str]:
    if not cell.selects:
        return []
    first = f".select({_lambda(cell)} ({cell.group()}, {cell.field(0, 'value')}))"
    return [first, *[".select(lambda p: (p[0], p[1]))"] * (cell.selects - 1)]


def _asked(cell: Cell) -> str:
    """Return the text of the last part of the query."""
    value, key = f"{_lambda(cell)} {cell.field(0, 'value')}", f"{_lambda(cell)} {cell.group()}"
    if cell.selects:
        value, key = "lambda p: p[1]", "lambda p: p[0]"
    group = f".group_by({key})" if cell.groups else ""
    skip = ", skip_none=True" if cell.value == "None" else ""
    nulls = ', nulls="last"' if skip else ""
    match cell.ask:
        case "sum":
            return f"{group}.aggregate(Sum({value}{skip}), Count())"
        case "count":
            return f"{group}.aggregate(Count())"
        case "avg":
            return f"{group}.aggregate(Avg({value}{skip}), Count())"
        case "min_max":
            return f"{group}.aggregate(Min({value}{skip}), Max({value}{skip}))"
        case "count_distinct":
            return f"{group}.aggregate(CountDistinct({value}{skip}), Count())"
        case "order":
            return f".order_by({value}, descending=True{nulls})"
        case "top":
            return f".order_by({value}, descending=True{nulls}).limit(10)"
        case "distinct":
            row = f"({cell.group()}, {cell.field(0, 'status')})"
            return f".select({_lambda(cell)} {row}).distinct()"
        case "rows":
            return ""
    raise ValueError(f"no such ask: {cell.ask}")


def _above(cell: Cell) -> str:
    return ABOVE[cell.above].format(least=LEAST) if cell.above else ""


def _lambda(cell: Cell) -> str:
    return f"lambda {', '.join(cell.bindings)}:"
