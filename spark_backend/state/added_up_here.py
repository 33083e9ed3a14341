"""Rows of a state table that are added up by this process: each once, with the sums.

    row        weight          row      weight
    (1, "x")        2          (1, "x")      1
    (1, "x")       -1    ->    (2, "y")      1
    (2, "y")        1
    (3, None)       1
    (3, None)      -1

Rows are grouped by the values that they are made of, of optional records with whether they are
there. Equal rows may stay apart, as those with 0.0 and -0.0 do: whoever reads rows adds them up.

Sound:  only rows whose columns have the same bits are taken together.
State:  none.
Cost:   O(rows).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_backend.codec.schema import LARGEST, LEAST
from spark_backend.state.spec import TableSpec

WIDE = pa.decimal128(38, 0)
"""Has room for the sum of any column of integers."""
BITS = {pa.float64(): pa.int64(), pa.float32(): pa.int32()}
"""What the bits of floats are looked at as."""


def added_up_here(spec: TableSpec, rows: pa.Table) -> pa.Table:
    """The rows of a table, added up: without those of which nothing is left.

    They are given back as they are if what tells them apart cannot be grouped by, such as lists,
    if a column that is added up is not one of integers, or if a sum does not fit its column.
    """
    if not all(rows[name].type == pa.int64() for name in spec.added):
        return rows
    groups = _grouped(spec, rows)
    if groups is None or not all(map(_fits, groups.select(_sums(spec)).columns)):
        return rows
    left = reduce(pc.or_, [pc.fill_null(pc.not_equal(groups[n], 0), False) for n in _sums(spec)])
    groups = groups.filter(left)
    found = rows.take(groups["place_min"])
    for name, total in zip(spec.added, _sums(spec), strict=True):
        place = found.column_names.index(name)
        found = found.set_column(place, found.field(place), groups[total].cast(pa.int64()))
    return found


def _grouped(spec: TableSpec, rows: pa.Table) -> pa.Table | None:
    """Of each row its first place and its sums; None if it cannot be grouped by."""
    keys = [leaf for name in spec.by for leaf in _leaves(rows[name])]
    by = [f"by{place}" for place in range(len(keys))]
    columns = {
        **dict(zip(by, keys, strict=True)),
        **{f"n{place}": rows[name].cast(WIDE) for place, name in enumerate(spec.added)},
        "place": pa.array(np.arange(rows.num_rows)),
    }
    asked = [("place", "min"), *((f"n{place}", "sum") for place in range(len(spec.added)))]
    try:
        return pa.table(columns).group_by(by, use_threads=False).aggregate(asked)
    except pa.ArrowNotImplementedError:
        return None


def _sums(spec: TableSpec) -> list[str]:
    return [f"n{place}_sum" for place in range(len(spec.added))]


def _leaves(column: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
    """The columns that values are made of."""
    if pa.types.is_struct(column.type):
        yield column.is_valid()
        for part in column.flatten():
            yield from _leaves(part)
    elif column.type in BITS:
        bits = BITS[column.type]
        yield pa.chunked_array([chunk.view(bits) for chunk in column.chunks], bits)
    else:
        yield column


def _fits(sums: pa.ChunkedArray) -> bool:
    """Whether a column of integers has room for all of them."""
    ends: Sequence[int | None] = list(pc.min_max(sums).as_py().values())
    return all(end is None or LEAST <= end <= LARGEST for end in ends)
