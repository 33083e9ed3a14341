"""Sums of groups as Arrow tables: what goes into the mailbox, and what comes back from Spark.

    bucket, version, group                 which group, and the number of the flush
    shown                                  the group, pickled, where its bytes do not tell it
    odd                                    values that fit no column, with weights
    rows, amount0_0, amount0_1, ...        what is added up

A table in which all changes of a group are added up means the same as they do.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_backend.codec.limbs import WIDTH, Amount, columns, from_columns
from spark_backend.parts.sums import Odd, Sums, add_odd

Key = tuple[int, bytes]
"""The bucket of a group, and its bytes."""
KEY = ("bucket", "group")


def schema(count: int) -> pa.Schema:
    """The columns, for `count` values that are summed."""
    keys = [("bucket", pa.int64()), ("version", pa.int64()), ("group", pa.binary())]
    kept = [("shown", pa.binary()), ("odd", pa.binary())]
    return pa.schema([*keys, *kept, *((name, pa.int64()) for name in added(count))])


def ddl(count: int) -> str:
    """The same for Spark."""
    types = {pa.int64(): "long", pa.binary(): "binary"}
    return ", ".join(f"`{field.name}` {types[field.type]}" for field in schema(count))


def added(count: int) -> list[str]:
    """The columns that are added up, or are the least of theirs."""
    return ["rows", *(f"amount{at}_{part}" for at in range(count) for part in range(WIDTH))]


def is_least(name: str) -> bool:
    """Whether the least of a column counts, and not the sum: the places of an amount."""
    return name.endswith(f"_{WIDTH - 1}")


def table_of(changes: Iterable[tuple[Key, Sums]], number: int, count: int) -> pa.Table:
    """Changes of groups that came with a number."""
    made = schema(count)
    rows = [
        (bucket, number, group, sums.shown, packed(sums.odd), sums.rows, *_flat(sums))
        for (bucket, group), sums in changes
    ]
    found: Iterable[Any] = zip(*rows, strict=True) if rows else [()] * len(made)
    return pa.table([pa.array(c, f.type) for c, f in zip(found, made, strict=True)], schema=made)


def _flat(sums: Sums) -> Iterable[int]:
    if len(sums.amounts) == 1:
        return columns(sums.amounts[0])
    return [part for found in sums.amounts for part in columns(found)]


def packed(odd: Odd) -> bytes | None:
    """Odd values as bytes."""
    return pickle.dumps(odd, 5) if odd else None


def unpacked(many: Iterable[bytes]) -> Odd:
    """Odd values of several changes, together."""
    odd: Odd = {}
    for data in many:
        add_odd(odd, pickle.loads(data).items())
    return odd


def groups_of(table: pa.Table, count: int) -> Iterator[tuple[Key, Sums, Any]]:
    """Of a table with one row per group: keys, sums without odd values, and the column `odd`."""
    plain = [table[name].to_pylist() for name in (*KEY, "rows", "shown", "odd")]
    amounts = [_amounts(table, at) for at in range(count)]
    for bucket, group, rows, shown, odd, *found in zip(*plain, *amounts, strict=True):
        yield (bucket, group), Sums(rows, found, {}, shown), odd


def _amounts(table: pa.Table, at: int) -> list[Amount]:
    parts = [table[f"amount{at}_{part}"].to_pylist() for part in range(WIDTH)]
    return list(map(from_columns, zip(*parts, strict=True)))


def folded(table: pa.Table) -> pa.Table:
    """One row per group that means the same, without the groups that have become empty.

    Of changes: a group whose rows were replaced by as many others has no rows, but amounts.
    """
    names = [name for name in table.column_names if name not in (*KEY, "odd")]
    how = {**{name: "min" if is_least(name) else "sum" for name in names}, **_KEPT}
    found = table.group_by(KEY, use_threads=False).aggregate([(n, how[n]) for n in names])
    found = found.rename_columns({f"{name}_{how[name]}": name for name in names})
    found = found.append_column("odd", _odd(table, found))
    summed = [name for name in names if how[name] == "sum"]
    something = (pc.not_equal(found[name], 0) for name in summed)
    found = found.filter(reduce(pc.or_, something, pc.is_valid(found["odd"])))
    return found.select(table.column_names).cast(table.schema)


_KEPT = {"version": "max", "shown": "first"}


def _odd(table: pa.Table, groups: pa.Table) -> pa.Array:
    """For each group the odd values that do not cancel."""
    given = table.filter(pc.is_valid(table["odd"]))
    if not given.num_rows:
        return pa.nulls(groups.num_rows, pa.binary())
    found: defaultdict[Key, list[bytes]] = defaultdict(list)
    for bucket, group, data in zip(*_lists(given, *KEY, "odd"), strict=True):
        found[bucket, group].append(data)
    keys = zip(*_lists(groups, *KEY), strict=True)
    return pa.array([packed(unpacked(found.get(key, ()))) for key in keys], pa.binary())


def _lists(table: pa.Table, *names: str) -> list[list[Any]]:
    return [table[name].to_pylist() for name in names]
