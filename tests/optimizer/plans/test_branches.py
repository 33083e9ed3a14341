"""Branches of a recursion with rows of different classes are refused when it is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from reactive import Database, PlanError, Table, fixpoint


class Edge(NamedTuple):
    src: int
    dst: int


class Path(NamedTuple):
    src: int
    dst: int


class Fact:
    """The base of the rows of one relation."""


@dataclass(frozen=True)
class Given(Fact):
    src: int
    dst: int


@dataclass(frozen=True)
class Found(Fact):
    src: int
    dst: int


def made(kind: type, derived: Callable[[Any, Any], Any]) -> Any:
    edges: Table[Any] = Database().table(kind, name="edges")
    return fixpoint(
        lambda reach: edges.union(
            reach.join(edges, on=lambda p, e: p.dst == e.src).select(derived).where(bool)
        )
    )


@pytest.mark.parametrize(
    ("derived", "name"),
    [
        (lambda p, e: Path(p.src, e.dst), "Path"),
        (lambda p, e: (p.src, e.dst), "tuple"),
        (lambda p, e: Given(p.src, e.dst), "Given"),
    ],
)
def test_rows_of_two_classes_are_refused(derived: Callable[[Any, Any], Any], name: str) -> None:
    with pytest.raises(PlanError) as caught:
        made(Edge, derived)
    assert str(caught.value).startswith(f"fixpoint 'reach' has rows of Edge and of {name}\n")


@pytest.mark.parametrize(
    ("kind", "derived"),
    [
        (Edge, lambda p, e: Edge(p.src, e.dst)),
        (Edge, lambda p, e: p._replace(dst=e.dst)),
        (Given, lambda p, e: Found(p.src, e.dst)),
    ],
)
def test_rows_of_one_class_or_of_one_base_are_accepted(
    kind: type, derived: Callable[[Any, Any], Any]
) -> None:
    assert made(kind, derived).materialize() is not None
