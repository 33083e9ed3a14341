"""The cells of the grid: measured queries, and the variants of each in one respect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from asv_benchmarks.grid.cell import Cell, differences

BASES = {
    "group_sum": Cell("sum"),
    "join_sum": Cell("sum", joins=1, groups=50, conditions=("quantity", "active")),
    "join_rows": Cell("rows", joins=1),
    "distinct": Cell("distinct", conditions=()),
    "min_max": Cell("min_max", conditions=()),
    "top_ten": Cell("top", conditions=()),
    "order": Cell("order", conditions=()),
}
"""The queries that are measured otherwise too, and two beside them."""
NUMBERS = ("float", "mixed", "big", "Decimal", "None")
ORDERED = (*NUMBERS, "str", "tuple", "datetime")
KEYS = ("str", "tuple", "datetime", "Decimal", "float", "None")
ROWS = ("namedtuple", "untyped", "tuple", "Struct")
BATCHES = (10, 100, 1_000, 10_000)
ONE = tuple((name,) for name in ("equal", "in", "not", "either", "both", "range", "divided"))
CONDITIONS = (
    *((), *ONE, ("opaque",)),
    *(("quantity", "status"), ("status", "quantity"), ("quantity", "opaque")),
    *(("opaque", "quantity"), ("quantity", "status", "in")),
)
OF_PAIRS = (
    *((), ("active",), ("active", "quantity"), ("quantity", "active", "pair")),
    *(("pair", "quantity", "active"), ("quantity", "pair"), ("pair",)),
    *(("quantity", "active", "status"), ("quantity", "active", "opaque")),
    *(("opaque", "quantity", "active"), ("both", "active"), ("either", "active")),
)
VARIED: dict[str, dict[str, tuple[Any, ...]]] = {
    "group_sum": {
        "ask": ("count", "avg", "min_max", "count_distinct", "distinct", "rows", "top", "order"),
        "joins": (1,),
        "value": NUMBERS,
        "key": KEYS,
        "rows": ROWS,
        "conditions": CONDITIONS,
        "selects": (1, 2, 3),
        "above": ("where", "select", "group", "top"),
        "groups": (0, 1, 10, 100, 5_000),
        "skew": (True,),
        "batch": BATCHES,
    },
    "join_sum": {
        "ask": ("count", "avg", "min_max", "count_distinct", "distinct", "rows", "top", "order"),
        "joins": (2, 3),
        "partners": (5, 50),
        "value": NUMBERS,
        "key": KEYS,
        "rows": ROWS,
        "conditions": OF_PAIRS,
        "split": (True,),
        "early": (True,),
        "selects": (1, 2),
        "above": ("where", "select", "group", "top"),
        "groups": (0, 1, 10, 1_000),
        "skew": (True,),
        "batch": BATCHES,
        "changed": (1,),
    },
    "join_rows": {
        "joins": (0, 2, 3),
        "match": ("left_join", "semi_join", "anti_join"),
        "partners": (5, 50),
        "key": KEYS,
        "rows": ROWS,
        "conditions": ((), ("active",), ("pair",), ("quantity", "active"), ("opaque",)),
        "early": (True,),
        "selects": (1, 2),
        "skew": (True,),
        "batch": BATCHES,
        "changed": (1,),
    },
    "distinct": {
        "joins": (1,),
        "key": KEYS,
        "rows": ROWS,
        "conditions": (("quantity",), ("quantity", "status"), ("opaque",)),
        "groups": (1, 10, 5_000),
        "skew": (True,),
        "batch": BATCHES,
    },
    "min_max": {
        "joins": (1,),
        "value": ORDERED,
        "key": ("str", "tuple", "None"),
        "rows": ROWS,
        "conditions": (("quantity",), ("opaque",)),
        "selects": (1,),
        "groups": (0, 1, 10, 5_000),
        "ties": (2, 10, 100),
        "skew": (True,),
        "batch": BATCHES,
    },
    "top_ten": {
        "joins": (1,),
        "value": ORDERED,
        "rows": ROWS,
        "conditions": (("quantity",), ("quantity", "status"), ("opaque",)),
        "ties": (2, 10, 100),
        "batch": BATCHES,
    },
    "order": {
        "joins": (1,),
        "value": ORDERED,
        "rows": ROWS,
        "conditions": (("quantity",), ("opaque",)),
        "ties": (2, 10, 100),
        "batch": BATCHES,
    },
}
"""The other values of the fields of each base."""
FURTHER = (
    Cell("rows", joins=1, match="left_join", changed=1),
    Cell("rows", joins=1, match="semi_join", changed=1),
    Cell("rows", joins=1, match="anti_join", changed=1),
    Cell("sum", joins=1, match="left_join"),
    Cell("sum", joins=1, match="semi_join"),
    Cell("sum", joins=1, match="anti_join"),
    Cell("sum", joins=1, groups=50, value="float", conditions=("quantity", "active"), batch=1_000),
    Cell("sum", value="float", batch=1_000),
    Cell("top", ties=10, conditions=(), batch=1_000),
    Cell("sum", joins=2, groups=50, conditions=("quantity", "active"), early=True),
    Cell("sum", joins=3, groups=50, conditions=("quantity", "active"), early=True),
    Cell("sum", joins=2, groups=50, conditions=("quantity", "active"), batch=1_000),
    Cell("sum", joins=3, groups=50, conditions=("quantity", "active"), batch=1_000),
    Cell("sum", joins=3, groups=50, conditions=("quantity", "active"), batch=10_000),
)
"""Two things away from a base, and one from a cell beside it."""

WATCHED = (
    *BASES,
    *("group_sum value=float", "group_sum value=Decimal", "group_sum value=None"),
    *("group_sum key=str", "min_max value=str", "min_max value=datetime", "top_ten ties=10"),
    *("join_sum skew=True", "join_sum joins=3", "join_sum above=top", "join_sum changed=1"),
    *("group_sum batch=10", "join_sum batch=1000", "group_sum rows=namedtuple"),
)
"""The cells that `make bench` compares with the last run: the bases, and other types, nulls, ties,
skew, levels, batches and rows."""


def all_cells() -> dict[str, Cell]:
    """Return the cells by their names."""
    found: dict[str, Cell] = {}
    for name, cell in _named():
        if cell not in found.values():
            found[name] = cell
    return found


def _named() -> Iterator[tuple[str, Cell]]:
    yield from BASES.items()
    for base, varied in VARIED.items():
        for field, values in varied.items():
            for value in values:
                cell = replace(BASES[base], **{field: value})
                yield named(cell, base), cell
    for cell in FURTHER:
        yield named(cell, _nearest(cell)), cell


def named(cell: Cell, base: str) -> str:
    """Return the name of a cell: its base, and the differences."""
    changes = (
        f"{field}={text(value)}" for field, (_, value) in differences(BASES[base], cell).items()
    )
    return " ".join([base, *changes])


def text(value: object) -> str:
    """Write a value of a field for a name."""
    return "+".join(value) or "none" if isinstance(value, tuple) else str(value)


def _nearest(cell: Cell) -> str:
    return min(BASES, key=lambda base: len(differences(BASES[base], cell)))


def neighbours(cells: dict[str, Cell]) -> Iterator[tuple[str, str]]:
    """Pairs of cells that differ by one thing; each pair once."""
    names = list(cells)
    for place, one in enumerate(names):
        for other in names[place + 1 :]:
            if len(differences(cells[one], cells[other])) == 1:
                yield one, other
