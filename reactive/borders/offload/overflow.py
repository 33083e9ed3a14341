"""What a database does by itself about state that outgrows the process.

After commits that changed many rows, the sizes of all operators are looked at: those of `stats()`,
rows held, and bytes of the containers that hold them. That takes time by the state, so it happens
a few times while a threshold is filled. What is above it moves in the background, several operators
of a query together if they can be one fragment, so that no deltas go from one to the other here;
what has been found below half of it for a while comes back.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from functools import partial
from typing import TYPE_CHECKING

from optimizer import plan
from reactive.borders.offload import beginning
from reactive.engine.dataflow.node import Node
from reactive.engine.runtime.background import Background
from reactive.errors import OffloadError

if TYPE_CHECKING:
    from reactive.borders.offload.backend import Offload
    from reactive.borders.offload.offload import Offloading

FRACTION = 8
"""How often sizes are looked at while a threshold is filled."""
SOON = 10_000
"""After how many changed rows they are, where no number of rows is the threshold."""
CALM = 3
"""How often in a row a part must have been found small before it comes back."""

Size = tuple[int, int]
"""Rows and bytes."""
log = logging.getLogger("reactive")


class Overflow:
    """Watches the operators of a database."""

    def __init__(self, offloading: Offloading, offload: Offload) -> None:
        self._of = offloading
        self._offload = offload
        self._changed = 0
        rows = offload.threshold_rows
        self._often = SOON if rows is None else max(rows // FRACTION, 1)
        self._is_looking = False
        self._refused: dict[plan.Node, str] = {}
        self._moved: set[plan.Node] = set()
        self._moving: set[plan.Node] = set()
        self._calm: Counter[plan.Node] = Counter()
        self.background = Background(offloading, type(offloading).flush, offload.flush_interval)
        self.is_due = False
        """Whether there is something to look after once a commit is over."""

    def note(self, rows: int) -> None:
        """A commit has changed `rows` rows."""
        self._changed += rows
        if self._changed >= self._often or self._is_too_late():
            self.is_due = True

    def look_after(self) -> None:
        """After a commit, outside the lock: wait for what lags, and move what has grown."""
        if self._is_looking:
            return
        self.is_due, self._is_looking = False, True
        try:
            if self._is_too_late():
                self._catch_up()
            if self._changed >= self._often:
                self._changed = 0
                self._weigh()
        finally:
            self._is_looking = False

    def stop(self) -> None:
        """Do nothing in the background any more."""
        self.background.stop()

    def forget(self) -> None:
        """Nothing is elsewhere any more."""
        self._moved.clear()
        self._calm.clear()

    def _is_too_late(self) -> bool:
        """Whether more waits than may."""
        rows, size = self._offload.max_waiting, self._offload.max_waiting_bytes
        return (rows is not None and self._lag() > rows) or (
            size is not None and self._lag_bytes() > size
        )

    def _lag(self) -> int:
        """How many changes wait, with the part or node with which most do."""
        late = [node.pending_size.count for node in self._of.late]
        return max((*late, *(node.operator.lag for node in self._of.remotes)), default=0)

    def _lag_bytes(self) -> int:
        """About how many bytes they take, of all parts and nodes."""
        late = (node.pending_size.bytes for node in self._of.late)
        return sum(late) + sum(int(node.operator.lag_bytes) for node in self._of.remotes)

    def _catch_up(self) -> None:
        """Make the writer wait. If nothing can be sent, its commit stands all the same."""
        try:
            with self._offload.progress("changes that wait", self._lag()):
                self._of.flush()
        except OffloadError as error:
            log.error("offloading: %s", error)
            self.background.error = error
            for node in self._of.remotes:
                node.operator.lose(error)

    def _weigh(self) -> None:
        if self._moved:
            self.background.do(self._bring_back)
        grown = [node for node in self._of.look(self._grown) if node not in self._moving]
        if grown:
            self._moving.update(grown)
            self.background.do(partial(self._move, grown=grown))

    def _move(self, of: Offloading, grown: list[plan.Node]) -> None:
        """In the background: what has grown goes, and what cannot is told of."""
        try:
            for node in beginning.tops(of, grown):
                if not self._is_refused(node):
                    self._moved.add(node)
                    self.background.do(partial(type(of).hand_over, node=node))
        finally:
            self._moving.difference_update(grown)

    def _bring_back(self, of: Offloading) -> None:
        """In the background: what is small comes back."""
        of.flush()
        shrunk = [node for node in self._moved if self._is_small(node)]
        if shrunk:
            self._moved.difference_update(shrunk)
            of.bring_back(shrunk)

    def _grown(self, nodes: list[Node]) -> list[plan.Node]:
        """The nodes of plans whose operators hold more in the process than they may."""
        sizes: dict[plan.Node, Size] = defaultdict(lambda: (0, 0))
        for node in nodes:
            holder = getattr(node.operator, "holds_for", node.plan)
            if holder is not None and not node.is_remote and hasattr(node.operator, "footprint"):
                rows, size = node.operator.footprint()
                sizes[holder] = (sizes[holder][0] + rows, sizes[holder][1] + size)
        grown = [of for of, size in sizes.items() if self._exceeds(size, 1)]
        return [of for of in grown if of not in self._moved and of not in self._refused]

    def _is_refused(self, node: plan.Node) -> bool:
        refused = None if beginning.is_whole(self._of, node) else self._of.refused(node)
        if refused is not None:
            self._refused[node] = refused
        return refused is not None

    def _is_small(self, node: plan.Node) -> bool:
        """Whether a part has been found below half the threshold for a while."""
        sizes = [operator.remote.footprint() for operator in self._of.operators(node)]
        rows, size = sum(rows for rows, _ in sizes), sum(size for _, size in sizes)
        self._calm[node] = (
            self._calm[node] + 1 if sizes and not self._exceeds((rows, size), 2) else 0
        )
        return self._calm[node] >= CALM

    def _exceeds(self, size: Size, times: int) -> bool:
        """Whether `times` times a size is above the threshold."""
        limits = (self._offload.threshold_rows, self._offload.threshold_bytes)
        return any(
            n * times > most for n, most in zip(size, limits, strict=True) if most is not None
        )

    @property
    def refused(self) -> list[tuple[plan.Node, str]]:
        """What is above the threshold and has to stay, with why."""
        return list(self._refused.items())
