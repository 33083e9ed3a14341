"""Fragments: the parts of a plan that can be offloaded, because their rows fall into buckets.

A fragment can be offloaded if its rows fall into independent buckets, one per key. The bucket of a
row depends on its key alone, and equal keys have the same bucket, whatever their classes; other
keys may share it.

    join by customer            bucket of the customer, of the rows of both sides
    aggregate by region         bucket of the region
    distinct, union, ...        bucket of the row

`whole_fragment` makes one fragment of a whole part of a plan: it runs elsewhere as one.

    aggregate Sum by town              the fragment, down to its inputs
      join order.customer == ...
        table orders                   an input, from the process
        table customers                an input, or fed from the place of its rows

Inputs are tables and literal rows of the query, with the filters that they pass in the process; of
a table that is elsewhere, the chain over it. A fragment may contain the nodes that the backend can
run, and also recursions, and loops of many rounds (`is_kept_loop`), which are not unrolled then.

`advice` tells `explain` which recursions can be offloaded, how, and when that pays off.

reach = edges U select (r.src, e.dst) (...)       by partitions of `src`, few of them touched
same  = ... select (a.child, b.child) (...)       keeps no column: by rounds
ranks <- select (...)   n times                   all rounds, in one worker
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import Function, Item, Lifted, Parameter, constant
from optimizer.expressions.knowledge import total
from optimizer.plans.clauses import aggregates_itself
from optimizer.plans.closures import linear, partition
from optimizer.plans.explain import headline
from optimizer.plans.factorization import is_of_ring
from optimizer.plans.nodes.groups import is_of_whole
from optimizer.plans.properties import (
    below_wheres,
    bindings,
    free,
    may_be_negative,
    nodes,
    reads_stream,
    shapes,
    tables,
)
from optimizer.record import record
from optimizer.traverse import functions, has_components, with_inputs
from reactive.engine.collections.index import ERROR_KEY, FILTERED, NO_MATCH
from reactive.engine.collections.zset import NAN, Row, canonical
from reactive.engine.operators.accumulators import CountAccumulator
from reactive.engine.operators.plain import Side, by_key_alone, side_key, sides, spread_bindings
from reactive.errors import OffloadError

LEVEL = "part"
"""The inputs of a fragment are `plan.Recursive(LEVEL, place, ...)`."""
Prepare = Callable[[Row], tuple[Any, Row] | None]
"""Returns the key of a row and the row to store; None if the row is not needed."""


@record
class Fragment:
    """A node of a plan over inputs that are given: `Recursive` of the level `LEVEL`.

    `of` are the nodes of the plan that it replaces, from the top to the node that reads the inputs.
    """

    node: plan.Node
    of: tuple[plan.Node, ...]
    inputs: tuple[plan.Node, ...]
    prepare: tuple[Prepare, ...]
    keys_of: Callable[[Row], list[Any]] | None
    """Returns the keys of an output row: each input row of it has one of them. None: any key."""

    window: plan.OrderBy | None = None
    """The order whose first rows the process reads, if any."""
    is_whole: bool = False
    """True if it contains all nodes down to tables, and needs no buckets."""

    apart: str = field(default="", compare=False)
    """The reason why it is not merged with the fragment below, if that was requested."""

    @property
    def is_never_empty(self) -> bool:
        """True if the output may have rows although the inputs have none."""
        inside = nodes(self.node)
        return any(isinstance(node, plan.Aggregate) and node.key is None for node in inside)

    @property
    def is_by_group(self) -> bool:
        """True if the first value of an output row is its key."""
        return self.keys_of is group_of


class Unmovable(Exception):
    """The reason why a node of a plan cannot be offloaded."""


def offloaded_fragment(node: plan.Node) -> Fragment:
    """Return the fragment that offloads a node.

    Raises
    ------
    Unmovable: its rows do not fall into buckets.
    """
    match node:
        case plan.Distinct(source):
            return Fragment(
                replace(node, input=_input_relation(0, source)),
                (node,),
                (source,),
                (by_row,),
                alone,
            )
        case plan.SetOperation(left, right):
            return Fragment(
                _over_inputs(node, left, right), (node,), (left, right), (by_row, by_row), alone
            )
        case plan.Join() | plan.OuterJoin() | plan.SemiJoin() | plan.AntiJoin():
            return _join_part(node)
        case plan.Aggregate(_, None):
            raise Unmovable("it has one group, which only moves together with what is below it")
        case plan.Aggregate() if any(map(is_of_ring, node.aggregates)):
            raise Unmovable("its values are of a ring of the user's, which stay in the process")
        case plan.Aggregate(source, key):
            assert key is not None
            return _aggregate_part(node, source, key)
        case plan.Reduce() if is_of_whole(node):
            raise Unmovable(
                "it is asked of all rows together, at each change, so they stay in the process; "
                "its inputs may be moved, and group_by(key).reduce(function) goes by group"
            )
        case plan.Reduce():
            raise Unmovable("its groups are in the process, or in a whole fragment")
        case plan.Where(source) | plan.Select(source) | plan.SelectMany(source):
            return _append_node(node, offloaded_fragment(source))
        case plan.Extend(source) | plan.Unnest(source):
            return _append_node(node, offloaded_fragment(source))
        case plan.Top():
            raise Unmovable("the orders of its groups are in the process, or in a whole fragment")
        case plan.OrderBy(source, limit=int()):
            return Fragment(_input_relation(0, source), (node,), (source,), (by_row,), alone, node)
        case plan.OrderBy():
            raise Unmovable("its rows are in one order, which cannot be spread")
        case plan.Fixpoint() | plan.Component() | plan.Iterate():
            raise Unmovable(
                "a recursion has no buckets, and goes only together with all that it reads; it "
                "stays in the process, and its inputs may be moved"
            )
        case _:
            raise Unmovable(f"{headline(node)} has no state to move")


def scan_of(node: plan.Node) -> Fragment:
    """Return the rows of a node as a fragment: for a table elsewhere that the process reads."""
    return Fragment(_input_relation(0, node), (node,), (node,), (by_row,), None)


def _append_node(
    node: plan.Where | plan.Select | plan.Extend | plan.SelectMany | plan.Unnest, below: Fragment
) -> Fragment:
    """Append a node that maps single rows to the fragment below it."""
    if below.window is not None:
        raise Unmovable("it looks at a few rows only")
    if not raises_nothing(node):
        raise Unmovable("it may raise, which is to stop the commit")
    keys_of = below.keys_of if isinstance(node, plan.Where) else None
    top = replace(node, input=below.node)
    return replace(below, node=top, of=(node, *below.of), keys_of=keys_of)


def raises_nothing(node: plan.Node) -> bool:
    """Return True if no callable of a node raises, for any row."""
    return all(
        isinstance(function, Lifted) and total(function.body, shapes(node.inputs()[0]))
        for function in functions(node)
    )


def _input_relation(index: int, source: plan.Node) -> plan.Recursive:
    return plan.Recursive(LEVEL, index, f"input {index + 1}", False, shapes(source))


def _over_inputs(node: Any, left: plan.Node, right: plan.Node) -> plan.Node:
    made: plan.Node = replace(node, left=_input_relation(0, left), right=_input_relation(1, right))
    return made


def by_row(row: Row) -> tuple[Any, Row]:
    """Return a row as its own key."""
    return row, row


def _aggregate_part(node: plan.Aggregate, source: plan.Node, key: Function) -> Fragment:
    """Return the fragment of an aggregate; it stores the keys and the aggregated values."""
    count = bindings(source)
    of_key = spread_bindings(key, count)
    values = [_make_value_reader(folded, count) for folded in node.aggregates]

    def prepare(row: Row) -> tuple[Any, Row]:
        group = canonical(of_key(row))
        return group, (group, *[value(row) for value in values])

    kept = plan.Recursive(LEVEL, 0, "input 1", False, (None,))
    folded = tuple(
        replace(f, value=_item_of_row(place)) for place, f in enumerate(node.aggregates, 1)
    )
    return Fragment(
        plan.Aggregate(kept, _item_of_row(0), folded), (node,), (source,), (prepare,), group_of
    )


def _make_value_reader(folded: plan.Folded, count: int) -> Callable[[Row], Any]:
    """Return the function from a row to the value that an aggregate reads; None for counts."""
    if isinstance(folded.accumulator, CountAccumulator):
        return lambda row: None
    return _itself if folded.value is None else spread_bindings(folded.value, count)


def _itself(row: Row) -> Row:
    return row


def alone(row: Row) -> list[Any]:
    """Return the keys of a row that is its own key."""
    return [row]


def group_of(row: Row) -> list[Any]:
    """Return the keys of a row whose first value is its group."""
    return [row[0]] if isinstance(row, tuple) and row else []


def _item_of_row(place: int) -> Lifted:
    return Lifted(Item(Parameter(0), constant(place)), ("row",), (), 1)


def _join_part(node: plan.Join | plan.OuterJoin | plan.SemiJoin | plan.AntiJoin) -> Fragment:
    """Return a join as a fragment by its key; raises `Unmovable` if a side has no key."""
    left, right = sides(node)
    for side in (left, right):
        _check_has_key(side)
    keeps_left = isinstance(node, plan.AntiJoin) or _keeps(node, "left")
    prepare = (
        _by_key(side_key(left, bindings(node.left)), keeps_alone=keeps_left),
        _by_key(side_key(right, 1), keeps_alone=_keeps(node, "right")),
    )
    inputs = (node.left, node.right)
    keyed = _over_inputs(replace(node, match=_match_with_keys(node)), *inputs)
    return Fragment(keyed, (node,), inputs, prepare, _pair_keys(node, *prepare))


def _match_with_keys(
    node: plan.Join | plan.OuterJoin | plan.SemiJoin | plan.AntiJoin,
) -> plan.Match:
    """Return the match with the keys found in its predicate as written keys."""
    left, right = sides(node)
    if not (left[1] or right[1]):
        return node.match
    is_all = not isinstance(node, plan.Join) and by_key_alone(node)
    on = None if is_all else node.match.on
    return plan.Match(_key_of_side(left, bindings(node.left)), _key_of_side(right, 1), on)


def _key_of_side(side: Side, count: int) -> Function:
    """Return the key of a side; both sides get one class, even if one key is as written."""
    key = FoundKey(side, count)
    return Opaque(key, count, "key", None, (), side, "the key of join")


@record
class _CheckedKey:
    """A key that is already checked, so that it is not searched for a NaN again."""

    key: Any


@dataclass(frozen=True)
class FoundKey:
    """The key function of `plain.side_key` over the bindings of a row, as a picklable callable."""

    side: Side
    count: int

    @cached_property
    def _key(self) -> Any:
        return side_key(self.side, self.count)

    def __call__(self, *values: Any) -> Any:
        found = self._key(values if self.count > 1 else values[0])
        return NAN if found is NO_MATCH or found is FILTERED else _CheckedKey(found)

    def __reduce__(self) -> Any:
        return FoundKey, (self.side, self.count)


def _keeps(node: plan.Node, side: str) -> bool:
    return isinstance(node, plan.OuterJoin) and node.kind in (side, "full")


def _check_has_key(side: Any) -> None:
    """Raise `Unmovable` if a side of a join has no key."""
    written, steps = side
    if written is None and not any(step.is_key for step in steps):
        raise Unmovable("it pairs rows without a key")


def _by_key(key: Any, *, keeps_alone: bool) -> Prepare:
    """Return the function that prepares a row; it returns None for rows that match nothing.

    With `keeps_alone`, it returns such a row as its own key. It raises `OffloadError` if the
    key of a row raises.
    """

    def prepare(row: Row) -> tuple[Any, Row] | None:
        found = key(row)
        if found is ERROR_KEY:
            raise OffloadError(
                f"the key of a join raises for {row!r:.80}, so that nobody knows its bucket\n"
                "  view.recall() computes the view in the process again, where it may be unmatched"
            )
        if found is NO_MATCH or found is FILTERED:
            return (row, row) if keeps_alone else None
        return found, row

    return prepare


def _pair_keys(node: plan.Node, left: Prepare, right: Prepare) -> Callable[[Row], list[Any]]:
    """Return the function from a row that a join emits to its keys, of both sides if present."""
    if isinstance(node, plan.SemiJoin | plan.AntiJoin):
        return lambda row: _present_keys((left, row))
    assert isinstance(node, plan.Join | plan.OuterJoin)
    count = bindings(node.left)

    def keys_of(row: Row) -> list[Any]:
        if not isinstance(row, tuple) or len(row) != count + 1:
            return []
        return _present_keys((left, row[0] if count == 1 else row[:-1]), (right, row[-1]))

    return keys_of


def _present_keys(*sides: tuple[Prepare, Row]) -> list[Any]:
    """Return the keys of the sides that have one.

    A side is skipped if its key raises, as it may for a value that is not a row of that side.
    """
    found = []
    for prepare, row in sides:
        with suppress(Exception):
            prepared = prepare(row)
            found.append(row if prepared is None else prepared[0])
    return found


Holds = Callable[[plan.Node], bool]
"""Tells if the rows of a node are elsewhere, and the node maps single rows."""
STATEFUL = (
    *(plan.Join, plan.SemiJoin, plan.AntiJoin, plan.OuterJoin, plan.Aggregate),
    *(plan.Distinct, plan.SetOperation, plan.Fixpoint, plan.Iterate),
    *(plan.Top, plan.OrderBy, plan.Reduce),
)
RECURSIONS = (plan.Fixpoint, plan.Iterate)
WRITTEN_OUT = 3
"""Maximum number of rounds of a loop that is offloaded unrolled.

The query of a job grows with the number of rounds.
"""
_INSIDE = (
    *STATEFUL,
    plan.Component,
    plan.UnionAll,
    plan.Where,
    plan.Select,
    plan.Extend,
    plan.SelectMany,
    plan.Unnest,
)


def is_kept_loop(node: plan.Iterate) -> bool:
    """Return True if a loop is offloaded as one node, and not unrolled."""
    return node.times is None or node.times > WRITTEN_OUT or node.is_tolerant()


def whole_fragment(top: plan.Node, holds: Holds) -> Fragment | None:
    """Return the fragment from a node down to its inputs.

    Return None if a node in it cannot be offloaded, if no node in it has state, or if `top` is
    several relations defined together.
    """
    if has_components(top):
        return None
    cut = _Cut(holds)
    node = cut.cut(top)
    if node is None or not any(isinstance(n, STATEFUL) for n in cut.inside):
        return None
    last = below_wheres(top)
    is_by_group = isinstance(last, plan.Aggregate) and last.key is not None
    return Fragment(
        _with_first(node),
        tuple(cut.inside),
        tuple(cut.inputs),
        (by_row,) * len(cut.inputs),
        group_of if is_by_group else alone,
        is_whole=True,
    )


def level_fragment(part: plan.Select, holds: Holds) -> Fragment | None:
    """Return the fragment of rows with their keys, `(key, row)`, stored by the key.

    Return None if a node below cannot be offloaded.
    """
    cut = _Cut(holds)
    rows = None if reads_stream(part) else cut.cut(part.input)
    if rows is None:
        return None
    prepare = (by_row,) * len(cut.inputs)
    inside, node = (part, *cut.inside), replace(part, input=rows)
    return Fragment(node, inside, tuple(cut.inputs), prepare, group_of, is_whole=True)


def _with_first(node: plan.Node) -> plan.Node:
    """Extend a limit to the rows before the offset, if the process sorts the rows again."""
    if not isinstance(node, plan.OrderBy) or not isinstance(node.limit, int):
        return node
    return replace(node, limit=node.limit + node.offset, offset=0, shown=None)


class _Cut:
    """A walk down a plan, which collects the nodes inside a fragment, and its inputs."""

    def __init__(self, holds: Holds) -> None:
        self._holds = holds
        self._made: dict[int, plan.Node | None] = {}
        self.inside: list[plan.Node] = []
        self.inputs: list[plan.Node] = []

    def cut(self, node: plan.Node) -> plan.Node | None:
        """Return a node over references to the inputs of the fragment.

        Return None if the node, or one between it and the inputs, cannot be offloaded.
        """
        if id(node) not in self._made:
            self._made[id(node)] = self._cut_node(node)
        return self._made[id(node)]

    def _cut_node(self, node: plan.Node) -> plan.Node | None:
        """Do the work of `cut`, whose results are cached by node."""
        if isinstance(node, plan.Recursive):
            return node
        if self._holds(node) or isinstance(below_wheres(node), plan.Table | plan.Values):
            return self._input(node)
        if not isinstance(node, _INSIDE) or (
            isinstance(node, plan.OrderBy) and not isinstance(node.limit, int)
        ):
            return None
        if isinstance(node, RECURSIONS) and not _may_go(node):
            return None
        if isinstance(node, plan.Reduce) and is_of_whole(node):
            return None
        if isinstance(node, plan.Aggregate) and any(map(is_of_ring, node.aggregates)):
            return None
        if not free(node):  # else it is part of a recursion that is offloaded whole
            self.inside.append(node)
        below = [self.cut(source) for source in node.inputs()]
        return None if None in below else with_inputs(node, [n for n in below if n is not None])

    def _input(self, node: plan.Node) -> plan.Node | None:
        """Make a node an input of the fragment, and return a reference to that input.

        Return None if the node reads a table that is not stored, and no stream.
        """
        if any(not table.stored and table.time is None for table in tables(node)):
            return None
        if node not in self.inputs:
            self.inputs.append(node)
        place = self.inputs.index(node)
        return plan.Recursive(LEVEL, place, f"input {place + 1}", False, shapes(node))


def _may_go(node: plan.Fixpoint | plan.Iterate) -> bool:
    """Return True if a recursion can go.

    It is independent, without negative weights, over no lattice, and without own aggregates.
    """
    if isinstance(node, plan.Fixpoint):
        is_over_lattice = any(isinstance(b, plan.JoinedValue) for b in node.best)
        return not (free(node) or is_over_lattice or aggregates_itself(node))
    return not free(node) and not (isinstance(node, plan.Iterate) and may_be_negative(node))


WORTH = 1_000_000
"""Minimum number of rows of a recursion that make a flush elsewhere faster.

A flush takes about as long as a million derivations in the process, whatever changes.
"""


def why_not(node: plan.Node, holds: Holds) -> str | None:
    """Return why a recursion cannot be offloaded, according to its plan; None if it can."""
    if isinstance(node, plan.Iterate) and not is_kept_loop(node):
        return "its rounds are written out, one over the other, and move as operators do"
    if whole_fragment(node, holds) is None:
        return "what it reads stays in the process, or is of a table that keeps nothing"
    return None


def advice(node: plan.Node, held: int | None) -> str:
    """Describe where a recursion runs best. `held` is the number of its rows in the process."""
    of = partition(node)
    if of is None and linear(node) is None:
        return _of_one_worker(held)
    how = "can move, by rounds" if of is None else f"can move, by partitions of {of.column_name}"
    if held is None:
        return how
    if held < WORTH:
        return (
            f"{how}; with {held:,} rows this is the better place: a flush elsewhere takes about a "
            f"second, which pays from some {WORTH:,} rows on"
        )
    return f"{how}; with {held:,} rows view.offload() pays"


def _of_one_worker(held: int | None) -> str:
    """Return the words for a part that one Python worker runs; `held`: its rows, if known."""
    how = "can move, to one Python worker, which brings it to its end anew in each flush"
    if held is None:
        return how
    if held < WORTH:
        return (
            f"{how}; with {held:,} rows this is the better place: what it keeps here fits, and "
            "changes are not sent"
        )
    return f"{how}; with {held:,} rows view.offload() frees what it keeps here"
