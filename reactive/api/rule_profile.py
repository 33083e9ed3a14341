"""A profile of recursions, rule by rule: what each rule did while some commits ran.

with view.profile() as profile:
edges.add_all(more)
print(profile)

ms  rounds  tuples  touched  rule
0.21       4      12       31  path <- select path(path.x, edge.y), join path.y == edge.x
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from optimizer.errors import PlanError
from optimizer.plans.clauses import Clause, is_closed
from optimizer.plans.explain import headline
from reactive.engine.compiler.costs import meets_all
from reactive.engine.dataflow.node import Node
from reactive.engine.operators.fixpoint.closure import Closure
from reactive.engine.operators.fixpoint.delta_rules import Circuit
from reactive.engine.operators.fixpoint.fixpoint import Fixpoint
from reactive.engine.operators.plain import chain_over


@dataclass(frozen=True, slots=True)
class RuleWork:
    """The work of one rule of a recursion.

    Attributes
    ----------
    relation: the name of the relation that it derives rows of.
    rule: its operators.
    rounds: the number of batches of changed rows that it was given.
    tuples: the derivations that it made, added and removed ones.
    touched: the rows that it read.
    seconds: the time that it took.
    meets_all: True if each changed row meets all rows of the other side.
    """

    relation: str
    rule: str
    rounds: int
    tuples: int
    touched: int
    seconds: float
    meets_all: bool


def text_of(clause: Clause) -> str:
    """Return the operators of a clause in one line, from the outermost on."""
    if is_closed(clause.body):
        return headline(clause.body)
    chain, base = chain_over(clause.body)
    return ", ".join(map(headline, [*reversed(chain), base]))


def rules_of(circuit: Circuit) -> list[tuple[str, str, bool, Any]]:
    """Return the relation, the text, `meets_all`, and the delta rule of each clause."""
    return [
        (_name_of(circuit, rule.head), text_of(clause), meets_all(clause), rule)
        for clause, rule in zip(circuit.clauses, circuit.rules, strict=True)
    ]


def _name_of(circuit: Circuit, head: int) -> str:
    """Return the name of a relation; parts that the planner cut out of rules have numbers."""
    names = circuit.names
    return names[head] if head < len(names) else f"{names[0]} part {head - len(names) + 1}"


def circuits_of(nodes: Iterable[Node]) -> list[Circuit]:
    """Return the circuits of the recursions among some nodes, each once."""
    found = [node.operator.circuit for node in nodes if isinstance(node.operator, Fixpoint)]
    return list({id(circuit): circuit for circuit in found}.values())


def describe_rules(circuit: Circuit) -> str:
    """Return a line for each rule of a recursion: what it touched since it was made."""
    lines = []
    for relation, text, is_dear, rule in rules_of(circuit):
        dear = "; meets all rows of the other side" if is_dear else ""
        lines.append(f"  {relation} <- {text}  [{getattr(rule, 'touched', 0)} touched{dear}]")
    return "\n".join([f"rules of {', '.join(circuit.names)}:", *lines])


class RuleProfile:
    """The work of each rule of the recursions below a view, while its block runs.

    >>> from reactive import Database, fixpoint
    >>> edges = Database().table(tuple, name="edges")
    >>> reach = fixpoint(lambda reach: edges.union(
    ...     reach.join(edges, on=lambda p, e: p[1] == e[0]).select(lambda p, e: (p[0], e[1]))
    ...     .where(lambda p: p[0] < 3)))
    >>> view = reach.materialize()
    >>> with view.profile() as profile:
    ...     edges.add_all([(1, 2), (2, 3), (3, 4)])
    >>> [(work.relation, work.rounds, work.tuples) for work in profile.rules]
    [('reach', 1, 3), ('reach', 4, 3)]

    Cost: two readings of the clock for each round of each rule, while the block runs.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        below = list(nodes)
        self._circuits = circuits_of(below)
        self._closures = [
            headline(node.plan)
            for node in below
            if isinstance(node.operator, Closure) and node.plan is not None
        ]
        self._measured: list[list[_MeasuredRule]] = []
        self._before: list[tuple[Any, Any, Any]] = []

    def __enter__(self) -> RuleProfile:
        if self._before:
            raise PlanError("this profile is being taken already")
        self._measured = [list(map(_MeasuredRule, each.rules)) for each in self._circuits]
        circuit: Any
        for circuit, measured in zip(self._circuits, self._measured, strict=True):
            self._before.append((circuit.fed, circuit.left, circuit.right))
            of = {id(rule): each for rule, each in zip(circuit.rules, measured, strict=True)}
            circuit.fed, circuit.left, circuit.right = (
                [(of[id(rule)], place) for rule, place in some]
                for some in (circuit.fed, circuit.left, circuit.right)
            )
        return self

    def __exit__(self, *_: object) -> None:
        for circuit, lists in zip(self._circuits, self._before, strict=True):
            circuit.fed, circuit.left, circuit.right = lists
        self._before = []

    @property
    def rules(self) -> Sequence[RuleWork]:
        """The work of each rule, in the order of the rules; none before the block has run."""
        if not self._measured:
            return []
        return [
            RuleWork(relation, text, *each.work(), meets_all=is_dear)
            for circuit, measured in zip(self._circuits, self._measured, strict=True)
            for (relation, text, is_dear, _), each in zip(rules_of(circuit), measured, strict=True)
        ]

    def __str__(self) -> str:
        lines = ["      ms  rounds  tuples  touched  rule"]
        for work in sorted(self.rules, key=lambda work: -work.seconds):
            numbers = f"{1000 * work.seconds:8.2f}{work.rounds:8}{work.tuples:8}{work.touched:9}"
            lines.append(f"{numbers}  {work.relation} <- {work.rule}")
            if work.meets_all:
                lines.append(f"{'':35}each changed row meets all rows of the other side")
        lines += [f"{'':35}{each} runs as one operator, without rules" for each in self._closures]
        if self._circuits and not self._measured:
            lines.append("nothing is measured: with view.profile() as profile: commit changes")
        return "\n".join(lines)


class _MeasuredRule:
    """Stands for a delta rule, and counts its calls, derivations, rows and time."""

    __slots__ = ("_read", "_rounds", "_rule", "_seconds", "_tuples")

    def __init__(self, rule: Any) -> None:
        self._rule = rule
        self._rounds = self._tuples = self._read = 0
        self._seconds = 0.0

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # for isinstance
        return type(self._rule)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rule, name)

    def work(self) -> tuple[int, int, int, float]:
        """Return the rounds, derivations, touched rows and seconds."""
        return self._rounds, self._tuples, self._read, self._seconds

    def from_left(self, delta: Any) -> Any:
        """Call the rule with changed rows of its left side."""
        return self._call(self._rule.from_left, delta)

    def from_right(self, delta: Any) -> Any:
        """Call the rule with changed rows of its right side."""
        return self._call(self._rule.from_right, delta)

    def derive_from_input(self, delta: Any) -> Any:
        """Call the rule with changed rows of its input."""
        return self._call(self._rule.derive_from_input, delta)

    def _call(self, derive: Any, delta: Any) -> Any:
        before = getattr(self._rule, "touched", None)
        start = perf_counter()
        try:
            found = derive(delta)
        finally:
            self._seconds += perf_counter() - start
        self._rounds += 1
        self._read += len(delta) if before is None else self._rule.touched - before
        self._tuples += len(found)
        return found
