"""What commits need of a table."""

from __future__ import annotations

from typing import Any, Protocol

from optimizer import plan
from reactive.engine.dataflow.node import Node
from reactive.engine.storage.store import Store


class Base(Protocol):
    """A base collection of rows, as statements and commits know it."""

    name: str
    identity: bool
    row_type: Any
    _node: Node
    _store: Store
    _flowed: bool

    @property
    def plan(self) -> plan.Table: ...

    @property
    def _do(self) -> Any: ...

    @property
    def _keyed(self) -> Any: ...

    def __getitem__(self, key: Any) -> Any: ...

    def _holds(self) -> str: ...
