"""From a logical plan to the physical one: rules in their order, the first that fits is taken.

A rule is a generator function: it asks for the physical nodes of what it reads by yielding logical
ones. So a plan of any depth is walked once, without recursion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import replace
from typing import Any, TypeGuard, TypeVar

from optimizer import plan
from optimizer.plans.clauses import Program, clauses
from optimizer.plans.early import AnyJoin
from optimizer.plans.factors import Factors, factors_of
from optimizer.plans.multiway import Wide, wide_of
from optimizer.plans.named import naming_by
from optimizer.plans.properties import bindings, nodes
from reactive.compiler.elsewhere import Elsewhere
from reactive.compiler.physical import Fixpoint, Index, Physical
from reactive.operators.generated.grouped import is_in_line
from reactive.operators.loops import INNER, Below, Inner, can_nest, is_read, nested
from reactive.operators.plain import LINEAR, Side, sides

T = TypeVar("T")
Asking = Generator[plan.Node, Physical, T]
"""What yields logical nodes, is sent their physical ones, and comes to something."""
Rule = Callable[["Chooser", plan.Node], Asking[Physical] | None]
Linear = plan.Where | plan.Select | plan.SelectMany | plan.Unnest
MULTIWAY, SUMS = "multiway", "sums"
"""Ways that may prove not to hold for the rows."""
ManyReaders = Callable[[Index, Any], bool]
"""Whether an index of a table by a field is there, or so many want rows of one value of the field
(as pins have it) that it pays."""


class Chooser:
    """What rules know of a plan beside the node that they look at.

    Parameters
    ----------
    root: the plan, without iterations.
    generate: whether loops are generated; without, every node is an operator of its own.
    elsewhere: what does not run in the process.
    without: ways that proved not to hold for the rows (`MULTIWAY`, `SUMS`).
    """

    def __init__(
        self,
        root: plan.Node,
        rules: Sequence[Rule],
        many_readers: ManyReaders,
        *,
        generate: bool,
        elsewhere: Elsewhere | None,
        without: Collection[str] = (),
    ) -> None:
        self._without = without
        self.generates = generate
        self.many_readers = many_readers
        self.elsewhere = elsewhere
        self.readers = Counter(id(n) for node in nodes(root) for n in node.inputs())
        self._narrow = _narrow(root) if generate else set[int]()
        self.fixpoints: dict[int, Fixpoint] = {}
        self.chosen: dict[int, Physical] = {}
        self._programs: dict[int, Program] = {}
        self._rules = rules

    def choose(self, root: plan.Node) -> Physical:
        """The physical node of a logical one; `chosen` has it and those that it needed, by `id`."""
        waiting = [(root, self._fitting(root))]
        answer: Physical | None = None
        while waiting:
            node, steps = waiting[-1]
            try:
                wanted = next(steps) if answer is None else steps.send(answer)
            except StopIteration as end:
                waiting.pop()
                answer = self.chosen[id(node)] = end.value
                continue
            answer = self.chosen.get(id(wanted))
            if answer is None:
                waiting.append((wanted, self._fitting(wanted)))
        assert answer is not None
        return answer

    def _fitting(self, node: plan.Node) -> Asking[Physical]:
        named = self._with_row(node)
        for rule in self._rules:
            found = rule(self, named)
            if found is not None:
                return found
        raise TypeError(f"no way to run plan node {type(node).__name__}")

    def _with_row(self, node: plan.Node) -> plan.Node:
        """An aggregate that makes named rows itself, for one and the select that names them."""
        below, how = (node.inputs() or (node,))[0], naming_by(node)
        if how is None or not how.generated or not isinstance(below, plan.Aggregate):
            return node
        is_alone = self.readers[id(below)] < 2 and not self.is_elsewhere(below)
        here = self.generates and is_alone and not self.is_elsewhere(node)
        return replace(below, row=how.kind) if here else node

    def program(self, node: plan.Fixpoint) -> Program:
        """The clauses of a recursion, made once."""
        if id(node) not in self._programs:
            self._programs[id(node)] = clauses(node)
        return self._programs[id(node)]

    # What is elsewhere.

    def depends(self, node: plan.Node) -> bool:
        """Whether a node reads something that is elsewhere."""
        return self.elsewhere is not None and self.elsewhere.reaches(node)

    def is_elsewhere(self, node: plan.Node) -> bool:
        away = self.elsewhere
        return away is not None and (away.holds(node) or away.includes(node))

    # What is part of whose loop.

    def chain_of(self, node: plan.Node) -> Below | None:
        """What the loop of a node runs over; None for a node that has no loop."""
        if not self.generates or not is_read(node):
            return None
        if isinstance(node, LINEAR):
            below = self.below(node.input, above=nested((node,)))
            return Below((*below.chain, node), below.base)
        if isinstance(node, plan.Aggregate) and is_in_line(a.fold for a in node.aggregates):
            return self.below(node.input)
        if isinstance(node, plan.Distinct):
            below = self.below(node.input)
            return below if below.chain and not self.takes_join(below) else None
        if isinstance(node, INNER):
            return Below((), node)
        return None

    def below(self, node: plan.Node, above: int = 0) -> Below:
        """A node as a chain over a base, as far down as nobody else reads it, and as it can be
        nested in so many loops."""
        chain: list[plan.Node] = []
        if self.generates:
            while self._is_link(node) and can_nest(above := above + nested((node,))):
                chain.append(node)
                node = node.input
        return Below(tuple(chain[::-1]), node)

    def _is_link(self, node: plan.Node) -> TypeGuard[Linear]:
        is_alone = self.readers[id(node)] < 2 and not self.is_elsewhere(node)
        return isinstance(node, LINEAR) and is_alone and is_read(node)

    def takes_join(self, below: Below) -> bool:
        """Whether the base is a join that is part of the loop of what reads it."""
        base = below.base
        if not isinstance(base, INNER) or self.is_elsewhere(base):
            return False
        if self.readers[id(base)] > 1 or not is_read(base):
            return False
        wide = self.wide(base) if isinstance(base, plan.Join) else None
        inputs = 2 if wide is None else len(wide.tests)
        return can_nest(inputs + nested(below.chain))

    def wide(self, join: plan.Join) -> Wide | None:
        """How a join and those below it are one, unless that was given up."""
        is_narrow = MULTIWAY in self._without or id(join) in self._narrow
        return None if is_narrow else wide_of(join)

    def factors(self, node: plan.Aggregate) -> Factors | None:
        """How an aggregate splits over the sides of its join, unless that was given up."""
        return None if SUMS in self._without else factors_of(node)

    def join_of(self, node: plan.Node) -> tuple[Inner, Below] | None:
        """The inner join that a node has in its loop, and the loop."""
        below = self.chain_of(node)
        if below is None or not isinstance(below.base, INNER):
            return None
        if below.base is node or self.takes_join(below):
            return below.base, below
        return None

    # Physical nodes that several rules need.

    def index(
        self,
        owner: plan.Node,
        below: Below,
        side: Side,
        arguments: int,
        *,
        late: bool = False,
        trie: bool = False,
    ) -> Asking[Index]:
        """The index of a chain by a key, for a join to look rows up in."""
        source = yield below.base
        return Index(owner, source, below, side, arguments, late, trie)

    def indexes(self, node: AnyJoin) -> Asking[tuple[Index, Index]]:
        """The indexes of both sides of a join."""
        late = self.depends(node)
        left, right = sides(node)
        below, count = self.below(node.left), bindings(node.left)
        first = yield from self.index(node, below, left, count, late=late)
        second = yield from self.index(node, self.below(node.right), right, 1, late=late)
        return first, second


def _narrow(root: plan.Node) -> set[int]:
    """The joins, by `id`, below aggregates that split over their sides: these stay joins of two,
    also where no sums are kept in the end."""
    found: set[int] = set()
    for node in nodes(root):
        if isinstance(node, plan.Aggregate) and factors_of(node) is not None:
            below = node.input
            while isinstance(below, plan.Join | plan.Select):
                found.add(id(below))
                below = below.inputs()[0]
    return found
