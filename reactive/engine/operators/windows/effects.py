"""Effects of a changed row on each column of a window, in words, for `explain(costs=True)`.

lag               2 rows
row_number        all rows behind it
sum               all rows behind it
"""

from __future__ import annotations

from reactive.engine.operators.windows.frames import CURRENT
from reactive.engine.operators.windows.function import Asked, near_frame

OF_PLACES = {
    "row_number": "all rows behind it",
    "rank": "all rows behind its peers",
    "dense_rank": "all rows behind it, unless it has peers",
    "percent_rank": "all rows of the partition",
    "cume_dist": "all rows of the partition",
}
SETTLING = frozenset({"min", "max", "count", "scan"})
"""Functions whose later answers stay if one does, in a frame from the start of the partition."""
POSITIONAL = frozenset({"row_number", "rank", "dense_rank"})


def describe_column(asked: Asked) -> str:
    """Return the name of a function, and the rows whose answers a changed row may change."""
    return f"{_name_of(asked)}: {_rows_changed(asked)}"


def is_positional(asked: Asked) -> bool:
    """Return True if a function numbers rows, as their places in an order do."""
    return asked.function in POSITIONAL


def _name_of(asked: Asked) -> str:
    match asked.function:
        case "shifted":
            return "lag" if asked.more[0] < 0 else "lead"
        case "nth":
            return {1: "first", -1: "last"}.get(asked.more[0], "nth")
        case "accumulated":
            return type(asked.more[0]).__name__.removesuffix("Accumulator").lower()
        case str(name):
            return name
    return getattr(asked.function, "__name__", type(asked.function).__name__)


def _rows_changed(asked: Asked) -> str:
    """Return the rows whose answers a changed row may change, beside those of its earlier place."""
    if asked.function == "shifted":
        by = abs(asked.more[0])
        return f"up to {by + 1} rows" if not asked.ignores_nulls else f"rows up to {by} values away"
    if asked.function == "ntile":
        return f"about a row for each of {asked.more[0]} parts"
    if asked.function in OF_PLACES:
        return OF_PLACES[str(asked.function)]
    if asked.function == "scan":
        return "the rows behind it, up to the first whose state stays"
    frame, reach = asked.frame, near_frame(asked.frame)
    if frame.is_whole:
        return "all rows of the partition, if the answer changes"
    if reach is not None:
        return f"up to {sum(reach) + 1} rows"
    if frame.grows or frame.shrinks:
        side = "behind" if frame.grows else "before"
        if asked.function in SETTLING:
            return f"the rows {side} it, up to the first whose answer stays"
        return f"all rows {side} it"
    if frame.start == frame.end == CURRENT:
        return "its peers"
    return "the rows in whose frames it is"
