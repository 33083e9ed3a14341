"""Inputs of which a node asks only whether a row is there, and not how often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from optimizer import plan


def with_present(node: plan.Node, change: Callable[[plan.Node], plan.Node]) -> plan.Node:
    """The node with these inputs changed; itself if they stay, or if it has none."""
    match node:
        case plan.Distinct(source):
            inner = change(source)
            return node if inner is source else plan.Distinct(inner)
        case (
            plan.Union(left, right) | plan.Difference(left, right) | plan.Intersection(left, right)
        ):
            a, b = change(left), change(right)
            return node if a is left and b is right else replace(node, left=a, right=b)
        case plan.SemiJoin(_, right) | plan.AntiJoin(_, right):
            b = change(right)
            return node if b is right else replace(node, right=b)
        case _:
            return node
