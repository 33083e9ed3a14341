"""Why a query has no row with wanted values: on each way to such a row, what holds and what fails.

    wanted   reach (1, 9)
    way      reach (1, 8) holds, edges (8, 9) is missing      and with it the row is there
    way      edges (1, 9) is missing                          and with it the row is there
    way      Order(7, total=5) holds, where o.total > 10 is false

The query is followed backwards as for a proof. Where a table has no row with the wanted values, and
these decide all fields of a row, that row is assumed, and the way goes on; so a way is complete if
its assumed rows make the row. Joins are tried from both sides.

Cost:   of the rows found on the ways, of which the first few are followed.
Source: Bidoit, Herschel, Tzompanaki 2014; Lee, Ludäscher, Glavic, PUG, VLDB Journal 2019.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from optimizer import plan
from optimizer.expr import Attribute, Constant, Expr, Item, Lifted, Parameter, row_names
from optimizer.expressions.knowledge import constructor
from optimizer.expressions.simplification import tuple_width
from optimizer.expressions.text import text
from optimizer.plans.explain import headline
from optimizer.plans.properties import below_wheres, bindings, free
from reactive.engine.collections.zset import Row
from reactive.engine.provenance.goals import PlaceInOrder
from reactive.engine.provenance.pull import Pull, SidesOfJoin
from reactive.engine.provenance.wanted import Wanted, wanted_row
from reactive.engine.reference.asking import evaluate_node
from reactive.engine.reference.bags import Bag, PairedInputs, ordered_rows, pairing
from reactive.engine.runtime.interrupts import reraise_asynchronous

FOLLOWED = 3
"""Number of rows of an input that are followed."""
MOST = 24
"""Number of ways of one node that are looked at."""
DEEPEST = 3
"""Number of times that a way enters the same relation of a recursion."""
NOTHING: Any = object()


@dataclass(frozen=True, slots=True)
class WayToRow:
    """One way to a wanted row.

    row: the row that the way makes, of rows that hold or are assumed; `NOTHING` if it fails.
    holds: rows of tables, views and relations that hold, with the nodes that have them.
    missing: the assumed rows of tables.
    reason: why the way fails; empty if it does not.
    """

    row: Row
    holds: tuple[tuple[plan.Node, Row], ...] = ()
    missing: tuple[tuple[plan.Table, Row], ...] = ()
    reason: str = ""

    @property
    def fails(self) -> bool:
        return self.row is NOTHING

    def stopped(self, reason: str) -> WayToRow:
        """Return the way as one that fails for a reason."""
        return replace(self, row=NOTHING, reason=reason)

    def after(self, other: WayToRow) -> WayToRow:
        """Return the way as one that goes on from another one."""
        return replace(self, holds=other.holds + self.holds, missing=other.missing + self.missing)


class WaysToRows:
    """Finds the ways to the rows of a query with wanted values.

    asked: as of `RowDerivations`, with `row_with_key_of(table, row)`, the other row with its key.
    """

    def __init__(self, asked: Any) -> None:
        self._asked = asked
        self._entered: Counter[Any] = Counter()

    def to(self, node: plan.Node, wanted_values: Sequence[Wanted]) -> list[WayToRow]:
        """Return the ways to wanted rows of a node, the most satisfied first."""
        found = list(dict.fromkeys(self._to(node, wanted_values)))
        found.sort(key=lambda way: (way.fails, len(way.missing), -len(way.holds)))
        return found

    def _to(self, node: plan.Node, asked: Sequence[Wanted]) -> Iterator[WayToRow]:
        if any(not each.values for each in asked):
            yield WayToRow(NOTHING, reason=f"{headline(node)} makes no such row")
            return
        asked = [each for each in asked if each.exprs]
        yield from islice(self._ways(node, asked), MOST)

    def _ways(self, node: plan.Node, asked: Sequence[Wanted]) -> Iterator[WayToRow]:
        pull: Pull = self._asked.pull()
        match node:
            case plan.Table():
                yield from self._of_table(node, asked, pull)
            case plan.Values():
                rows = pull.rows(node, asked)
                yield from (WayToRow(row) for row in _first(rows))
                if not rows:
                    yield WayToRow(NOTHING, reason="the query writes out no such row")
            case plan.Recursive() | plan.Component() | plan.Fixpoint() | plan.Iterate():
                yield from self._of_relation(node, asked, pull)
            case plan.View(source):
                rows = pull.rows(node, asked)
                yield from (WayToRow(row, ((node, row),)) for row in _first(rows))
                if not rows:
                    yield from self._to(source, asked)
            case plan.Distinct() | plan.Union() | plan.UnionAll():
                for source in node.inputs():
                    yield from self._to(source, asked)
            case plan.Difference(left, right) | plan.DifferenceAll(left, right):
                for way in self._to(left, asked):
                    if not way.fails and pull.weight(right, way.row) > 0:
                        yield way.stopped(f"{_name(right)} has {way.row!r:.200}")
                    else:
                        yield way
            case plan.Intersection(left, right) | plan.IntersectionAll(left, right):
                yield from self._of_both(left, right, asked)
                yield from self._of_both(right, left, asked)
            case plan.Aggregate() | plan.Reduce():
                yield from self._of_group(node, asked, pull)
            case plan.Top() | plan.OrderBy():
                yield from self._of_order(node, asked, pull)
            case _:
                found = pairing(node)
                if found is not None:
                    yield from self._of_pair(node, found, asked, pull)
                elif len(node.inputs()) == 1:
                    yield from self._of_rows(node, asked, pull)
                else:
                    yield WayToRow(NOTHING, reason=f"{headline(node)} makes no such row")

    def _of_table(
        self, node: plan.Table, asked: Sequence[Wanted], pull: Pull
    ) -> Iterator[WayToRow]:
        rows = pull.rows(node, asked)
        yield from (WayToRow(row, ((node, row),)) for row in _first(rows))
        if rows:
            return
        decided = [row for row in _decided(node, asked) if _has_values(row, asked, pull)]
        for row in decided[:FOLLOWED]:
            other = self._asked.row_with_key_of(node, row)
            if other is None:
                yield WayToRow(row, missing=((node, row),))
            else:
                reason = f"{node.name} has {other!r:.200} with its key, not {row!r:.200}"
                yield WayToRow(NOTHING, ((node, other),), reason=reason)
        if not decided:
            yield WayToRow(NOTHING, reason=f"no row of {node.name}{_with(asked)}")

    def _of_relation(
        self, node: plan.Node, asked: Sequence[Wanted], pull: Pull
    ) -> Iterator[WayToRow]:
        recursion, index = self._asked.relation(node)
        rows = pull.rows(node, asked)
        yield from (WayToRow(row, ((node, row),)) for row in _first(rows))
        if rows:
            return
        if isinstance(recursion, plan.Iterate) or free(recursion):
            yield WayToRow(NOTHING, reason=f"no row of {recursion.names[index]}{_with(asked)}")
            return
        place = recursion.level, index
        if self._entered[place] >= DEEPEST:
            return
        self._entered[place] += 1
        try:
            ways = list(self._to(recursion.bodies[index], asked))
        finally:
            self._entered[place] -= 1
        if isinstance(node, plan.Recursive):
            reason = f"no row of {recursion.names[index]}{_with(asked)}"
            yield WayToRow(NOTHING, reason=reason)
        yield from ways

    def _of_rows(self, node: plan.Node, asked: Sequence[Wanted], pull: Pull) -> Iterator[WayToRow]:
        """Yield the ways to rows of a node that makes rows of one input row at a time."""
        (source,) = node.inputs()
        for way in self._to(source, pull.below(node, asked)):
            if way.fails:
                yield way
                continue
            made = _made(node, Counter([way.row]))
            row = next((each for each in made if _has_values(each, asked, pull, node)), NOTHING)
            if row is not NOTHING:
                yield replace(way, row=row)
            elif isinstance(node, plan.Where):
                yield way.stopped(f"{headline(node)} is false for {way.row!r:.200}")
            else:
                yield way.stopped(f"{headline(node)} makes {_few(made)} of {way.row!r:.200}")

    def _of_both(
        self, one: plan.Node, other: plan.Node, asked: Sequence[Wanted]
    ) -> Iterator[WayToRow]:
        for way in self._to(one, asked):
            exact = None if way.fails else wanted_row(way.row, bindings(one))
            if exact is None:
                yield way
            else:
                yield from (each.after(way) for each in self._to(other, [exact]))

    # Joins.

    def _of_pair(
        self, node: plan.Node, found: PairedInputs, asked: Sequence[Wanted], pull: Pull
    ) -> Iterator[WayToRow]:
        join = below_wheres(node) if isinstance(node, plan.Where) else node
        sides = SidesOfJoin(node, found, asked)
        if isinstance(join, plan.AntiJoin):
            yield from self._without_partner(node, found, sides, pull)
            return
        for way in self._to(found.left, sides.of_left):
            if way.fails:
                yield way
                continue
            keys = sides.right_keys(Counter([way.row]), pull.evaluate)
            for other in self._to(found.right, [*sides.of_right, *keys]):
                yield self._paired(node, way.row, other.row, other.after(way), asked, pull)
        if isinstance(join, plan.OuterJoin):
            return
        for way in self._to(found.right, sides.of_right):
            if way.fails:
                yield way
                continue
            keys = sides.left_keys(Counter([way.row]), pull.evaluate)
            for other in self._to(found.left, [*sides.of_left, *keys]):
                yield self._paired(node, other.row, way.row, other.after(way), asked, pull)

    def _paired(
        self,
        node: plan.Node,
        left: Row,
        right: Row,
        way: WayToRow,
        asked: Sequence[Wanted],
        pull: Pull,
    ) -> WayToRow:
        """Return a way that goes on with the pair of two rows."""
        if NOTHING in (left, right):
            return replace(way, row=NOTHING)
        sides = iter((Counter([left]), Counter([right])))
        try:
            made = evaluate_node(node, lambda _: next(sides))
        except Exception as error:
            reraise_asynchronous(error)
            return way.stopped(f"{headline(node)} raises {error!r:.200}")
        for row in made:
            if _has_values(row, asked, pull, node):
                return replace(way, row=row, reason="")
        return way.stopped(f"{headline(node)} is false for {left!r:.200} and {right!r:.200}")

    def _without_partner(
        self, node: plan.Node, found: PairedInputs, sides: SidesOfJoin, pull: Pull
    ) -> Iterator[WayToRow]:
        for way in self._to(found.left, sides.of_left):
            if way.fails:
                yield way
                continue
            keys = sides.right_keys(Counter([way.row]), pull.evaluate)
            for other in pull.rows(found.right, keys):
                pair = iter((Counter([way.row]), Counter([other])))
                if not _evaluated(node, pair):
                    yield way.stopped(f"{_name(found.right)} has {other!r:.200}")
                    break
            else:
                yield way

    # Groups and orders.

    def _of_group(
        self, node: plan.Aggregate | plan.Reduce, asked: Sequence[Wanted], pull: Pull
    ) -> Iterator[WayToRow]:
        pushed = pull.below(node, asked)
        members = pull.rows(node.input, pushed)
        if members:
            made = [row for row in _made(node, members) if pushed or node.key is None]
            said = f"the row of this group is {_few(made)}" if made else "no group has such a row"
            yield WayToRow(NOTHING, reason=f"{headline(node)}: {said}")
            return
        for way in self._to(node.input, pushed):
            if way.fails:
                yield way
                continue
            made = list(_made(node, Counter([way.row])))
            row = next((each for each in made if _has_values(each, asked, pull, node)), NOTHING)
            if row is NOTHING:
                yield way.stopped(f"{headline(node)}: the row would be {_few(made)}")
            else:
                yield replace(way, row=row)

    def _of_order(
        self, node: plan.Top | plan.OrderBy, asked: Sequence[Wanted], pull: Pull
    ) -> Iterator[WayToRow]:
        for way in self._to(node.input, asked if _shows_all(node) else ()):
            if way.fails or way.missing:
                yield way
                continue
            order = node.order if isinstance(node, plan.Top) else node
            whole = plan.OrderBy(order.input, order.keys, None, 0)
            rows = pull.rows(node.input)
            if isinstance(node, plan.Top):
                of = pull.evaluate.of((_key(node),), bindings(node))
                rows = Counter({row: n for row, n in rows.items() if of(row) == of(way.row)})
            every = ordered_rows(whole, rows)
            place = PlaceInOrder(every.index(way.row) + 1, len(every))
            yield way.stopped(f"{headline(node)}: it is number {place.place} of {place.count}")


def _shows_all(node: plan.Top | plan.OrderBy) -> bool:
    return isinstance(node, plan.Top) or node.shown is None


def _evaluated(node: plan.Node, pair: Iterator[Bag]) -> Bag:
    """Return the rows of a join of two bags, the left one first."""
    return evaluate_node(node, lambda _: next(pair))


def _key(node: plan.Top) -> Expr:
    assert isinstance(node.key, Lifted)
    return node.key.body


def _first(rows: Bag) -> Iterator[Row]:
    return islice((row for row, n in rows.items() if n > 0), FOLLOWED)


def _made(node: plan.Node, rows: Bag) -> Bag:
    """Return the rows that a node with one input makes of some rows."""
    return evaluate_node(node, lambda _: rows)


def _has_values(
    row: Row, asked: Sequence[Wanted], pull: Pull, node: plan.Node | None = None
) -> bool:
    count = 1 if node is None else bindings(node)
    return all(pull.evaluate.of(each.exprs, count)(row) in each.values for each in asked)


def _few(rows: Any) -> str:
    shown = [f"{row!r:.100}" for row in islice(rows, FOLLOWED)]
    return ", ".join(shown) or "nothing"


def _name(node: plan.Node) -> str:
    match node:
        case plan.Table() | plan.View(_, str()):
            return str(node.name)
        case plan.Recursive():
            return str(node.name)
        case _:
            return headline(node)


def _with(asked: Sequence[Wanted]) -> str:
    """Return wanted values in words: " with src = 8 and dst = 9"."""
    said = []
    for each in asked:
        names = [text(expr, row_names(1)).removeprefix("row.") for expr in each.exprs]
        values = list(islice(each.values, FOLLOWED))
        if len(each.values) == 1:
            said += [f"{name} = {value!r:.100}" for name, value in zip(names, *values, strict=True)]
        else:
            rest = ", ..." if len(each.values) > FOLLOWED else ""
            shown = ", ".join(f"{v[0] if len(v) == 1 else v!r:.100}" for v in values)
            left = names[0] if len(names) == 1 else f"({', '.join(names)})"
            said.append(f"{left} in ({shown}{rest})")
    return f" with {' and '.join(said)}" if said else ""


def _decided(node: plan.Table, asked: Sequence[Wanted]) -> Iterator[Row]:
    """Yield some rows of a table that wanted values decide completely."""
    names, build = _fields(node)
    for values in _values_of_fields(asked):
        if WHOLE in values:
            yield values[WHOLE]
        elif names is not None:
            at = enumerate(names)
            places = values | {name: values[place] for place, name in at if place in values}
            if all(name in places for name in names):
                yield build([places[name] for name in names])


WHOLE: Any = object()
"""Stands for the whole row among its fields."""


def _fields(node: plan.Table) -> tuple[Sequence[Any] | None, Any]:
    """Return the fields of the rows of a table, None if unknown; and what makes a row of them."""
    width = tuple_width(node.row_type)
    if width is not None:
        return range(width), tuple
    kind = node.row_type
    names = constructor(kind) if isinstance(kind, type) else None
    return names, lambda values: kind(*values)


def _values_of_fields(asked: Sequence[Wanted]) -> list[dict[Any, Any]]:
    """Return some combinations of wanted values, by the fields that have them."""
    found: list[dict[Any, Any]] = [{}]
    for each in sorted(asked, key=lambda one: len(one.values)):
        fields = {place: _field(expr) for place, expr in enumerate(each.exprs)}
        parts = [
            {field: value[place] for place, field in fields.items() if field is not None}
            for value in islice(each.values, MOST)
        ]
        found = [
            {**one, **part}
            for one in found
            for part in parts
            if all(one.get(field, value) == value for field, value in part.items())
        ][:MOST]
    return found


def _field(expr: Expr) -> Any:
    """Return the field of a row that an expression reads; None if it computes something."""
    match expr:
        case Parameter(0):
            return WHOLE
        case Attribute(Parameter(0), name):
            return name
        case Item(Parameter(0), Constant(int() as item)) if item >= 0:
            return item
    return None
