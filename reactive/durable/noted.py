"""What is noted of commits until it is written, and what it comes to when that is done together.

    (7, come, row)                           a row that comes, of a table with a key: as values
    (8, some_gone, rows), (8, some_come, rows)    some rows
    (9, None, record)                             of other tables, as it is written

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

from reactive.codegen.functions import Values as CodeValues
from reactive.codegen.functions import build
from reactive.collections.zset import Pair
from reactive.durable.journal import KeptTable
from reactive.durable.rows.values import Unstorable
from reactive.durable.store import Change, Record, Values


class Side(NamedTuple):
    """A row of a table with a key that comes, or one that goes; or some.

    key_place: where the key is among the values of a row.
    """

    table: str
    key_place: int
    come: bool
    some: bool


Noted: TypeAlias = tuple[int, Side | None, Any]
"""The version of a commit, and a row of it, or some; or, without a side, what it changes of tables
without a key."""
Run: TypeAlias = tuple[Side, list[Values]]
"""Rows of one side, one after the other."""


Note: TypeAlias = Callable[[Sequence[Pair], int], None]
"""Notes a delta of a table as part of a version. Raises what the table refuses a row with."""


def sides_of(kept: KeptTable) -> Sequence[Side]:
    """Of a table with a key: a row that comes, one that goes, some that come, some that go."""
    place = kept.codec.schema.key_place
    return [Side(kept.name, place, come, some) for some in (False, True) for come in (True, False)]


def noting(kept: KeptTable, sides: Sequence[Side], noted: list[Noted]) -> Note:
    """What notes deltas of a table with a key: each all at once, or not at all."""
    write = kept.codec.write
    comes, goes, some_come, some_go = sides

    def note(delta: Sequence[Pair], version: int) -> None:
        row: Any = None
        try:
            if len(delta) == 1:
                ((row, weight),) = delta
                noted.append((version, comes if weight > 0 else goes, write(row)))
                return
            gone: list[Values] = []
            come: list[Values] = []
            for row, weight in delta:
                (come if weight > 0 else gone).append(write(row))
            noted.extend([(version, some_go, gone), (version, some_come, come)])
        except Unstorable as misfit:
            raise kept.refusal(row, misfit) from None

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

    >>> come, gone = Side("words", 0, True, False), Side("words", 0, False, False)
    >>> old, new = ("tea", 1), ("tea", 2)
    >>> (record,) = together([(7, come, ("to", 1)), (8, gone, old), (8, come, new)])
    >>> record.version, record.changes
    (8, [Change(table='words', gone=[('tea', 1)], come=[('to', 1), ('tea', 2)], counted=())])
    """
    records: list[Record] = []
    runs: dict[str, list[Run]] = {}
    for side, run in groupby(noted, _SIDE):
        found = [*map(_WHAT, run)]
        if side is None:
            records += found
        else:
            rows = [*chain.from_iterable(found)] if side.some else found
            runs.setdefault(side.table, []).append((side, rows))
    if runs:
        changes = [_net(each) for each in runs.values()]
        records.append(Record(noted[-1][0], time(), changes))
    return records


def _net(runs: Sequence[Run]) -> Change:
    """What the rows of a table come to."""
    table, place = runs[0][0][:2]
    if all(side.come for side, _ in runs):
        return Change(table, (), [*chain.from_iterable(rows for _, rows in runs)])
    before: dict[Any, Values | None] = {}
    after: dict[Any, Values | None] = {}
    for side, rows in runs:
        for row in rows:
            key = row[place]
            before.setdefault(key, None if side.come else row)
            after[key] = row if side.come else None
    gone = [row for row in before.values() if row is not None]
    return Change(table, gone, [row for row in after.values() if row is not None])


_SIDE, _WHAT = itemgetter(1), itemgetter(2)
