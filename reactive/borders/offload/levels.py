"""Which levels of nests are elsewhere, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactive.engine.compiler.physical import Nest
from reactive.engine.dataflow.node import Node

if TYPE_CHECKING:
    from optimizer import plan
    from reactive.borders.offload.offload import Offloading


def level_of(part: Node) -> str | None:
    """What a part is called that has the rows of a level; None of others."""
    for reader, _ in part.consumers:
        nest = reader.physical
        if isinstance(nest, Nest) and nest.elsewhere is not None:
            return f"level {nest.elsewhere.names[reader.inputs.index(part)]}"
    return None


def levels_of(of: Offloading, written: plan.Node) -> dict[str, str]:
    """Where the levels of a query are that are elsewhere, by what they are called."""
    root = of.plan_of(written)
    found: dict[str, str] = {}
    for node in of.remotes:
        readers = [reader for reader, _ in node.consumers if reader.plan == root]
        name = level_of(node) if readers else None
        if name is not None:
            found[name] = of.describe(node.operator)
    return found
