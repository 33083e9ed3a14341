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
