"""Templates: the plan of one query, reused for queries that differ in constants.

    look up SLOT where o.customer == SLOT        a template
    look up "ann" where o.customer == "ann"      the plan of a query of its shape

The first query of a shape is planned with slots in place of constants (`optimizer.expr.Slot`).
Slots have the values of this query, so that its plan is unchanged. For another query, its constants
replace the slots, and its callables and tables replace the first query's.

Sound:  a slot notes if its value was read, by any rule or by the choice of a physical plan. A value
        that was not read has decided nothing; the values of other slots are part of the key of a
        template. Rules may read the class of a value, and if two slots are equal: both are part of
        the shape. A slot differs from all constants that are no slots, so a value equal to one of
        these counts as read. The choice of look-ups in indexes is repeated for each query; if it
        differs, the query is planned by itself.
Needs:  a query of a few nodes over tables, without views and recursions.
Pays:   one more view of a shape: optimizing and choosing are two thirds of its time.
State:  process-wide, `MOST_SHAPES` shapes with a plan for each tuple of values that were read; of
        captured objects, only code and plain values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import (
    Callable,
    Container,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import dataclass, field, replace
from numbers import Number
from typing import Any

from optimizer import plan
from optimizer.callables.captures import meaning
from optimizer.callables.opaque import Opaque
from optimizer.expr import Apply, Constant, Expr, Function, Lifted, SlotValue, origins, walk
from optimizer.expressions.simplification import fold_arithmetic
from optimizer.kinds.fields import ClassCache
from optimizer.plans import substitution
from optimizer.plans.properties import nodes
from optimizer.record import record
from optimizer.rewriting.optimize import OptimizedPlan
from optimizer.rewriting.phases import Phase
from optimizer.rules.read_callables import read_callables
from optimizer.traverse import functions, rebuilt
from reactive.engine.compiler.chooser import Chooser, ParameterizedQuery, Place, with_slots
from reactive.engine.compiler.physical import Physical
from reactive.engine.compiler.row_tests import Asked, FieldIndex, ValuesWanted, best_of

MOST_SHAPES = 256
"""Number of shapes cached in a process."""
MOST_TEMPLATES = 8
"""Maximum number of templates of a shape; above it, its queries have too little in common."""
MOST_KEYS = 256
"""Maximum number of tuples of deciding values; above it, almost every query has its own."""
LEARNED_AT = 2
"""The number of the query that is planned as a template, per tuple of deciding values, once the
shape has a template; the first query of a shape is planned as one."""
Planned = tuple[OptimizedPlan, Chooser]
Key = tuple[Hashable, ...]


@dataclass(slots=True)
class QueryShape:
    """Cached facts of the queries of a shape."""

    is_hopeless: bool = False
    """True if there can be no templates."""
    seen: Counter[Key] = field(default_factory=Counter)
    """Number of queries planned by themselves, by the values that decide."""
    count: int = 0
    """Number of its templates."""
    asked: set[Place] = field(default_factory=set)
    """The variables whose values have decided something."""
    literals: set[Hashable] = field(default_factory=set)
    """Constants that are no variables."""
    templates: dict[Key, list[Template]] = field(default_factory=dict)
    """Templates by the values that decide; they differ in look-ups, the last used first."""

    def key(self, given: ParameterizedQuery) -> Key:
        """Return the key of a query: the meaning of each value that decides, else None."""
        varying = self.varying(given)
        return tuple([None if p in varying else meaning(v) for p, v in given.values.items()])

    def varying(self, given: ParameterizedQuery) -> set[Place]:
        """Return the places of the values of `given` that do not decide how a query is planned.

        Their values were not read, and equal no other constant, nor a value of another
        meaning, as 1 equals 1.0.
        """
        if not given.values:
            return set()
        meanings = {(value, meaning(value)) for value in given.values.values()}
        once = Counter([value for value, _ in meanings])
        return {
            place
            for place, value in given.values.items()
            if place not in self.asked and value not in self.literals and once[value] == 1
        }


@record
class ComputedValue:
    """A computed value: the operator, and its operands, by place or as plain values."""

    by: str
    operands: tuple[tuple[int | None, Any], ...]

    def compute(self, values: Sequence[Any]) -> Any:
        given = [value if place is None else values[place] for place, value in self.operands]
        return fold_arithmetic(self.by, given)


@record
class Template:
    """Makes plans: `of_tables` for queries over the same tables, `of_others` over others."""

    tables: tuple[plan.Table, ...]
    slots: tuple[Place, ...]
    computed: tuple[ComputedValue, ...]
    """Values computed from slots, or from earlier computed values."""
    literals: frozenset[Any]
    """Constants of the plan, some of them possibly computed; no slot may equal one of them."""
    of_tables: substitution.Make
    of_others: substitution.Make


@record
class QueryTemplate:
    """The plan of a query, and the indexes that it looks up, with their fields."""

    optimized: Callable[[], OptimizedPlan]
    physical: Physical
    looked_up: tuple[FieldIndex, ...]


class Templates:
    """Makes plans of the queries of a database by templates.

    Parameters
    ----------
    phases: the rules of the optimizer.
    planned: plans a query; returns the plan and the chooser with its candidates for look-ups.
    values_wanted: counts the values of a field that readers look for.
    """

    def __init__(
        self,
        phases: Sequence[Phase],
        planned: Callable[[plan.Node], Planned],
        values_wanted: ValuesWanted,
    ) -> None:
        self._phases = tuple(phases)
        self._planned = planned
        self._values_wanted = values_wanted

    def prepare(self, written: plan.Node, given: ParameterizedQuery) -> QueryTemplate | None:
        """Return the plan of a query by a template, possibly a new one; None if there is none.

        `given` is the shape of the query `written`, with its values.
        """
        shape = SHAPES.find((self._phases, given.shape), lambda _: given.home)
        try:
            known = shape.templates.get(key := shape.key(given), [])
            return self._find_fitting(known, given) or self._learn(written, given, shape, key)
        except (substitution.UnknownPlace, RecursionError):  # such a query is planned by itself
            shape.is_hopeless = True
            return None

    def _find_fitting(
        self, templates: list[Template], given: ParameterizedQuery
    ) -> QueryTemplate | None:
        """Return the plan of the first of `templates` that fits; None if none does.

        That template moves to the front of the list.
        """
        for template in templates:
            found = self._instantiate(template, given)
            if found is not None:
                if template is not templates[0]:
                    templates.remove(template)
                    templates.insert(0, template)
                return found
        return None

    def _instantiate(self, template: Template, given: ParameterizedQuery) -> QueryTemplate | None:
        """Return the plan for other constants; None if they make another index the best."""
        values = _values_of(template, given)
        if values is None:
            return None
        same = template.tables == given.tables
        make = template.of_tables if same else template.of_others
        optimized, physical, asked = make((*values, *given.opaques, *given.tables))
        looked_up = []
        for candidates, best in asked:
            if best_of(candidates, self._values_wanted) != best:
                return None
            chosen = None if best is None else candidates[best]
            if chosen is not None and chosen.field is not None:
                looked_up.append((chosen.index, chosen.field))
        return QueryTemplate(optimized, physical, tuple(looked_up))

    def _learn(
        self, written: plan.Node, given: ParameterizedQuery, shape: QueryShape, key: Key
    ) -> QueryTemplate | None:
        """Return the plan of a query by a new template; None if it gets none yet.

        A shape with a template gets another one after `LEARNED_AT` queries of one key.
        """
        if shape.is_hopeless or shape.count >= MOST_TEMPLATES or len(shape.seen) > MOST_KEYS:
            return None
        shape.seen[key] += 1
        if shape.count and shape.seen[key] < LEARNED_AT:
            return None
        template = self._template(written, given, shape)
        return None if template is None else self._instantiate(template, given)

    def _template(
        self, written: plan.Node, given: ParameterizedQuery, shape: QueryShape
    ) -> Template | None:
        """Make a template from a query and add it to the shape; None if that is impossible."""
        while True:
            tagged, opaques, held = self._read_query(written, given, shape)
            optimized, chooser = self._planned(tagged)
            literals = _literals(optimized.plan) if held else set()
            equal = {each.value for each in held.values()} & literals
            if not equal:
                break
            shape.literals |= equal
        shape.count += 1
        if _is_mixed(given, held, literals):
            return None
        physical = chooser.chosen[id(optimized.plan)]
        asked = tuple(chooser.asked)
        for node in _walk_physical(
            physical
        ):  # these belong to each query, where they contain no slots
            node.known["instance"] = {}, ()
        shape.asked |= {place for place, each in held.items() if each.is_asked}
        slots = tuple(place for place in held if place not in shape.asked)
        places = {id(held[place]): number for number, place in enumerate(slots)}
        more = _find_computed_values(held.values(), places, len(slots))
        start = len(slots) + len(more)
        for number, (own, other) in enumerate(
            zip(opaques.values(), given.opaques, strict=True), start
        ):
            if own is not other:
                places[id(own)] = number
        made = _LearnedPlan(optimized, physical, asked)
        of_tables = made.with_places(places) if held or places else made.as_it_is
        start += len(opaques)
        of_others = made.later(places | _tables(tagged, given.tables, start))
        tables = tuple(map(replace, given.tables))  # their cached facts refer to a graph
        found = Template(tables, slots, more, frozenset(literals), of_tables, of_others)
        shape.templates.setdefault(shape.key(given), []).insert(0, found)
        return found

    def _read_query(
        self, written: plan.Node, given: ParameterizedQuery, shape: QueryShape
    ) -> tuple[plan.Node, dict[int, Opaque], dict[Place, SlotValue]]:
        """Return a query with slots where possible, its callables, and the values of the slots.

        The shape notes which values were read, and the literals of the plan.
        """
        while True:
            held = _make_slots(given, shape.varying(given))
            tagged, opaques = with_slots(written, held)
            if not given.values:
                return tagged, opaques, held
            read = rebuilt(tagged, read_callables)
            fixed = {value for place, value in given.values.items() if place not in held}
            literals = _literals(read) - fixed
            asked = _find_deciding_places(read, opaques, held)
            shape.asked |= asked
            shape.literals |= literals
            if shape.varying(given) == held.keys():
                return tagged, opaques, held


SHAPES: ClassCache[QueryShape] = ClassCache(lambda _: QueryShape(), MOST_SHAPES)
"""The shapes cached in the process."""


def _make_slots(given: ParameterizedQuery, varying: Container[Place]) -> dict[Place, SlotValue]:
    """Return the slots of the values of `given` that may differ; equal values share one."""
    found: dict[Any, SlotValue] = {}
    return {
        place: found.setdefault(value, SlotValue(value))
        for place, value in given.values.items()
        if place in varying
    }


def _find_computed_values(
    held: Iterable[SlotValue], places: dict[int, int], start: int
) -> tuple[ComputedValue, ...]:
    """Return the values computed from unread slots; add them to `places`, from `start` on."""
    found: list[ComputedValue] = []
    for each in dict.fromkeys(part for base in held for part in base.every()):
        if not each.is_asked and any(id(part) in places for part in each.operands):
            parts = [
                (places.get(id(part)), part.value) if isinstance(part, SlotValue) else (None, part)
                for part in each.operands
            ]
            places[id(each)] = start + len(found)
            found.append(ComputedValue(each.by, tuple(parts)))
    return tuple(found)


def _is_mixed(
    given: ParameterizedQuery, held: Mapping[Place, SlotValue], literals: Set[Any]
) -> bool:
    """Return True if a computed value equals another constant of the query, or computing failed.

    `given` has all constants of the query, `held` the slots, `literals` other constants of its
    plan.
    """
    others = {*given.values.values(), *literals}
    for each in dict.fromkeys(part for base in held.values() for part in base.every()):
        if each.value is None or (not each.is_asked and each.value in others):
            return True
        others.add(each.value)
    return False


def _values_of(template: Template, given: ParameterizedQuery) -> list[Any] | None:
    """Return the values to insert into a template for the query of `given`.

    Return None if one of them equals another constant, or cannot be computed: the template is
    not valid then.
    """
    values = [given.values[slot] for slot in template.slots]
    if not template.literals.isdisjoint(values):
        return None
    if template.computed:
        others = {*given.values.values(), *template.literals}
        for each in template.computed:
            value = each.compute(values)
            if value is None or value in others:
                return None
            values.append(value)
            others.add(value)
    return values


def _find_deciding_places(
    read: plan.Node, opaques: Mapping[int, Opaque], held: Mapping[Place, SlotValue]
) -> set[Place]:
    """Return the places of the values that decided how callables were lifted.

    Values that opaque parts hold are included.
    """
    found, kept = set[int](), set[int]()
    for function in _functions(read):
        is_read = isinstance(function, Lifted) and not _calls_what_is_kept(function.body)
        (found if is_read else kept).update(map(id, origins(function)))
    called = {place for place, o in opaques.items() if id(o) in kept or id(o) not in found}
    return {place for place, each in held.items() if each.is_asked or place[0] in called}


def _calls_what_is_kept(body: Expr) -> bool:
    return any(isinstance(part, Apply) for part in walk(body))


def _literals(read: plan.Node) -> set[Hashable]:
    """Return the plain constants that are no slots."""
    return {
        part.value
        for function in _functions(read)
        if isinstance(function, Lifted)
        for part in walk(function.body)
        if type(part) is Constant and isinstance(part.value, str | bytes | Number)
    }


def _walk_physical(root: Physical) -> Iterator[Physical]:
    """Yield each node of a physical plan once."""
    waiting, seen = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            waiting.extend(node.inputs())


def _functions(root: plan.Node) -> Iterator[Function]:
    for node in nodes(root):
        yield from functions(node)


def _tables(root: plan.Node, tables: Sequence[plan.Table], start: int) -> dict[int, int]:
    """Return the places of the tables in a plan, by the `id` of the table nodes."""
    found = [node for node in nodes(root) if isinstance(node, plan.Table)]
    return {id(node): start + tables.index(node) for node in found}


@record
class _LearnedPlan:
    """The plan of the query from which a template was learned."""

    optimized: OptimizedPlan
    physical: Physical
    asked: tuple[Asked, ...]

    def as_it_is(self, values: substitution.Values) -> Any:
        """Return the plan for queries that differ in nothing."""
        return (lambda: self.optimized), self.physical, self.asked

    def with_places(self, places: Mapping[int, int]) -> substitution.Make:
        """Return the substitution of the values in some places."""
        root = substitution.Later(self.optimized), self.physical, self.asked
        return substitution.substitution(root, places)

    def later(self, places: Mapping[int, int]) -> substitution.Make:
        """Return a substitution that is made when it is first wanted."""
        found: substitution.Make | None = None

        def make(values: substitution.Values) -> Any:
            nonlocal found
            if found is None:
                found = self.with_places(places)
            return found(values)

        return make
