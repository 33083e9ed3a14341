"""Best partners: for each row of one side of a product, the best value over the other side's rows.

    points x centers  by point: Min((distance, c.id))       distance: (p.x - c.x) ** 2 + ...

    fields of points      x = [...], y = [...]                      once, if points are constant
    fields of centers     [(x, y, id), ...]
    best values           [min([... for cx, cy, id in centers]) for x, y in zip(...)]

An aggregate over these rows, by fields of centers and of fields of points, needs no value, only the
place of the best partner:

    by center: Avg(p.x), Avg(p.y)       places = [2, 0, 2, ...]     x of the points at each place

If numpy is imported, and the other side has few rows, places are found over columns
(`rounded_columns.py`); where two partners are too close for rounded numbers, by comparing values.

Sound:  the values are those of the loop, compared in the same order; each expression that may raise
        is evaluated for all pairs, or cannot raise for the columns' numbers.
Needs:  a product without a condition, with one binding on each side; selects; a least or greatest
        tuple; a key of one side that differs from row to row, otherwise the loop runs.
State:  the fields of constant rows, as results of passes.
Cost:   O(pairs), half the time of the loop; over columns some 10 ns a pair.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from operator import ne
from typing import Any, overload

from optimizer import plan
from optimizer.expr import (
    And,
    Attribute,
    Call,
    Conditional,
    Constant,
    Display,
    Expr,
    Item,
    Lifted,
    Local,
    Operation,
    Or,
    Parameter,
    parts,
    reads,
    rebuilt,
    substitute,
    walk,
)
from optimizer.expressions.knowledge import is_canonical
from optimizer.expressions.text import surely
from optimizer.plans.properties import bindings, row_shape, shapes
from optimizer.plans.side_conditions import has_keys, residual
from reactive.engine.codegen.emitter import RowPipeline, canonical_maker
from reactive.engine.codegen.loop_expressions import Column, best_column, column
from reactive.engine.collections.values import ORDERED
from reactive.engine.operators.accumulators import CountAccumulator
from reactive.engine.operators.loops.columns import find_numpy
from reactive.engine.operators.loops.first_load import aggregate_value, reads_local
from reactive.engine.operators.loops.layout import Joined
from reactive.engine.operators.loops.rounded_columns import (
    find_least,
    is_rounded,
    number_array,
    round_column,
)
from reactive.engine.operators.loops.totals import PLAIN, rows_from_columns, totals
from reactive.engine.operators.plain import PipelineSource, side_functions, sides

Row = Any
MakeColumn = Callable[..., Column]
Chain = tuple[plan.Node, ...]
QuickPass = Callable[[Sequence[Any]], Sequence[Row] | None]
"""Returns the rows of an aggregate from the slots of a round, or None."""
FEW_PARTNERS = 64
"""Most rows of the other side whose columns are compared."""
BLOCK = 2**14
"""Rows whose columns are computed at a time, so that these stay in the processor's cache."""
CANONICAL = frozenset({int, str})
"""Classes whose values are canonical."""
ROW = Local("row")
PLACE = "right_place"
SIMPLE = (
    And | Attribute | Call | Conditional | Constant | Display | Item | Operation | Or | Parameter
)
TAME = 2**60
"""Fields below it, in few products and sums, make no infinity, and so no NaN."""
FEW_READS = 16
"""Most fields that such an expression may read."""


@dataclass(frozen=True, slots=True)
class BestPartners:
    """The functions that find the best values of an aggregate over a product.

    Parameters
    ----------
    is_left: True if the rows of the left side are the groups.
    key, canonical: make the column of keys, and a canonical key.
    mine, theirs: make the columns of fields of the two sides.
    best: makes the best values from the columns, and the tuples of the other side.
    tame: the same, if the fields in `numbers` are below `TAME`; None if it may make a NaN then.
    places: the same as `best`, with the place of the partner beside the value.
    first: the first part of the value, if columns can compare it.
    """

    pipeline: RowPipeline
    is_left: bool
    key: MakeColumn
    canonical: Callable[[Any], Any]
    mine: dict[str, MakeColumn]
    theirs: dict[str, MakeColumn]
    best: MakeColumn
    tame: MakeColumn | None
    numbers: frozenset[str]
    places: MakeColumn
    first: Expr | None
    is_most: bool

    def read_rows(self, rows: Sequence[Row]) -> OwnColumns:
        """Return the columns of the rows that are the groups."""
        keys = list(map(self.canonical, self.key(rows)))
        return OwnColumns(rows, keys, {name: make(rows) for name, make in self.mine.items()})


class OwnColumns:
    """Columns of the rows of which each has a best partner."""

    def __init__(self, rows: Sequence[Row], keys: Column, fields: dict[str, Column]) -> None:
        self.rows = rows
        self.keys = keys
        self.fields = fields
        self.are_fit = len(set(keys)) == len(keys) and are_ordered(fields)
        """True if each row is a group, and values of its fields can be compared."""
        self._values: dict[MakeColumn, tuple[Column, set[type]]] = {}
        self._arrays: dict[Any, Any] = {}
        self._is_tame: bool | None = None

    def __len__(self) -> int:
        """Return the number of rows, with repetitions."""
        return len(self.rows)

    def numbers(self, numpy: Any, name: str) -> Any:
        """Return a field as an array of floats; None if it has other values."""
        if name not in self._arrays:
            self._arrays[name] = number_array(numpy, self.fields[name])
        return self._arrays[name]

    def is_tame(self, numbers: frozenset[str]) -> bool:
        """Return True if the fields in `numbers` are small numbers."""
        if self._is_tame is None:
            self._is_tame = are_tame_fields(self.fields, numbers)
        return self._is_tame

    def values(self, make: MakeColumn) -> tuple[Column, set[type]]:
        """Return the values of an expression, and their classes."""
        if make not in self._values:
            values = make(self.rows)
            self._values[make] = values, set(map(type, values))
        return self._values[make]

    def objects(self, numpy: Any, make: MakeColumn) -> Any:
        """Return the values of an expression as an array of objects."""
        if make not in self._arrays:
            values, _ = self.values(make)
            found = self._arrays[make] = numpy.empty(len(values), object)
            found[:] = values
        return self._arrays[make]


def are_tame_fields(fields: Mapping[str, Column], numbers: Set[str]) -> bool:
    """Return True if the fields in `numbers` are small numbers; none is NaN."""
    for name in numbers & fields.keys():
        values = fields[name]
        if not set(map(type, values)) <= {int, float}:
            return False
        if values and not -TAME < min(values) <= max(values) < TAME:
            return False
    return True


def are_ordered(fields: Mapping[str, Column]) -> bool:
    """Return True if `min` and `max` compare the values of each field correctly."""
    for values in fields.values():
        kinds = set(map(type, values))
        if not kinds <= ORDERED or (not kinds <= PLAIN and any(map(ne, values, values))):
            return False
    return True


def _are_comparable(values: Column) -> bool:
    """Return True if values that are ordered do not raise when they are compared."""
    kinds = set(map(type, values))
    return len(kinds) < 2 or kinds <= {int, bool, float}


class BestRows(Sequence[Row]):
    """The rows of the aggregate, made when they are read."""

    def __init__(self, of: BestPartners, own: OwnColumns, partners: Sequence[Row]) -> None:
        self._of = of
        self.own = own
        self.partners = partners
        self.theirs = {name: make(partners) for name, make in of.theirs.items()}
        self._rows: list[Row] | None = None

    def __len__(self) -> int:
        return len(self.own)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._made())

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Row]: ...
    def __getitem__(self, place: int | slice) -> Row | Sequence[Row]:
        return self._made()[place]

    def _made(self) -> list[Row]:
        if self._rows is None:
            self._rows = list(zip(self.own.keys, self.values(), strict=True))
        return self._rows

    def values(self) -> list[Any]:
        """Return the best value of each row."""
        of, own = self._of, self.own
        others = list(zip(*self.theirs.values(), strict=True))
        are_tame = own.is_tame(of.numbers) and are_tame_fields(self.theirs, of.numbers)
        make = of.tame if of.tame is not None and are_tame else of.best
        return make(*own.fields.values(), others)

    def find_places(self, numpy: Any) -> Any:
        """Return the place of the best partner of each row as an array; None if columns cannot
        tell."""
        of, own = self._of, self.own
        mine = {name: own.numbers(numpy, name) for name in of.mine if _reads_name(of.first, name)}
        theirs = {
            name: number_array(numpy, values)
            for name, values in self.theirs.items()
            if _reads_name(of.first, name)
        }
        if of.first is None or any(v is None for v in (*mine.values(), *theirs.values())):
            return None
        if not all(map(_are_comparable, self.theirs.values())):
            return None  # two partners that are not the best may raise when they are compared
        upright = {name: values[:, None] for name, values in theirs.items()}
        places = numpy.empty(len(own), numpy.intp)
        unsure: list[int] = []
        for start in range(0, len(own), BLOCK):
            block = slice(start, start + BLOCK)
            values = {name: column[block] for name, column in mine.items()}
            with numpy.errstate(all="ignore"):
                rounded = round_column(of.first, {**values, **upright})
                shape = len(self.partners), len(own.rows[block])
                found = find_least(numpy, rounded, shape, is_most=of.is_most)
            if found is None:
                return None
            places[block], sure = found
            unsure += (numpy.flatnonzero(~sure) + start).tolist()
        if unsure:
            places[unsure] = self._compare(unsure)
        return places

    def _compare(self, unsure: list[int]) -> list[int]:
        """Return the places of the best partners of some rows, found by comparing values."""
        of = self._of
        numbers = range(len(self.partners))
        order = [-number for number in numbers] if of.is_most else numbers
        others = list(zip(*self.theirs.values(), order, strict=True))
        mine = [[values[row] for row in unsure] for values in self.own.fields.values()]
        return [abs(place) for _, place in of.places(*mine, others)]


def find_best_partners(
    node: plan.Aggregate, chain: Chain, join: Joined, best: str
) -> BestPartners | None:
    """Return the functions for the rows of an aggregate over a product; None if it has none.

    `best` is `min` or `max`, the function that finds the value of a group.
    """
    (aggregate,) = node.aggregates
    if not _is_bare_product(join) or not isinstance(node.key, Lifted) or aggregate.value is None:
        return None
    pipeline = RowPipeline(chain, 2, (*shapes(join.left), row_shape(join.right)))
    key, value = pipeline.take(node.key.body), aggregate_value(pipeline, aggregate.value)
    owners = reads(key)
    if len(owners) != 1 or reads(value) != {0, 1} or not _is_simple_tuple(value):
        return None
    if reads_local(key) or not _only_touches(pipeline, (key, value)):
        return None
    (mine,) = owners
    return _functions_of(pipeline, key, value, mine, best)


def decides_group(join: Joined, chain: Sequence[plan.Node], key: object, is_left: bool) -> bool:
    """Return True if the left side of a product decides the group, False if the right side does.

    Return `is_left` if neither does.
    """
    if not isinstance(key, Lifted):
        return is_left
    count = bindings(join.left)
    pipeline = RowPipeline(chain, count + 1, (*shapes(join.left), row_shape(join.right)))
    expr = pipeline.rewrite(key.body)
    places = reads(expr)
    if not places or reads_local(expr) or (count in places and len(places) > 1):
        return is_left
    return count not in places


def _is_bare_product(join: Joined) -> bool:
    """Return True if a join pairs all rows of two sides with one binding each."""
    if isinstance(join, plan.OuterJoin) or has_keys(join) or residual(join) is not None:
        return False
    tested = any(f is not None for side in sides(join) for f in side_functions(side))
    return not tested and bindings(join.left) == 1


def _is_simple_tuple(expr: Expr) -> bool:
    """Return True if an expression is a tuple of computations with fields and constants."""
    is_tuple = isinstance(expr, Display) and expr.kind == "tuple"
    return is_tuple and all(isinstance(part, SIMPLE) for part in walk(expr))


def _only_touches(pipeline: RowPipeline, evaluated: Sequence[Expr]) -> bool:
    """Return True if a pipeline only evaluates parts of expressions that are evaluated anyway."""
    sure = {part for expr in evaluated for part in surely(expr)}
    return all(step.kind == "touch" and step.expr in sure for step in pipeline.instructions)


def _functions_of(
    pipeline: RowPipeline, key: Expr, value: Expr, mine: int, best: str
) -> BestPartners | None:
    """Return the functions for the best values of the rows of side `mine`."""
    fields: tuple[dict[Expr, Local], dict[Expr, Local]] = ({}, {})
    named = _name_fields(value, set(surely(value)), fields)
    own, other = ({e.name: _column_of(f) for f, e in found.items()} for found in fields)
    if mine == 1:
        own, other = other, own
    items = parts(named)
    odd = {number for number, item in enumerate(items) if not _is_plain(item)}
    variables = items, odd, list(own)
    read = [part.name for number in odd for part in walk(items[number]) if isinstance(part, Local)]
    may_be_tame = len(read) <= FEW_READS and all(is_rounded(items[number]) for number in odd)
    is_columnar = is_rounded(items[0]) and all(map(_is_plain, items[1:]))
    return BestPartners(
        pipeline,
        mine == 0,
        _column_of(key),
        canonical_maker(key, pipeline.shapes),
        own,
        other,
        best_column(*variables, list(other), best),
        best_column(items, set(), list(own), list(other), best) if may_be_tame else None,
        frozenset(read),
        best_column(*variables, [*other, PLACE], best, place=PLACE),
        items[0] if is_columnar else None,
        best == "max",
    )


def _column_of(expr: Expr) -> MakeColumn:
    """Return the function of rows that computes an expression of one side's row."""
    return column(substitute(expr, (ROW, ROW)), [ROW.name])


def _name_fields(
    expr: Expr, sure: set[Expr], fields: tuple[dict[Expr, Local], dict[Expr, Local]]
) -> Expr:
    """Return an expression with variables in place of fields of the two rows.

    A field that may not be evaluated is read from its row.
    """
    owner = _owner(expr)
    if owner is not None and (isinstance(expr, Parameter) or expr in sure):
        named = fields[owner]
        return named.setdefault(expr, Local(f"{('left', 'right')[owner]}_{len(named)}"))
    old = parts(expr)
    new = tuple(_name_fields(part, sure, fields) for part in old)
    return expr if all(a is b for a, b in zip(old, new, strict=True)) else rebuilt(expr, new)


def _owner(expr: Expr) -> int | None:
    """Return the place of the row that an expression reads a field of; None for others."""
    match expr:
        case Parameter(index):
            return index
        case Attribute(of, _) | Item(of, Constant()):
            return _owner(of)
    return None


def _is_plain(expr: Expr) -> bool:
    return isinstance(expr, Local | Constant)


def _reads_name(expr: Expr | None, name: str) -> bool:
    """Return True if an expression reads a variable."""
    if expr is None:
        return False
    return expr == Local(name) or any(_reads_name(part, name) for part in parts(expr))


@dataclass(frozen=True, slots=True)
class PartnerGroups:
    """An aggregate over best rows: its groups are partners, its values are of the other rows.

    Parameters
    ----------
    key, canonical: make the column of the partners' keys, and a canonical key.
    key_of_value: makes the column of keys from best values; None if these do not tell.
    values: make the columns of the accumulators that have values.
    """

    key: MakeColumn
    key_of_value: MakeColumn | None
    canonical: Callable[[Any], Any]
    accumulators: tuple[Any, ...]
    values: tuple[MakeColumn, ...]

    def find_rows(self, rows: BestRows) -> list[Row] | None:
        """Return the rows of the aggregate; None if the loop must find them."""
        pairs = len(rows) * len(rows.partners)
        numpy = find_numpy(pairs) if len(rows.partners) <= FEW_PARTNERS else None
        places = None if numpy is None or not pairs else rows.find_places(numpy)
        if places is not None:
            return self._rows_of_places(numpy, places, rows)
        return None if self.key_of_value is None else self._rows_of_values(rows)

    def _rows_of_values(self, rows: BestRows) -> list[Row]:
        """Return the rows of the aggregate, grouped by the best values."""
        assert self.key_of_value is not None
        found = self.key_of_value(rows.values())
        if not set(map(type, found)) <= CANONICAL:
            found = list(map(self.canonical, found))
        groups = [gather(found, rows.own.values(make)[0]) for make in self.values]
        keys = list(groups[0] if groups else dict.fromkeys(found))
        counts = Counter(found) if len(groups) < len(self.accumulators) else {}
        columns: list[Sequence[Any]] = [keys]
        listed = iter(zip(groups, self.values, strict=True))
        for accumulator in self.accumulators:
            if isinstance(accumulator, CountAccumulator):
                columns.append([counts[key] for key in keys])
                continue
            group, make = next(listed)
            columns.append(totals(accumulator, list(group.values()), rows.own.values(make)[1]))
        return rows_from_columns(columns)

    def _rows_of_places(self, numpy: Any, places: Any, rows: BestRows) -> list[Row]:
        """Return the rows of the aggregate, grouped by the places of the best partners."""
        codes, keys = self._codes(numpy, places, rows.partners)
        order = numpy.argsort(codes, kind="stable")
        groups = numpy.split(order, numpy.cumsum(numpy.bincount(codes))[:-1])
        columns: list[Sequence[Any]] = [keys]
        made = iter(self.values)
        for accumulator in self.accumulators:
            if isinstance(accumulator, CountAccumulator):
                columns.append(list(map(len, groups)))
                continue
            make = next(made)
            values = rows.own.objects(numpy, make)
            listed = [values[group].tolist() for group in groups]
            columns.append(totals(accumulator, listed, rows.own.values(make)[1]))
        return rows_from_columns(columns)

    def _codes(self, numpy: Any, places: Any, partners: Sequence[Row]) -> tuple[Any, list[Any]]:
        """Return the number of the group of each row, and the keys, in the order of first rows."""
        chosen, first = numpy.unique(places, return_index=True)
        chosen = chosen[numpy.argsort(first)].tolist()
        keys = map(self.canonical, self.key([partners[place] for place in chosen]))
        numbers: dict[Any, int] = {}
        code_of = numpy.zeros(len(partners), numpy.int16)
        for place, key in zip(chosen, keys, strict=True):
            code_of[place] = numbers.setdefault(key, len(numbers))
        return code_of[places], list(numbers)


def find_partner_groups(
    best: BestPartners, below: plan.Aggregate, node: plan.Aggregate, chain: Chain
) -> PartnerGroups | None:
    """Return the groups of `node` over the best rows of `below`; None if columns cannot make them.

    `chain` are the nodes between the two.
    """
    if not isinstance(node.key, Lifted):
        return None
    key, value = _best_row(best, below)
    if not is_canonical(key, best.pipeline.shapes):
        return None
    pipeline = RowPipeline((), 2, best.pipeline.shapes)
    pipeline.row = (key, value)
    pipeline.extend(chain)
    group = pipeline.take(node.key.body)
    asked = [a for a in node.aggregates if not isinstance(a.accumulator, CountAccumulator)]
    values = [aggregate_value(pipeline, a.value) for a in asked]
    if not _only_touches(pipeline, (group, *values)) or any(map(reads_local, (group, *values))):
        return None
    mine = 0 if best.is_left else 1
    if reads(group) != {1 - mine} or any(reads(value) - {mine} for value in values):
        return None
    return PartnerGroups(
        _column_of(group),
        _key_of_value(node.key, below, chain),
        canonical_maker(group, pipeline.shapes),
        tuple(a.accumulator for a in node.aggregates),
        tuple(map(_column_of, values)),
    )


def gather(keys: Iterable[Any], values: Iterable[Any]) -> dict[Any, list[Any]]:
    """Return the values by key."""
    found: dict[Any, list[Any]] = defaultdict(list)
    for key, value in zip(keys, values, strict=True):
        found[key].append(value)
    return found


def _key_of_value(key: Lifted, below: plan.Aggregate, chain: Chain) -> MakeColumn | None:
    """Return the function that makes the column of a key from best values; None if it reads more
    than these."""
    pipeline = PipelineSource(chain, below).pipeline()
    expr = pipeline.take(key.body)
    return _column_of(expr) if reads(expr) == {1} and not reads_local(expr) else None


def _best_row(best: BestPartners, node: plan.Aggregate) -> tuple[Expr, Expr]:
    """Return the key and the value of a best row, as expressions of the two rows."""
    (aggregate,) = node.aggregates
    assert isinstance(node.key, Lifted)
    return best.pipeline.rewrite(node.key.body), aggregate_value(best.pipeline, aggregate.value)


def rows_pass(of: BestPartners, columns: int, other: int, *, is_lazy: bool) -> QuickPass:
    """Return the pass that makes the best rows from the slots of columns and of partners.

    It returns None if the loop must find the rows. With `is_lazy` they are made when they are read.
    """

    def find(slots: Sequence[Any]) -> Sequence[Row] | None:
        own, partners = slots[columns], slots[other]
        if not own.are_fit or not partners:
            return None
        rows = BestRows(of, own, partners)
        if not are_ordered(rows.theirs):
            return None
        return rows if is_lazy else list(rows)

    return find


def groups_pass(of: PartnerGroups, place: int) -> QuickPass:
    """Return the pass that groups the best rows of a slot, or returns None."""

    def find(slots: Sequence[Any]) -> Sequence[Row] | None:
        rows = slots[place]
        return of.find_rows(rows) if isinstance(rows, BestRows) else None

    return find
