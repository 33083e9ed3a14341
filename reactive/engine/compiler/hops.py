"""Moves through nodes of a query, and the operators of iterations.

A hop maps a move, the replacement of an old row by a new one, through a node of a query.

    linear   old makes o1, o2    new makes n1, n2    o1 -> n1, o2 -> n2, if equally many
    join     old makes (old, p)  new makes (new, p)  pairs of one partner; the other pairs in
                                                     order, if equally many

Rows that no hop maps count as plainly inserted or deleted. A callable that raises makes no moves.

    d(A B C)  =  dA B C  +  A' dB C  +  A' B' dC            with A' = A + dA

Moves of several inputs in one commit are mapped one input after the other, as deltas are: later
inputs are as before the commit, earlier ones as after it. The moves of all inputs compose to the
moves of the join.

State:  none; partners are looked up in the indexes of the join.
Cost:   that of the changes of both rows.

`loop_of` makes the operator of an iteration whose rounds are not part of the graph.

    bodies over given relations --passes--> rounds evaluated as a whole    (loops/whole_round.py)
                              --reference--> the same, if anything raises
                              --inner graph--> rounds that follow changes

Bodies without passes are evaluated by the reference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, Protocol

from optimizer import plan
from optimizer.expr import Expr, Lifted, one_value
from optimizer.plans.multiway import MultiwayJoin
from optimizer.plans.properties import bindings, free, may_be_negative, nodes
from optimizer.plans.side_conditions import SideTerm, join_match
from optimizer.plans.strata import over_given
from optimizer.traverse import unrolled
from reactive.engine.codegen.cycle_rows import NOTHING as NOTHING_BOUND
from reactive.engine.codegen.functions import callable_of
from reactive.engine.codegen.probe_order import (
    InputProbe,
    Intersection,
    Key,
    probe_order,
    probes_of,
)
from reactive.engine.collections.index import NOTHING, Mark, WeightedRows, bucket_pairs, match_key
from reactive.engine.collections.trie import joined_pairs
from reactive.engine.collections.zset import Pair, Pairs, Row
from reactive.engine.dataflow.delta import Move
from reactive.engine.operators.index_by import IndexBy
from reactive.engine.operators.loop.collected_rounds import CollectedRounds
from reactive.engine.operators.loop.loop_continuation import LoopContinuation, OneRound
from reactive.engine.operators.loop.loop_recomputation import (
    AdaptiveLoop,
    Loop,
    LoopRecomputation,
    RowTolerance,
)
from reactive.engine.operators.loops.cyclic_count import variables_of
from reactive.engine.operators.loops.cyclic_join import Below, CyclicRows
from reactive.engine.operators.loops.whole_round import compile_whole_round, has_layout
from reactive.engine.operators.plain import (
    LINEAR,
    Inner,
    Side,
    pair_with,
    plain_operator,
    side_key,
    spread_bindings,
    spread_or_none,
)
from reactive.engine.operators.rowwise import Tolerate
from reactive.engine.reference.evaluate import evaluate_part
from reactive.engine.runtime.interrupts import reraise_asynchronous

Found = tuple[Hashable, Row]
"""The partners of a row, and the joined row."""
Find = Callable[..., Any]
"""Looks a key up."""
Finding = Callable[[Row, Any], list[Found]]
"""Returns the joined rows of a row, given its partners."""
Known = list[tuple[list[Any], int]]
"""Rows of several inputs that match, by their places, with their weights."""


class Hop(Protocol):
    """A step from a node to a node that reads it."""

    is_late: bool
    """True if moves can be mapped after the commit, too: nothing is looked up."""

    def __call__(self, moves: Iterable[Move]) -> list[Move]: ...


class Through:
    """The hop through a linear node."""

    is_late = True

    def __init__(self, node: plan.Node) -> None:
        make, _ = plain_operator(node)
        self._step: Callable[[list[Pair]], Sequence[Pair]] = make().step

    def __call__(self, moves: Iterable[Move]) -> list[Move]:
        return _map_moves(self._both, moves)

    def _both(self, old: Row, new: Row) -> Iterable[Move]:
        """Return the moves from the rows of `old` to the rows of `new`; none if counts differ."""
        olds = self._step([(old, 1)])
        news = self._step([(new, 1)]) if olds else ()
        if len(olds) != len(news):
            return ()
        return [(o, n) for (o, _), (n, _) in zip(olds, news, strict=True)]


class Looking:
    """Looks up the partners of both rows; it returns rows with their partners."""

    is_late = False

    def __init__(self, operators: Sequence[IndexBy], found: Finding) -> None:
        self._operators = operators
        self.found = found
        """The function that joins them; it refers to no index, since unread deltas hold it."""

    def __call__(self, moves: Iterable[Move]) -> list[Move]:
        if any(operator.poisoned for operator in self._operators):
            return []
        finds = self._finds()
        look = self._look
        return _map_moves(
            lambda old, new: [((old, look(old, finds)), (new, look(new, finds)))], moves
        )

    def _finds(self) -> Any:
        """Return the functions that look up partners."""
        raise NotImplementedError

    def _look(self, row: Row, finds: Any) -> Any:
        """Return the current partners of a row."""
        raise NotImplementedError


class PairHop:
    """Makes moves from rows with their partners."""

    is_late = True

    def __init__(self, found: Finding) -> None:
        self._found = found

    def __call__(self, moves: Iterable[Move]) -> list[Move]:
        return _map_moves(self._both, moves)

    def _both(self, old: tuple[Row, Any], new: tuple[Row, Any]) -> Sequence[Move]:
        """Return the moves from the joined rows of `old` to those of `new`, by equal partners."""
        olds = self._found(*old)
        return _pair_by_partners(olds, self._found(*new)) if olds else ()


class JoinHop(Looking):
    """The hop from one side of a join of two."""

    def __init__(
        self, join: Inner, side: Side, own: IndexBy, other: IndexBy, *, is_left: bool
    ) -> None:
        count = bindings(join.left)
        pair = pair_with(count)
        made = pair if is_left else lambda row, other: pair(other, row)
        super().__init__(
            (own, other),
            partial(_join_with_partners, made, spread_or_none(join_match(join).on, count + 1)),
        )
        self._key = _make_side_key(side, count if is_left else 1)
        self._other = other
        self._is_left = is_left

    def _finds(self) -> Find:
        return self._other.find(before=self._is_left)

    def _look(self, row: Row, finds: Find) -> Sequence[Pair]:
        return list(_find_pairs(finds, self._key(row)))


class MultiwayInput(Looking):
    """The hop from one input of a multiway join."""

    def __init__(
        self, of: MultiwayJoin, place: int, side: Side, indexes: dict[Key, IndexBy]
    ) -> None:
        self._place = place
        self._size = len(of.tests)
        tests = [self._of_all(test) for test in of.residual]
        found = partial(_found_multiway, place, tests, self._of_all(one_value(of.row)))
        super().__init__(list(dict.fromkeys(indexes.values())), found)
        self._key = _make_side_key(side, 1)
        self._moves = probe_order(place, of)[0]
        self._indexes = indexes
        steps = list(probes_of(self._moves))
        self._values = {step.key: self._of_all(one_value(step.exprs)) for step in steps}
        self._tests = {step.key: [self._of_all(test) for test in step.tests] for step in steps}

    def _of_all(self, expr: Expr) -> Callable[..., Any]:
        """Return an expression as a function of a row per input."""
        names = tuple(f"row{place}" for place in range(self._size))
        return callable_of(Lifted(expr, names, (), self._size))

    def _finds(self) -> dict[Key, Find]:
        """Return the look-ups of the other inputs, by their keys, as of this input's turn."""
        return {
            step.key: self._indexes[step.key].find(before=step.place > self._place)
            for step in probes_of(self._moves)
        }

    def _look(self, row: Row, finds: dict[Key, Find]) -> Known:
        """Return the combinations that a row of this input makes, with their weights."""
        if self._key(row).__class__ is Mark:
            return []
        start: list[Any] = [None] * self._size
        start[self._place] = row
        known: Known = [(start, 1)]
        for move in self._moves:
            known = [
                (more, times * n)
                for rows, times in known
                for more, n in self._along(rows, move, finds)
            ]
        return known

    def _along(
        self, rows: list[Any], move: InputProbe | Intersection, finds: dict[Key, Find]
    ) -> Known:
        """Extend rows by rows of one or two more inputs."""
        if isinstance(move, InputProbe):
            found = _find_pairs(finds[move.key], self._probe(move, rows))
            more = [(_with(rows, move.place, row), n) for row, n in found]
            for test in self._tests[move.key]:
                more = [(all_, n) for all_, n in more if test(*all_)]
            return more
        left, right = move.left, move.right
        keys = [self._probe(step, rows) for step in (left, right)]
        if any(key.__class__ is Mark for key in keys):
            return []
        below = [finds[step.key](key, {}) for step, key in zip((left, right), keys, strict=True)]
        return [
            (_with(_with(rows, left.place, a), right.place, b), n)
            for a, b, n in joined_pairs(*below)
        ]

    def _probe(self, step: InputProbe, rows: list[Any]) -> Any:
        """Return the value to look up for `rows`, as a matching key."""
        return match_key(self._values[step.key](*rows))


class CyclicInput(MultiwayInput):
    """The hop from one input of joins in a cycle; `numbers` are the relations of the places."""

    def __init__(
        self, of: MultiwayJoin, place: int, rows: CyclicRows, numbers: Sequence[int]
    ) -> None:
        variables = variables_of(of)
        assert variables is not None
        made = [(test, False) for test in of.tests[place]]
        made += [(expr, True) for expr in variables[place]]
        steps = tuple(SideTerm(Lifted(e, ("row",), (), 1), is_key) for e, is_key in made)
        super().__init__(of, place, (None, steps), {})
        self._rows = rows
        self._numbers = numbers
        self._ends = [{end: n == 0 for n, end in enumerate(ends)} for ends in map(_ends, variables)]
        self._variables = variables

    def _finds(self) -> dict[Key, Find]:
        """Return the look-ups of the other inputs, by their keys, as of this input's turn."""
        finds: dict[Key, Find] = {}
        for step in probes_of(self._moves):
            is_before = step.place > self._place
            below = self._rows.find(self._numbers[step.place], before=is_before)
            finds[step.key] = partial(self._find, step.key, below)
        return finds

    def _find(self, of: Key, below: Callable[[Any, bool], Below], key: Any, default: Any) -> Any:
        """Return the entry that an index would have for a key; of a trie, the entries below.

        Return `default` if there is none; of a trie, possibly an empty dict. `of` has the place of
        the input, the expressions of the key, and of a trie those below.
        """
        place, own, under = of
        values = key if len(own) > 1 else (key,)
        bound = {NOTHING_BOUND: None}
        for expr, value in zip(own, values, strict=True):
            if bound.setdefault(self._variables[place][expr], value) != value:
                return default
        one, *others = [end for end in self._ends[place] if end in bound]
        found = below(bound[one], self._ends[place][one])
        if under:
            return {other: WeightedRows(enumerate(pairs)) for other, pairs in found.items()}
        if others:
            return WeightedRows(enumerate(found.get(bound[others[0]], ()))) or default
        return WeightedRows(enumerate(chain.from_iterable(found.values()))) or default


def _ends(variables: Mapping[Expr, int]) -> tuple[int, int]:
    """Return the variables at both ends; the first is `NOTHING_BOUND` if there is only one."""
    one, two = (NOTHING_BOUND, *variables.values())[-2:]
    return one, two


def _join_with_partners(
    pair: Callable[[Row, Row], Row],
    on: Callable[[Row], object] | None,
    row: Row,
    looked: Sequence[Pair],
) -> list[Found]:
    """Return the joined rows of a row and its partners, each with the partner's identity."""
    out: list[Found] = []
    for other, times in looked:
        made = pair(row, other)
        if on is None or on(made):
            out += [(id(other), made)] * times
    return out


def _found_multiway(
    place: int,
    tests: Sequence[Callable[..., Any]],
    row: Callable[..., Any],
    _: Row,
    looked: Known,
) -> list[Found]:
    """Return the joined rows that pass the tests, each with its partners' identities.

    `place` is the position of the input whose row has partners.
    """
    for test in tests:
        looked = [each for each in looked if test(*each[0])]
    out: list[Found] = []
    for rows, times in looked:
        partners = [*map(id, rows)]
        partners[place] = 0
        out += [(tuple(partners), row(*rows))] * times
    return out


def _with(rows: list[Any], place: int, row: Row) -> list[Any]:
    """Return a copy with another row at a place."""
    made = rows.copy()
    made[place] = row
    return made


def _make_side_key(side: Side, count: int) -> Callable[[Row], Any]:
    """Return the function of the key of a row of `count` bindings.

    Without a key, it returns () for each row.
    """
    return side_key(side, count) or (lambda row: ())


def _find_pairs(find: Find, key: Any) -> Sequence[Pair]:
    """Return the rows found by a key, with their weights; none for a key that matches nothing."""
    found = NOTHING if key.__class__ is Mark else find(key, NOTHING)
    return () if found is NOTHING else bucket_pairs(found)


def _pair_by_partners(olds: Sequence[Found], news: Sequence[Found]) -> list[Move]:
    """Pair rows with the same partners; the other rows in order, if equally many."""
    if [partners for partners, _ in olds] == [partners for partners, _ in news]:
        return [(old, new) for (_, old), (_, new) in zip(olds, news, strict=True)]
    waiting: dict[Hashable, list[Row]] = {}
    for partners, new in news:
        waiting.setdefault(partners, []).append(new)
    moves: list[Move] = []
    alone: list[Row] = []
    for partners, old in olds:
        same = waiting.get(partners)
        if same:
            moves.append((old, same.pop(0)))
        else:
            alone.append(old)
    rest = list(chain.from_iterable(waiting.values()))
    return moves + list(zip(alone, rest, strict=True)) if len(alone) == len(rest) else moves


def _map_moves(both: Callable[[Row, Row], Iterable[Move]], moves: Iterable[Move]) -> list[Move]:
    """Return the mapped moves; a move whose callable raises is dropped."""
    found: list[Move] = []
    for old, new in moves:
        try:
            found += both(old, new)
        except Exception as error:
            reraise_asynchronous(error)
    return found


Contents = Callable[[], Iterable[Pair]]


class InnerNodes(OneRound, Protocol):
    """Nodes that step any number of times."""

    def step(self, deltas: Sequence[Pairs], most: int = ...) -> list[Pairs] | None: ...


class MakeInner(Protocol):
    """Makes a graph inside an operator: some plans, over relations with `contents`."""

    def __call__(
        self, roots: Sequence[plan.Node], contents: Sequence[Contents], *, generate: bool
    ) -> InnerNodes: ...


class ByReference:
    """Rounds evaluated like `verify()` does."""

    def __init__(self, node: plan.Iterate) -> None:
        self._bodies = node.bodies
        self._level = node.level
        self._given: dict[tuple[Any, int], Counter[Any]] = {}
        self._looked = 0

    def begin(self, place: int, rows: list[Any]) -> None:
        self._given[self._level, place] = Counter(rows)

    def round(self, rows: Sequence[list[Any]]) -> list[list[Any]]:
        """Return the rows of one round over `rows`, by the reference evaluator."""
        own = {(self._level, place): Counter(some) for place, some in enumerate(rows)}
        made = [evaluate_part(body, {**self._given, **own}) for body in self._bodies]
        found = [list(bag.elements()) for bag in made]
        self._looked += sum(map(len, found)) + sum(map(len, rows))
        return found

    def run(self, rows: Sequence[list[Any]], times: int) -> list[list[Any]]:
        """Return the rows after `times` rounds; `rows` is not changed."""
        found = list(rows)
        for _ in range(times):
            found = self.round(found)
        return found

    def settle(
        self, rows: list[list[Any]], done: int, most: int
    ) -> tuple[list[list[Any]], int, bool]:
        """Return the rows as they are: there are no rounds but single ones."""
        return rows, 0, False

    def forget(self) -> None:
        self._given = {}

    def count_touched(self) -> int:
        """Return the number of rows looked at since the last call, and reset it."""
        looked, self._looked = self._looked, 0
        return looked


def pays(node: plan.Iterate) -> bool:
    """Return True if an iteration with a number of rounds is worth an operator of its own.

    It is if a round has passes, and groups, which are slow as operators.
    """
    parts = [part for body in node.bodies for part in nodes(body)]
    if node.is_tolerant() or free(node) or may_be_negative(node) or (node.times or 0) < 2:
        return False
    if not any(isinstance(part, plan.Aggregate) for part in parts):
        return False
    inputs, given = over_given(node)
    return compile_whole_round(given.bodies, len(inputs), len(node.names)) is not None


def laid_out(node: plan.Iterate, given: int) -> bool:
    """Return True if the rounds of an iteration over given relations can keep a layout."""
    if node.times is None or not has_layout(node.times):
        return False
    whole = compile_whole_round(node.bodies, given, len(node.names))
    return whole is not None and whole.layout is not None


def loop_of(
    node: plan.Iterate, places: tuple[int, ...], inner: MakeInner, *, generate: bool
) -> Callable[[], Any]:
    """Return the factory of the operator of an iteration over given relations.

    `places` are the numbers of the operator's inputs, one for each of them.
    """
    loop = replace(_make_loop(node), collects=places[:1] == places[1:2] and _collects_rounds(node))

    def body(held: LoopRecomputation) -> InnerNodes:
        return inner(unrolled(node), [given.items for given in held.given], generate=generate)

    def one_round(contents: Sequence[Contents]) -> OneRound:
        return inner(node.bodies, contents, generate=generate)

    def collected(held: LoopRecomputation) -> CollectedRounds:
        rows = [lambda: held.rows(1), tuple, *(bag.items for bag in held.given[2:])]
        step = inner(node.bodies[:1], rows, generate=generate)
        return CollectedRounds(step, node.max_rounds)

    def make() -> Any:
        anew = _make_recomputation(loop, node, places, generate=generate)
        if loop.collects:
            return AdaptiveLoop(anew, collected, STEPS_OF_ONE_ROUND)
        if node.times is not None:
            return anew if any(loop.near) else AdaptiveLoop(anew, body)
        if node.contraction is None or not all(loop.near):
            return anew
        shown = [Tolerate(each.by, each.value, each.least) for each in loop.near if each]
        return LoopContinuation(anew, loop, shown, one_round)

    return make


def evaluate_iteration(
    node: plan.Iterate, starts: list[list[Any]], given: Sequence[dict[Any, int]]
) -> list[list[Any]]:
    """Return the result of an iteration over given relations, computed once from start rows.

    A number of rounds takes precedence over a tolerance. In its bodies, the `given` relations come
    after its own.
    """
    own = len(node.names)
    anew = _make_recomputation(
        _make_loop(node), node, tuple(range(own + len(given))), generate=True
    )
    anew.given[own:] = given
    return anew.run_from(starts)


STEPS_OF_ONE_ROUND = 2
"""Number of recomputations that cost as much as building the operators of one round."""


def _collects_rounds(node: plan.Iterate) -> bool:
    """Return True if the second relation collects the first one's rows of all rounds.

    The body of the first is linear in it, and reads no other relation of the rounds.
    """
    if node.times is not None or node.is_tolerant() or len(node.bodies) != 2:
        return False
    step, collected = node.bodies
    match collected:
        case plan.UnionAll(plan.Recursive(level=node.level, index=1), again):
            return again == step and _is_linear(step)
    return False


def _is_linear(part: plan.Node) -> bool:
    """Return True if a plan is linear in the first relation of the rounds."""
    match part:
        case plan.Recursive(index=index):
            return index == 0
        case plan.View(source) | plan.Shared(source):
            return _is_linear(source)
        case plan.UnionAll(left, right):
            return _is_linear(left) and _is_linear(right)
        case plan.Join(left, right) | plan.Product(left, right):
            both = (left, right)
            return any(_is_linear(a) and _stays(b) for a, b in (both, both[::-1]))
        case plan.SemiJoin(left, right) | plan.AntiJoin(left, right):
            return _is_linear(left) and _stays(right)
        case plan.OuterJoin(left, right, kind="left"):
            return _is_linear(left) and _stays(right)
        case _ if isinstance(part, LINEAR):
            return _is_linear(part.input)
    return False


def _stays(part: plan.Node) -> bool:
    """Return True if a plan reads no relation that changes from round to round."""
    return all(each.index > 1 for each in nodes(part) if isinstance(each, plan.Recursive))


def _make_loop(node: plan.Iterate) -> Loop:
    near = tuple(
        None if t is None else _make_row_tolerance(t, node, i)
        for i, t in enumerate(node.tolerances)
    )
    return Loop(node.names, node.times, node.max_rounds, near)


def _make_recomputation(
    loop: Loop, node: plan.Iterate, places: tuple[int, ...], *, generate: bool
) -> LoopRecomputation:
    """Return the operator that recomputes a loop as a whole, by generated code if allowed."""
    near = node.tolerances if node.times is None else ()
    whole = (
        compile_whole_round(node.bodies, len(places), len(node.names), near) if generate else None
    )
    return LoopRecomputation(loop, places, whole, ByReference(node))


def _make_row_tolerance(tolerance: plan.Tolerance, node: plan.Iterate, index: int) -> RowTolerance:
    """Return the tolerance of one relation of an iteration, over the bindings of its rows."""
    count = bindings(node.starts[index])
    return RowTolerance(
        spread_bindings(tolerance.by, count),
        spread_bindings(tolerance.value, count),
        tolerance.least,
    )
