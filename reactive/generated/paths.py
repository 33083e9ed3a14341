"""A join of three or more inputs at once: a change of each is followed through the others.

    for key, pair in delta_0:                       what changes of a
        found = find_0_1(a.dst, NOTHING)            b: those that begin where a ends
        also = find_0_2(a.src, NOTHING)             c: those that end where a begins
        if size(found) <= size(also):               the fewer ones are gone through,
            for b in found:
                found = find((b.dst, a.src))        the others looked up
                ...
    for key, pair in delta_1: ...

An input is found as it is after the commit by those behind it, and as it was before by those in
front of it:

    d(A B C)  =  dA B C  +  A' dB C  +  A' B' dC            with A' = A + dA

State:  none of its own; indexes, shared with all joins of the same input by the same key.
Cost:   O(|d| * the smaller of the sides that it meets).
Source: see `optimizer/rules/widen_join.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from optimizer import plan
from optimizer.expr import Expr, Parameter, substitute
from optimizer.knowledge import Shapes
from reactive.codegen import Values, build
from reactive.generated.body import Body, Chain, Plan
from reactive.generated.taker import Taker
from reactive.index import NOTHING, KeyedBatch, Mark, Rows, Weighted
from reactive.operators.index_by import Before, IndexBy
from reactive.operators.sums_by import Unfit
from reactive.zset import Pair

Key = tuple[int, tuple[Expr, ...]]
"""An index: of which input, and by which expressions over its row."""


@dataclass(frozen=True, slots=True)
class Step:
    """The next input of a path: the index, and what is looked up in it, in terms of the others."""

    key: Key
    probe: tuple[Expr, ...]

    @property
    def place(self) -> int:
        return self.key[0]


Path = list[list[Step]]
"""The ways to go from an input to all others: one, or two of which the shorter is taken."""


def path_from(start: int, wide: plan.Wide) -> Path:
    """The path of changes of an input."""
    count = len(wide.tests)
    first = _nexts({start}, wide)
    most = max(len(step.probe) for step in first)
    begins = [step for step in first if len(step.probe) == most][:2]
    return [_rest([step], {start, step.place}, wide, count) for step in begins]


def _rest(steps: list[Step], bound: set[int], wide: plan.Wide, count: int) -> list[Step]:
    while len(bound) < count:
        step = max(_nexts(bound, wide), key=lambda step: len(step.probe))
        steps.append(step)
        bound = bound | {step.place}
    return steps


def _nexts(bound: set[int], wide: plan.Wide) -> list[Step]:
    """Each input that an equation leads to from those that are bound."""
    found: dict[int, list[tuple[Expr, Expr]]] = {}
    for e in wide.equations:
        for a, of_a, b, of_b in (
            (e.left, e.of_left, e.right, e.of_right),
            (e.right, e.of_right, e.left, e.of_left),
        ):
            if a in bound and b not in bound:
                found.setdefault(b, []).append((of_b, substitute(of_a, (Parameter(a),))))
    steps = []
    for place, pairs in sorted(found.items()):
        own, probe = zip(*sorted(pairs, key=_own_text), strict=True)  # one index for any order
        steps.append(Step((place, own), probe))
    return steps


def _own_text(pair: tuple[Expr, Expr]) -> str:
    return repr(pair[0])


class Paths:
    """Which deltas and look-ups the loops of all paths are given at a commit.

    Parameters
    ----------
    paths: of each input.
    indexes: all that are needed, by their key; each one's output is a delta of the join.
    is_filled: whether the first deltas are changes, and not all that there is.
    """

    __slots__ = ("_given", "_is_filled", "_nodes", "_ports", "_starts")

    def __init__(
        self, paths: Sequence[Path], indexes: dict[Key, IndexBy], *, is_filled: bool = False
    ) -> None:
        self._nodes = list(dict.fromkeys(indexes.values()))
        ports = {operator: port for port, operator in enumerate(self._nodes)}
        self._ports = {key: ports[operator] for key, operator in indexes.items()}
        self._starts = [
            next(self._ports[key] for key in indexes if key[0] == place)
            for place in range(len(paths))
        ]
        self._given = [
            [(place, self._ports[key], key[0] > place) for key in _keys(path)]
            for place, path in enumerate(paths)
        ]
        self._is_filled = is_filled

    def look_ups(self, *deltas: Sequence[Any]) -> list[Any]:
        """For each path its delta, then its look-ups; at first all comes by the first path."""
        if any(operator.odd for operator in self._nodes):
            raise LookupError("a key could not be computed")
        is_first, self._is_filled = not self._is_filled, True
        return self._arguments(deltas, only_first=is_first)

    def all(self) -> list[Any]:
        """The same for all that there is."""
        deltas: list[Sequence[Any]] = [()] * len(self._nodes)
        deltas[self._starts[0]] = list(self._nodes[self._starts[0]].index.items())
        return self._arguments(deltas, only_first=True)

    def _arguments(self, deltas: Sequence[Sequence[Any]], *, only_first: bool) -> list[Any]:
        before: dict[int, Callable[..., Any]] = {}
        given: list[Any] = []
        for place, ports in enumerate(self._given):
            delta = deltas[self._starts[place]]
            given.append(() if only_first and place else delta)
            for _, port, is_later in ports:
                if is_later and not only_first and delta and deltas[port]:
                    if port not in before:
                        before[port] = _before(self._nodes[port].index, deltas[port])
                    given.append(before[port])
                else:
                    given.append(self._nodes[port].index.buckets.get)
        return given


def _before(index: Any, delta: Sequence[Any]) -> Callable[..., Any]:
    """A look-up in an index as it was before a delta; one that all rows came with was empty."""
    if isinstance(delta, KeyedBatch) and delta.weight > 0 and len(delta) == index.rows:
        return {}.get
    return Before(index, delta).get


class Joined:
    """Runs the loops of all paths into a list."""

    __slots__ = ("_loop", "_owner", "_paths", "source", "touched")

    def __init__(
        self, paths: Paths, loop: Callable[..., Any], source: str, owner: plan.Node
    ) -> None:
        self._paths = paths
        self._loop = loop
        self._owner = owner
        self.source = source
        self.touched = 0

    def step(self, *deltas: Sequence[Any]) -> list[Pair]:
        self.touched += sum(map(len, deltas))
        try:
            out, met = self._loop(None, None, *self._paths.look_ups(*deltas))
        except Exception as error:
            raise Unfit(self._owner, self) from error
        self.touched += met
        return out  # type: ignore[no-any-return]

    def contents(self) -> Sequence[Pair]:
        out, _ = self._loop(None, None, *self._paths.all())
        return out  # type: ignore[no-any-return]


def path_loops(
    names: tuple[str, ...],
    shapes: Shapes,
    wide: plan.Wide,
    paths: Sequence[Path],
    chain: Chain,
    taker: Callable[[Plan], Taker],
) -> tuple[Callable[..., Any], str]:
    """The loops of all paths, with a chain on what is joined, and their text."""
    values = Values()
    arguments, lines = ["groups", "before"], list[str]()
    for place, path in enumerate(paths):
        todo = Plan((), len(names), shapes)
        todo.is_input = False
        for test in wide.rest:
            todo.test(test)
        todo.row = wide.row
        todo.extend(chain)
        takes = taker(todo)
        finds = {key: f"find_{place}_{number}" for number, key in enumerate(_keys(path))}
        arguments += [f"delta_{place}", *finds.values()]
        lines += _Loop(todo, names, values, takes).lines(place, path, finds)
    end = takes.epilogue()
    text = "\n".join(
        [
            f"def step({', '.join(arguments)}):",
            *("    met = 0", *takes.prologue(), *lines, *end[:-1]),
            *("    return out, met", ""),
        ]
    )
    values.by_name |= {"NOTHING": NOTHING, "Mark": Mark, "size": _size, **PAIRED, **takes.bound}
    return build("step", text, values), text


def _keys(path: Path) -> list[Key]:
    """The indexes of a path, each once."""
    return list(dict.fromkeys(step.key for steps in path for step in steps))


class _Loop:
    """Writes the loop over the changes of one input."""

    def __init__(self, todo: Plan, names: tuple[str, ...], values: Values, taker: Taker) -> None:
        self._todo = todo
        self._names = names
        self._values = values
        self._taker = taker

    def lines(self, place: int, path: Path, finds: dict[Key, str]) -> list[str]:
        """The loop from an input along its path."""
        head = Body(self._values, (*self._names, *_TIMES), self._todo.shapes, 2)
        head.expect([*(act.expr for act in self._todo.acts), *self._taker.exprs()])
        head.line("if key.__class__ is Mark: continue")
        head.line(f"{self._names[place]}, times_{place} = pair")
        for number, steps in enumerate(path):
            self._find(head, steps[0], finds, f"found_{number}")
        lines = [f"    for key, pair in delta_{place}:", *head.lines]
        if len(path) == 1:
            return lines + self._along(head, path[0], finds, [place], 2, "found_0")
        return [
            *lines,
            "        if size(found_0) <= size(found_1):",
            *self._along(head, path[0], finds, [place], 3, "found_0"),
            "        else:",
            *self._along(head, path[1], finds, [place], 3, "found_1"),
        ]

    def _find(self, body: Body, step: Step, finds: dict[Key, str], name: str) -> None:
        parts = [body.use(part) for part in step.probe]
        whole = parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
        body.line(f"{name} = {finds[step.key]}({whole}, NOTHING)")
        body.line(f"if {name} is NOTHING: continue")

    def _along(
        self,
        outer: Body,
        steps: list[Step],
        finds: dict[Key, str],
        bound: list[int],
        indent: int,
        found: str,
    ) -> list[str]:
        """The loops over what was found, and over what is found from there."""
        step, rest = steps[0], steps[1:]
        head = outer.nested(indent)
        pair_up(head, found)
        head.line(f"for {self._names[step.place]}, times_{step.place} in {found}:")
        body = head.nested(indent + 1)
        body.line("met += 1")
        bound = [*bound, step.place]
        if rest:
            name = f"found_{len(bound)}"
            self._find(body, rest[0], finds, name)
            inner = self._along(body, rest, finds, bound, indent + 1, name)
            return [*head.lines, *body.lines, *inner]
        body.line(f"weight = {' * '.join(f'times_{place}' for place in bound)}")
        body.write(self._todo.acts)
        self._taker.write(body, "weight")
        return [*head.lines, *body.lines]


_TIMES = tuple(f"times_{n}" for n in range(10)) + tuple(f"found_{n}" for n in range(10))


def pair_up(body: Body, found: str) -> None:
    """Make pairs of what was found in an index, in any of its forms."""
    body.line(f"if {found}.__class__ is Weighted: {found} = {found}.values()")
    body.line(f"else: {found} = once({found}) if {found}.__class__ is Rows else (({found}, 1),)")


def _once(rows: Sequence[Any]) -> list[Pair]:
    return [(row, 1) for row in rows]


PAIRED = {"Rows": Rows, "Weighted": Weighted, "once": _once}
"""What the lines of `pair_up` call by name."""


def _size(found: Any) -> int:
    return len(found) if found.__class__ is Rows or found.__class__ is Weighted else 1
