"""What a recursion by partitions is made of.

State:  none.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from optimizer.expr import Lifted
from reactive.engine.reference.bags import Bag
from spark_backend.codec.schema import Typed
from spark_backend.direct.flush import NOTHING, DirectFlush
from spark_backend.steps.join import Arranged
from spark_backend.steps.step import Flush, Step


class Own:
    """The rows of a recursive relation inside its own definition: unchanged, while what a change
    derives from them is found; then as they change."""

    def __init__(self, kept: Typed) -> None:
        self.kept = kept
        self.change: DataFrame | None = None

    def delta(self, flush: Flush) -> DataFrame | None:
        return self.change

    def direct(self, flush: DirectFlush) -> Bag:
        return NOTHING


@dataclass(frozen=True)
class Parts:
    """What a recursion is made of.

    `sides` are what is joined with recursive rows, `premises` these rows by the keys of the joins.
    It `is_positive` if nothing is derived because a row is not there, or only once for several.
    """

    own: Own
    column: Lifted
    seeds: tuple[Step, ...]
    ways: tuple[Step, ...]
    sides: tuple[Arranged, ...]
    premises: tuple[Arranged, ...]
    is_positive: bool
