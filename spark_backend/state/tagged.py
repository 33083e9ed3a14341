"""What a flush adds to state tables: rows for each of them, or rows that say for which they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Tagged:
    """What is to be added to several tables of one schema: the column `t` names the table."""

    rows: DataFrame
    tables: tuple[str, ...]


def by_frame(added: Mapping[str, DataFrame]) -> list[tuple[list[str], DataFrame]]:
    """Frames, each with the tables that it is added to."""
    found: dict[int, tuple[list[str], DataFrame]] = {}
    for name, frame in added.items():
        found.setdefault(id(frame), ([], frame))[0].append(name)
    return list(found.values())
