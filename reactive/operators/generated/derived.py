"""One way of a recursion as loops: what follows from rows of a relation, joined with others.

    for row in rows:                                rows that enter
        key = row.dst
        found = find(key)                           their partners
        for other in found:
            append(Pair(row.src, other.dst))        the rest of the predicate, the chain above

Three forms of the same, made when they are first needed:

    entering   of rows, to rows                     all derivations are of this round
    leaving    of (row, -round), to (row, -round)   the later round of the two, if both have one
    joined     of partners that come and go         the round is that of the row found

State:  none.
Cost:   O(rows + matches).
Source: semi-naive evaluation: Bancilhon, *Naive Evaluation of Recursively Defined Relations*, 1986.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from optimizer import plan
from optimizer.expr import Expr, Item, Lifted, Parameter, constant, substitute
from optimizer.expressions.knowledge import Shapes
from optimizer.plans.early import Step
from optimizer.traverse import read_functions
from reactive.codegen.body import Body, Plan, row_names
from reactive.codegen.functions import Values, build
from reactive.collections.index import NO_MATCH, NOTHING, Rows, Weighted, match_key
from reactive.collections.row_index import Many
from reactive.operators.generated.keyed import write_key

Loop = Callable[..., Any]
KeySide = tuple[Lifted | None, tuple[Step, ...]]


@dataclass(frozen=True, slots=True)
class Way:
    """What a loop has to do: a relation below wheres, joined with another side, below a chain."""

    below: tuple[plan.Node, ...]
    key: KeySide
    is_left: bool
    bindings: int
    """Of the pair."""
    width: int
    """Of the recursive side."""
    shapes: Shapes
    rest: Lifted | None
    above: tuple[plan.Node, ...]

    @property
    def places(self) -> tuple[int, ...]:
        """The bindings of the pair that the recursive side has."""
        count = self.bindings
        return tuple(range(count - 1)) if self.is_left else (count - 1,)


def entering(way: Way) -> Loop:
    """`rows, find -> rows`; `find` looks up in an index, or in one of a relation."""
    return _outward(way, "def entering(delta, find):", "{mine}", "{row}")


def leaving(way: Way) -> Loop:
    """`pairs, find -> pairs`, joined with an input."""
    return _outward(way, "def leaving(delta, find):", "{mine}, weight", "({row}, weight)")


def leaving_both(way: Way) -> Loop:
    """`pairs, find, since -> pairs`, joined with a relation; weights are negative."""
    made = "({row}, min(weight, -since({theirs})))"
    return _outward(way, "def leaving(delta, find, since):", "{mine}, weight", made)


def joined(way: Way) -> Loop:
    """`keyed, find, rounds -> pairs`: partners of the other side that come (1) or go (-1)."""
    values = Values()
    mine, theirs = _split(way, _names(way))
    body = Body(values, _names(way), way.shapes, 2)
    todo, row = _rest(way)
    body.expect(todo.acts, [row])
    body.line(f"{_one(theirs)}, weight = pair")
    body.unpack(theirs)
    body.hoist(frozenset(range(way.bindings)) - frozenset(way.places))
    body.line("if found.__class__ is not Many: found = (found,)")
    body.line(f"for {_one(mine)} in found:")
    inner = body.nested(3)
    inner.unpack(mine)
    inner.write(todo.acts)
    inner.line(f"append(({inner.canonical(row)}, weight * rounds[{_one(mine)}]))")
    loop = ["    for key, pair in delta:", *FIND, *body.lines, *inner.lines]
    return _built(["def joined(delta, find, rounds):", *START, *loop], values)


def _find(body: Body, key: list[Expr], todo: Plan, *, is_written: bool) -> None:
    """Look the key up."""
    names = [body.use(part) for part in key]
    names = [n if n.isidentifier() else body.variable("key", n) for n in names]
    if is_written:
        whole = body.variable("key", write_key(body, key, todo, is_written=True))
        body.line(f"if {whole} is NO_MATCH: continue")
    else:
        for name in names:
            body.line(f"if {name} != {name}: continue")
        whole = names[0] if len(names) == 1 else f"({', '.join(names)})"
    body.line(f"found = find({whole}, NOTHING)")
    body.line("if found is NOTHING: continue")


def copying(chain: tuple[plan.Node, ...], todo: Plan) -> Loop:
    """`rows -> rows`: a chain over the rows of a relation."""
    values = Values()
    body = Body(values, row_names(read_functions(*chain), todo.bindings), todo.shapes, 2)
    body.begin(todo.acts, [] if todo.is_input else [todo.value()])
    body.write(todo.acts)
    body.line(f"append({'row' if todo.is_input else body.canonical(todo.value())})")
    return _built(["def copying(delta):", *START, "    for row in delta:", *body.lines], values)


START = ("    out = []", "    append = out.append")
FIND = (
    "        found = find(key, NOTHING)",
    "        if found is NOTHING or key is NO_MATCH: continue",
)
IN_INDEX = (
    "        kind = found.__class__",
    "        if kind is not Rows and kind is not Many:",
    "            found = [row for row, _ in found.values()] if kind is Weighted else (found,)",
)


def _outward(way: Way, head: str, each: str, made: str) -> Loop:
    """From rows of the relation to their partners."""
    values = Values()
    mine, theirs = _split(way, _names(way))
    body = Body(values, _names(way), way.shapes, 2)
    first, key = _key(way)
    todo, row = _rest(way)
    body.expect((*first.acts, *todo.acts), [*key, row])
    body.unpack(mine)
    body.write(first.acts)
    _find(body, key, first, is_written=way.key[0] is not None)
    after = [*(act.expr for act in todo.acts), row]
    body.hoist(frozenset(way.places), after)
    inner = body.nested(3)
    inner.unpack(theirs)
    inner.write(todo.acts)
    shown = made.format(row=inner.canonical(row), theirs=_one(theirs))
    inner.line(f"append({shown})")
    loop = [f"    for {each.format(mine=_one(mine))} in delta:", *body.lines, *IN_INDEX]
    return _built(
        [head, *START, *loop, f"        for {_one(theirs)} in found:", *inner.lines], values
    )


def _built(lines: Sequence[str], values: Values) -> Loop:
    values.bind({"NO_MATCH": NO_MATCH, "NOTHING": NOTHING, "match_key": match_key})
    values.bind({"Rows": Rows, "Weighted": Weighted, "Many": Many})
    name = lines[0].removeprefix("def ").partition("(")[0]
    return build(name, "\n".join([*lines, "    return out", ""]), values)


def _key(way: Way) -> tuple[Plan, list[Expr]]:
    """The tests of the recursive side, and the parts of its key, in terms of the pair."""
    todo = Plan((), way.bindings, way.shapes)
    for node in way.below:
        assert isinstance(node, plan.Where) and isinstance(node.predicate, Lifted)
        todo.test(_moved(way, node.predicate.body, way.width))
    written, steps = way.key
    arguments = len(way.places)
    parts = [] if written is None else [todo.take(_moved(way, written.body, arguments))]
    for step in steps:
        expr = _moved(way, step.function.body, arguments)
        if step.is_key:
            parts.append(todo.take(expr))
        else:
            todo.test(expr)
    return todo, parts


def _rest(way: Way) -> tuple[Plan, Expr]:
    """What is done with a pair, and the row that comes of it."""
    todo = Plan((), way.bindings, way.shapes)
    todo.is_input = False
    if way.rest is not None:
        todo.test(way.rest.body)
    todo.extend(way.above)
    return todo, todo.value()


def _moved(way: Way, expr: Expr, arguments: int) -> Expr:
    """An expression of the recursive row, with so many parameters, in terms of the pair."""
    places = way.places
    if arguments == len(places):
        return substitute(expr, tuple(map(Parameter, places)))
    row = Parameter(places[0])  # one value of the pair, several bindings by itself
    return substitute(expr, tuple(Item(row, constant(i)) for i in range(arguments)))


def _names(way: Way) -> tuple[str, ...]:
    called = read_functions(*way.above) if way.rest is None else [way.rest]
    return row_names([*called, *read_functions(*way.above)], way.bindings)


def _split(way: Way, names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the recursive side, and those of the other."""
    left, right = names[:-1], names[-1:]
    return (left, right) if way.is_left else (right, left)


def _one(names: Sequence[str]) -> str:
    """The variable that holds the row of a side as one value."""
    return names[0] if len(names) == 1 else "row"
