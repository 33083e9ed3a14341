"""An aggregate over a join of which a side, or both, is kept as sums by key.

    for key, (times_left, left_sum0) in left:       what changes on the left, summed by key
        found = find_right(key, NOTHING)
        for row1, times_right in found:             the rows of the right
            weight = times_left * times_right
            group = get(row1.region)
            group[0] += weight
            group[1] += left_sum0 * times_right
    for key, pair in right:
        ...

The same loops, with sums by another key in the place of groups, keep a side that is a join.

State:  the groups of the plain operator.
Cost:   O(keys that change + the rows, or groups, that they meet).
Source: [slender] recursive IVM; [dbsp] bilinear operators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from optimizer import plan
from optimizer.expr import Expr, Local
from reactive.engine.codegen.emitter import Emitter
from reactive.engine.codegen.running_sums import write_plus
from reactive.engine.collections.keyed_batch import keys_of
from reactive.engine.collections.zset import Pair
from reactive.engine.operators.accumulators import AvgAccumulator, CountAccumulator
from reactive.engine.operators.aggregate import Aggregate
from reactive.engine.operators.in_line import InLine
from reactive.engine.operators.index_by import IndexBy
from reactive.engine.operators.loops.grouped import NONE_BEFORE, Grouped, Grouping
from reactive.engine.operators.loops.multiway import ProbeOrders
from reactive.engine.operators.loops.nests import LEFT, RIGHT
from reactive.engine.operators.operator import BailOut
from reactive.engine.operators.operator_state import Inputs, State
from reactive.engine.operators.sums_by import SumsBy


class Sides:
    """The two sides of a join, each an index or sums, and how its loops find partners."""

    __slots__ = ("find_left", "find_right", "indexes", "is_filled", "left", "right")

    def __init__(self, left: IndexBy | SumsBy, right: IndexBy | SumsBy) -> None:
        self.left = left
        self.right = right
        self.find_left, self.find_right = _finds(left), _finds(right)
        self.indexes = [side for side in (left, right) if isinstance(side, IndexBy)]
        self.is_filled = False

    @property
    def is_plain(self) -> bool:
        """Whether they hold what was there before, all by keys that could be computed."""
        for index in self.indexes:
            if index.poisoned:
                return False
        return self.is_filled

    def look_ups(self, left: Sequence[Any], right: Sequence[Any]) -> tuple[Any, ...]:
        """What the loops are given: both deltas, and a look-up in the other side for each.

        The right is looked up as it is now, the left as it was before the commit. At first it was
        empty, so that nothing on the right finds anything.
        """
        for index in self.indexes:
            if index.poisoned:
                raise LookupError("a key could not be computed")
        if not self.is_filled:
            self.is_filled = True
            return left, (), self.find_right, None
        before = self._before(left, right) if left and right else self.find_left
        return left, right, self.find_right, before

    def _before(self, left: Sequence[Any], right: Sequence[Any]) -> Callable[..., Any]:
        """A look-up of the keys that change on the right, on the left as it was."""
        if isinstance(self.left, SumsBy):
            is_by_group = isinstance(self.right, SumsBy) and self.right.by_group
            return self.left.before(
                left, [key for (key, _), _ in right] if is_by_group else keys_of(right)
            )
        found: Callable[..., Any] = self.left.index.before(left)
        return found


def _finds(side: IndexBy | SumsBy) -> Callable[..., Any]:
    found: Callable[..., Any] = side.sums.get if isinstance(side, SumsBy) else side.index.find
    return found


class OfOne(Protocol):
    """What a single change changes; None if it takes the loops for many."""

    def step(
        self, groups: dict[Any, Any], before: dict[Any, Any], deltas: Sequence[Sequence[Any]]
    ) -> Sequence[Pair] | None: ...

    def in_line(self, own: Any) -> InLine | None:
        """The same as lines of a commit (`in_line.py`)."""


class Factored(Grouped):
    """Runs loops over sides, or in probe orders; what goes wrong in them is `BailOut`."""

    __slots__ = ("_alone", "_owner", "_sides")

    def __init__(
        self,
        plain: Aggregate,
        loop: Callable[..., Any],
        source: str,
        sides: Sides | ProbeOrders,
        owner: plan.Node,
        alone: OfOne | None = None,
    ) -> None:
        super().__init__(plain, loop, _never, source)
        self._sides = sides
        self._owner = owner
        self._alone = alone
        self.step = self._step_sides

    def state(self) -> State | None:
        """The groups; None of a join of several tables, whose probe orders have a state."""
        return super().state() if isinstance(self._sides, Sides) else None

    def restore(self, state: State, inputs: Inputs) -> None:
        """Hold the groups that another one has told; the sides hold the rows that these are of."""
        super().restore(state, inputs)
        assert isinstance(self._sides, Sides)
        self._sides.is_filled = True

    def _step_sides(self, *deltas: Sequence[Any]) -> Sequence[Pair]:
        for delta in deltas:
            self.touched += len(delta)
        before = self._before = {} if self.new_before is None else self.new_before()
        if self._alone is not None:
            found = self._alone.step(self._groups, before, deltas)
            if found is not None:
                return found
        return self.of_many(*deltas)

    def of_many(self, *deltas: Sequence[Any]) -> Sequence[Pair]:
        """What the loops for any deltas make of some that have been counted."""
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
        """The same of a single change of one side, if there are loops for that."""
        return None if self._alone is None else self._alone.in_line(self)


def _never(*deltas: Sequence[Any]) -> Sequence[Pair]:
    raise AssertionError("there is no plain operator of it")


class Term:
    """What is summed of a pair: what one side has of it, or a product of what each has.

    A sum that is kept of a side is in a pair as often as there are rows on the other side. Products
    are sums of products of integers only: other numbers would be rounded elsewhere.
    """

    def __init__(self, *factors: Expr) -> None:
        self.factors = factors

    def write(self, emitter: Emitter, weight: str) -> tuple[str, str, bool]:
        """The variable that holds it, how often it is there, and whether it is a sum."""
        names = [emitter.named(factor) for factor in self.factors]
        sides = [_side_of(factor) for factor in self.factors]
        if len(names) == 1:
            (side,) = sides
            often = weight if side is None else f"times_{RIGHT if side == LEFT else LEFT}"
            return names[0], often, side is not None
        ints = " and ".join(f"{name}.__class__ is int" for name in names)
        emitter.line(f"if not ({ints}): raise ArithmeticError")
        rows = [
            f"times_{side}" for side, kept in zip((LEFT, RIGHT), sides, strict=True) if not kept
        ]
        return emitter.variable("value", " * ".join(names)), " * ".join(rows) or "1", True


def _side_of(factor: Expr) -> str | None:
    """The side that a sum is kept of; None of a value of a row."""
    if not isinstance(factor, Local) or "_sum" not in factor.name:
        return None
    return factor.name.partition("_")[0]


class GroupingOfSums(Grouping):
    """As `Grouping`, of terms."""

    def __init__(
        self,
        key: Expr | None,
        accumulators: Sequence[tuple[Any, Term | None]],
        shared_accumulators: Sequence[int],
        *,
        row: Any = None,
    ) -> None:
        super().__init__(
            key,
            [(accumulator, None) for accumulator, _ in accumulators],
            shared_accumulators,
            row=row,
        )
        self._terms = [term for _, term in accumulators]
        self._sums: dict[str, str] = {}

    def exprs(self) -> list[Expr]:
        return super().exprs() + [f for t in self._terms if t is not None for f in t.factors]

    def _values(self, emitter: Emitter) -> list[str | None]:
        names: list[str | None] = []
        self._sums = {}
        for term in self._terms:
            if term is None:
                names.append(None)
                continue
            name, often, is_sum = term.write(emitter, "weight")
            names.append(name)
            if is_sum:
                self._sums[name] = often
        return names

    def _add(
        self, emitter: Emitter, place: int, accumulator: Any, value: str | None, weight: str
    ) -> None:
        often = self._sums.get(value or "")
        if often is None or isinstance(accumulator, CountAccumulator):
            super()._add(emitter, place, accumulator, value, weight)
            return
        state = f"group[{place}]"
        if isinstance(accumulator, AvgAccumulator):
            emitter.line(f"total, count = {state}")
            emitter.line(f"{state} = (plus(total, {value}, {often}), count + {weight})")
            return
        emitter.line(f"total = {state}")
        for line in write_plus("total", value or "", often, is_own=True):
            emitter.line(line)
        emitter.line(f"{state} = total")
