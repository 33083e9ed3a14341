"""The logical plan: a query as a tree of immutable nodes, rows not included.

    aggregate Avg(r[1]) by r[0]             Aggregate
      select (m.role, s.age)                  Select
        join s.last_name == m.last_name         Join
          table students                          Table
          table council                           Table

Nodes compare by structure, so that equal queries are found and share their operators. Weights
are those of bags (multisets) throughout; each node says how it changes them. With `L` and `R`
for the weights of a row in the two inputs:

    union  1 if L or R    difference  1 if L and not R    intersection  1 if L and R
    union_all  L + R      difference_all  max(0, L - R)   intersection_all  min(L, R)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Literal

from optimizer.callables.opaque import Opaque
from optimizer.expr import Function
from optimizer.expressions.evaluated import tuple_width
from optimizer.expressions.knowledge import Shapes
from optimizer.kinds.kind import class_of, kind_of
from optimizer.plans import facts as costs
from optimizer.plans import headlines
from optimizer.plans.facts import (
    Barrier,
    Calls,
    Facts,
    always,
    as_first,
    both_negate,
    groups,
    if_both,
    if_either,
    is_set_of_outer_join,
    monotone,
    negates_of_outer_join,
    never,
    of_each,
    of_input,
    of_pair,
    of_right,
    one_unknown,
    pairs,
    right_negates,
    rows_of_both,
    rows_of_difference_all,
    rows_of_outer_join,
    same_rows,
    shape_made,
)
from optimizer.plans.facts import Node as Node
from optimizer.plans.facts import nodes_in as nodes_in
from optimizer.plans.nodes.further import Extend as Extend
from optimizer.plans.nodes.further import Negate as Negate
from optimizer.plans.nodes.further import OrderBy as OrderBy
from optimizer.plans.nodes.further import Previous as Previous
from optimizer.plans.nodes.further import Reduce as Reduce
from optimizer.plans.nodes.further import SortKey as SortKey
from optimizer.plans.nodes.further import Top as Top
from optimizer.plans.nodes.further import Values as Values
from optimizer.record import record


def _rows_of_table(node: Table, inputs: Sequence[Shapes]) -> Shapes:
    width = tuple_width(node.row_type)
    if width is not None:
        return ((None,) * width,)
    return (None if node.row_type is None else class_of(kind_of(node.row_type)),)


def _rows_of_select(node: Select, inputs: Sequence[Shapes]) -> Shapes:
    return (shape_made(node.function, inputs[0]),)


def _rows_of_component(node: Component, inputs: Sequence[Shapes]) -> Shapes:
    found = tuple(node.input.bodies[node.index].known["shapes"])
    return found if isinstance(node.input, Fixpoint) else (None,) * len(found)


def _of_kept(node: Fixpoint) -> Sequence[Barrier | None]:
    """Return the barriers of a fixpoint: a relation with `best` chooses among all its rows."""
    return ("aggregate" if any(node.best) else None,) * len(node.bodies)


_OF_MATCH = (
    Calls("match.left_key", of_input),
    Calls("match.right_key", of_right),
    Calls("match.on", of_pair),
)


@record
class Table(Node):
    """The rows of a base table. `key` is set for a keyed table: at most one row per key.

    All rows are instances of `row_type`.
    """

    number: int
    name: str
    key: Opaque | None
    stored: bool
    row_type: Any = object

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=_rows_of_table,
        is_set=lambda node, _: node.key is not None,
        costs=costs.nothing,
        degree=costs.degree_of_rows,
        headline=headlines.table,
    )


@record
class Known(Table):
    """A part of a query over tables that are not stored, whose rows so far are held.

    The engine makes it for a query that is added later. `of` are the shapes of the bindings, `part`
    the engine's own. Like its tables it may have rows of negative weight.
    """

    of: tuple[Any, ...] = (None,)
    is_set: bool = False
    part: Any = field(default=None, compare=False, repr=False)

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=lambda node, _: node.of,
        is_set=lambda node, _: node.is_set,
        costs=costs.nothing,
        degree=costs.degree_of_rows,
        headline=lambda node: f"rows of {node.name}",
    )


@record
class Empty(Node):
    """No rows, of `bindings` bindings; the result of a false predicate."""

    bindings: int

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=lambda node, _: (None,) * node.bindings,
        is_set=always,
        costs=costs.nothing,
        degree=costs.degree_of_none,
        headline=headlines.by_name,
    )


@record
class Shared(Node):
    """A part that several nodes read, which exists only while rules run.

    Rules do not reach through it, because each reader would get a copy of its own.
    """

    input: Node

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=same_rows,
        is_set=as_first,
        costs=costs.constant,
        degree=costs.degree_as_input,
        headline=headlines.by_name,
    )


@record
class View(Node):
    """The rows of a view that a query reads.

    No rule reaches through it, so that the rows are not computed again for the query.
    """

    input: Node
    name: str | None = field(default=None, compare=False)

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=same_rows,
        is_set=as_first,
        costs=costs.constant,
        degree=costs.degree_as_input,
        headline=headlines.view,
    )


@record
class Settled(Node):
    """A part of a query that is optimized by itself (`segments.Segment`), so that no rule reaches
    into it.

    It is not part of the plan as written: it exists while rules run, and in the plan that runs.
    """

    segment: Any

    facts = Facts(
        calls=(),
        raises=True,
        recursion=monotone,
        shapes=lambda node, _: node.segment.shapes,
        is_set=lambda node, _: node.segment.is_set,
        costs=costs.nothing,
        degree=lambda node, _: node.segment.degree,
        headline=lambda node: node.segment.run.facts.headline(node.segment.run),
    )


@record
class Recursive(Node):
    """A recursive relation inside its own definition: the rows that it has so far.

    `level` identifies the definition; those around it have higher numbers. `of` are the shapes of
    the bindings (`knowledge.Shapes`).
    """

    level: Any
    index: int
    name: str
    is_set: bool
    of: tuple[Any, ...] = (None,)

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=lambda node, _: node.of,
        is_set=lambda node, _: node.is_set,
        costs=costs.nothing,
        degree=costs.degree_of_rows,
        headline=headlines.recursive,
    )


@record
class Given(Node):
    """Rows that an operator passes to the nodes inside it; made by the engine."""

    index: int
    is_set: bool
    of: tuple[Any, ...]

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=lambda node, _: node.of,
        is_set=lambda node, _: node.is_set,
        costs=costs.nothing,
        degree=costs.degree_of_rows,
        headline=lambda node: f"given {node.index}",
    )


@record
class Best:
    """Keeps the row with the least or largest value among rows with equal keys."""

    by: Function
    value: Function
    largest: bool


@record
class Fixpoint(Node):
    """The smallest relations that contain the rows of their bodies; as a node, the first one.

    A body reads them as `Recursive`. Rows are sets; `best` may keep one of each key.
    """

    bodies: tuple[Node, ...]
    level: Any
    names: tuple[str, ...]
    best: tuple[Best | None, ...]
    max_rounds: int | None

    facts = Facts(
        calls=(Calls("best.by", of_each), Calls("best.value", of_each)),
        raises=True,
        recursion=_of_kept,
        shapes=same_rows,
        is_set=always,
        costs=costs.rounds,
        degree=costs.no_degree,
        headline=headlines.fixpoint,
    )


@record
class Component(Node):
    """One of several relations that are defined together."""

    input: Fixpoint | Iterate
    index: int

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=_rows_of_component,
        is_set=as_first,
        costs=costs.constant,
        degree=costs.degree_as_input,
        headline=headlines.component,
    )


@record
class Tolerance:
    """Passes on a row whose value differs by `least` or more from the last row of its key passed
    on.

    Without `by` the key is the rest of the row.
    """

    value: Function
    by: Function
    least: float


@record
class Iterate(Node):
    """Bodies applied together, from `starts` on, `times` times.

    If `times` is None, until no row is passed on, in `max_rounds` at most. Bags; bodies may do
    anything. As a node, the first relation. `contraction` and `norm` say by what factor a round
    brings any two rows of relations closer.
    """

    starts: tuple[Node, ...]
    bodies: tuple[Node, ...]
    level: Any
    names: tuple[str, ...]
    times: int | None
    max_rounds: int = 0
    tolerances: tuple[Tolerance | None, ...] = ()
    contraction: float | None = None
    norm: Literal["max", "sum"] = "max"

    facts = Facts(
        calls=(Calls("tolerances.value", of_each), Calls("tolerances.by", of_each)),
        raises=True,
        recursion=monotone,
        shapes=lambda node, inputs: (None,) * len(inputs[0]),
        is_set=never,
        costs=costs.rounds,
        degree=costs.no_degree,
        headline=headlines.iterate,
    )

    def is_tolerant(self) -> bool:
        """Return True if a row may be passed on later than it changes."""
        return any(self.tolerances)


@record
class Tolerate(Node):
    """The rows of a round that are passed on, in an iteration that is written out."""

    input: Node
    tolerance: Tolerance

    facts = Facts(
        calls=(Calls("tolerance.value", of_input), Calls("tolerance.by", of_input)),
        raises=True,
        recursion=lambda _: ("negation",),
        shapes=lambda node, inputs: (None,) * len(inputs[0]),
        is_set=never,
        costs=costs.constant,
        degree=costs.no_degree,
        headline=headlines.tolerate,
    )


@record
class Where(Node):
    """Selection: the rows for which the predicate is true."""

    input: Node
    predicate: Function

    facts = Facts(
        calls=(Calls("predicate", of_input),),
        raises=False,
        recursion=monotone,
        shapes=same_rows,
        is_set=as_first,
        costs=costs.constant,
        degree=costs.degree_as_input,
        headline=headlines.of_function("where", "predicate"),
    )


@record
class Select(Node):
    """Projection with bag semantics: one row out for each row in."""

    input: Node
    function: Function

    facts = Facts(
        calls=(Calls("function", of_input),),
        raises=False,
        recursion=monotone,
        shapes=_rows_of_select,
        is_set=never,
        costs=costs.constant,
        degree=costs.degree_as_input,
        headline=headlines.of_function("select", "function"),
    )


@record
class Unnest(Node):
    """One binding more, for each element of a collection computed from the row."""

    input: Node
    function: Function

    facts = Facts(
        calls=(Calls("function", of_input),),
        raises=True,
        recursion=monotone,
        shapes=lambda node, inputs: (*inputs[0], None),
        is_set=never,
        costs=costs.constant,
        degree=costs.degree_as_input,
        headline=headlines.of_function("unnest", "function"),
    )


@record
class SelectMany(Node):
    """As `Unnest`, keeping only the elements."""

    input: Node
    function: Function

    facts = Facts(
        calls=(Calls("function", of_input),),
        raises=True,
        recursion=monotone,
        shapes=one_unknown,
        is_set=never,
        costs=costs.constant,
        degree=costs.degree_as_input,
        headline=headlines.of_function("select_many", "function"),
    )


@record
class Product(Node):
    """All pairs; weights multiply."""

    left: Node
    right: Node

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=pairs,
        is_set=if_both,
        costs=costs.all_pairs,
        degree=costs.degree_of_both,
        headline=headlines.by_name,
    )


@record
class Match:
    """The condition that a row of the left matches one of the right: equal keys, and then the
    predicate.

    Either may be absent: without keys all pairs are candidates, without a predicate all candidates
    match.
    """

    left_key: Function | None = None
    right_key: Function | None = None
    on: Function | None = None


@record
class Join(Node):
    """Pairs of rows that match; weights multiply."""

    left: Node
    right: Node
    match: Match

    facts = Facts(
        calls=_OF_MATCH,
        raises=False,
        recursion=monotone,
        shapes=pairs,
        is_set=if_both,
        costs=costs.matches,
        degree=costs.degree_of_both,
        headline=headlines.join,
    )


@record
class OuterJoin(Node):
    """A join that keeps the rows without a partner, of the left, the right or both sides."""

    left: Node
    right: Node
    match: Match
    kind: Literal["left", "right", "full"]

    facts = Facts(
        calls=_OF_MATCH,
        raises=False,
        recursion=negates_of_outer_join,
        shapes=rows_of_outer_join,
        is_set=is_set_of_outer_join,
        costs=costs.matches,
        degree=costs.no_degree,
        headline=headlines.join,
    )


@record
class SemiJoin(Node):
    """The left rows that have a partner on the right (EXISTS), with their own weights."""

    left: Node
    right: Node
    match: Match

    facts = Facts(
        calls=_OF_MATCH,
        raises=False,
        recursion=monotone,
        shapes=same_rows,
        is_set=as_first,
        costs=costs.matches_of_right,
        degree=costs.no_degree,
        headline=headlines.join,
    )


@record
class AntiJoin(Node):
    """The left rows that have no partner on the right (NOT EXISTS)."""

    left: Node
    right: Node
    match: Match

    facts = Facts(
        calls=_OF_MATCH,
        raises=False,
        recursion=right_negates,
        shapes=same_rows,
        is_set=as_first,
        costs=costs.matches_of_right,
        degree=costs.no_degree,
        headline=headlines.join,
    )


@record
class Distinct(Node):
    """Each row once."""

    input: Node

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=same_rows,
        is_set=always,
        costs=costs.constant,
        degree=costs.no_degree,
        headline=headlines.by_name,
    )


@record
class Union(Node):
    """Rows of either side, each once."""

    left: Node
    right: Node

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=rows_of_both,
        is_set=always,
        costs=costs.constant,
        degree=costs.no_degree,
        headline=headlines.by_name,
    )


@record
class UnionAll(Node):
    """Rows of both sides, weights added."""

    left: Node
    right: Node

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=rows_of_both,
        is_set=never,
        costs=costs.constant,
        degree=costs.degree_as_input,
        headline=headlines.by_name,
    )


@record
class Difference(Node):
    """Rows of the left that the right lacks, each once."""

    left: Node
    right: Node

    facts = Facts(
        calls=(),
        raises=False,
        recursion=right_negates,
        shapes=rows_of_both,
        is_set=always,
        costs=costs.constant,
        degree=costs.no_degree,
        headline=headlines.by_name,
    )


@record
class DifferenceAll(Node):
    """Left weights less right weights, where that is positive."""

    left: Node
    right: Node

    facts = Facts(
        calls=(),
        raises=False,
        recursion=both_negate,
        shapes=rows_of_difference_all,
        is_set=as_first,
        costs=costs.constant,
        degree=costs.no_degree,
        headline=headlines.by_name,
    )


@record
class Intersection(Node):
    """Rows that both sides have, each once."""

    left: Node
    right: Node

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=rows_of_both,
        is_set=always,
        costs=costs.constant,
        degree=costs.no_degree,
        headline=headlines.by_name,
    )


@record
class IntersectionAll(Node):
    """The smaller of the two weights."""

    left: Node
    right: Node

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=rows_of_both,
        is_set=if_either,
        costs=costs.constant,
        degree=costs.no_degree,
        headline=headlines.by_name,
    )


@record
class Folded:
    """One aggregate of a group: its accumulator (an engine's object), and the value that it reads.

    `functions` are the user's callables in the accumulator itself; `tolerant` is the accumulator
    whose result is a `Fault` if one of them raises. With `skip_none` it leaves out values that are
    None. Rules read the `name`; texts show the `label`, the name of a user's own class.
    """

    name: str
    accumulator: Any
    value: Function | None
    functions: tuple[Opaque, ...] = ()
    skip_none: bool = False
    tolerant: Any = None
    own_name: str | None = None

    @property
    def label(self) -> str:
        """The name that texts show."""
        return self.own_name or self.name


@record
class Aggregate(Node):
    """One row per group: its key, then each aggregate. Without a key, one row in all.

    `row` is the class of named rows; the engine sets it to merge the select that names them.
    """

    input: Node
    key: Function | None
    aggregates: tuple[Folded, ...]
    row: Any = None

    facts = Facts(
        calls=(Calls("key", of_input), Calls("aggregates.value", of_input)),
        raises=True,
        recursion=lambda _: ("aggregate",),
        shapes=groups,
        is_set=always,
        costs=costs.of_aggregates,
        degree=costs.degree_of_aggregates,
        headline=headlines.aggregate,
    )
