"""Rewrite a plan to a cheaper one with the same rows: all rules, in the order of `phases.py`.

The rules of a phase are tried at every node, inputs first, until none of them applies. If a later
rule finds that a part is empty, or that a condition always holds, earlier rules may apply again:
then all phases run again, each time for a plan with one part less.

Long queries are optimized in segments, so that the work is linear in their length.

    where        2 levels       the segment of the query
    settled
      where     24 levels       a segment that a longer query finds optimized
      settled
        where   24 levels
        table t

A segment ends at a view or a `previous`, every `HIGHEST` levels of a query that is higher than
that, and in such a query also at nodes with several readers. Rules do not reach across its end. The
optimized segment is cached in the node as written, so that a query over another one optimizes only
new nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.errors import PlanError
from optimizer.expr import Apply, Lifted, walk
from optimizer.expressions.knowledge import Shapes
from optimizer.plans.properties import (
    degree,
    fact,
    free,
    is_set,
    keeps_identity,
    may_be_negative,
    nodes,
    shapes,
    tables,
)
from optimizer.record import record
from optimizer.rewriting.phases import ANY, PHASES, RULE_KINDS, Kinds, Phase
from optimizer.rules.read_callables import read_callables
from optimizer.traverse import (
    Interned,
    Rule,
    functions_of_rows,
    has_components,
    rebuilt,
    with_inputs,
)

ENABLING = frozenset({"drop_true_where", "empty_false_where", "propagate_empty"})
"""Rules after which earlier rules may apply again."""
MOST_ROUNDS = 4
MOST_PASSES = 1000
LARGEST_GROWTH = 20


@record
class OptimizedPlan:
    """The plan that runs, and the rules that made it of the plan as written, in order."""

    plan: plan.Node
    fired: tuple[str, ...]

    def opaque(self) -> list[tuple[Opaque, str]]:
        """Return the callables, or parts of one, that could not be lifted, and why."""
        found: dict[int, tuple[Opaque, str]] = {}
        for node in nodes(self.plan):
            for function in functions_of_rows(node):
                if isinstance(function, Lifted):
                    for part in walk(function.body):
                        if isinstance(part, Apply) and part.reason:
                            found[id(part.function)] = (part.function, part.reason)
        return list(found.values())


def optimize(root: plan.Node, phases: Sequence[Phase] = PHASES) -> OptimizedPlan:
    """Return a plan that has the same rows as `root`, and raises for the same rows."""
    known = Interned()
    node = _mark_shared(known.all(root), known)
    fired: dict[str, None] = {}
    rest, every = phases, nodes(node)
    for _ in range(MOST_ROUNDS):
        is_settled = True
        for number, phase in enumerate(rest):
            now: dict[str, None] = {}
            node = _run(every, phase, known, now)
            if node is not every[-1]:
                every = nodes(node := _unmark_single_readers(node, known))
            fired |= now
            is_settled &= ENABLING.isdisjoint(now) or not _come_again(phase, rest[:number])
        if is_settled:
            break
        rest = [phase for phase in rest if read_callables not in phase]
    found = rebuilt(node, _unmark_shared)
    return OptimizedPlan(found, tuple(fired))


def _come_again(phase: Phase, before: Sequence[Phase]) -> bool:
    """Return True if some rules of a phase have been tried before."""
    return any(not set(phase).isdisjoint(other) for other in before)


def _mark_shared(root: plan.Node, known: Interned) -> plan.Node:
    """Return the plan with nodes that have several readers as `Shared`.

    Return `root` itself if each node has one reader.
    """
    every = nodes(root)
    readers = Counter([id(source) for node in every for source in node.inputs()])
    if len(readers) == len(every) - 1 and max(readers.values(), default=0) < 2:
        return root  # each but the root has one reader
    made: dict[int, plan.Node] = {}
    for node in every:
        new = known.one(with_inputs(node, [made[id(source)] for source in node.inputs()]))
        shared = readers[id(node)] > 1 and node.inputs() and not has_components(node)
        made[id(node)] = known.one(plan.Shared(new)) if shared else new
    return made[id(root)]


def _unmark_single_readers(root: plan.Node, known: Interned) -> plan.Node:
    """Return the plan without `Shared` around nodes that have one reader now."""
    every = nodes(root)
    if not any(isinstance(node, plan.Shared) for node in every):
        return root
    readers = Counter([id(source) for node in every for source in node.inputs()])
    made: dict[int, plan.Node] = {}
    for node in every:
        is_alone = isinstance(node, plan.Shared) and readers[id(node)] < 2
        inputs = [made[id(source)] for source in node.inputs()]
        made[id(node)] = inputs[0] if is_alone else known.one(with_inputs(node, inputs))
    return made[id(root)]


def _unmark_shared(node: plan.Node) -> plan.Node:
    return node.input if isinstance(node, plan.Shared) else node


def _run(
    every: Sequence[plan.Node], phase: Phase, known: Interned, fired: dict[str, None]
) -> plan.Node:
    """Apply the rules of a phase, at every node of a plan, until nothing changes.

    The names of applied rules are added to `fired`. Raise `PlanError` if a rule returns no node, or
    the rules do not end.
    """
    root = every[-1]

    def rewrite_node(node: plan.Node) -> plan.Node:
        node = start = known.one(node)
        if id(node) in settled:
            return node
        for rule, kinds in rules:
            new = rule(node) if isinstance(node, kinds) else node
            if new is not node:
                name = _rule_name(rule)
                if not isinstance(new, plan.Node):
                    raise PlanError(
                        f"rule {name} gave {new!r:.60}, not a plan node\n"
                        "  it must return its argument where it does not apply"
                    )
                fired.setdefault(name)
                last[0] = name
                node = known.all(new)
        if node is start:
            settled.add(id(node))  # `known` keeps the node alive
        return node

    settled: set[int] = set()
    rules = [(rule, RULE_KINDS.get(rule, ANY)) for rule in phase]
    if read_callables not in phase and _is_left_alone(every, rules, settled):
        return root
    last, largest = [""], 0
    for passes in range(MOST_PASSES):
        new = rebuilt(root, rewrite_node)
        if new is root:
            return root
        root = new
        if passes > 3:  # a rule that never ends makes plans that grow
            size = len(nodes(root))
            if largest and size > LARGEST_GROWTH * largest:
                break
            largest = largest or size
    raise PlanError(
        f"the rules do not come to an end; the last one that applied is {last[0]}\n"
        "  a rule must return its argument where it has nothing to do"
    )


def _is_left_alone(
    every: Sequence[plan.Node], rules: Sequence[tuple[Rule, Kinds]], settled: set[int]
) -> bool:
    """Return True if no rule applies anywhere.

    The `id` of each node before the first to which one applies is added to `settled`.
    """
    for node in every:
        for rule, kinds in rules:
            if isinstance(node, kinds) and rule(node) is not node:
                return False
        settled.add(id(node))
    return True


def _rule_name(rule: Rule) -> str:
    return str(getattr(rule, "__name__", rule))


HIGHEST = 24
"""Levels of a plan that are optimized together."""


@dataclass(slots=True, eq=False)
class Segment:
    """A part of a query, and its optimized plan.

    `optimized` has `plan.Settled` for the segments `below`. The engine sets `top`, which computes
    the segment, `watcher`, which reports changes of captured variables, the `physical` plan, one
    that was `prepared` to replace it, and the ways `without` which it runs, because they failed for
    its rows.
    """

    owner: object
    written: plan.Node
    made: OptimizedPlan | Callable[[], OptimizedPlan] = field(repr=False)
    """The optimized plan, or the function that optimizes it on demand."""
    below: tuple[Segment, ...]
    top: Any = field(default=None, repr=False)
    watcher: Any = field(default=None, repr=False)
    physical: Any = field(default=None, repr=False)
    prepared: Any = field(default=None, repr=False)
    without: set[str] = field(default_factory=set, repr=False)
    _settled: plan.Settled | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.is_optimized:  # computed before a segment above is made
            _ = self.shapes, self.is_set, self.keeps_identity, self.tables
            _ = self.may_be_negative

    @property
    def is_optimized(self) -> bool:
        """True once the segment is optimized."""
        return isinstance(self.made, OptimizedPlan)

    @property
    def optimized_plan(self) -> OptimizedPlan:
        """The plan that runs, and the rules that made it."""
        if not isinstance(self.made, OptimizedPlan):
            self.made = self.made()
        return self.made

    @property
    def run(self) -> plan.Node:
        """The plan that runs."""
        return self.optimized_plan.plan

    @property
    def settled(self) -> plan.Settled:
        """The node that stands for it in a longer query."""
        if self._settled is None:
            self._settled = plan.Settled(self)
        return self._settled

    @property
    def shapes(self) -> Shapes:
        return shapes(self.run)

    @property
    def is_set(self) -> bool:
        return is_set(self.run)

    @property
    def keeps_identity(self) -> bool:
        return keeps_identity(self.run)

    @property
    def tables(self) -> tuple[plan.Table, ...]:
        return tuple(tables(self.run))

    @property
    def may_be_negative(self) -> bool:
        return may_be_negative(self.run)

    @property
    def degree(self) -> float:
        return degree(self.run)

    def own(self) -> list[plan.Node]:
        """Return its nodes as written, inputs first."""
        ends = {id(segment.written) for segment in self.below}
        return [n for n in nodes(self.written, until=lambda n: id(n) in ends) if id(n) not in ends]

    def every(self, until: Callable[[Segment], bool] = lambda segment: False) -> list[Segment]:
        """Return the segments below and itself, each once, the lowest first; none below one with
        `until`."""
        found: dict[Segment, None] = {}
        waiting = [(self, False)]
        while waiting:
            segment, complete = waiting.pop()
            if complete:
                found[segment] = None
            elif segment not in found and not until(segment):
                waiting.append((segment, True))
                waiting.extend((below, False) for below in reversed(segment.below))
        return list(found)


def settle(
    root: plan.Node,
    owner: object,
    run: Callable[[plan.Node], OptimizedPlan],
    *,
    in_parts: bool = True,
) -> Segment:
    """Return the segment of a query, and make new segments; `run` optimizes a plan.

    Cached segments of another `owner` are replaced. If the query is not optimized `in_parts` it is
    one segment.

    Cost: that of the new segments.
    """
    found = _known_segment(root, owner)
    if found is not None:
        return found
    every = nodes(root, until=lambda node: _is_done(node, owner)) if in_parts else [root]
    ends = _ends(root, every) if in_parts else set()
    for node in every:
        if (node is root or id(node) in ends) and _known_segment(node, owner) is None:
            _settle(node, ends, owner, run)
    return root.known["segment"]  # type: ignore[no-any-return]


def is_low(root: plan.Node, levels: int) -> bool:
    """Return True if a query without views, of a number of levels, is one segment."""
    if levels < HIGHEST:
        return True
    _is_high(root)
    return all(not _is_high(source) for node in nodes(root) for source in node.inputs())


def merge_segments(top: Segment) -> tuple[OptimizedPlan, dict[int, plan.Node]]:
    """Return the plan of all segments of a query as one, and a map of its nodes' `id` to theirs.

    Cost: O(nodes).
    """
    plans: dict[Segment, plan.Node] = {}
    of: dict[int, plan.Node] = {}
    fired: dict[str, None] = {}
    for segment in top.every():
        made: dict[int, plan.Node] = {}
        for node in nodes(segment.run):
            if isinstance(node, plan.Settled):
                made[id(node)] = plans[node.segment]
            else:
                new = with_inputs(node, [made[id(source)] for source in node.inputs()])
                made[id(node)], of[id(new)] = new, node
        plans[segment] = made[id(segment.run)]
        fired.update(dict.fromkeys(segment.optimized_plan.fired))
    return OptimizedPlan(plans[top], tuple(fired)), of


def _settle(
    node: plan.Node, ends: set[int], owner: object, run: Callable[[plan.Node], OptimizedPlan]
) -> None:
    """Optimize the segment of a node down to the nodes in `ends`, and store it in `node.known`."""
    below: dict[Segment, None] = {}
    made: dict[int, plan.Node] = {}
    for each in nodes(node, until=lambda n: n is not node and id(n) in ends):
        if each is not node and id(each) in ends:
            segment: Segment = each.known["segment"]
            below[segment] = None
            made[id(each)] = segment.settled
        else:
            made[id(each)] = with_inputs(each, [made[id(source)] for source in each.inputs()])
    node.known["segment"] = Segment(owner, node, run(made[id(node)]), tuple(below))


def _ends(root: plan.Node, every: Iterable[plan.Node]) -> set[int]:
    """Return the nodes, by their `id`, that are tops of segments."""
    found = {id(node.input) for node in every if isinstance(node, plan.View | plan.Previous)}
    high = {id(node) for node in every if _is_high(node)}
    if not high - {id(root)}:
        return found
    readers = Counter(id(source) for node in every for source in node.inputs())
    several = {id(n) for n in every if readers[id(n)] > 1 and _may_end(n) and n.inputs()}
    return found | high | several


def _is_done(node: plan.Node, owner: object) -> bool:
    """Return True if there is nothing new below."""
    if isinstance(node, plan.View | plan.Previous):
        return _known_segment(node.input, owner) is not None
    return _is_high(node) and _known_segment(node, owner) is not None


def _known_segment(node: plan.Node, owner: object) -> Segment | None:
    """Return the cached segment of a node; None if there is none, or it is of another owner."""
    found: Segment | None = node.known.get("segment")
    return found if found is not None and found.owner is owner else None


def _is_high(node: plan.Node) -> bool:
    """Return True if a segment ends here in every query."""
    return bool(fact(node, "height", _height) >= HIGHEST) and _may_end(node)


def _height(node: plan.Node) -> int:
    """Return the number of levels of a query, counted from views and from high inputs on."""
    if isinstance(node, plan.View | plan.Previous):
        return 1
    below = (0 if _is_high(source) else source.known["height"] for source in node.inputs())
    return 1 + max(below, default=0)


def _may_end(node: plan.Node) -> bool:
    """Return True if a node has the same rows by itself: not inside a recursion, or as its
    component.

    A product is no end, because conditions above it may turn it into a join.
    """
    return not free(node) and not has_components(node) and not isinstance(node, plan.Product)
