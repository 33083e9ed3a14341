"""Choose the physical plan of a logical plan: the first rule that fits a node is used.

A rule is a generator function: it yields the logical nodes that it reads, and receives their
physical nodes. So a plan of any depth is walked once, without recursion.

`parameterize_query` finds the shape of a query: its structure, without constants and tables.

    orders.where(lambda o: o.customer == c)   for c = "ann", "bob", ...     one shape, a value each

A shape is the form of the query (`optimizer/plans/forms.py`), and which of its nodes, callables,
tables and values are equal.

Cost:  O(nodes and values).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import replace
from itertools import count
from operator import is_
from types import CellType, FunctionType
from typing import Any, TypeGuard, TypeVar

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import Constant, Expr, Lifted, Slot, SlotValue
from optimizer.lifting.readings import kin_of, replace_captured_values
from optimizer.plans import multiway as multiways
from optimizer.plans.factorization import Factorization, factorization_of
from optimizer.plans.forms import compared_fields, form_of, own_of, record_fields, with_constants
from optimizer.plans.properties import bindings, naming_by, nodes, reads_stream, row_shape, shapes
from optimizer.plans.side_conditions import AnyJoin, compares_order
from optimizer.record import record
from optimizer.rewriting.optimize import is_low
from optimizer.traverse import with_inputs
from reactive.engine.compiler import placement as offloaded_nodes
from reactive.engine.compiler.physical import (
    Lookup,
    Physical,
    PhysicalFixpoint,
    PhysicalIndex,
    PhysicalKeys,
    PhysicalLoop,
)
from reactive.engine.compiler.row_tests import (
    Asked,
    Candidate,
    FieldIndex,
    ValuesWanted,
    best_of,
    drops_rows,
    find_lookups,
    with_tests_in_chain,
)
from reactive.engine.operators.loops.grouped import is_in_line
from reactive.engine.operators.plain import (
    INNER,
    LINEAR,
    Inner,
    PipelineSource,
    Side,
    by_key_alone,
    can_nest,
    closes,
    count_nested,
    is_read,
    joins_drop,
    retentions,
    sides,
)

T = TypeVar("T")
Asking = Generator[plan.Node, Physical, T]
"""Yields logical nodes, is sent their physical nodes, and returns a result."""
Rule = Callable[["Chooser", plan.Node], Asking[Physical] | None]
Linear = plan.Where | plan.Select | plan.Extend | plan.SelectMany | plan.Unnest
CLOSURE, MULTIWAY, SUMS = "closure", "multiway", "sums"
"""Ways that may fail for the rows."""


class Chooser:
    """The context of rules: facts of the plan beside the node that a rule is called with.

    Parameters
    ----------
    root: the plan, without iterations.
    generate: True if loops are generated; otherwise every node is an operator of its own.
    elsewhere: the nodes that do not run in the process.
    without: ways that failed for the rows (`CLOSURE`, `MULTIWAY`, `SUMS`).
    """

    def __init__(
        self,
        root: plan.Node,
        rules: Sequence[Rule],
        values_wanted: ValuesWanted,
        *,
        generate: bool,
        offloaded: offloaded_nodes.OffloadedNodes | None,
        without: Collection[str] = (),
    ) -> None:
        self._without = without
        self.root = root
        self.generates = generate
        self.values_wanted = values_wanted
        self.asked: list[Asked] = []
        """The candidates for look-ups, and the chosen one of each."""
        self.looked_up: list[FieldIndex] = []
        """The indexes that are looked up, with their fields."""
        self.offloaded = offloaded
        self.readers = Counter(id(n) for node in nodes(root) for n in node.inputs())
        self._narrow = _narrow(root) if generate else set[int]()
        self.fixpoints: dict[int, PhysicalFixpoint] = {}
        self.loops: dict[int, PhysicalLoop] = {}
        self.chosen: dict[int, Physical] = {}
        self._chains: dict[int, tuple[plan.Node, PipelineSource | None]] = {}
        self._rules = rules

    def choose(self, root: plan.Node) -> Physical:
        """Return the physical node of a logical one; `chosen` holds all physical nodes by `id`."""
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
        """Return the plan that the first fitting rule makes; raises `TypeError` if none fits."""
        named = self._with_row(node)
        for rule in self._rules:
            if (found := rule(self, named)) is not None:
                return found
        raise TypeError(f"no way to run plan node {type(node).__name__}")

    def _with_row(self, node: plan.Node) -> plan.Node:
        """Replace an aggregate and the select that names its row by an aggregate of named rows."""
        below, how = (node.inputs() or (node,))[0], naming_by(node)
        if how is None or not how.generated or not isinstance(below, plan.Aggregate):
            return node
        is_alone = self.readers[id(below)] < 2 and not self.is_elsewhere(below)
        here = self.generates and is_alone and not self.is_elsewhere(node)
        return replace(below, row=how.kind) if here else node

    def best_of(self, candidates: tuple[Candidate, ...]) -> int | None:
        """Return the position of the candidate to look up, and note it; None if none pays."""
        best = best_of(candidates, self.values_wanted)
        self.asked += [(candidates, best)] if candidates else []
        return best

    @property
    def closes(self) -> bool:
        """True if a recursion may be run as a closure."""
        return self.generates and CLOSURE not in self._without

    @property
    def sums(self) -> bool:
        """True if sums may be stored in the place of rows."""
        return self.generates and SUMS not in self._without

    # Nodes elsewhere.

    def depends(self, node: plan.Node) -> bool:
        """Return True if a node reads something that is elsewhere."""
        return self.offloaded is not None and self.offloaded.reaches(node)

    def is_elsewhere(self, node: plan.Node) -> bool:
        return (away := self.offloaded) is not None and (away.holds(node) or away.includes(node))

    # Loops and their parts.

    def chain_of(self, node: plan.Node) -> PipelineSource | None:
        """Return the chain that the loop of a node runs over; None for a node without a loop."""
        found = self._chains.get(id(node))
        if found is None:  # rules ask one after the other
            found = self._chains[id(node)] = node, self._chain_of(node)
        return found[1]

    def _chain_of(self, node: plan.Node) -> PipelineSource | None:
        """Return the chain that ends in `node`, and its base; None if it cannot be a loop."""
        if not self.generates or not is_read(node):
            return None
        if isinstance(node, LINEAR):
            below = self.below(node.input, above=count_nested((node,)))
            return PipelineSource((*below.chain, node), below.base)
        if isinstance(node, plan.Aggregate) and is_in_line(a.accumulator for a in node.aggregates):
            return None if closes(node) else self.below(node.input)
        if isinstance(node, plan.Distinct):
            below = self.below(node.input)
            is_own = not below.chain or self.takes_join(below) or closes(node)
            return None if is_own else below
        if isinstance(node, INNER):
            return PipelineSource((), node)
        return None

    def below(self, node: plan.Node, above: int = 0) -> PipelineSource:
        """Return a node as a chain over a base, as long as possible.

        The chain ends at nodes with other readers, and when `above` plus its loops are nested too
        deeply.
        """
        chain: list[plan.Node] = []
        if self.generates:
            while self._is_link(node) and can_nest(above := above + count_nested((node,))):
                chain.append(node)
                node = node.input
        return PipelineSource(tuple(chain[::-1]), node)

    def input_of_join(self, node: plan.Node) -> PipelineSource:
        """Return an input of a join as a chain over a base.

        A select or extend above a join that compares values is made by the loops of that join: rows
        that only a compared value distinguishes are the same below it.
        """
        below, narrows = self.below(node), (plan.Select, plan.Extend)
        base, selects = below.base, any(isinstance(each, narrows) for each in below.chain)
        if not selects or not isinstance(base, plan.Join) or not compares_order(base):
            return below
        return below if self.join_of(node) is None else PipelineSource((), node)

    def _is_link(self, node: plan.Node) -> TypeGuard[Linear]:
        """Return True if a linear node can be part of the loop of its only reader."""
        is_alone = self.readers[id(node)] < 2 and not self.is_elsewhere(node)
        return isinstance(node, LINEAR) and is_alone and is_read(node)

    def takes_join(self, below: PipelineSource) -> bool:
        """Return True if the base is a join that becomes part of its reader's loop."""
        base = below.base
        if not isinstance(base, INNER) or self.is_elsewhere(base):
            return False
        if self.readers[id(base)] > 1 or not is_read(base):
            return False
        multiway = self.multiway(base) if isinstance(base, plan.Join) else None
        inputs = 2 if multiway is None else len(multiway.tests)
        return can_nest(inputs + count_nested(below.chain))

    def takes_outer_join(self, below: PipelineSource) -> bool:
        """Return True if the base is an outer join that becomes part of its reader's loop."""
        base = below.base
        if not isinstance(base, plan.OuterJoin) or self.is_elsewhere(base):
            return False
        is_ours = self.readers[id(base)] < 2 and is_read(base)
        return is_ours and can_nest(2 + count_nested(below.chain))

    def runs_only(self, parts: Iterable[plan.Node]) -> None:
        """Note that only these parts of the plan are run: no group above them is computed."""
        self._narrow = {join for part in parts for join in _narrow(part)}

    def multiway(self, join: plan.Join) -> multiways.MultiwayJoin | None:
        """Return the multiway join of a join and the joins below it; None if that has failed."""
        is_narrow = MULTIWAY in self._without or id(join) in self._narrow
        return None if is_narrow or reads_stream(join) else multiways.multiway_of(join)

    def factors(self, node: plan.Aggregate) -> Factorization | None:
        """Return how an aggregate splits over the sides of its join; None if that has failed."""
        return None if SUMS in self._without or joins_drop(node) else factorization_of(node)

    def join_of(self, node: plan.Node) -> tuple[Inner, PipelineSource] | None:
        """Return the inner join that a node has in its loop, and the loop; None if it has none."""
        below = self.chain_of(node)
        if below is None or not isinstance(below.base, INNER):
            return None
        if below.base is node or self.takes_join(below):
            return below.base, below
        return None

    def outer_join_of(self, node: plan.Node) -> tuple[plan.OuterJoin, PipelineSource] | None:
        """Return the outer join that a node has in its loop, and the loop; None if it has none."""
        if not self.generates:
            return None
        below = PipelineSource((), node) if isinstance(node, plan.OuterJoin) else None
        if isinstance(node, (*LINEAR, plan.Aggregate)):
            below = self.chain_of(node)
        if below is None or not isinstance(below.base, plan.OuterJoin):
            return None
        base = below.base
        is_ours = base is node or (self.readers[id(base)] < 2 and not self.is_elsewhere(base))
        can_be = is_read(base) and can_nest(2 + count_nested(below.chain))
        return (base, below) if is_ours and can_be else None

    # Physical nodes for several rules.

    def index(
        self,
        owner: plan.Node,
        below: PipelineSource,
        side: Side,
        arguments: int,
        *,
        deferred: bool = False,
        trie: bool = False,
        drops: bool = False,
        retention: Any = None,
    ) -> Asking[PhysicalIndex]:
        """Return the index of a chain by a key, for the look-ups of a join.

        `drops`: rows that fail a test of the side change nothing, not even an exception.
        `retention`: when rows are dropped.
        """
        tested = with_tests_in_chain(below, side) if drops else (below, side)
        found = None if deferred else self.look_up(tested[0], of_join=True)
        below, source = found or (below, (yield below.base))
        side = tested[1] if found else side
        return PhysicalIndex(owner, source, below, side, arguments, deferred, trie, retention)

    def source(self, below: PipelineSource) -> Asking[tuple[PipelineSource, Physical]]:
        """Return a chain and its source: the table, or a look-up of the first condition."""
        return self.look_up(below, of_join=True) or (below, (yield below.base))

    def look_up(
        self, below: PipelineSource, *, of_join: bool = False
    ) -> tuple[PipelineSource, Lookup] | None:
        """Return the rest of a chain over the best look-up of its first condition; else None."""
        found = find_lookups(below, of_join=of_join)
        best = self.best_of(tuple(each.candidate for each in found))
        if best is None:
            return None
        self.looked_up.append((found[best].candidate.index, found[best].what.field))
        return found[best].use()

    def indexes(self, node: AnyJoin) -> Asking[tuple[PhysicalIndex, PhysicalIndex | PhysicalKeys]]:
        """Return the indexes of both sides of a join; only keys of the right if they suffice."""
        deferred, (ours, theirs) = self.depends(node), sides(node)
        kept = (None, None) if deferred else retentions(node)
        below, other = self.input_of_join(node.left), self.input_of_join(node.right)
        is_inner, count = isinstance(node, INNER), bindings(node.left)
        drops = is_inner and drops_rows(ours, theirs, lambda: (row_shape(node.right),))
        left = yield from self.index(
            node, below, ours, count, deferred=deferred, drops=drops, retention=kept[0]
        )
        if (
            isinstance(node, plan.SemiJoin | plan.AntiJoin)
            and by_key_alone(node)
            and kept[1] is None
        ):
            source = yield other.base
            return left, PhysicalKeys(node, source, other, theirs)
        drops = is_inner and drops_rows(theirs, ours, lambda: shapes(node.left))
        return left, (
            yield from self.index(
                node, other, theirs, 1, deferred=deferred, drops=drops, retention=kept[1]
            )
        )


def _narrow(root: plan.Node) -> set[int]:
    """Return the joins, by `id`, below aggregates that split over their sides.

    They stay joins of two, even if no sums are stored in the end.
    """
    found: set[int] = set()
    for node in nodes(root):
        if isinstance(node, plan.Aggregate) and factorization_of(node) is not None:
            below = node.input
            while isinstance(below, plan.Join | plan.OuterJoin | plan.Select | plan.Extend):
                found.add(id(below))
                below = below.inputs()[0]
    return found


MOST_NODES = 16
Place = tuple[int, Hashable]
"""A variable: the number of its callable and its name; or its place in an expression."""


@record
class ParameterizedQuery:
    """A query as its shape, its tables and callables, and the values that may differ."""

    shape: Hashable
    home: type | None
    """The class whose lifetime bounds the cached facts of the shape."""
    tables: tuple[plan.Table, ...]
    opaques: tuple[Opaque, ...]
    values: Mapping[Place, Any]


def parameterize_query(written: plan.Node) -> ParameterizedQuery | None:
    """Return the shape of a query; None if it is too large, or has none."""
    form = form_of(written)
    order = None if form is None else _inputs_first(written)
    if form is None or order is None or not is_low(written, form.levels):
        return None
    reader = _NodeReader()
    pattern = reader.pattern_of(order)
    same: dict[Any, int] = {}
    equal = [same.setdefault(value, len(same)) for value in reader.values.values()]
    return ParameterizedQuery(
        (form, tuple(pattern), *equal),
        form.home,
        tuple(reader.tables),
        tuple(reader.opaques.values()),
        reader.values,
    )


def with_slots(
    written: plan.Node, held: Mapping[Place, SlotValue]
) -> tuple[plan.Node, dict[int, Opaque]]:
    """Return a copy of a query with slots in place of some values, for planning only.

    Also return its callables by their places, without their captured objects.
    """
    made: dict[int, plan.Node] = {}
    maker = _Maker(held)
    for node in _inputs_first(written) or ():
        if isinstance(node, plan.Table):
            made[id(node)] = replace(node)
            continue
        inputs = [made[id(source)] for source in node.inputs()]
        own = {name: maker.put_slots(getattr(node, name)) for name in compared_fields(node)}
        made[id(node)] = replace(with_inputs(node, inputs), **own)
    return made[id(written)], maker.places


def _inputs_first(written: plan.Node) -> list[plan.Node] | None:
    """Return the nodes of a query, inputs first, if they are few; else None."""
    found: dict[int, plan.Node] = {}
    waiting = [written]
    while waiting:
        node = waiting[-1]
        missing = [source for source in node.inputs() if id(source) not in found]
        if missing:
            waiting.extend(missing)
            continue
        waiting.pop()
        found[id(node)] = node
        if len(found) > MOST_NODES:
            return None
    return list(found.values())


class _NodeReader:
    """Reads the parts shared by queries of one form, and the values that may differ."""

    def __init__(self) -> None:
        self.tables: list[plan.Table] = []
        self.opaques: dict[int, Opaque] = {}
        self.values: dict[Place, Any] = {}
        self._places: dict[int, int] = {}
        self._count = 0

    def pattern_of(self, order: list[plan.Node]) -> list[int]:
        """Return the pattern of equal nodes, tables and callables."""
        found: list[int] = []
        nodes: dict[int, int] = {}
        for place, node in enumerate(order):
            nodes[id(node)] = place
            if isinstance(node, plan.Table):
                if node not in self.tables:
                    self.tables.append(node)
                found.append(self.tables.index(node))
                continue
            found.extend([nodes[id(source)] for source in node.inputs()])
            for function, constants in own_of(node).callables:
                if isinstance(function, Lifted):
                    found.extend(self._note_lifted(function, constants))
                else:
                    found.append(self._opaque(function))
        return found

    def _opaque(self, function: Opaque) -> int:
        """Return the place of an opaque callable; at first, note it and its captured values."""
        known = self._places.get(id(function))
        if known is not None:
            return known
        place = self._note_opaque(function)
        kin = kin_of(function)
        assert kin is not None
        for name, value in kin.values:
            self.values[place, name] = value
        return place

    def _note_opaque(self, function: Opaque) -> int:
        """Give an opaque callable the next place, and return the place."""
        place = self._places[id(function)] = self._count
        self._count += 1
        self.opaques[id(function)] = function
        return place

    def _note_lifted(self, function: Lifted, constants: Sequence[Constant]) -> Iterator[int]:
        """Note the constants of a lifted callable, and yield the places of its origins."""
        place = self._count
        self._count += 1
        for origin in function.origins:
            known = self._places.get(id(origin))
            yield self._note_opaque(origin) if known is None else known
        for number, each in enumerate(constants):
            self.values[place, number] = each.value


class _Maker:
    """Copies the contents of nodes, in the order of `_NodeReader`."""

    def __init__(self, held: Mapping[Place, SlotValue]) -> None:
        self._held = held
        self.opaques: dict[int, Opaque] = {}
        self.places: dict[int, Opaque] = {}
        self._count = 0

    def put_slots(self, value: Any) -> Any:
        """Return a copy of `value` with slots in its callables; `value` itself if it has none."""
        kind = type(value)
        if kind is Opaque:
            return self._opaque(value)
        if kind is Lifted:
            return self._put_into_lifted(value)
        if kind is tuple:
            return tuple(map(self.put_slots, value))
        names = None if value is None else record_fields(value)
        return value if names is None else self._record(value, names)

    def _record(self, value: Any, names: tuple[str, ...]) -> Any:
        """Return a copy of a record with slots in its callables; `value` itself if it has none."""
        old = {name: getattr(value, name) for name in names}
        new = {name: self.put_slots(each) for name, each in old.items()}
        return value if all(map(is_, new.values(), old.values())) else replace(value, **new)

    def _opaque(self, function: Opaque) -> Opaque:
        """Return the opaque callable with slots for captured values; the same at each call."""
        if id(function) not in self.opaques:
            here = {name: h for (of, name), h in self._held.items() if of == self._count}
            self._note(function, replace_captured_values(function, here))
        return self.opaques[id(function)]

    def _put_into_lifted(self, function: Lifted) -> Lifted:
        """Return the lifted callable with slots for its constants."""
        place = self._count
        self._count += 1
        origins = tuple(map(self._origin, function.origins))
        made = self._opaque(function.made) if isinstance(function.made, Opaque) else None
        here = {name: held for (of, name), held in self._held.items() if of == place}
        body = _put_slots(function.body, here, count())
        return replace(function, body=body, origins=origins, made=made)

    def _origin(self, origin: Opaque) -> Opaque:
        if id(origin) not in self.opaques:
            self._note(origin, _bare(origin))
        return self.opaques[id(origin)]

    def _note(self, function: Opaque, made: Opaque) -> None:
        """Give a made callable the next place."""
        self.opaques[id(function)] = self.places[self._count] = made
        self._count += 1


# Expressions.


def _put_slots(expr: Expr, held: Mapping[Hashable, SlotValue], numbers: Iterator[int]) -> Expr:
    """Return the expression with slots in place of the constants whose numbers are in `held`."""

    def slot(constant: Constant) -> Constant:
        value = held.get(next(numbers))
        return constant if value is None else Slot(value, constant.name)

    return with_constants(expr, slot)


def _bare(origin: Opaque) -> Opaque:
    """Return a lifted callable without its captured objects, which may include a database."""
    function = origin.function
    if not isinstance(function, FunctionType):
        return replace(origin, captures=())
    cells = tuple(CellType() for _ in function.__code__.co_freevars)
    module = function.__globals__
    made = FunctionType(function.__code__, module, function.__name__, None, cells or None)
    return replace(origin, function=made, captures=())
