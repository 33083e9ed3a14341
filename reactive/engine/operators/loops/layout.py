"""Layout of a loop: the parts that stay the same from round to round.

    groups of  r.value / s.edges  by s.dst,  for s of shares, r of ranks where s.src == r.node
    ranks <-   Rank(node, 0.15 + 0.85 * total)

Only `r.node`, which is the group's key, decides which rows join, and the group of each pair:
it is constant while the keys are. So a round is a few columns: `r.value` by group, `s.edges` by
pair.

A body fits if it is a chain of selects over an aggregate by key, or over a left join of constant
rows with such an aggregate (`padded_groups.py`); the aggregate reads relations of
the round, alone or joined with a constant relation. Join conditions and group keys may read only
fields of the round that a select computes from a key; no row may be dropped because of totals.

State:  none; `kept_rounds.py` stores an evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from optimizer import plan
from optimizer.expr import (
    Attribute,
    Conditional,
    Constant,
    Display,
    Expr,
    Item,
    Lifted,
    Local,
    Operation,
    Parameter,
    constant,
    one_value,
    parts,
    reads,
    rebuilt,
    substitute,
    transform,
    walk,
)
from optimizer.expressions.knowledge import makes_record
from optimizer.expressions.text import needs, project_node, surely
from optimizer.plans.properties import bindings, row_shape, shapes
from optimizer.plans.side_conditions import residual
from reactive.engine.codegen.emitter import RowPipeline
from reactive.engine.codegen.loop_expressions import Column, column
from reactive.engine.operators.accumulators import CountAccumulator
from reactive.engine.operators.fuse import make_key_lister
from reactive.engine.operators.loops.padded_groups import KEY, padding_of, rows_of_none, with_group
from reactive.engine.operators.plain import Side, all_read, is_read, sides

Joined = plan.Join | plan.Product | plan.OuterJoin
Keyed = Callable[[list[Any]], tuple[list[Any], list[Any]]]
"""Returns the keys of rows, and the rows that have one."""
ROW = Local("row")
"""A row of a constant relation."""
SlotOf = Callable[[plan.Node], tuple[int, bool]]
"""Returns the slot of a node's rows, and True if they change from round to round."""


class NoLayout(Exception):
    """Raised if the rounds of a loop have no layout."""


@dataclass(frozen=True, slots=True)
class AggregateLoop:
    """A loop into an aggregate: its chain, its base, the join if the base is one, and the slots
    that it reads; of an outer join, the side whose rows without a partner it reads."""

    chain: tuple[plan.Node, ...]
    base: plan.Node
    join: Joined | None
    loop: Callable[..., Any]
    reads: tuple[int, ...]
    side: str = ""

    @property
    def inputs(self) -> tuple[plan.Node, ...]:
        if self.join is None:
            return (self.base,)
        return (self.join.left, self.join.right)

    @property
    def kept(self) -> tuple[plan.Node, ...]:
        """The inputs whose rows it reads: constant ones stay so while keys do."""
        if self.join is None or not self.side:
            return self.inputs
        return (self.join.left if self.side == "left" else self.join.right,)


@dataclass(frozen=True, slots=True)
class PairColumn:
    """A column with a value for each pair, computed from stored columns and columns of the
    round."""

    make: Callable[..., Column]
    expr: Expr
    width: int
    """Number of arguments among the position of the round's row and the constant row."""
    kept: tuple[int, ...]
    found: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TotalColumn:
    """A column with a value for each group; `make` takes the columns of key, totals, and row."""

    make: Callable[..., Column]
    expr: Expr


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of an aggregate's input that one loop produces.

    Parameters
    ----------
    form: the number of the `Fields` of the round's rows.
    outer: the slot of the constant rows, if there are any; `keys` returns their keys.
    inner: the keys of the round's rows.
    key, kept: constant columns of the pairs, over the constant rows and the fields of the form.
    values: columns of the aggregates, computed in each round; `checked` is evaluated because it may
        raise.
    """

    form: int
    outer: int | None
    keys: Keyed | None
    inner: PairColumn | None
    key: PairColumn
    kept: tuple[PairColumn, ...]
    checked: tuple[PairColumn, ...]
    values: tuple[PairColumn, ...]


@dataclass(frozen=True, slots=True)
class GroupLayout:
    """An aggregate: its slot, the loops of its constant values, and the pairs of each round."""

    node: plan.Aggregate
    slot: int
    given: tuple[Callable[..., Any], ...]
    pairs: tuple[Pairs, ...]

    @property
    def valued_accumulators(self) -> list[Any]:
        """The accumulators that read values."""
        return [
            a.accumulator
            for a in self.node.aggregates
            if not isinstance(a.accumulator, CountAccumulator)
        ]


@dataclass(frozen=True, slots=True)
class NearRows:
    """The tolerance of a relation, over the fields of its rows."""

    by: PairColumn
    value: PairColumn
    least: float

    def compute(self, value: PairColumn, fields: Sequence[Column], size: int) -> Column:
        """Return the values of an expression for all rows."""
        return value.make(range(size), *[fields[place] for place in value.found])


Told = tuple[int, int | None, Keyed | None, PairColumn | None]


class Fields:
    """Fields read from rows that selects compute from an aggregate, in terms of key and totals.

    Rows are those of the previous round or, with `is_now`, those that this round has computed.
    """

    def __init__(self, body: plan.Node, slot_of: SlotOf, *, is_now: bool = False) -> None:
        chain: list[plan.Node] = []
        node = body
        while isinstance(node, plan.Select) and is_read(node):
            chain.insert(0, node)
            node = node.input
        self.padding = padding_of(node, slot_of)
        below = node if self.padding is None else self.padding.join.right
        if not isinstance(below, plan.Aggregate) or below.key is None or bindings(body) != 1:
            raise NoLayout
        self.aggregate = below
        self.is_now = is_now
        self.of_alone = None if self.padding is None else rows_of_none(self.padding.join, chain)
        """The function from constant rows without a group to rows of the body."""
        self._pipeline = RowPipeline(chain, bindings(node), shapes(node))
        self._inlined, self._touched = _make_inliner(self._pipeline)
        if self.padding is not None:
            self._touched = [with_group(expr, bindings(below)) for expr in self._touched]
        self._read: dict[Expr, int] = {}
        self._made: list[Expr] = []

    def local(self, field: Expr) -> Local:
        """Return the variable of a field in expressions over pairs."""
        place = self._read.get(field)
        if place is None:
            place = self._read[field] = len(self._made)
            made = self._inlined(self._pipeline.rewrite(field))
            if self.padding is not None:
                made = with_group(made, bindings(self.aggregate))
            self._made.append(made)
        return Local(f"found_{place}[pair]")

    @property
    def stay(self) -> list[int]:
        """The fields that are computed from the key, and the constant row, alone."""
        return [place for place, made in enumerate(self._made) if reads(made) <= self._constant]

    @property
    def move(self) -> list[int]:
        """The fields that read totals."""
        return [place for place, made in enumerate(self._made) if not reads(made) <= self._constant]

    @property
    def _constant(self) -> set[int]:
        """The places of the key and, in a left join, of the constant row."""
        return {0} if self.padding is None else {0, bindings(self.aggregate)}

    def moves(self, expr: Expr) -> bool:
        """Return True if an expression over pairs reads totals."""
        moving = {Local(f"found_{place}[pair]") for place in self.move}
        return any(part in moving for part in walk(expr))

    def readers(self) -> list[Callable[..., Column]]:
        """Return functions that compute the columns of all fields from rows."""
        return [column(substitute(field, (ROW,)), ["row"]) for field in self._read]

    def of_keys(self) -> dict[int, Callable[..., Column]]:
        """Return functions that compute the columns of constant fields.

        They take the keys of groups and, in a left join, the constant rows.
        """
        names = ["key", *self._more]
        given = (*(KEY,) * bindings(self.aggregate), *map(Local, self._more))
        return {place: column(substitute(self._made[place], given), names) for place in self.stay}

    def of_totals(self) -> dict[int, TotalColumn]:
        """Return the columns of the other fields, computed from keys and totals.

        In a left join, the constant rows are the last argument. Negative numbers mark expressions
        that are evaluated only because they may raise.
        """
        count = bindings(self.aggregate)
        names = ["key", *(f"total_{place}" for place in range(1, count)), *self._more]
        locals_ = tuple(map(Local, names))
        asked = {part for made in self._made for part in surely(made)}
        touched = [expr for expr in self._touched if expr not in asked]
        wanted = [(place, self._made[place]) for place in self.move]
        wanted += [(-1 - place, expr) for place, expr in enumerate(touched)]
        found = {place: substitute(expr, locals_) for place, expr in wanted}
        return {place: TotalColumn(column(expr, names), expr) for place, expr in found.items()}

    @property
    def is_record(self) -> bool:
        """True if the rows are records or tuples, and so never None."""
        row = self._pipeline.value()
        return makes_record(row) or _is_tuple_display(row) or len(self._pipeline.row) > 1

    @property
    def _more(self) -> list[str]:
        return [] if self.padding is None else [ROW.name]


class Layout:
    """Constant parts of a loop, and columns for the parts that change in each round."""

    def __init__(
        self,
        bodies: Sequence[plan.Node],
        loops: Sequence[tuple[plan.Aggregate, int, Sequence[AggregateLoop]]],
        slot_of: SlotOf,
        tolerances: Sequence[plan.Tolerance | None] = (),
    ) -> None:
        self._slot_of = slot_of
        self._forms = [Fields(body, slot_of) for body in bodies]
        self._of_node: dict[int, int] = {}
        self._owners = {id(form.aggregate): place for place, form in enumerate(self._forms)}
        if len(self._owners) != len(bodies) or len(loops) != len(bodies):
            raise NoLayout
        self.groups: dict[int, GroupLayout] = {}
        """Aggregates by the relation that they compute, in the order of a round."""
        self.reads: list[int] = []
        """The slots of constant relations that the layout reads."""
        self.paddings = [form.padding for form in self._forms]
        """The constant rows of each relation that is a left join with its groups, or None."""
        self.reads += [each.slot for each in self.paddings if each is not None]
        for node, slot, streams in loops:
            if id(node) not in self._owners:
                raise NoLayout
            self.groups[self._owners[id(node)]] = self._groups(node, slot, streams)
        self.near = self._near_rows(tolerances or (None,) * len(bodies))
        """The tolerances of the relations; None if some is not over constant keys."""
        self.relations = [self._owners[id(form.aggregate)] for form in self._forms]
        """The relation of each form; the first forms are those of the previous round."""
        self.is_now = [form.is_now for form in self._forms]
        self.readers = [form.readers() for form in self._forms]
        self.of_keys = [form.of_keys() for form in self._forms]
        self.of_totals = [form.of_totals() for form in self._forms]
        self.of_alone = [form.of_alone for form in self._forms]

    def _groups(
        self, node: plan.Aggregate, slot: int, streams: Sequence[AggregateLoop]
    ) -> GroupLayout:
        """Return the loops of constant values into an aggregate, and the pairs of other loops."""
        given, pairs = [], []
        for stream in streams:
            if stream.side and any(self._slot_of(each)[1] for each in stream.kept):
                raise NoLayout
            if any(self._slot_of(each)[1] for each in stream.kept):
                pairs.append(self._pairs(node, stream))
                self.reads += [] if pairs[-1].outer is None else [pairs[-1].outer]
            else:
                given.append(stream.loop)
                self.reads += stream.reads
        return GroupLayout(node, slot, tuple(given), tuple(pairs))

    def _near_rows(
        self, tolerances: Sequence[plan.Tolerance | None]
    ) -> list[NearRows | None] | None:
        """Return the tolerances over fields; None if a key is not lifted, or moves."""
        found: list[NearRows | None] = []
        for tolerance, form in zip(tolerances, self._forms, strict=False):
            if tolerance is None or not tolerance.least:  # then each change is passed on
                found.append(None)
                continue
            by, value = tolerance.by, tolerance.value
            if not isinstance(by, Lifted) or not isinstance(value, Lifted):
                return None
            reader = Reader(form, 0, {})
            key = reader.read(by.body)
            if form.moves(key):
                return None
            found.append(
                NearRows(_pair_column(key), _pair_column(reader.read(value.body)), tolerance.least)
            )
        return found

    def _form(self, node: plan.Node) -> int:
        """Return the number of the `Fields` of a node's rows, of the previous or of this round."""
        if isinstance(node, plan.Recursive):
            return node.index
        place = self._of_node.get(id(node))
        if place is None:
            form = Fields(node, self._slot_of, is_now=True)
            owner = self._owners.get(id(form.aggregate))
            if owner is None or not _is_same_join(form, self._forms[owner]):
                raise NoLayout
            place = self._of_node[id(node)] = len(self._forms)
            self._forms.append(form)
        return place

    def _pairs(self, node: plan.Aggregate, stream: AggregateLoop) -> Pairs:
        """Return the pairs of one loop into an aggregate; raises `NoLayout` if they may vary."""
        chain, base, join = stream.chain, stream.base, stream.join
        if join is None:
            form = self._form(base)
            if bindings(base) != 1:
                raise NoLayout
            reader = Reader(self._forms[form], 0, {})
            pipeline = RowPipeline(chain, 1, shapes(base))
            return self._read_pairs(node, pipeline, reader, (form, None, None, None))
        (left, of_left), (right, of_right) = self._slot_of(join.left), self._slot_of(join.right)
        count = bindings(join.left)
        if (of_left and of_right) or residual(join) is not None or (of_left and count != 1):
            raise NoLayout
        form = self._form(join.left if of_left else join.right)
        others: dict[int, Expr] = {count: ROW}
        if of_right:
            is_one = count == 1
            others = {p: ROW if is_one else Item(ROW, constant(p)) for p in range(count)}
        reader = Reader(self._forms[form], 0 if of_left else count, others)
        pipeline = RowPipeline(chain, count + 1, (*shapes(join.left), row_shape(join.right)))
        stays, outer = (join.right, right) if of_left else (join.left, left)
        keys = make_key_lister(stays, sides(join)[of_left], 1 if of_left else count)
        told = (form, outer, keys, self._inner(form, sides(join)[of_right]))
        return self._read_pairs(node, pipeline, reader, told)

    def _inner(self, form: int, side: Side) -> PairColumn:
        """Return the key of a side; raises `NoLayout` unless it reads constant fields alone."""
        written, steps = side
        functions = [*([] if written is None else [written]), *(step.function for step in steps)]
        if not all(step.is_key for step in steps) or not all_read(functions):
            raise NoLayout
        reader = Reader(self._forms[form], 0, {})
        parts = [reader.read(f.body) for f in functions if isinstance(f, Lifted)]
        key = one_value(parts)
        if self._forms[form].moves(key):
            raise NoLayout
        return _pair_column(key)

    def _read_pairs(
        self, node: plan.Aggregate, pipeline: RowPipeline, reader: Reader, told: Told
    ) -> Pairs:
        """Return the columns that each pair needs: constant ones, and those of a round.

        Raises `NoLayout` if the key of a pair changes from round to round.
        """
        fields = reader.fields
        assert isinstance(node.key, Lifted)
        asked = [
            a.value for a in node.aggregates if not isinstance(a.accumulator, CountAccumulator)
        ]
        taken = [pipeline.take(node.key.body)]
        taken += [pipeline.value() if f is None else pipeline.take(f.body) for f in asked]  # type: ignore[union-attr]
        inlined, needed = _make_inliner(pipeline)
        key, *values = [reader.read(inlined(expr)) for expr in taken]
        touched = list(map(reader.read, needed))
        if fields.moves(key):
            raise NoLayout
        if not fields.stay:  # no field identifies the rows
            raise NoLayout
        sure = {part for expr in (key, *values) for part in surely(expr)}
        kept: list[Expr] = []
        made = [_pair_column(reader.hoist_constants(value, kept)) for value in values]
        checked = [_pair_column(reader.hoist_constants(t, kept)) for t in touched if t not in sure]
        stays = tuple(_pair_column(expr) for expr in kept)
        return Pairs(*told, _pair_column(key), stays, tuple(checked), tuple(made))


def _is_same_join(form: Fields, other: Fields) -> bool:
    """Return True if two forms read the groups alone, or the same left join with them."""
    if form.padding is None or other.padding is None:
        return form.padding is other.padding
    return form.padding.join is other.padding.join


class Reader:
    """Rewrites expressions over a pair of a relation's row, at a place, and a constant row."""

    def __init__(self, fields: Fields, place: int, others: dict[int, Expr]) -> None:
        self.fields = fields
        self._row = Parameter(place)
        self._others = others

    def read(self, expr: Expr) -> Expr:
        """Rewrite `expr` to read variables: fields of the relation, and the constant row."""
        match expr:
            case Operation("is" | "is not" as symbol, (of, Constant(None))) if of == self._row:
                if self.fields.is_record:
                    return constant(symbol == "is not")
            case Conditional(test, then, other):
                decided = self.read(test)
                if isinstance(decided, Constant) and isinstance(decided.value, bool):
                    return self.read(then if decided.value else other)
            case Attribute(of, name) if of == self._row:
                return self.fields.local(Attribute(Parameter(0), name))
            case Item(of, Constant() as key) if of == self._row:
                return self.fields.local(Item(Parameter(0), key))
            case Parameter(index):
                is_ours = expr == self._row
                return self.fields.local(Parameter(0)) if is_ours else self._others[index]
        return _with_parts(expr, self.read)

    def hoist_constants(self, expr: Expr, kept: list[Expr]) -> Expr:
        """Replace constant subexpressions by stored columns, which are appended to `kept`."""
        sure = set(surely(expr))

        def change(part: Expr) -> Expr:
            if not any(isinstance(each, Local) for each in walk(part)):
                return part
            if self.fields.moves(part) or not (part in sure or isinstance(part, Local)):
                return part if isinstance(part, Local) else _with_parts(part, change)
            if part not in kept:
                kept.append(part)
            return Local(f"kept_{kept.index(part)}")

        return change(expr)


def _make_inliner(pipeline: RowPipeline) -> tuple[Callable[[Expr], Expr], list[Expr]]:
    """Return a function that inlines the rows of a pipeline, and the expressions that may raise.

    Raises `NoLayout` if the pipeline has tests, or makes values that cannot be inlined.
    """
    known: dict[Expr, Expr] = {}
    touched: list[Expr] = []

    def inlined(expr: Expr) -> Expr:
        return transform(expr, lambda part: known[part] if part in known else project_node(part))

    for instruction in pipeline.instructions:
        expr = inlined(instruction.expr)
        if instruction.kind == "touch":
            touched.append(expr)
        elif instruction.kind == "set" and (makes_record(expr) or _is_tuple_display(expr)):
            known[Local(instruction.name)] = expr
            touched += needs(expr, pipeline.shapes)
        else:
            raise NoLayout
    return inlined, touched


def _is_tuple_display(expr: Expr) -> bool:
    return isinstance(expr, Display) and expr.kind == "tuple"


def _with_parts(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    old = parts(expr)
    return rebuilt(expr, tuple(map(change, old))) if old else expr


def _pair_column(expr: Expr) -> PairColumn:
    """Return the column of an expression over pairs, with the columns that it reads."""
    names = {part.name for part in walk(expr) if isinstance(part, Local)}
    kept = _column_numbers(names, "kept_")
    found = _column_numbers({name.removesuffix("[pair]") for name in names}, "found_")
    each = ["pair", "row"] if ROW.name in names else ["pair"]
    width = len(each)
    each += [f"kept_{place}" for place in kept]
    made = column(expr, each, [f"found_{place}" for place in found])
    return PairColumn(made, expr, width, kept, found)


def _column_numbers(names: set[str], prefix: str) -> tuple[int, ...]:
    return tuple(sorted(int(n.removeprefix(prefix)) for n in names if n.startswith(prefix)))
