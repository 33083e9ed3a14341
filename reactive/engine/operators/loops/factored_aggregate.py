"""Aggregates over joins of sums: by loops, for a single change, and over columns.

Factored aggregate: an aggregate over a join in which sums by key replace the rows of one or both
sides.

    for key, (times_left, left_sum0) in left:       changes of the left, summed by key
        found = find_right(key, NOTHING)
        for row1, times_right in found:             the rows of the right
            weight = times_left * times_right
            group = get(row1.region)
            group[0] += weight
            group[1] += left_sum0 * times_right
    for key, pair in right:
        ...

If a side is a join itself, the same loops maintain its sums, with another key instead of groups.

State:  the groups of the plain operator.
Cost:   O(changed keys + the rows, or groups, that they join).
Source: [slender] recursive IVM; [dbsp] bilinear operators.

Single change: one changed row of one side of such a join; its group is replaced.

    for key, (times_left, left_sum0) in left:       the contribution of the row
        row1 = find_right(key, NOTHING)             the only row of the right, or its sums
        ...                                         as `grouped.py`
        return [(old, -1), (new, 1)]

If several rows of the right have the key, the loops above run.

State:  the groups of the plain operator.
Cost:   O(1).

Large batch: sums by group, computed over columns and added to the groups.

    rows    columns    sums by key            for key, (times_left, left_sum0) in changes:
                                                  group = get(key)
                                                  group[0] += times_left
                                                  group[1] += left_sum0

State:  the groups of the plain operator.
Cost:   that of `columns.py`, and O(changed groups).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from optimizer import plan
from optimizer.expr import Expr, Local
from optimizer.expressions.knowledge import Shapes
from optimizer.plans.factorization import Factorization
from reactive.engine.codegen.emitter import Emitter, RowPipeline
from reactive.engine.codegen.functions import Recall
from reactive.engine.codegen.nest import write_plus
from reactive.engine.collections.zset import Pair, UniformDelta, delta_keys
from reactive.engine.operators.accumulators import AvgAccumulator, CountAccumulator, SumAccumulator
from reactive.engine.operators.aggregate import GroupAggregates, Inputs, State
from reactive.engine.operators.index_by import IndexBy
from reactive.engine.operators.join import SumsBy
from reactive.engine.operators.loops.columns import ColumnSums, column_sums
from reactive.engine.operators.loops.grouped import (
    NONE_BEFORE,
    Grouping,
    GroupingOfOne,
    GroupLoopRunner,
    refuse_plain_step,
)
from reactive.engine.operators.loops.multiway_join import ProbeOrders
from reactive.engine.operators.loops.nests import LEFT, RIGHT, changes_loop, loop_of_one
from reactive.engine.operators.operator import BailOut, DetachedState, InLine
from reactive.engine.runtime.interrupts import reraise_asynchronous


class Sides:
    """The two sides of a join, each an index or sums, and the look-ups of its loops."""

    __slots__ = ("find_left", "find_right", "indexes", "is_filled", "left", "right")

    def __init__(self, left: IndexBy | SumsBy, right: IndexBy | SumsBy) -> None:
        self.left = left
        self.right = right
        self.find_left, self.find_right = _finds(left), _finds(right)
        self.indexes = [side for side in (left, right) if isinstance(side, IndexBy)]
        self.is_filled = False

    @property
    def is_plain(self) -> bool:
        """True if the sides hold rows of earlier commits, and no index has error rows."""
        for index in self.indexes:
            if index.poisoned:
                return False
        return self.is_filled

    def look_ups(self, left: Sequence[Any], right: Sequence[Any]) -> tuple[Any, ...]:
        """Return the arguments of the loops: both deltas, and a look-up in the other side for each.

        The left delta probes the current right side, the right delta the left side before the
        commit. At the first call the left was empty, so the right delta joins nothing. Raises
        `LookupError` while an index has error rows.
        """
        for index in self.indexes:
            if index.poisoned:
                raise LookupError("a key could not be computed")
        if not self.is_filled:
            self.is_filled = True
            return left, (), self.find_right, None
        before = self._find_before(left, right) if left and right else self.find_left
        return left, right, self.find_right, before

    def loop_of_one(self, side: str, loop: Callable[..., Any]) -> Callable[..., Any]:
        """Return the loop over a single change of a side."""
        return loop

    def _find_before(self, left: Sequence[Any], right: Sequence[Any]) -> Callable[..., Any]:
        """Return the look-up in the left side as before the commit, by join key.

        `left` and `right` are the deltas of the commit. The look-up in sums knows only the
        keys of `right`.
        """
        if isinstance(self.left, SumsBy):
            is_by_group = isinstance(self.right, SumsBy) and self.right.by_group
            return self.left.find_before(
                left, [key for (key, _), _ in right] if is_by_group else delta_keys(right)
            )
        found: Callable[..., Any] = self.left.index.find_before(left)
        return found


def _finds(side: IndexBy | SumsBy) -> Callable[..., Any]:
    """Return the look-up of the current rows or sums of a side, by key."""
    found: Callable[..., Any] = side.sums.get if isinstance(side, SumsBy) else side.index.find
    return found


class SingleChange(Protocol):
    """Runs the loop of a single change."""

    def step(
        self, groups: dict[Any, Any], before: dict[Any, Any], deltas: Sequence[Sequence[Any]]
    ) -> Sequence[Pair] | None: ...

    def in_line(self, own: Any) -> InLine | None:
        """Return the code that a generated commit runs instead of `step` (`operator.py`)."""


class FactoredAggregate(GroupLoopRunner):
    """Run loops over sides, or by probe orders; any error becomes a `BailOut`."""

    __slots__ = ("_alone", "_owner", "_sides")

    def __init__(
        self,
        plain: GroupAggregates,
        loop: Callable[..., Any],
        source: str,
        sides: Sides | ProbeOrders,
        owner: plan.Node,
        alone: SingleChange | None = None,
    ) -> None:
        super().__init__(plain, loop, refuse_plain_step, source)
        self._sides = sides
        self._owner = owner
        self._alone = alone
        self.step = self._step_sides

    def state(self) -> State | None:
        """Return the groups; None for a multiway join, whose probe orders have a state."""
        return super().state() if isinstance(self._sides, Sides) else None

    def restore(self, state: State, inputs: Inputs) -> None:
        """Load the stored groups; the sides already hold their rows."""
        super().restore(state, inputs)
        assert isinstance(self._sides, Sides)
        self._sides.is_filled = True

    @property
    def is_detachable(self) -> bool:
        return isinstance(self._sides, Sides) and super().is_detachable

    def detach_state(self) -> DetachedState:
        """Empty the groups; the sides then join all their rows, as at the first step."""
        detached, sides = super().detach_state(), self._sides
        assert isinstance(sides, Sides)

        def restore() -> None:
            detached.restore()
            sides.is_filled = True

        sides.is_filled = False
        return DetachedState(restore, detached.changes)

    def _step_sides(self, *deltas: Sequence[Any]) -> Sequence[Pair]:
        """Return the changed groups: for a single change by its own loop, if that can run."""
        for delta in deltas:
            self.touched += len(delta)
        before = self._before = {} if self.new_before is None else self.new_before()
        if self._alone is not None:
            found = self._alone.step(self._groups, before, deltas)
            if found is not None:
                return found
        return self.of_many(*deltas)

    def of_many(self, *deltas: Sequence[Any]) -> Sequence[Pair]:
        """Run the general loops over deltas that `touched` includes already."""
        before = self._before
        try:
            given = self._sides.look_ups(*deltas)
            out, met = self._loop(self._groups, before, *given)
        except Exception as error:
            self._restore()
            self._before = NONE_BEFORE
            raise BailOut(self._owner, self) from error
        self.touched += met
        return out  # type: ignore[no-any-return]

    def in_line(self) -> InLine | None:
        """Return the code for a single change of one side; None if there are no loops for it."""
        return None if self._alone is None else self._alone.in_line(self)


class Term:
    """Value that is summed over pairs: a value or sum of one side, or a product of one of each.

    A stored sum of a side counts once per row of the other side. Only products of integers and of
    values of a ring are allowed: products of other numbers would be rounded differently.
    """

    def __init__(self, *factors: Expr) -> None:
        self.factors = factors

    def times(self, weight: str) -> str:
        """Return how often a value counts among those of its group: a stored extreme once per
        partner."""
        name = self.factors[0].name if isinstance(self.factors[0], Local) else ""
        side, _, stored = name.partition("_")
        if not stored.startswith("extreme"):
            return weight
        return f"{side}_sign * times_{RIGHT if side == LEFT else LEFT}"

    def write(self, emitter: Emitter, weight: str) -> tuple[str, str, bool]:
        """Write the value; return its variable, how often it counts, and True if it is a sum."""
        names = [emitter.variable_of(factor) for factor in self.factors]
        sides = [_side_of(factor) for factor in self.factors]
        if len(names) == 1:
            (side,) = sides
            often = weight if side is None else f"times_{RIGHT if side == LEFT else LEFT}"
            return names[0], often, side is not None
        tests = [
            " and ".join(f"{name}.__class__ is {kind}" for name in names)
            for kind in ("int", "RingSum")
        ]
        emitter.line(f"if not ({' or '.join(tests)}): raise ArithmeticError")
        rows = [
            f"times_{side}" for side, kept in zip((LEFT, RIGHT), sides, strict=True) if not kept
        ]
        return emitter.variable("value", " * ".join(names)), " * ".join(rows) or "1", True


def _side_of(factor: Expr) -> str | None:
    """Return the side whose stored sum `factor` is; None if it is a value of a row."""
    if not isinstance(factor, Local) or "_sum" not in factor.name:
        return None
    return factor.name.partition("_")[0]


class GroupingOfSums(Grouping):
    """A `Grouping` whose values are terms."""

    def __init__(
        self,
        key: Expr | None,
        accumulators: Sequence[tuple[Any, Term | None]],
        shared_accumulators: Sequence[int],
        *,
        counts: Sequence[Term | None] = (),
        row: Any = None,
    ) -> None:
        """Take the terms of accumulators; `counts` are the numbers of values of means, None for
        the number of rows."""
        super().__init__(
            key,
            [(accumulator, None) for accumulator, _ in accumulators],
            shared_accumulators,
            row=row,
        )
        self._terms = [term for _, term in accumulators]
        self._counts = {place: term for place, term in enumerate(counts, 1) if term is not None}
        self._counted: dict[int, str] = {}
        self._sums: dict[str, str] = {}
        self._times: dict[str, str] = {}

    def exprs(self) -> list[Expr]:
        terms = [*self._terms, *self._counts.values()]
        return super().exprs() + [f for t in terms if t is not None for f in t.factors]

    def _values(self, emitter: Emitter) -> list[str | None]:
        """Write the terms; return their variables, and note which of them are sums."""
        names: list[str | None] = []
        self._sums, self._times = {}, {}
        for term in self._terms:
            if term is None:
                names.append(None)
                continue
            name, often, is_sum = term.write(emitter, "weight")
            names.append(name)
            self._times[name] = term.times("weight")
            if is_sum:
                self._sums[name] = often
        for place, term in self._counts.items():
            name, often, _ = term.write(emitter, "weight")
            self._counted[place] = f"{name} * {often}"
        return names

    def _adds(self, place: int) -> bool:
        """Return True if the term of a place is added: Min and Max that share their values each
        add the extremes of keys."""
        if self.shared[place - 1] == place:
            return True
        first, term = self._terms[self.shared[place - 1] - 1], self._terms[place - 1]
        return first is not None and term is not None and first.factors != term.factors

    def _add(
        self, emitter: Emitter, place: int, accumulator: Any, value: str | None, weight: str
    ) -> None:
        """Write the lines that add a term to a state; a sum counts once per partner."""
        often = self._sums.get(value or "")
        if accumulator.adds_values:
            times = emitter.variable("times", self._times.get(value or "", weight))
            emitter.line(f"if {times}:")
            emitter.indent += 1
            super()._add(emitter, place, accumulator, value, times)
            emitter.indent -= 1
            return
        if often is None or isinstance(accumulator, CountAccumulator):
            super()._add(emitter, place, accumulator, value, weight)
            self._correct_count(emitter, f"group[{place}]", place, weight)
            return
        state = f"group[{place}]"
        if isinstance(accumulator, AvgAccumulator):
            count = self._counted.get(place, weight)
            emitter.line(f"total, count = {state}")
            new = f"(total, count + {count})"
        else:
            emitter.line(f"total = {state}")
            new = "total"
        for line in write_plus("total", value or "", often, is_own=True):
            emitter.line(line)
        emitter.line(f"{state} = {new}")

    def _correct_count(self, emitter: Emitter, state: str, place: int, weight: str) -> None:
        """Write the line that counts the values of a mean in the place of rows."""
        count = self._counted.get(place)
        if count is not None:
            emitter.line(f"{state} = ({state}[0], {state}[1] - {weight} + {count})")


Loop = Callable[..., Any]


class GroupingOfOneSum(GroupingOfOne, GroupingOfSums):
    """A `GroupingOfOne` whose values are terms."""

    def _write_change(
        self, emitter: Emitter, place: int, accumulator: Any, value: str | None, weight: str
    ) -> str:
        """Write the new state of an accumulator for a term; return its variable."""
        often = self._sums.get(value or "")
        if often is None or isinstance(accumulator, CountAccumulator):
            changed = super()._write_change(emitter, place, accumulator, value, weight)
            self._correct_count(emitter, changed, place, weight)
            return changed
        old, new = f"group[{place}]", f"state_{place}"
        if isinstance(accumulator, AvgAccumulator):
            count = self._counted.get(place, weight)
            emitter.line(f"total, count = {old}")
            for line in write_plus("total", value or "", often, is_own=False):
                emitter.line(line)
            emitter.line(f"{new} = (total, count + {count})")
            return new
        emitter.line(f"{new} = {old}")
        for line in write_plus(new, value or "", often, is_own=False):
            emitter.line(line)
        return new


class SingleSideRunner:
    """Run the loop of the side with the only changed row."""

    __slots__ = ("_left", "_right", "_sides")

    def __init__(self, sides: Sides, left: Loop, right: Loop) -> None:
        self._sides = sides
        self._left = left
        self._right = right

    def step(
        self, groups: dict[Any, Any], before: dict[Any, Any], deltas: Sequence[Sequence[Any]]
    ) -> Sequence[Pair] | None:
        """Return the changes of a single changed row; None if the general loops must run."""
        left, right = deltas
        sides = self._sides
        if len(left) + len(right) != 1 or not sides.is_plain:
            return None
        found: Sequence[Pair] | None
        try:
            if left:
                loop = self._left
                found = loop(groups, before, left, sides.find_right)
            else:
                loop = self._right
                found = loop(groups, before, right, sides.find_left)
        except Exception as error:
            reraise_asynchronous(error)
            found = None
        if found is None:
            before.clear()
        return found

    def in_line(self, own: FactoredAggregate) -> InLine:
        """Return the code that a generated commit runs instead of `step`."""
        sides = self._sides
        by_name = {"own": own, "groups": own.groups, "none": NONE_BEFORE, "sides": sides}
        by_name |= {"left": self._left, "right": self._right, "reraise": reraise_asynchronous}
        by_name |= {"find_left": sides.find_left, "find_right": sides.find_right}
        by_name |= {f"index_{place}": index for place, index in enumerate(sides.indexes)}
        is_plain = "sides_{n}.is_filled"
        for place, _ in enumerate(sides.indexes):
            is_plain += f" and not index_{place}_{{n}}.poisoned"
        return InLine(
            _IN_LINE.replace("{is_plain}", is_plain), "own_{n}._before = none_{n}", by_name
        )


def make_single_side_runner(
    names: tuple[str, ...],
    shapes: Shapes,
    factors: Factorization,
    sink_of: Callable[[RowPipeline], GroupingOfOneSum],
    accumulators: Sequence[Any],
    sides: Sides,
    recall: Recall,
) -> SingleSideRunner | None:
    """Return the loops of single changes; None if sums are by group, or values are stored."""
    by_group = any(of is not None and of.groups for of in (factors.left, factors.right))
    if by_group or any(accumulator.adds_values for accumulator in accumulators):
        return None

    def loop(side: str) -> Loop:
        made = recall(f"{side} alone", lambda: loop_of_one(names, shapes, factors, sink_of, side))
        return sides.loop_of_one(side, made[0])

    return SingleSideRunner(sides, loop(LEFT), loop(RIGHT))


_IN_LINE = """\
if len({left}) + len({right}) == 1 and {is_plain}:
    own_{n}.touched += 1
    own_{n}._before = before = {{}}
    {out} = None
    try:
        if {left}: {out} = left_{n}(groups_{n}, before, {left}, find_right_{n})
        else: {out} = right_{n}(groups_{n}, before, {right}, find_left_{n})
    except Exception as error: reraise_{n}(error)
    if {out} is None:
        before.clear()
        {out} = own_{n}.of_many({left}, {right})
else: {out} = step_{n}({left}, {right})"""


SUMMED = (CountAccumulator, SumAccumulator, AvgAccumulator)
Columns = Callable[[UniformDelta, dict[Any, Any], dict[Any, Any]], Sequence[Pair] | None]
"""Takes a delta, groups and their previous states; returns changes, or None to run the loop."""


def group_columns(
    pipeline: Callable[[], RowPipeline], grouping: Callable[[RowPipeline], Grouping]
) -> Columns | None:
    """Return the function that aggregates a delta over columns; None if a part is unsupported."""
    sums = _column_sums(pipeline(), grouping)
    if sums is None:
        return None
    loops: list[Callable[..., Sequence[Pair]]] = []

    def step(
        delta: UniformDelta, groups: dict[Any, Any], before: dict[Any, Any]
    ) -> Sequence[Pair] | None:
        changed = sums.sum_delta(delta)
        if changed is None:
            return None
        if not loops:  # few views ever need it
            loops.append(_build_changes_loop(pipeline(), grouping))
        return loops[0](groups, before, changed.items())

    return step


def _column_sums(
    pipeline: RowPipeline, grouping: Callable[[RowPipeline], Grouping]
) -> ColumnSums | None:
    """Return the sums of a pipeline over columns; None if a part is unsupported."""
    sink = grouping(pipeline)
    if not all(isinstance(a, SUMMED) and not a.skip_none for a, _ in sink.accumulators):
        return None
    return column_sums(pipeline, [] if sink.key is None else [sink.key], _summed_values(sink))


def _summed_values(sink: Grouping) -> list[Expr]:
    """Return the distinct values that are summed."""
    return list(dict.fromkeys(value for _, value in sink.accumulators if value is not None))


def _build_changes_loop(
    of: RowPipeline, grouping: Callable[[RowPipeline], Grouping]
) -> Callable[..., Any]:
    """Build the loop that adds sums by key to groups."""
    sink = grouping(of)
    values = _summed_values(sink)
    names = [f"left_sum{place}" for place in range(len(values))]
    terms = [
        (a, None if value is None else Term(Local(names[values.index(value)])))
        for a, value in sink.accumulators
    ]
    key = None if sink.key is None else Local("key")
    made = GroupingOfSums(key, terms, sink.shared, row=sink.row)
    return changes_loop(names, RowPipeline((), of.bindings, of.shapes), made)
