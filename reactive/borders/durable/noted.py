"""What is noted of commits until it is written, and what it comes to when that is done together.

    (7, comes, row)             a row that comes, of a table with a key: as values
    (8, both, (rows, rows))     some that go, and some that come
    (9, None, record)           of tables without a key, as it is written

Of a row that came and went in between nothing is written; of a key whose row was replaced often,
the last one. So many commits become one record, with one change for each of their tables.

State:  none.
Cost:   of a commit that adds a row a tenth of a microsecond; of any other row half of one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, groupby
from operator import itemgetter
from time import time
from typing import Any, NamedTuple, TypeAlias

from reactive.borders.durable.journal import KeptTable
from reactive.borders.durable.rows.values import Unstorable
from reactive.borders.durable.store import Change, Record, Values
from reactive.engine.codegen.functions import Values as CodeValues
from reactive.engine.codegen.functions import build
from reactive.engine.collections.zset import Pair


class Side(NamedTuple):
    """What is noted of a table with a key.

    key_place: where the key is among the values of a row.
    ways: whether a row comes (1), a row goes (-1), or some do both (0).
    """

    table: str
    key_place: int
    ways: int


Noted: TypeAlias = tuple[int, Side | None, Any]
"""The version of a commit, and what is noted of it."""
Step: TypeAlias = tuple[Sequence[Values], Sequence[Values]]
"""Rows that go, and then rows that come."""
Note: TypeAlias = Callable[[Sequence[Pair], int], None]
"""Notes a delta of a table as part of a version. Raises what the table refuses a row with."""


def sides_of(kept: KeptTable) -> tuple[Side, Side, Side]:
    """What may be noted of a table with a key: a row that comes, one that goes, and both."""
    place = kept.codec.schema.key_place
    return Side(kept.name, place, 1), Side(kept.name, place, -1), Side(kept.name, place, 0)


def noting(kept: KeptTable, sides: Sequence[Side], noted: list[Noted]) -> Note:
    """What notes deltas of a table with a key: each all at once, or not at all."""
    write, both = kept.codec.write, sides[2]

    def note(delta: Sequence[Pair], version: int) -> None:
        row: Any = None
        gone: list[Values] = []
        come: list[Values] = []
        try:
            for row, weight in delta:
                (come if weight > 0 else gone).append(write(row))
        except Unstorable as misfit:
            raise kept.refusal(row, misfit) from None
        noted.append((version, both, (gone, come)))

    return note


def noting_one(
    kept: KeptTable, sides: Sequence[Side], noted: list[Noted], journal: Any, otherwise: Note
) -> Note:
    """What notes commits of one table with a key: a generated function for one row as usual.

    Parameters
    ----------
    journal: `has` forgets a version that was noted, and `wake` is called if it `is_asleep`.
    otherwise: what notes the other commits.
    """
    usual, values = kept.codec.usual, CodeValues()
    if usual is None:
        return otherwise
    values.by_name |= {**usual.by_name, "Unstorable": Unstorable, "otherwise": otherwise}
    values.by_name |= {"journal": journal, "noted": noted, "comes": sides[0], "goes": sides[1]}
    lines = "".join(f"        {line}\n" for line in usual.lines)
    text = _NOTE.format(lines=lines, test=usual.test, values=usual.values)
    return build("note", text, values)


_NOTE = """\
def note(delta, version):
    if len(delta) != 1: return otherwise(delta, version)
    ((row, weight),) = delta
    try:
{lines}\
    except Unstorable: return otherwise(delta, version)
    if not ({test}): return otherwise(delta, version)
    if noted and noted[-1][0] >= version: journal.has(version)
    noted.append((version, comes if weight > 0 else goes, {values}))
    if journal.is_asleep: journal.wake()
"""


def together(noted: Sequence[Noted]) -> list[Record]:
    """What commits come to, of which the last one is whole.

    >>> comes, both = Side("words", 0, 1), Side("words", 0, 0)
    >>> old, new = ("tea", 1), ("tea", 2)
    >>> (record,) = together([(7, comes, ("to", 1)), (8, both, ([old], [new]))])
    >>> record.version, record.changes
    (8, [Change(table='words', gone=[('tea', 1)], come=[('to', 1), ('tea', 2)], counted=())])
    """
    records: list[Record] = []
    steps: dict[str, tuple[Side, list[Step]]] = {}
    for side, run in groupby(noted, _SIDE):
        found = [*map(_WHAT, run)]
        if side is None:
            records += found
            continue
        _, its = steps.setdefault(side.table, (side, []))
        its += [((), found)] if side.ways > 0 else [(found, ())] if side.ways else found
    if steps:
        changes = [_net(*each) for each in steps.values()]
        records.append(Record(noted[-1][0], time(), changes))
    return records


def _net(side: Side, steps: Sequence[Step]) -> Change:
    """What the rows of a table come to."""
    if not any(gone for gone, _ in steps):
        return Change(side.table, (), [*chain.from_iterable(come for _, come in steps)])
    place = side.key_place
    before: dict[Any, Values | None] = {}
    after: dict[Any, Values | None] = {}
    for gone, come in steps:
        for row in gone:
            before.setdefault(row[place], row)
            after[row[place]] = None
        for row in come:
            before.setdefault(row[place], None)
            after[row[place]] = row
    return Change(side.table, [*filter(None, before.values())], [*filter(None, after.values())])


_SIDE, _WHAT = itemgetter(1), itemgetter(2)
