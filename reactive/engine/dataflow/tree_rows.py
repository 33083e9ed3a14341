"""The leaf of a view of a nest whose rows are a tree: they are made when they are read.

State:  none; what was read is kept by the tree, if it is large.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from reactive.engine.collections.zset import Pair, Row, repeat
from reactive.engine.dataflow.borrowed import Borrowed
from reactive.engine.operators.tree.tree import Tree


class TreeRows(Borrowed):
    """The rows of a tree. They are read inside the lock, since reading may keep a bag."""

    __slots__ = ("count", "find", "keys", "pieces", "tree")

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.count: Callable[[Row], int] = tree.count
        self.find: Callable[[Any], Row | None] = tree.find
        self.keys: Callable[[], list[Any]] = tree.keys
        if hasattr(tree, "pieces"):
            self.pieces: Callable[[], Iterator[list[Pair]] | None] = tree.pieces

    def __len__(self) -> int:
        return len(self.tree)

    def items(self) -> Collection[Pair]:
        return self.tree.contents()

    def rows(self) -> list[Row]:
        return list(repeat(self.tree.pairs()))
