"""An input of fragments: the node of the plan that gives its rows, and what these are."""

from __future__ import annotations

from dataclasses import dataclass

from optimizer import plan
from spark_backend.codec.schema import Typed


@dataclass(frozen=True, slots=True)
class Input:
    """An input of one or more fragments."""

    node: plan.Node
    kept: Typed
    """What its rows are."""
