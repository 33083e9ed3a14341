"""The physical plan: a tree of the operators that will run a query.

    probe o.customer == c.id, aggregate Count() by c.region
      index by o.customer, where o.qty > 3
        scan orders
      index by c.id
        scan customers

`choose` makes it from a logical plan; `build` builds nodes of the graph from it, and decides
nothing. Equal nodes do the same; over the same inputs they are one node of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import field
from typing import TYPE_CHECKING

from optimizer import plan
from optimizer.expr import Lifted
from optimizer.expressions.text import Nesting, written
from optimizer.plans import clauses, closures, explain, shredding, side_conditions
from optimizer.plans import multiway as multiways
from optimizer.plans.factorization import Factorization, Sums
from optimizer.plans.facts import CachedHash, Tree, own_values_of
from optimizer.plans.field_values import AnyOf, Between
from optimizer.plans.side_conditions import AnyJoin, SideTerm
from optimizer.record import record
from reactive.engine.codegen import probe_order
from reactive.engine.collections.index import Range
from reactive.engine.compiler import levels
from reactive.engine.operators import join as join_keys
from reactive.engine.operators.plain import PipelineSource, Side, side_key_functions, signature
from reactive.engine.remote import fragments, remote

if TYPE_CHECKING:
    from optimizer.plans.sums_beyond import BeyondRange
    from reactive.engine.operators.frontiers import Retention


@record
class Op:
    """The operation of a logical node, independent of its inputs."""

    node: plan.Node = field(compare=False)
    does: Hashable = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "does", signature(self.node))

    def __repr__(self) -> str:
        node = self.node
        return explain.join_headline(node) if isinstance(node, AnyJoin) else explain.headline(node)


Ops = tuple[Op, ...]


def ops(nodes: tuple[plan.Node, ...]) -> Ops:
    return tuple(map(Op, nodes))


@record
class Physical(Tree):
    """Base of all physical nodes; `of` is the logical node that names it in messages."""

    of: plan.Node = field(compare=False, repr=False)

    @property
    def does(self) -> Hashable:
        """The operation of the node, independent of its inputs."""
        found: Hashable = self.known.get("does")
        if found is None:
            found = self.known["does"] = CachedHash((type(self), *own_values_of(self)))
        return found

    def headline(self) -> str:
        """Describe the node, without its inputs."""
        raise NotImplementedError


@record
class Scan(Physical):
    """The output of a table, or of another part of the query."""

    source: Op

    def headline(self) -> str:
        return explain.headline(self.of)


@record
class PhysicalValues(Physical):
    """Literal rows of the query, or none."""

    source: Op

    def headline(self) -> str:
        return "nothing" if isinstance(self.of, plan.Empty) else explain.headline(self.of)


@record
class Apply(Physical):
    """A plain operator, which calls its callables one by one."""

    sources: tuple[Physical, ...]
    op: Op

    def headline(self) -> str:
        return f"apply {self.op}"


@record
class Pipeline(Physical):
    """One loop: a chain of linear nodes, and its sink, by default a list."""

    source: Physical
    chain: PipelineSource
    sink: Op | None

    def headline(self) -> str:
        return f"pipeline {_describe_chain(ops(self.chain.chain), self.sink)}"


@record
class PhysicalIndex(Physical):
    """The rows of a chain by a key; a `trie` by two keys, one below the other.

    A `deferred` one follows at flushes, like the other side of its join.
    """

    source: Physical
    chain: PipelineSource
    side: Side
    arguments: int
    deferred: bool = False
    trie: bool = False
    retention: Retention | None = None

    def headline(self) -> str:
        kind = "trie" if self.trie else "index"
        kept = _describe_retention(self.retention)
        return f"{_where(self.side, self.chain)}{kind}{_describe_keys(self.side)}{kept}"


@record
class PhysicalKeys(Physical):
    """The rows of a chain with their keys, which are not stored."""

    source: Physical
    chain: PipelineSource
    side: Side

    def headline(self) -> str:
        return f"{_where(self.side, self.chain)}keys{_describe_keys(self.side)}"


@record
class PhysicalProbe(Physical):
    """The loops of a join over the changes of either side, with the chain above and its sink."""

    left: PhysicalIndex
    right: PhysicalIndex | PhysicalKeys
    join: Op
    chain: Ops
    sink: Op | None

    def headline(self) -> str:
        return f"probe {_describe_chain((self.join, *self.chain), self.sink)}"


@record
class PhysicalRangeIndex(Physical):
    """The rows of a chain that pass their tests, ordered by their points or intervals."""

    source: Physical
    chain: PipelineSource
    tests: tuple[SideTerm, ...]
    arguments: int
    span: side_conditions.Span
    range: Range
    retention: Retention | None = None

    @property
    def side(self) -> Side:
        """The key terms of a row."""
        return (None, (*self.tests, join_keys.range_key(self.span)))

    def headline(self) -> str:
        kind = "interval" if self.range.own == "interval" else "ordered"
        by = ", ".join(map(written, self.span.ends))
        kept = _describe_retention(self.retention)
        return f"{_where((None, self.tests), self.chain)}{kind} index by {by}{kept}"


@record
class Lookup(Physical):
    """The rows of an index with a value, or matched by `AnyOf` or `Between`.

    Rows without a key in the index are tested by the condition.
    """

    index: PhysicalIndex | PhysicalRangeIndex
    wanted: Hashable
    condition: Op

    def headline(self) -> str:
        wanted = self.wanted
        return f"look up {wanted if isinstance(wanted, AnyOf | Between) else repr(wanted)}"


@record
class EventProbe(Physical):
    """The loop of a look-up: the events of a chain, the rows of an index, and the chain above."""

    source: Physical
    below: PipelineSource
    right: PhysicalIndex
    row: Lifted
    """The row of the right, of a row of the index."""
    lookup: Op
    chain: Ops

    def headline(self) -> str:
        below = ops(self.below.chain[:-1])
        return f"probe {_describe_chain((*below, self.lookup, *self.chain), None)}"


@record
class Intervals(Physical):
    """The loops of a join that finds partners by ranges, with the chain above and its sink."""

    left: PhysicalRangeIndex
    right: PhysicalRangeIndex
    join: Op
    chain: Ops
    sink: Op | None

    def headline(self) -> str:
        return f"intervals {_describe_chain((self.join, *self.chain), self.sink)}"


@record
class Match(Physical):
    """A join of any kind, calling one callable at a time."""

    left: PhysicalIndex
    right: PhysicalIndex | PhysicalKeys
    join: Op

    def headline(self) -> str:
        return f"match {self.join}"


@record
class Multiway(Physical):
    """Joins of three inputs or more as one: a change of one input visits the others."""

    indexes: tuple[PhysicalIndex, ...]
    keys: tuple[tuple[probe_order.Key, int], ...]
    """The keys that loops look up, each with its position in `indexes`."""
    joins: Ops
    chain: Ops
    sink: Op | None
    multiway: multiways.MultiwayJoin = field(repr=False)

    def headline(self) -> str:
        return f"multiway {_describe_chain((*self.joins[::-1], *self.chain), self.sink)}"


@record
class PhysicalCyclicCount(Physical):
    """The number of joined rows of a cycle of joins; a source for each base of the chains."""

    sources: tuple[Physical, ...]
    chains: tuple[PipelineSource, ...]
    joins: Ops
    chain: Ops
    sink: Op | None
    multiway: multiways.MultiwayJoin = field(repr=False)

    def headline(self) -> str:
        return f"count cycles {_describe_chain((*self.joins[::-1], *self.chain), self.sink)}"


@record
class PhysicalCyclicJoin(Physical):
    """The rows of a cycle of joins, by their ends; a source for each base of the chains."""

    sources: tuple[Physical, ...]
    chains: tuple[PipelineSource, ...]
    joins: Ops
    chain: Ops
    sink: Op | None
    multiway: multiways.MultiwayJoin = field(repr=False)

    def headline(self) -> str:
        return f"join cycles {_describe_chain((*self.joins[::-1], *self.chain), self.sink)}"


@record
class PhysicalNest(Physical):
    """A nest as flat relations, whose rows refer to inner rows by labels.

    `places` has the index numbers of each level: by its own label, then by the labels of inner
    levels. Parts `elsewhere` replace indexes. After the first read, a bag of at least `large` rows
    is cached by its label; a smaller one is built at each read.
    """

    indexes: tuple[Physical, ...]
    places: tuple[tuple[int, ...], ...]
    row: Op
    nesting: Nesting = field(compare=False, repr=False)
    top: shredding.ShreddedLevel = field(compare=False, repr=False)
    large: int
    elsewhere: levels.Elsewhere | None = field(default=None, compare=False, repr=False)

    def headline(self) -> str:
        found = f"tree {shredding.describe_levels(self.top, self.nesting)}"
        return found if self.elsewhere else f"{found}; once read, kept from {self.large} rows on"


@record
class PhysicalPlaces(Physical):
    """A window that only numbers rows, and the chain above it; the numbers are computed when read.

    The chain makes a row of each row, and cannot raise.
    """

    source: Physical
    window: Op
    chain: Ops

    def headline(self) -> str:
        return f"places {_describe_chain((self.window, *self.chain), None)}"


def _describe_retention(found: Retention | None) -> str:
    return "" if found is None else f", dropped when {written(found.value)} is {found.frontier}"


def _kept(sums: Sums) -> str:
    return "sums and extremes" if sums.extremes else "sums"


@record
class PartialSums(Physical):
    """The rows of a chain as sums by a key; `owner` is the aggregate that uses them."""

    source: Physical
    chain: PipelineSource
    side: Side
    arguments: int
    sums: Sums
    owner: plan.Node = field(compare=False, repr=False)

    def headline(self) -> str:
        return f"{_where(self.side, self.chain)}{_kept(self.sums)}{_describe_keys(self.side)}"


@record
class PairSums(Physical):
    """The pairs of a join, after a chain, as sums by a key; the pairs are not stored."""

    left: PhysicalIndex | PartialSums | PairSums
    right: PhysicalIndex | PartialSums | PairSums
    join: Op
    chain: Ops
    side: Side
    arguments: int
    sums: Sums
    owner: plan.Node = field(compare=False, repr=False)

    def headline(self) -> str:
        pairs = _describe_chain((self.join, *self.chain), None)
        return f"{pairs} | {_kept(self.sums)}{_describe_keys(self.side)}"


@record
class FactorizedGroups(Physical):
    """The groups of a join that stores sums of one side or both."""

    left: PhysicalIndex | PartialSums | PairSums
    right: PhysicalIndex | PartialSums | PairSums
    join: Op
    between: Ops
    sink: Op
    factors: Factorization = field(repr=False)

    def headline(self) -> str:
        return f"groups of sums {_describe_chain((self.join, *self.between), self.sink)}"


@record
class PhysicalSumsBeyond(Physical):
    """The left rows for which a condition of a sum over the rows beyond them holds.

    `sources` are the left rows, the right rows, and the row of the condition.
    """

    sources: tuple[Physical, ...]
    join: Op
    left_key: Lifted
    right_key: Lifted
    condition: Lifted
    without_sum: Lifted | None
    beyond: BeyondRange

    def headline(self) -> str:
        return f"rows with {written(self.condition)} by sums beyond {self.join}"


@record
class PhysicalFixpoint(Physical):
    """All relations of a recursion; `sources` are the inputs of its clauses, in order.

    An input may occur several times.
    """

    sources: tuple[Physical, ...]
    rules: tuple[Ops, ...]
    """The operations of each clause on recursive relations."""
    names: tuple[str, ...]
    max_rounds: int | None
    best: tuple[clauses.Keeping, ...]
    program: clauses.Program = field(compare=False, repr=False)

    def headline(self) -> str:
        return explain.headline(self.of)


@record
class PhysicalClosure(Physical):
    """A recursion that is the closure of its source by the ends of rows."""

    source: Physical
    closure: closures.Closure

    def headline(self) -> str:
        assert isinstance(self.of, plan.Fixpoint)
        ends = "" if self.closure.is_row else f" of {written(self.closure.ends)}"
        return f"closure {self.of.names[0]}{ends}"


@record
class PhysicalLoop(Physical):
    """All relations of an iteration whose rounds are not part of the graph.

    `sources` are the start relations, and the other inputs of its bodies. In `node` these are
    recursive relations: first the relations of a round, then the constant ones. Rounds with a
    layout iterate over columns, once the keys of their groups are constant.
    """

    sources: tuple[Physical, ...]
    op: Op
    node: plan.Iterate = field(compare=False, repr=False)

    is_laid_out: bool = field(compare=False, default=False)

    def headline(self) -> str:
        layout = ", over a kept layout" * self.is_laid_out
        return f"rounds of {explain.headline(self.of)}{layout}"


@record
class PhysicalRelation(Physical):
    """One of the relations of a recursion."""

    fixpoint: PhysicalFixpoint | PhysicalLoop
    index: int

    def headline(self) -> str:
        return f"relation {self.names[self.index]}"

    @property
    def names(self) -> tuple[str, ...]:
        within = self.fixpoint
        return within.names if isinstance(within, PhysicalFixpoint) else within.node.names


@record
class PhysicalRemote(Physical):
    """A part that runs elsewhere; `fed` are the sources read there, by their place."""

    sources: tuple[Physical, ...]
    parts: Ops
    chains: tuple[tuple[int, Ops], ...]
    fragment: fragments.Fragment = field(compare=False, repr=False)
    begin: Callable[[fragments.Fragment], remote.Remote] = field(compare=False, repr=False)
    fed: dict[int, tuple[remote.ExternalSource, tuple[plan.Node, ...]]] = field(
        compare=False, repr=False
    )

    def headline(self) -> str:
        return f"elsewhere {', '.join(map(repr, self.parts))}"


def _describe_chain(chain: Ops, sink: Op | None) -> str:
    return " | ".join(map(repr, [*chain, *[sink] * (sink is not None)]))


def _describe_keys(side: Side) -> str:
    keys = side_key_functions(side)
    return f" by {', '.join(map(written, keys))}" if keys else " of all"


def _where(side: Side, chain: PipelineSource) -> str:
    tests = [f"where {written(step.function)}" for step in side[1] if not step.is_key]
    return "".join(f"{part} | " for part in [*map(explain.headline, chain.chain), *tests])
