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
from typing import Any

from optimizer import plan
from optimizer.expr import Expr, Local
from optimizer.knowledge import Shapes
from reactive.codegen import Values, build
from reactive.folds import AvgFold, CountFold
from reactive.generated.body import Body, Chain, Plan
from reactive.generated.grouped import NONE_BEFORE, Grouped, Grouping
from reactive.generated.keyed import write_key
from reactive.generated.paths import PAIRED, Paths, pair_up
from reactive.generated.taker import Taker
from reactive.generated.turning import Turning
from reactive.index import NO_MATCH, NOTHING, match_key
from reactive.operators.aggregate import Aggregate
from reactive.operators.index_by import IndexBy
from reactive.operators.sums_by import SumsBy, Unfit, plus, plus_value, times
from reactive.zset import Pair

LEFT, RIGHT = "left", "right"


class Sides:
    """The two sides of a join, each an index or sums, and how its loops find partners."""

    __slots__ = ("_find_left", "_find_right", "_indexes", "_is_filled", "left", "right")

    def __init__(self, left: IndexBy | SumsBy, right: IndexBy | SumsBy) -> None:
        self.left = left
        self.right = right
        self._find_left, self._find_right = _finds(left), _finds(right)
        self._indexes = [side for side in (left, right) if isinstance(side, IndexBy)]
        self._is_filled = False

    def look_ups(self, left: Sequence[Any], right: Sequence[Any]) -> tuple[Any, ...]:
        """What the loops are given: both deltas, and a look-up in the other side for each.

        The right is looked up as it is now, the left as it was before the commit. At first it was
        empty, so that nothing on the right finds anything.
        """
        for index in self._indexes:
            if index.odd:
                raise LookupError("a key could not be computed")
        if not self._is_filled:
            self._is_filled = True
            return left, (), self._find_right, None
        before = _before(self.left, left) if left and right else self._find_left
        return left, right, self._find_right, before


def _finds(side: IndexBy | SumsBy) -> Callable[..., Any]:
    found: Callable[..., Any] = side.sums.get if isinstance(side, SumsBy) else side.index.find
    return found


def _before(side: IndexBy | SumsBy, delta: Sequence[Any]) -> Callable[..., Any]:
    kept: Any = side if isinstance(side, SumsBy) else side.index
    found: Callable[..., Any] = kept.before(delta)
    return found


class Factored(Grouped):
    """Runs loops over sides, or paths; what goes wrong in them is `Unfit`."""

    __slots__ = ("_owner", "_sides", "_turning")

    def __init__(
        self,
        plain: Aggregate,
        loop: Callable[..., Any],
        source: str,
        sides: Sides | Paths,
        owner: plan.Node,
        turning: Turning | None = None,
    ) -> None:
        super().__init__(plain, loop, _never, source)
        self._sides = sides
        self._owner = owner
        self._turning = turning
        self.step = self._step_sides

    def _step_sides(self, *deltas: Sequence[Any]) -> Sequence[Pair]:
        for delta in deltas:
            self.touched += len(delta)
        before = self._before = {} if self.new_before is None else self.new_before()
        if self._turning is not None:
            found = self._turning.step(self._groups, before, deltas[0])
            if found is not None:
                return found
        try:
            given = self._sides.look_ups(*deltas)
            out, met = self._loop(self._groups, before, *given)
        except Exception as error:
            self._restore()
            self._before = NONE_BEFORE
            raise Unfit(self._owner, self) from error
        self.touched += met
        return out  # type: ignore[no-any-return]


def _never(*deltas: Sequence[Any]) -> Sequence[Pair]:
    raise AssertionError("there is no plain operator of it")


class Term:
    """What is summed of a pair: what one side has of it, or a product of what each has.

    A sum that is kept of a side is in a pair as often as there are rows on the other side. Products
    are sums of products of integers only: other numbers would be rounded elsewhere.
    """

    def __init__(self, *factors: Expr) -> None:
        self.factors = factors

    def write(self, body: Body, weight: str) -> tuple[str, str, bool]:
        """The variable that holds it, how often it is there, and whether it is a sum."""
        names = [body.named(factor) for factor in self.factors]
        sides = [_side_of(factor) for factor in self.factors]
        if len(names) == 1:
            (side,) = sides
            often = weight if side is None else f"times_{RIGHT if side == LEFT else LEFT}"
            return names[0], often, side is not None
        ints = " and ".join(f"{name}.__class__ is int" for name in names)
        body.line(f"if not ({ints}): raise ArithmeticError")
        rows = [
            f"times_{side}" for side, kept in zip((LEFT, RIGHT), sides, strict=True) if not kept
        ]
        return body.variable("value", " * ".join(names)), " * ".join(rows) or "1", True


def _side_of(factor: Expr) -> str | None:
    """The side that a sum is kept of; None of a value of a row."""
    if not isinstance(factor, Local) or "_sum" not in factor.name:
        return None
    return factor.name.partition("_")[0]


class GroupingOfSums(Grouping):
    """As `Grouping`, of terms."""

    def __init__(
        self, key: Expr | None, folds: Sequence[tuple[Any, Term | None]], homes: Sequence[int]
    ) -> None:
        super().__init__(key, [(fold, None) for fold, _ in folds], homes)
        self._terms = [term for _, term in folds]
        self._sums: dict[str, str] = {}
        self.bound |= {"plus": plus, "add_sum_to_avg": _add_sum_to_avg}

    def exprs(self) -> list[Expr]:
        return super().exprs() + [f for t in self._terms if t is not None for f in t.factors]

    def _values(self, body: Body) -> list[str | None]:
        names: list[str | None] = []
        self._sums = {}
        for term in self._terms:
            if term is None:
                names.append(None)
                continue
            name, often, is_sum = term.write(body, "weight")
            names.append(name)
            if is_sum:
                self._sums[name] = often
        return names

    def _add(self, body: Body, place: int, fold: Any, value: str | None, weight: str) -> None:
        often = self._sums.get(value or "")
        if often is None or isinstance(fold, CountFold):
            super()._add(body, place, fold, value, weight)
            return
        state = f"group[{place}]"
        if isinstance(fold, AvgFold):
            body.line(f"{state} = add_sum_to_avg({state}, {value}, {often}, {weight})")
            return
        body.line(f"state = {state}")
        body.line(f"if state.__class__ is int and {value}.__class__ is int:")
        body.line(f"    {state} = state + {value} * {often}")
        body.line("else:")
        body.line(f"    {state} = plus(state, {value}, {often})")


def _add_sum_to_avg(state: tuple[Any, int], part: Any, often: int, weight: int) -> tuple[Any, int]:
    return plus(state[0], part, often), state[1] + weight


class Summing:
    """Takes rows or pairs as sums by key, and by a part of the group."""

    def __init__(
        self,
        key: Sequence[Expr],
        groups: Sequence[Expr],
        values: Sequence[Term],
        todo: Plan,
        *,
        is_written: bool,
    ) -> None:
        self._key = list(key)
        self._groups = list(groups)
        self._values = list(values)
        self._todo = todo
        self._is_written = is_written
        self.bound: dict[str, Any] = {"plus": plus, "plus_value": plus_value, "scaled": times}
        self.bound |= {"NO_MATCH": NO_MATCH, "match_key": match_key}

    def exprs(self) -> list[Expr]:
        return [*self._key, *self._groups, *(f for term in self._values for f in term.factors)]

    def prologue(self) -> list[str]:
        return ["    changed = {}", "    get = changed.get"]

    def epilogue(self) -> list[str]:
        return ["    return changed"]

    def write(self, body: Body, weight: str) -> None:
        key = self._write_key(body)
        terms = [term.write(body, weight) for term in self._values]
        if self._groups:
            parts = [body.canonical(part) for part in self._groups]
            whole = parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
            key = body.variable("key", f"({key}, {whole})")
        body.line(f"state = get({key})")
        body.line("if state is None:")
        new = [_first(name, often) for name, often, _ in terms]
        body.line(f"    changed[{key}] = ({', '.join([weight, *new])},)")
        body.line("else:")
        more = [_more(place, *term) for place, term in enumerate(terms, 1)]
        body.line(f"    changed[{key}] = ({', '.join([f'state[0] + {weight}', *more])},)")

    def _write_key(self, body: Body) -> str:
        """The lines that leave out what matches nothing, and the text of the key."""
        if self._is_written:
            key = body.variable(
                "key", write_key(body, self._key, self._todo, is_written=self._is_written)
            )
            body.line(f"if {key} is NO_MATCH: continue")
            return key
        names = [body.named(part) for part in self._key]
        for name in names:
            body.line(f"if {name} != {name}: continue")
        return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _first(name: str, often: str) -> str:
    """The sum of a value that comes so often."""
    return f"{name} * {often} if {name}.__class__ is int else scaled({name}, {often})"


def _more(place: int, name: str, often: str, is_sum: bool) -> str:
    """A sum, and a value or a sum of a side."""
    add = "plus" if is_sum else "plus_value"
    state = f"state[{place}]"
    are_int = f"{state}.__class__ is int and {name}.__class__ is int"
    return f"{state} + {name} * {often} if {are_int} else {add}({state}, {name}, {often})"


def pair_loops(
    names: tuple[str, ...],
    shapes: Shapes,
    factors: plan.Factors,
    chain: Chain,
    taker: Callable[[Plan], Taker],
    *,
    counts: bool,
) -> tuple[Callable[..., Any], str]:
    """The loops over both sides, with a chain on the pairs, and their text.

    Parameters
    ----------
    names: of the bindings of a pair.
    counts: whether it is given groups, and gives the number of what it met as well.
    """
    values = Values()
    lines: list[str] = []
    for side in (LEFT, RIGHT):
        todo = Plan((), len(names), shapes)
        todo.is_input = False
        for test in factors.tests:
            todo.test(test)
        todo.extend(chain)
        takes = taker(todo)
        lines += _loop(todo, names, values, takes, factors, outer=side)
    given = "groups, before, " if counts else ""
    head = [f"def step({given}left, right, find_right, find_left):"]
    head += ["    pairs = 0"] * counts
    end = takes.epilogue()
    end = [*end[:-1], "    return out, pairs"] if counts else end
    text = "\n".join([*head, *takes.prologue(), *lines, *end, ""])
    if not counts:
        text = text.replace("            pairs += 1\n", "")
    values.by_name |= {"NO_MATCH": NO_MATCH, "NOTHING": NOTHING, **PAIRED, **takes.bound}
    return build("step", text, values), text


def _loop(
    todo: Plan,
    names: tuple[str, ...],
    values: Values,
    taker: Taker,
    factors: plan.Factors,
    *,
    outer: str,
) -> list[str]:
    """The loop over the delta of one side, and in it that over what it meets of the other."""
    inner = RIGHT if outer == LEFT else LEFT
    kept = {LEFT: factors.left, RIGHT: factors.right}
    bound = {LEFT: names[:-1], RIGHT: names[-1:]}
    spelled = [name for side, of in kept.items() if of for name in _spelled(side, of)]
    head = Body(values, (*names, *spelled, "times_left", "times_right"), todo.shapes, 2)
    head.expect([*(act.expr for act in todo.acts), *taker.exprs()])
    of = kept[outer]
    if of is None:
        head.line(f"{_one(bound[outer])}, times_{outer} = pair")
        head.unpack(bound[outer])
        count = len(names) - 1
        head.hoist(frozenset(range(count)) if outer == LEFT else frozenset({count}))
        lines = [f"    for key, pair in {outer}:"]
    else:
        key = "(key, part)" if of.groups else "key"
        lines = [f"    for {key}, sums in {outer}:"]
        _unpack(head, outer, of, "part")
    lines += [f"        found = find_{inner}(key, NOTHING)"]
    lines += ["        if found is NOTHING or key is NO_MATCH: continue"]
    other = kept[inner]
    if other is None:
        pair_up(head, "found")
        head.line(f"for {_one(bound[inner])}, times_{inner} in found:")
    elif other.groups:
        head.line("for part, sums in found.items():")
    else:
        head.line("for sums in (found,):")
    body = head.nested(3)
    if other is None:
        body.unpack(bound[inner])
    else:
        _unpack(body, inner, other, "part")
    body.line("pairs += 1")
    body.line("weight = times_left * times_right")
    body.write(todo.acts)
    taker.write(body, "weight")
    return [*lines, *head.lines, *body.lines]


def _one(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else "row"


def _spelled(side: str, of: plan.Sums) -> list[str]:
    """The variables of what is kept of a side."""
    groups = [f"{side}_group{i}" for i in range(len(of.groups))]
    return [*groups, *(f"{side}_sum{i}" for i in range(len(of.values)))]


def _unpack(body: Body, side: str, of: plan.Sums, part: str) -> None:
    """Put what is kept of a side into variables."""
    sums = [f"times_{side}", *(f"{side}_sum{i}" for i in range(len(of.values)))]
    body.line(f"{', '.join(sums)}, = sums")
    groups = [f"{side}_group{i}" for i in range(len(of.groups))]
    if groups:
        body.line(f"{', '.join(groups)} = {part}")
