"""Where the parts of queries are: what the rooms below `offload` ask of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from optimizer import plan
from reactive.engine.compiler.offloaded import Begin, OffloadedNodes
from reactive.engine.dataflow.node import Node
from reactive.engine.remote.adoption import Adopt


class Overflow(Protocol):
    """Watches whether state outgrows the process."""

    is_due: bool

    def note(self, rows: int) -> None: ...

    def look_after(self) -> None: ...

    def stop(self) -> None: ...


class Placement(Protocol):
    """The parts of a database that are elsewhere."""

    moved: dict[plan.Node, Begin]

    @property
    def overflow(self) -> Overflow | None: ...

    @property
    def is_possible(self) -> bool:
        """Whether parts can be elsewhere at all."""
        ...

    @property
    def is_used(self) -> bool:
        """Whether anything is elsewhere."""
        ...

    def offloaded(self, moved: Mapping[plan.Node, Begin]) -> OffloadedNodes | None:
        """What of the plans is elsewhere, for the compiler."""
        ...

    def flush(self) -> None:
        """Bring what is late to the state of the last commit, or a later one."""
        ...

    def read_here(self, run: plan.Node, offloaded: OffloadedNodes) -> None:
        """Have the tables in the process that a plan reads there."""
        ...

    def forget(self, table: Any) -> None:
        """A table was dropped."""
        ...

    def where(self, node: plan.Node) -> str | None:
        """Where a node of a plan runs, if there is anything to say."""
        ...

    def frame(self, leaf: Node, row_type: Any) -> Any:
        """The rows of a leaf as a DataFrame."""
        ...

    def levels(self, written: plan.Node) -> dict[str, str]:
        """Where the levels of a nest are that are elsewhere, by what they are called."""
        ...

    def reset(self) -> None:
        """Compute all in the process again."""
        ...

    def move(self, view: Any, adopt: Adopt | None = None) -> None: ...

    def recall(self, view: Any) -> None: ...

    def need(self) -> Any:
        """Where parts go; `OffloadError` if nowhere."""
        ...

    def close(self) -> None: ...


class AllHere:
    """The placement of a database whose parts can be nowhere else, as the border is left out."""

    overflow: Overflow | None = None
    is_possible = is_used = False

    def __init__(self, engine: Any, why: Exception) -> None:
        self.moved: dict[plan.Node, Begin] = {}
        self._engine, self._why = engine, why

    def need(self) -> Any:
        """Raise what says that the border is left out."""
        raise self._why

    def flush(self) -> None:
        """Refuse what a closed database refuses: nothing is late."""
        self._engine.check_open()

    def move(self, view: Any, adopt: Adopt | None = None) -> None:
        """Refuse to move a view."""
        self.need()

    def recall(self, view: Any) -> None:
        """Refuse, as of a view that has not moved."""
        self.need()

    def frame(self, leaf: Node, row_type: Any) -> Any:
        """Refuse to give a DataFrame."""
        return self.need()

    def offloaded(self, moved: Mapping[plan.Node, Begin]) -> OffloadedNodes | None:
        """Return None: nothing is elsewhere."""
        return None

    def where(self, node: plan.Node) -> str | None:
        """Return None: there is nothing to say of a node."""
        return None

    def levels(self, written: plan.Node) -> dict[str, str]:
        """Return no levels: none is elsewhere."""
        return {}

    def read_here(self, run: plan.Node, offloaded: OffloadedNodes) -> None:
        """Leave the tables as they are: all are in the process."""

    def forget(self, table: Any) -> None:
        """Know nothing of a table."""

    def reset(self) -> None:
        """Leave all as it is: it is computed in the process."""

    def close(self) -> None:
        """Discard nothing."""
