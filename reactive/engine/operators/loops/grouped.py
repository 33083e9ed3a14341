"""Aggregation of the rows of a loop, in the same loop, without constructing the rows.

Loop over a delta:

    for row, weight in delta:
        ...                                 the chain below, in terms of the row
        group = get(key)                    its group, copied to `before` at the first touch
        group[1] += weight                  Count
        group[2] += value * weight          Sum (`codegen/nest.py`)
        group[3].add(value, weight)         Min, Max and such, over the values of the group

The loop changes the groups and shown rows of the plain operator (`operators/aggregate.py`), which
repeats the delta if anything raises.

State:  the groups of the plain operator.
Cost:   O(|dL|).
Source: [dbsp] section 4.2; deforestation.

Single row, the most frequent change: its group is replaced, not copied.

    for row, weight in delta:
        ...                                 the chain below, in terms of the row
        group = get(key)
        count = group[1] + weight           Count
        total = group[2] + value * weight   Sum (`codegen/nest.py`)
        values = group[3].plus(value, weight)       Collect
        groups[key] = [..., count, total, new]
        return [(old, -1), (new, 1)]

State:  the groups of the plain operator.
Cost:   O(1); half of the time of the loop above for one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, ClassVar

from optimizer.expr import Expr
from reactive.engine.codegen.emitter import Emitter
from reactive.engine.codegen.functions import generated_source
from reactive.engine.codegen.nest import RUNNING_SUMS, text_mean, text_shown, write_plus_value
from reactive.engine.collections import values as multisets
from reactive.engine.collections.zset import Pair, UniformDelta
from reactive.engine.operators.accumulators import (
    AvgAccumulator,
    CollectAccumulator,
    CountAccumulator,
    MaxAccumulator,
    MinAccumulator,
    RingAccumulator,
    SumAccumulator,
)
from reactive.engine.operators.aggregate import GroupAggregates, Inputs, State
from reactive.engine.operators.loops import join_loops
from reactive.engine.operators.operator import DetachedState, InLine
from reactive.engine.runtime.interrupts import reraise_asynchronous

NUMBERS = (CountAccumulator, SumAccumulator, AvgAccumulator)
"""Accumulators whose state is a number, or a running sum that can be copied."""

Loop = Callable[..., Any]
NONE_BEFORE: Mapping[Any, Any] = MappingProxyType({})


class Grouping:
    """Loop sink that adds rows to the groups of an aggregate."""

    result = "out"

    def __init__(
        self,
        key: Expr | None,
        accumulators: Sequence[tuple[Any, Expr | None]],
        shared_accumulators: Sequence[int],
        *,
        is_empty: Callable[[Any], bool] | None = None,
        row: Any = None,
    ) -> None:
        self.row = row
        self.key = key
        self._keeps_debts = is_empty is not None
        self.accumulators = accumulators
        self.shared = shared_accumulators
        own = {
            f"result_{place}": accumulator.result
            for place, (accumulator, _) in enumerate(accumulators, 1)
        }
        own |= {
            f"zero_{place}": accumulator.zero
            for place, (accumulator, _) in enumerate(accumulators, 1)
        }
        self.bound = {**BOUND, **own, "is_empty": is_empty, "Row": row, "made": tuple.__new__}

    def exprs(self) -> list[Expr]:
        """Return the expressions that are evaluated for each row."""
        own = [] if self.key is None else [self.key]
        return own + [value for _, value in self.accumulators if value is not None]

    def prologue(self) -> list[str]:
        """Return the lines before the loops."""
        has_values = any(accumulator.adds_values for accumulator, _ in self.accumulators)
        return ["    get = groups.get", *["    log = before.log"] * has_values]

    def epilogue(self) -> list[str]:
        """Return the lines after the loops, which compare old and new rows of the touched
        groups."""
        states = [f"group[{self.shared[place]}]" for place in range(len(self.accumulators))]
        row = "{0}[0]" if self.is_bare else "{0}"
        lines = [
            "    out = []",
            "    for key, old in before.items():",
            "        group = groups[key]",
            f"        new = {self._write_row(states, 'key', 'group[0]')}",
            "        if old is not None: old = old[-1]",
            "        if old == new:",
            "            group[-1] = old",
            "        else:",
            "            group[-1] = new",
            f"            if old is not None: out.append(({row.format('old')}, -1))",
            f"            if new is not None: out.append(({row.format('new')}, 1))",
        ]
        lines += [
            f"        if not group[0]{self._and_empty('group')}: del groups[key]"
        ] * self.is_keyed
        return lines

    def _and_empty(self, group: str) -> str:
        """Return the further test before a group of total weight zero is dropped."""
        return f" and is_empty({group})" if self._keeps_debts else ""

    @property
    def is_keyed(self) -> bool:
        """True if there is a group per key, and none without rows."""
        return self.key is not None

    @property
    def is_bare(self) -> bool:
        """True if the result is a bare value, not a row."""
        return self.key is None and len(self.accumulators) == 1 and self.row is None

    def _write_row(self, states: Sequence[str], key: str, size: str) -> str:
        """Return the expression of the row of a group, from the states of its accumulators."""
        accumulators = [accumulator for accumulator, _ in self.accumulators]
        shown = [key] * self.is_keyed
        shown += [
            self._result(*each) for each in enumerate(zip(accumulators, states, strict=True), 1)
        ]
        is_there = f" if {size} > 0 else None" if self.is_keyed else ""
        row = f"({', '.join(shown)}{',' * (len(shown) == 1)})"
        return f"{row if self.row is None else f'made(Row, {row})'}{is_there}"

    def _result(self, place: int, of: tuple[Any, str]) -> str:
        """Return the expression of an aggregate's result, given the expression of its state."""
        match of:
            case CountAccumulator(), state:
                return state
            case RingAccumulator(), state:
                return f"result_{place}({state})"
            case SumAccumulator(), state:
                return text_shown(state)
            case AvgAccumulator(), state:
                return text_mean(state)
            case MinAccumulator(), state:
                return f"{state}.least()"
            case MaxAccumulator(), state:
                return f"{state}.greatest()"
            case CollectAccumulator(), state:
                return f"{state}.bag()"
            case _, state:
                return f"result_{place}({state})"

    def write(self, emitter: Emitter, weight: str) -> None:
        """Write the lines for a row: first everything that may raise, then the changes."""
        names = self._values(emitter)
        key = self._key_name(emitter)
        self._find(emitter, key)
        if any(accumulator.adds_values for accumulator, _ in self.accumulators):
            emitter.line(f"was = before[{key}]")
        emitter.line(f"group[0] += {weight}")
        for place, ((accumulator, _), value) in enumerate(
            zip(self.accumulators, names, strict=True), 1
        ):
            if not self._adds(place):
                continue  # another accumulator has the state
            if accumulator.skip_none:
                emitter.line(f"if {value} is not None:")
            emitter.indent += accumulator.skip_none
            self._add(emitter, self.shared[place - 1], accumulator, value, weight)
            emitter.indent -= accumulator.skip_none

    def _adds(self, place: int) -> bool:
        """Return True if the value of an accumulator is added to its state by itself."""
        return self.shared[place - 1] == place

    def _values(self, emitter: Emitter) -> list[str | None]:
        """Return the variables of the values that accumulators read; None where one reads none."""
        return [
            None if value is None else emitter.variable_of(value) for _, value in self.accumulators
        ]

    def _key_name(self, emitter: Emitter) -> str:
        """Return the variable with the key of the group."""
        if self.key is None:
            return "()"
        key = emitter.canonical(self.key)
        return key if key.isidentifier() else emitter.variable("key", key)

    def _find(self, emitter: Emitter, key: str) -> None:
        """Write the lines that find or make a group, and copy it to `before` at the first touch."""
        emitter.line(f"group = get({key})")
        emitter.line("if group is None:")
        emitter.line(f"    before[{key}] = None")
        emitter.line(f"    group = groups[{key}] = {self._new()}")
        emitter.line(f"elif {key} not in before:")
        emitter.line(f"    before[{key}] = group.copy()")
        for place, (accumulator, _) in enumerate(self.accumulators, 1):
            state = f"group[{place}]"
            match accumulator:
                case SumAccumulator():
                    emitter.line(f"    if {state}.__class__ is ExactSum:")
                    emitter.line(f"        {state} = copied({state})")
                case AvgAccumulator():
                    emitter.line(f"    if {state}[0].__class__ is ExactSum:")
                    emitter.line(f"        {state} = (copied({state}[0]), {state}[1])")

    def _new(self) -> str:
        """Return the expression of an empty group: weight, states, no shown row."""
        zeros = [
            self._zero(place, accumulator)
            for place, (accumulator, _) in enumerate(self.accumulators, 1)
        ]
        return f"[0, {', '.join(zeros)}, None]"

    def _zero(self, place: int, accumulator: Any) -> str:
        """Return the expression of an empty state; `None` if another accumulator holds it."""
        if accumulator.adds_values:
            return f"zero_{place}()" if self.shared[place - 1] == place else "None"
        return "(0, 0)" if isinstance(accumulator, AvgAccumulator) else "0"

    def _add(
        self, emitter: Emitter, place: int, accumulator: Any, value: str | None, weight: str
    ) -> None:
        """Write the lines that add a value to the state of an accumulator."""
        state = f"group[{place}]"
        match accumulator:
            case CountAccumulator():
                emitter.line(f"{state} += {weight}")
            case SumAccumulator():
                emitter.line(f"total = {state}")
                self._plus(emitter, "total", value, weight)
                emitter.line(f"{state} = total")
            case AvgAccumulator():
                emitter.line(f"total, count = {state}")
                self._plus(emitter, "total", value, weight)
                emitter.line(f"{state} = (total, count + {weight})")
            case _:
                emitter.line(f"{state}.add({value}, {weight})")
                # an undo drops a new group whole
                emitter.line(f"if was is not None: log.append(({state}, {value}, {weight}))")

    def _plus(
        self, emitter: Emitter, total: str, value: str | None, weight: str, *, is_own: bool = True
    ) -> None:
        """Write lines that add a value to the running sum in a variable."""
        assert value is not None
        for line in write_plus_value(total, value, weight, is_own=is_own):
            emitter.line(line)


BOUND: dict[str, Any] = {**RUNNING_SUMS, "avg_of": AvgAccumulator().result}
"""Names that the written lines call."""


class GroupsBefore(dict[Any, Any]):
    """Groups before a delta; `log` lists additions to values, which are not copied."""

    __slots__ = ("log",)

    def __init__(self) -> None:
        self.log: list[tuple[multisets.OrderedValues, Any, int]] = []


def refuse_plain_step(*deltas: Sequence[Any]) -> Sequence[Pair]:
    """Raise: the loop has no plain operators that could run in its place."""
    raise AssertionError("there is no plain operator of it")


class GroupLoopRunner:
    """Run a loop on the groups of a plain operator; if it raises, run the plain operators.

    For a delta of one row there may be another loop (`GroupingOfOne`).
    """

    change_cost: ClassVar[float] = GroupAggregates.change_cost
    emits_changes: ClassVar[bool] = True
    __slots__ = (
        *("_at_once", "_before", "_carefully", "_groups", "_loop", "_one", "_pairing", "_plain"),
        *("_text", "_was_plain", "new_before", "step", "touched"),
    )

    def __init__(
        self,
        plain: GroupAggregates,
        loop: Loop,
        carefully: Callable[..., Sequence[Pair]],
        text: str | None = None,
        pairing: join_loops.JoinIndexes | None = None,
        one: Loop | None = None,
        at_once: Loop | None = None,
    ) -> None:
        self._plain = plain
        self._at_once = at_once
        self._groups = plain.groups
        self._loop = loop
        self._carefully = carefully
        self._pairing = pairing
        self._one = loop if one is None else one
        self._before: Any = NONE_BEFORE
        self._was_plain = False
        has_values = any(accumulator.adds_values for accumulator in plain.accumulators)
        self.new_before: Callable[[], dict[Any, Any]] | None = GroupsBefore if has_values else None
        self.step: Callable[..., Sequence[Pair]] = (
            self._step if pairing is None else self._step_pairs
        )
        self._text = text
        self.touched = 0

    def next_change(self, side: int, moment: datetime) -> datetime | None:
        """Return the next moment at which a clock, the side 0 or 1, changes the pairs.

        Return `moment` if it is not known, and None if there is none.
        """
        return moment if self._pairing is None else self._pairing.next_change(side, moment)

    @property
    def source(self) -> str:
        """The source text of the loop."""
        return generated_source(self._loop) if self._text is None else self._text

    def _step(self, delta: Sequence[Pair]) -> Sequence[Pair]:
        """Return the changed rows; if the loop raises, repeat the delta by the plain operators."""
        self.touched += len(delta)
        before = self._before = {} if self.new_before is None else self.new_before()
        loop = self._loop
        if len(delta) == 1:
            loop = self._one
        elif not delta:
            return ()
        try:
            out: Sequence[Pair] | None = None
            if self._at_once is not None and delta.__class__ is UniformDelta:
                out = self._at_once(delta, self._groups, before)
            return loop(self._groups, before, delta) if out is None else out
        except Exception as error:
            return self.recover(error, delta)

    def recover(self, error: Exception, delta: Sequence[Pair]) -> Sequence[Pair]:
        """Run the plain operators on a delta whose loop has raised."""
        reraise_asynchronous(error)
        return self._do_plainly(delta)

    def in_line(self) -> InLine | None:
        """Return the code for a delta of one row; None if there is no loop for it."""
        if self._one is self._loop:
            return None
        by_name = {"own": self, "one": self._one, "groups": self._groups, "none": NONE_BEFORE}
        return InLine(_IN_LINE, _FINALIZE, by_name)

    def _step_pairs(self, left: Sequence[Any], right: Sequence[Any]) -> Sequence[Pair]:
        """Aggregate the pairs of a join; plain operators if the loop raises or cannot run."""
        self.touched += len(left) + len(right)
        before = self._before = {} if self.new_before is None else self.new_before()
        assert self._pairing is not None
        try:
            arguments = self._pairing.arguments(left, right)
            if arguments is not None:
                changes, pairs = self._loop(self._groups, before, *arguments)
                self.touched += pairs
                return changes  # type: ignore[no-any-return]
        except Exception as error:
            reraise_asynchronous(error)
        return self._do_plainly(left, right)

    def _do_plainly(self, *deltas: Sequence[Any]) -> Sequence[Pair]:
        """Repeat deltas by the plain operators, which raise, or find that the query ignores the
        error."""
        self._restore()
        self._was_plain = True
        return self._plain.step(self._carefully(*deltas))

    def undo(self) -> None:
        """Restore the groups, whether the loop or the plain operators made the last step."""
        if self._was_plain:
            self._plain.undo()
        self._restore()
        self._was_plain = False

    def commit(self) -> None:
        """Drop the undo state, also that of the plain operators if they made the step."""
        self._before = NONE_BEFORE
        if self._was_plain:
            self._plain.commit()
            self._was_plain = False

    @property
    def groups(self) -> dict[Any, list[Any]]:
        """The state of each group, whose last item is the shown row."""
        return self._groups

    def copy_groups(self, groups: Mapping[Any, list[Any]]) -> None:
        """Continue with the groups of an operator with the same aggregates."""
        self._plain.copy_groups(groups)

    def contents(self) -> Iterable[Pair]:
        return self._plain.contents()

    def state(self) -> State | None:
        """Return the same state as `GroupAggregates.state`."""
        return self._plain.state()

    def restore(self, state: State, inputs: Inputs) -> None:
        """Load a state of `GroupAggregates.state`."""
        self._plain.restore(state, inputs)

    @property
    def is_detachable(self) -> bool:
        return self._plain.is_detachable

    def detach_state(self) -> DetachedState:
        """Empty the groups of the plain operator."""
        return self._plain.detach_state()

    def footprint(self) -> tuple[int, int]:
        return self._plain.footprint()

    def _restore(self) -> None:
        """Restore the groups as before the loop: added values, then replaced and new groups."""
        groups = self._groups
        if self._before.__class__ is GroupsBefore:
            for values, value, weight in reversed(self._before.log):
                values.add(value, -weight)
        for key, group in self._before.items():
            if group is None:
                groups.pop(key, None)
            else:
                groups[key] = group
        self._before = NONE_BEFORE


_IN_LINE = """\
if len({given}) == 1:
    own_{n}.touched += 1
    own_{n}._before = before = {{}}
    try: {out} = one_{n}(groups_{n}, before, {given})
    except Exception as error: {out} = own_{n}.recover(error, {given})
else: {out} = step_{n}({given})"""
_FINALIZE = """\
own_{n}._before = none_{n}
if own_{n}._was_plain: finalize_{n}()"""


def is_in_line(accumulators: Iterable[Any]) -> bool:
    """Return True if loops support all accumulators."""
    return all(isinstance(each, NUMBERS) or each.adds_values for each in accumulators)


# Other functions for large loads, built at the first large load.

MANY = 10_000
"""Least size of a batch that other functions are tried for."""


def when_large(
    make: Callable[[], Callable[..., Any] | None], *, needs_fields: bool = True
) -> Callable[..., Any]:
    """Wrap a function for large batches, built by `make` at the first one; None for other deltas.

    needs_fields: True if the classes of fields must be known.

    >>> when_large(lambda: len)([("a", 1)])
    """
    made: list[Callable[..., Any] | None] = []

    def of(delta: Sequence[Any], *state: Any) -> Any:
        if delta.__class__ is not UniformDelta or len(delta) < MANY:
            return None
        if needs_fields and delta.fields is None:
            return None
        if not made:
            made.append(make())
        return None if made[0] is None else made[0](delta, *state)

    return of


def first_that_fits(*ways: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls `ways` in order until one returns a result.

    >>> first_that_fits(lambda n: None, lambda n: n + 1)(1)
    2
    """

    def of(*given: Any) -> Any:
        return next((out for way in ways if (out := way(*given)) is not None), None)

    return of


class GroupingOfOne(Grouping):
    """Loop sink for a delta of one row, if the chain makes one row of it at most.

    All lines that may raise precede the changes.
    """

    result = "()"

    @staticmethod
    def fits(accumulators: list[Any]) -> bool:
        """Return True if the states of all accumulators can be replaced."""
        return not any(
            each.adds_values and not isinstance(each, CollectAccumulator) for each in accumulators
        )

    def prologue(self) -> list[str]:
        return []

    def epilogue(self) -> list[str]:
        return []

    def write(self, emitter: Emitter, weight: str) -> None:
        """Write the lines that replace the group of the row, and return its change."""
        names = self._values(emitter)
        key = self._key_name(emitter)
        emitter.line(f"group = groups.get({key})" if self.is_keyed else f"group = groups[{key}]")
        emitter.line(f"before[{key}] = group")
        if self.is_keyed:
            emitter.line(f"if group is None: group = {self._new()}")
        states = []
        for place, ((accumulator, _), value) in enumerate(
            zip(self.accumulators, names, strict=True), 1
        ):
            if accumulator.skip_none:
                emitter.line(f"if {value} is None: state_{place} = group[{place}]")
                emitter.line("else:")
            emitter.indent += accumulator.skip_none
            states.append(self._write_change(emitter, place, accumulator, value, weight))
            emitter.indent -= accumulator.skip_none
        emitter.line(f"size = group[0] + {weight}")
        emitter.line("old = group[-1]")
        emitter.line(f"new = {self._write_row(states, key, 'size')}")
        emitter.line("if old == new: new = old")
        self._replace(emitter, key, f"[size, {', '.join(states)}, new]")
        row = "{0}[0]" if self.is_bare else "{0}"
        old, new = row.format("old"), row.format("new")
        emitter.line("if new is old: return ()")
        if self.is_keyed:  # the only group without a key always exists
            emitter.line(f"if old is None: return [({new}, 1)]")
            emitter.line(f"if new is None: return [({old}, -1)]")
        emitter.line(f"return [({old}, -1), ({new}, 1)]")

    def _write_change(
        self, emitter: Emitter, place: int, accumulator: Any, value: str | None, weight: str
    ) -> str:
        """Write the new state of an accumulator; return its variable."""
        old, new = f"group[{place}]", f"state_{place}"
        match accumulator:
            case CountAccumulator():
                emitter.line(f"{new} = {old} + {weight}")
            case SumAccumulator():
                emitter.line(f"{new} = {old}")
                self._plus(emitter, new, value, weight, is_own=False)
            case AvgAccumulator():
                emitter.line(f"total, count = {old}")
                self._plus(emitter, "total", value, weight, is_own=False)
                emitter.line(f"{new} = (total, count + {weight})")
            case CollectAccumulator():
                emitter.line(f"{new} = {old}.plus({value}, {weight})")
            case _:
                raise TypeError(f"{type(accumulator).__name__} has no state that can be replaced")
        return new

    def _replace(self, emitter: Emitter, key: str, group: str) -> None:
        """Write the lines that store the new group, or drop it if it is empty."""
        if not self.is_keyed:
            emitter.line(f"groups[{key}] = {group}")
            return
        if self._keeps_debts:
            emitter.line(f"kept = {group}")
            emitter.line(f"if size or not is_empty(kept): groups[{key}] = kept")
        else:
            emitter.line(f"if size: groups[{key}] = {group}")
        emitter.line(f"else: groups.pop({key}, None)")
