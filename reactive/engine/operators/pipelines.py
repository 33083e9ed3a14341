"""What is part of one loop: a chain of linear nodes over a base, with what it feeds."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import takewhile
from typing import Any

from optimizer import plan
from optimizer.expr import Function, Lifted, conjuncts
from optimizer.plans import multiway as multiways
from optimizer.plans.constant_tests import NO_CONSTANT_TESTS, ConstantTests, constant_tests
from optimizer.plans.properties import bindings, shapes
from optimizer.plans.wanted import wanted
from optimizer.record import record
from optimizer.traverse import functions
from reactive.engine.codegen.emitter import RowPipeline
from reactive.engine.collections.zset import Pair
from reactive.engine.operators.plain import plain_operator, signature

INNER = (plan.Product, plan.Join)
Inner = plan.Product | plan.Join
MOST_NESTED = 15
"""Loops within loops of generated code; Python allows 20, and who takes the rows needs some."""


@record
class PipelineSource:
    """What a node reads: a chain of linear nodes, the first to see a row first, over a base.

    Two are equal that do the same, over whatever base.
    """

    chain: tuple[plan.Node, ...]
    base: plan.Node

    @property
    def does(self) -> tuple[Hashable, ...]:
        return tuple(map(signature, self.chain))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PipelineSource) and self.does == other.does

    def __hash__(self) -> int:
        return hash(self.does)

    @property
    def top(self) -> plan.Node:
        """The node whose rows come out."""
        return self.chain[-1] if self.chain else self.base

    def pipeline(self) -> RowPipeline:
        """What a loop over the rows of the base has to do."""
        return RowPipeline(self.chain, bindings(self.base), shapes(self.base))


class PlainChain:
    """The plain operators of a chain, made when they are first needed."""

    def __init__(self, chain: tuple[plan.Node, ...]) -> None:
        self._chain = chain
        self._operators: list[Any] | None = None

    def run(self, delta: Sequence[Pair]) -> Sequence[Pair]:
        """What they make of a delta, one after the other."""
        if self._operators is None:
            self._operators = [plain_operator(node)[0]() for node in self._chain]
        for operator in self._operators:
            delta = operator.step(delta)
        return delta


def nested(chain: Sequence[plan.Node]) -> int:
    """The loops that are nested in that of a chain: one for each node that makes several rows."""
    return sum(isinstance(node, plan.SelectMany | plan.Unnest) for node in chain)


def can_nest(loops: int) -> bool:
    """Whether so many loops can be within each other."""
    return loops <= MOST_NESTED


def constant_tests_of(below: PipelineSource) -> ConstantTests:
    """What the conditions at the beginning of a chain over a table ask of its rows."""
    if not isinstance(below.base, plan.Table):
        return NO_CONSTANT_TESTS
    conditions = takewhile(lambda node: isinstance(node, plan.Where), below.chain)
    tests = [node.predicate for node in conditions if isinstance(node, plan.Where)]
    bodies, of = [t.body for t in tests if isinstance(t, Lifted)], shapes(below.base)
    found = constant_tests(bodies, of)
    parts = [part for body in bodies for part in conjuncts(body)]
    found.wants = {each.field.name: each.values for each in wanted(parts, of)}
    return found


def called(parts: Sequence[plan.Node]) -> list[Function]:
    """The callables of some nodes."""
    return [function for part in parts for function in functions(part)]


def is_read(node: plan.Node) -> bool:
    """Whether all callables of a node have been read."""
    return all_read(functions(node))


def all_read(functions: Sequence[Function | None]) -> bool:
    """Whether all that there are have been read."""
    return all(function is None or isinstance(function, Lifted) for function in functions)


def within(join: plan.Join, multiway: multiways.MultiwayJoin) -> list[plan.Node]:
    """The joins that are one with this one, and the selects between them, from above."""
    found: list[plan.Node] = []
    node: plan.Node = join
    left = len(multiway.tests) - 1
    while left and (
        isinstance(node, plan.Join)
        or (isinstance(node, plan.Select | plan.Extend) and isinstance(node.input, plan.Join))
    ):
        found.append(node)
        left -= isinstance(node, plan.Join)
        node = node.inputs()[0]
    return found


def inputs_of_multiway(join: plan.Join, multiway: multiways.MultiwayJoin) -> list[plan.Node]:
    """The inputs of joins that are one, in their order."""
    parts = within(join, multiway)
    rights = [part.right for part in parts if isinstance(part, plan.Join)]
    return [parts[-1].inputs()[0], *rights[::-1]]
