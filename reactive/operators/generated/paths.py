"""A join of three or more inputs at once: a change of each is followed through the others.

    for key, pair in delta_0:                       what changes of a
        found_1 = find_0_0(a.dst, NOTHING)          b: those that begin where a ends
        found_2 = find_0_1(a.src, NOTHING)          c: those that end where a begins
        for b, c, times in pairs(found_1, found_2):
            ...                                     c begins where b ends
    for key, pair in delta_1: ...

Where two inputs do not meet like this, the one of which fewer rows are found is gone through first,
and the others are looked up.

An input is found as it is after the commit by those behind it, and as it was before by those in
front of it:

    d(A B C)  =  dA B C  +  A' dB C  +  A' B' dC            with A' = A + dA

A row that one of the terms adds and another takes away is cancelled here, so that nothing above
sees it.

State:  none of its own; indexes, shared with all joins of the same input by the same key.
Cost:   O(|d| * the smaller of the sides that it meets).
Source: see `optimizer/plans/multiway.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from optimizer import plan
from optimizer.expr import reads
from optimizer.expressions.knowledge import Shapes
from optimizer.plans.multiway import Wide
from reactive.codegen.body import Body, Chain, Plan
from reactive.codegen.functions import Values, build
from reactive.codegen.itinerary import Key, Meet, Move, Path, Step, keys_of, steps_of
from reactive.codegen.taker import Taker
from reactive.collections.index import NOTHING, Mark, Rows, Weighted
from reactive.collections.trie import meetings, pairs
from reactive.collections.zset import Pair, consolidate, is_mixed
from reactive.operators.index_by import IndexBy
from reactive.operators.sums_by import Unfit


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
            [(self._ports[key], indexes[key].index.find, key[0] > place) for key in keys_of(path)]
            for place, path in enumerate(paths)
        ]
        self._is_filled = is_filled

    def look_ups(self, *deltas: Sequence[Any]) -> list[Any]:
        """For each path its delta, then its look-ups; at first all comes by the first path."""
        self._check()
        is_first, self._is_filled = not self._is_filled, True
        return self._arguments(deltas, only_first=is_first)

    def meet(self, deltas: Sequence[Sequence[Any]]) -> bool:
        """Whether what changes of an input may meet what changes of another: such rows may come and
        go in the same commit."""
        return sum(bool(deltas[port]) for port in self._starts) > 1

    def all(self) -> list[Any]:
        """The same for all that there is."""
        self._check()
        deltas: list[Sequence[Any]] = [()] * len(self._nodes)
        deltas[self._starts[0]] = list(self._nodes[self._starts[0]].index.items())
        return self._arguments(deltas, only_first=True)

    def _check(self) -> None:
        for operator in self._nodes:
            if operator.odd:
                raise LookupError("a key could not be computed")

    def _arguments(self, deltas: Sequence[Sequence[Any]], *, only_first: bool) -> list[Any]:
        before: dict[int, Callable[..., Any]] = {}
        given: list[Any] = []
        for place, ports in enumerate(self._given):
            delta = deltas[self._starts[place]]
            given.append(() if only_first and place else delta)
            if only_first or not delta:
                given += [find for _, find, _ in ports]
                continue
            for port, find, is_later in ports:
                if is_later and deltas[port]:
                    found = before.get(port)
                    if found is None:
                        found = before[port] = _before(self._nodes[port], deltas[port])
                    given.append(found)
                else:
                    given.append(find)
        return given


def _before(operator: IndexBy, delta: Sequence[Any]) -> Callable[..., Any]:
    """A look-up in an index as it was before a delta."""
    if operator.was_empty:
        return {}.get
    found: Callable[..., Any] = operator.index.before(delta)
    return found


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
        return consolidate(out) if self._paths.meet(deltas) and is_mixed(out) else out

    def contents(self) -> Sequence[Pair]:
        try:
            out, _ = self._loop(None, None, *self._paths.all())
        except Exception as error:
            raise Unfit(self._owner, self) from error
        return out  # type: ignore[no-any-return]


def joined_plan(wide: Wide, chain: Chain, shapes: Shapes) -> Plan:
    """What is done with the rows that are joined."""
    todo = Plan((), len(shapes), shapes)
    todo.is_input = False
    for test in wide.rest:
        todo.test(test)
    todo.row = wide.row
    todo.extend(chain)
    return todo


def path_loops(
    names: tuple[str, ...],
    shapes: Shapes,
    wide: Wide,
    paths: Sequence[Path],
    chain: Chain,
    taker: Callable[[Plan], Taker],
) -> tuple[Callable[..., Any], str]:
    """The loops of all paths, with a chain on what is joined, and their text."""
    values = Values()
    arguments, lines = ["groups", "before"], list[str]()
    for place, path in enumerate(paths):
        todo = joined_plan(wide, chain, shapes)
        takes = taker(todo)
        finds = {key: f"find_{place}_{number}" for number, key in enumerate(keys_of(path))}
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
    values.bind({"NOTHING": NOTHING, "Mark": Mark, "size": _size, **PAIRED, **takes.bound})
    values.bind({"pairs": pairs, "meetings": meetings})
    return build("step", text, values), text


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
        head.expect(self._todo.acts, self._taker.exprs())
        head.line("if key.__class__ is Mark: continue")
        head.line(f"{self._names[place]}, times_{place} = pair")
        start = f"    for key, pair in delta_{place}:"
        if len(path) == 1:
            return [start, *head.lines, *self._along(head, path[0], finds, [place], 2)]
        for number, moves in enumerate(path):
            step = next(steps_of(moves))
            look_up(head, step, finds[step.key], f"found_{number}")
        return [
            *(start, *head.lines, "        if size(found_0) <= size(found_1):"),
            *self._along(head, path[0], finds, [place], 3, "found_0"),
            "        else:",
            *self._along(head, path[1], finds, [place], 3, "found_1"),
        ]

    def _along(
        self,
        outer: Body,
        moves: Sequence[Move],
        finds: dict[Key, str],
        bound: list[int],
        indent: int,
        found: str = "",
    ) -> list[str]:
        """The loops over what is found, or was `found` already, and over what is from there."""
        body = outer.nested(indent)
        if not moves:
            body.line(f"weight = {' * '.join(f'times_{place}' for place in bound)}")
            body.write(self._todo.acts)
            self._taker.write(body, "weight")
            return body.lines
        move, rest = moves[0], moves[1:]
        if isinstance(move, Meet):
            return self._together(body, move, rest, finds, bound, indent)
        if not found:
            found = f"found_{len(bound)}"
            look_up(body, move, finds[move.key], found)
        pair_up(body, found)
        inner = self._each(body, move, found, indent)
        inner.line("met += 1")
        return (
            body.lines
            + inner.lines
            + self._along(inner, rest, finds, [*bound, move.place], indent + 1)
        )

    def _together(
        self,
        body: Body,
        move: Meet,
        rest: Sequence[Move],
        finds: dict[Key, str],
        bound: list[int],
        indent: int,
    ) -> list[str]:
        """The loop over the rows of two inputs that have the same value, and how often they are.

        Where nothing is read of these rows, they are counted.
        """
        number = len(bound)
        for step, name in ((move.left, "found"), (move.right, "also")):
            look_up(body, step, finds[step.key], f"{name}_{number}")
        places = (move.left.place, move.right.place)
        first, second = (self._names[place] for place in places)
        often, both = f"times_{places[0]}", f"found_{number}, also_{number}"
        if self._reads(places, rest):
            indent += 1
            body.line(f"for {first}, {second}, {often} in pairs({both}):")
        else:
            body.line(f"{often} = meetings({both})")
            body.line(f"if not {often}: continue")
        inner = body.nested(indent)
        inner.line("met += 1")
        lines = [*body.lines, *inner.lines]
        return lines + self._along(inner, rest, finds, [*bound, places[0]], indent)

    def _reads(self, places: tuple[int, int], rest: Sequence[Move]) -> bool:
        """Whether anything is read of the rows of two inputs."""
        exprs = [*(act.expr for act in self._todo.acts), *self._taker.exprs()]
        exprs += [part for step in steps_of(rest) for part in step.probe]
        return any(reads(expr).intersection(places) for expr in exprs)

    def _each(self, outer: Body, step: Step, found: str, indent: int) -> Body:
        """The body of a loop over the rows that were found; its head is written outside."""
        outer.line(f"for {self._names[step.place]}, times_{step.place} in {found}:")
        return outer.nested(indent + 1)


_RESERVED = ("times", "found", "also")
_TIMES = tuple(f"{name}_{n}" for name in _RESERVED for n in range(10))


def look_up(body: Body, step: Step, find: str, name: str) -> None:
    """The lines that look a step up."""
    parts = [body.use(part) for part in step.probe]
    whole = parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
    body.line(f"{name} = {find}({whole}, NOTHING)")
    body.line(f"if {name} is NOTHING: continue")


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
