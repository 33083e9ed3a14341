"""The text of a cell's twin: the incremental program that one would write by hand for the query.

    tables and indexes, as dictionaries        here
    the result of conditions and look-ups      sinks: they keep the result

A change is one path through `if` and `for` from its row to the result; a batch is the same path in
a loop over the removed rows, then over the added ones, and tells its listener at the end.
"""

from __future__ import annotations

from asv_benchmarks.grid.cell import BINDINGS, LINKS, PAIRS, TABLES, Cell
from asv_benchmarks.grid.sinks import Sink, sink_of

HEAD = """\
from bisect import bisect_left, insort
from collections import Counter
from operator import itemgetter

first = itemgetter(0)
none = {}

"""


def twin_text(cell: Cell) -> str:
    """Return the text of a function of two listeners (changes, batches) that returns the verbs."""
    sink = sink_of(cell)
    body = [*_state(cell), *sink.state()]
    for table in range(cell.tables):
        body += _verb(cell, sink, table, 1) + _verb(cell, sink, table, -1)
    body += _batch(cell, sink)
    body += ["def result():", *_in(sink.result())]
    verbs = ", ".join(f"(add_{name}, remove_{name})" for name in BINDINGS[: cell.tables])
    body += [f"return [{verbs}], batch, result"]
    return HEAD + "\n".join(["def twin(heard, heard_all):", *_in(body)]) + "\n"


def _state(cell: Cell) -> list[str]:
    """Return the tables by key, and the rows that refer to each row of the next table."""
    lines = [f"{TABLES[table]} = {{}}" for table in range(cell.tables)]
    return lines + [f"{BINDINGS[table]}_of = {{}}" for table in range(cell.joins)]


def _verb(cell: Cell, sink: Sink, table: int, weight: int) -> list[str]:
    """Add or remove one row."""
    name = f"{'add' if weight > 0 else 'remove'}_{BINDINGS[table]}"
    if table == 0 and cell.partners == 1:
        return [f"def {name}(o):", *_in(_main(cell, sink.one(weight), weight))]
    lines = [*sink.start(), *_change(cell, sink, table, weight), *sink.finish()]
    return [f"def {name}({BINDINGS[table]}):", *_in(lines)]


def _batch(cell: Cell, sink: Sink) -> list[str]:
    """Return the text of a batch, which loads joined tables first: no rows refer to them yet."""
    lines = sink.start()
    for table in reversed(range(cell.tables)):
        name = BINDINGS[table]
        for rows, weight in (("removed", -1), ("added", 1)):
            lines += [f"for {name} in deltas[{table}].{rows}:"]
            lines += _in(_change(cell, sink, table, weight))
    return ["def batch(deltas):", *_in([*lines, *sink.finish()])]


def _change(cell: Cell, sink: Sink, table: int, weight: int) -> list[str]:
    if not table:
        return _main(cell, sink.many(weight), weight)
    return _joined(cell, sink, table, weight)


def _main(cell: Cell, inner: list[str], weight: int) -> list[str]:
    """Return the lines for a row of the first table: store, test, index, look up partners."""
    lines = inner
    for table in reversed(range(cell.joins)):
        lines = _looked_up(cell, table, lines)
    if cell.joins:
        lines = [*_indexed(cell, 0, weight), *lines]
    return [*_counted("orders", "o", weight), *_asked(cell, 0, lines)]


def _joined(cell: Cell, sink: Sink, table: int, weight: int) -> list[str]:
    """Return the lines that handle a changed row of a joined table.

    The row is kept, indexed, and tested; then the rows that refer to it are joined with their other
    references.
    """
    lines = _matched(cell, sink, weight) if cell.match != "join" else sink.many(weight)
    for above in reversed(range(table, cell.joins)):
        lines = _looked_up(cell, above, lines)
    conditions = [name for name in cell.conditions if 0 < cell.depth(name) <= table]
    alone = [name for name in conditions if cell.depth(name) == table and name not in PAIRS]
    lines = _if([name for name in conditions if name not in alone], cell, lines)
    for below in range(table):
        to = cell.field(below + 1, LINKS[below][1])
        name = BINDINGS[below]
        lines = [f"for {name} in {name}_of.get({to}, none).values():", *_in(lines)]
    lines = _if(alone, cell, lines)
    if table < cell.joins:
        lines = [*_indexed(cell, table, weight), *lines]
    return [*_kept(cell, table, weight), *lines]


def _matched(cell: Cell, sink: Sink, weight: int) -> list[str]:
    """The orders of a customer, of a join that also shows orders without one, or without theirs."""
    match cell.match:
        case "semi_join":
            return sink.many(weight)
        case "anti_join":
            return sink.many(-weight)
    return ["c, found = None, c", *sink.many(-weight), "c = found", *sink.many(weight)]


def _looked_up(cell: Cell, table: int, inner: list[str]) -> list[str]:
    """Return the look-up of the row that a row refers to, followed by `inner`."""
    name, keyed = BINDINGS[table + 1], TABLES[table + 1]
    key = cell.field(table, LINKS[table][0])
    if table == 0 and cell.partners > 1:
        inner = _asked(cell, 1, inner)
        return [f"for c in customers.get({key}, none).values():", *_in(inner)]
    if table == 0 and cell.match == "semi_join":
        return [f"if {key} in customers:", *_in(inner)]
    if table == 0 and cell.match == "anti_join":
        return [f"if {key} not in customers:", *_in(inner)]
    lines = [f"{name} = {keyed}.get({key})"]
    if cell.match == "left_join":
        return [*lines, *inner]
    asked = [cell.condition(each) for each in cell.conditions if cell.depth(each) == table + 1]
    return [*lines, f"if {' and '.join([f'{name} is not None', *asked])}:", *_in(inner)]


def _asked(cell: Cell, table: int, inner: list[str]) -> list[str]:
    """Return the conditions that read no table after this one, and this one."""
    return _if([name for name in cell.conditions if cell.depth(name) == table], cell, inner)


def _if(conditions: list[str], cell: Cell, inner: list[str]) -> list[str]:
    texts = " and ".join(map(cell.condition, conditions))
    return [f"if {texts}:", *_in(inner)] if texts else inner


def _counted(table: str, row: str, weight: int) -> list[str]:
    """Return a multiset as a dictionary from row to count; removing an absent row is an error."""
    if weight > 0:
        return [f"{table}[{row}] = {table}.get({row}, 0) + 1"]
    return [
        f"left = {table}[{row}] - 1",
        "if left:",
        f"    {table}[{row}] = left",
        "else:",
        f"    del {table}[{row}]",
    ]


def _kept(cell: Cell, table: int, weight: int) -> list[str]:
    """Return a joined table by its key; with several rows per key, these by their number."""
    name, keyed = BINDINGS[table], TABLES[table]
    key = cell.field(table, LINKS[table - 1][1])
    if table == 1 and cell.partners > 1:
        return _filed(keyed, key, cell.field(1, "id"), name, weight)
    if weight > 0:
        return [f"if {key} in {keyed}:", f"    raise KeyError({key})", f"{keyed}[{key}] = {name}"]
    return [
        f"if {keyed}[{key}] != {name}:",
        f"    raise KeyError({name})",
        f"del {keyed}[{key}]",
    ]


def _indexed(cell: Cell, table: int, weight: int) -> list[str]:
    """The rows that refer to a row of the next table, by their number, which no two share."""
    name, key = BINDINGS[table], cell.field(table, LINKS[table][0])
    return _filed(f"{name}_of", key, cell.field(table, "id"), name, weight)


def _filed(index: str, key: str, number: str, row: str, weight: int) -> list[str]:
    if weight > 0:
        return [
            f"found = {index}.get({key})",
            "if found is None:",
            f"    {index}[{key}] = {{{number}: {row}}}",
            "else:",
            f"    found[{number}] = {row}",
        ]
    return [
        f"found = {index}[{key}]",
        f"del found[{number}]",
        "if not found:",
        f"    del {index}[{key}]",
    ]


def _in(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
