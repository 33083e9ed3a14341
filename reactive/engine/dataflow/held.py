"""Whether all that a node has emitted so far is held, so that a late view can begin with it.

table, not stored (rows have flowed)    no
  where                                 if a view of it holds its rows
    distinct                            by itself
      select                            below
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from reactive.engine.collections.zset import Batch, Pair
from reactive.engine.dataflow.materialized import Bag
from reactive.errors import TableError

if TYPE_CHECKING:
    from reactive.engine.dataflow.node import Node


def knows(node: Node) -> bool:
    """Whether it is: by the node, a view of it, or below."""
    seen, waiting = {node}, [node]
    while waiting:
        current = waiting.pop()
        if at_hand(current) is not None:
            continue
        if not current.inputs and not _is_whole(current):
            return False
        sources = () if current.contents is not None else current.inputs
        waiting += [source for source in sources if source not in seen]
        seen.update(sources)
    return True


def at_hand(node: Node) -> Iterable[Pair] | None:
    """What a view holds of the output of a node that does not hold it itself."""
    if node.contents is not None and not node.forgets:
        return None
    for reader, _ in node.consumers:
        if isinstance(reader.operator, Bag) and reader.leaf is not None and not reader.deferred:
            return reader.operator.items()
    return None


def _is_whole(source: Node) -> bool:
    """Whether a table has all the rows that it has emitted."""
    if source.contents is None or not source.forgets:
        return True
    try:
        source.contents()
    except TableError:
        return False
    return True


def as_delta(found: Iterable[Any]) -> Sequence[Any]:
    """What a node gives as a delta of its own: a batch is one already."""
    return found if isinstance(found, Batch) else list(found)
