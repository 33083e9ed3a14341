"""What a flush is fed with by tables that are on Spark: rows that do not come by the process.

State:  none.
Cost:   O(1) here; how many rows there are is read from the ends of files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from reactive.engine.remote.external import ExternalInput
from reactive.engine.remote.remote import Entry
from spark_backend.tables.chain import Weighted
from spark_backend.tables.frames import net


def since(source: ExternalInput, *, is_late: bool) -> Weighted:
    """The rows that are fed; each once, where some were to come with a flush that failed."""
    rows: Any = source.rows
    given: Weighted = rows.frames.since(source.after, source.upto)
    return replace(given, frame=net(given.frame)) if is_late else given


def changed(entries: Sequence[Entry], fed: Sequence[ExternalInput]) -> int:
    """How many rows change at most."""
    rows = len(entries)
    for source in fed:
        given: Any = source.rows
        rows += given.frames.changed(source.after, source.upto)
    return rows
