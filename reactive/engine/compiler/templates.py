"""Plans of queries that differ in constants: chosen once, and made for the others by substitution.

    look up SLOT where o.customer == SLOT        a template
    look up "ann" where o.customer == "ann"      the plan of a query of its shape

The second query of a shape is planned with slots in the place of constants (`optimizer.expr.Slot`).
They have the values of its own, so that its plan is what it would be, and where a slot ends up the
constant of another query goes, and a callable or a table of it where one of the second ends up.

Sound:  a slot notes whether anybody has asked for its value, be it a rule, today's or a later one,
        or who chooses how to run a query. What nobody has asked for has decided nothing; the value
        of another slot is part of what a template is found by. Rules may ask for the class of a
        value and whether two slots are equal: both are part of the shape. A slot is unlike all
        constants that are no slots, so a value equal to one of these is taken as if asked for.
        Where values would be looked up in indexes is asked again for each query, and if the answer
        is another one the query is planned by itself.
Needs:  a query of a few nodes over tables, without views and recursions.
Pays:   making one more view, of which optimizing and choosing are two thirds.
State:  of the process, `MOST_SHAPES` shapes with a plan for each set of values that were asked for;
        of what queries captured, code and plain values.
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
from optimizer.expr import Apply, Constant, Expr, Function, Held, Lifted, origins, walk
from optimizer.expressions.evaluated import computed
from optimizer.kinds.fields import ClassCache
from optimizer.plans.properties import nodes
from optimizer.record import record
from optimizer.rewriting.optimize import Optimized, Phase
from optimizer.rules.read_callables import read_callables
from optimizer.traverse import functions, rebuilt
from reactive.engine.compiler import substitution
from reactive.engine.compiler.chooser import (
    Chooser,
    Place,
    Shaped,
    ValuesWanted,
    best_of,
    with_slots,
)
from reactive.engine.compiler.physical import Physical, PhysicalIndex, PhysicalRangeIndex

MOST_SHAPES = 256
"""How many are known in a process."""
MOST_TEMPLATES = 8
"""Templates of a shape: beyond, its queries have too little in common."""
MOST_KEYS = 256
"""Sets of values that decide, from which on they are as many as there are queries."""
LEARNED_AT = 2
"""Which query of a shape with the same values where these decide is planned for all of them."""
Planned = tuple[Optimized, Chooser]
Key = tuple[Hashable, ...]


@dataclass(slots=True)
class QueryShape:
    """What is known of the queries of a shape."""

    is_hopeless: bool = False
    """Whether there can be no templates."""
    seen: Counter[Key] = field(default_factory=Counter)
    """How many queries were planned by themselves, by the values that decide."""
    count: int = 0
    """Of its templates."""
    asked: set[Place] = field(default_factory=set)
    """The variables of whose values something has been decided by."""
    literals: set[Hashable] = field(default_factory=set)
    """Constants that are no variables."""
    templates: dict[Key, list[Template]] = field(default_factory=dict)
    """By the values that decide. Each looks up something else; the last that was used comes first.
    """

    def key(self, given: Shaped) -> Key:
        """The values of a query that decide."""
        varying = self.varying(given)
        return tuple([None if p in varying else meaning(v) for p, v in given.values.items()])

    def varying(self, given: Shaped) -> set[Place]:
        """The variables whose values do not decide: nobody asked for them, and they equal no other
        constant, nor a value of another meaning, as 1 does 1.0."""
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
class Computed:
    """A value that is computed: by an operator of others, by their places, or of plain ones."""

    by: str
    operands: tuple[tuple[int | None, Any], ...]

    def of(self, values: Sequence[Any]) -> Any:
        given = [value if place is None else values[place] for place, value in self.operands]
        return computed(self.by, given)


@record
class Template:
    """Makes plans: `of_tables` for queries over the same tables, `of_others` for those of tables
    alike."""

    tables: tuple[plan.Table, ...]
    slots: tuple[Place, ...]
    computed: tuple[Computed, ...]
    """What is computed of slots, of those before it too."""
    literals: frozenset[Any]
    """Constants in it, of which some may have been computed, that no slot may be equal to."""
    of_tables: substitution.Make
    of_others: substitution.Make


@record
class QueryTemplate:
    """The plan of a query, and the indexes in which it looks up values, with their fields."""

    optimized: Callable[[], Optimized]
    physical: Physical
    looked_up: tuple[tuple[PhysicalIndex | PhysicalRangeIndex, str], ...]


class Templates:
    """Makes plans of queries of a database by templates.

    Parameters
    ----------
    phases: the rules by which it is planned.
    planned: plans a query, and tells what it has asked of the graph.
    values_wanted: what is asked of the graph.
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

    def prepared(self, written: plan.Node, given: Shaped) -> QueryTemplate | None:
        """The plan of a query, by a template that may be learned of it; None if there is none."""
        shape = SHAPES.find((self._phases, given.shape), lambda _: given.home)
        try:
            known = shape.templates.get(key := shape.key(given), [])
            return self._known(known, given) or self._learned(written, given, shape, key)
        except substitution.UnknownPlace:
            shape.is_hopeless = True
            return None

    def _known(self, templates: list[Template], given: Shaped) -> QueryTemplate | None:
        for template in templates:
            found = self._made(template, given)
            if found is not None:
                if template is not templates[0]:
                    templates.remove(template)
                    templates.insert(0, template)
                return found
        return None

    def _made(self, template: Template, given: Shaped) -> QueryTemplate | None:
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
            if best is not None:
                looked_up.append((candidates[best].index, candidates[best].field))
        return QueryTemplate(optimized, physical, tuple(looked_up))

    def _learned(
        self, written: plan.Node, given: Shaped, shape: QueryShape, key: Key
    ) -> QueryTemplate | None:
        """The plan of a query, which is one of the first of its shape that are run so."""
        if shape.is_hopeless or shape.count >= MOST_TEMPLATES or len(shape.seen) > MOST_KEYS:
            return None
        shape.seen[key] += 1
        if shape.seen[key] < LEARNED_AT:
            return None
        template = self._template(written, given, shape)
        return None if template is None else self._made(template, given)

    def _template(self, written: plan.Node, given: Shaped, shape: QueryShape) -> Template | None:
        """The template that a query is one of, added to those of its shape; None if it may be one
        of none."""
        while True:
            tagged, opaques, held = self._read(written, given, shape)
            optimized, chooser = self._planned(tagged)
            literals = _literals(optimized.plan)
            equal = {each.value for each in held.values()} & literals
            if not equal:
                break
            shape.literals |= equal
        shape.count += 1
        if _is_mixed(given, held, literals):
            return None
        physical = chooser.chosen[id(optimized.plan)]
        asked = tuple(chooser.asked)
        for node in _every(physical):  # which are those of each query, where they hold no slots
            node.known["instance"] = {}, ()
        shape.asked |= {place for place, each in held.items() if each.is_asked}
        slots = tuple(place for place in held if place not in shape.asked)
        places = {id(held[place]): number for number, place in enumerate(slots)}
        more = _computed(held.values(), places, len(slots))
        start = len(slots) + len(more)
        for number, (own, other) in enumerate(
            zip(opaques.values(), given.opaques, strict=True), start
        ):
            if own is not other:
                places[id(own)] = number
        root = (substitution.Later(optimized), physical, asked)
        of_tables = substitution.substitution(root, places)
        start += len(opaques)
        of_others = _later(root, places | _tables(tagged, given.tables, start))
        tables = tuple(map(replace, given.tables))  # what is known of theirs holds a graph
        found = Template(tables, slots, more, frozenset(literals), of_tables, of_others)
        shape.templates.setdefault(shape.key(given), []).insert(0, found)
        return found

    def _read(
        self, written: plan.Node, given: Shaped, shape: QueryShape
    ) -> tuple[plan.Node, dict[int, Opaque], dict[Place, Held]]:
        """A query with slots where that is possible, its callables, and what the slots are of."""
        while True:
            held = _held(given, shape.varying(given))
            tagged, opaques = with_slots(written, held)
            read = rebuilt(tagged, read_callables)
            fixed = {value for place, value in given.values.items() if place not in held}
            literals = _literals(read) - fixed
            asked = _asked(read, opaques, held)
            shape.asked |= asked
            shape.literals |= literals
            if shape.varying(given) == held.keys():
                return tagged, opaques, held


SHAPES: ClassCache[QueryShape] = ClassCache(lambda _: QueryShape(), MOST_SHAPES)
"""The shapes that are known in the process."""


def _held(given: Shaped, varying: Container[Place]) -> dict[Place, Held]:
    """What stands for the values that may differ; for equal ones the same."""
    found: dict[Any, Held] = {}
    return {
        place: found.setdefault(value, Held(value))
        for place, value in given.values.items()
        if place in varying
    }


def _computed(held: Iterable[Held], places: dict[int, int], start: int) -> tuple[Computed, ...]:
    """How that is computed which comes of slots and whose value nobody has asked for; it gets
    places from a number on."""
    found: list[Computed] = []
    for each in dict.fromkeys(part for base in held for part in base.every()):
        if not each.is_asked and any(id(part) in places for part in each.operands):
            parts = [
                (places.get(id(part)), part.value) if isinstance(part, Held) else (None, part)
                for part in each.operands
            ]
            places[id(each)] = start + len(found)
            found.append(Computed(each.by, tuple(parts)))
    return tuple(found)


def _is_mixed(given: Shaped, held: Mapping[Place, Held], literals: Set[Any]) -> bool:
    """Whether something was computed that equals another constant of the query, or could not be."""
    others = {*given.values.values(), *literals}
    for each in dict.fromkeys(part for base in held.values() for part in base.every()):
        if each.value is None or (not each.is_asked and each.value in others):
            return True
        others.add(each.value)
    return False


def _values_of(template: Template, given: Shaped) -> list[Any] | None:
    """What is put into a template for a query; None if it is for queries in which none of that
    equals another constant."""
    values = [given.values[slot] for slot in template.slots]
    if not template.literals.isdisjoint(values):
        return None
    if template.computed:
        others = {*given.values.values(), *template.literals}
        for each in template.computed:
            value = each.of(values)
            if value is None or value in others:
                return None
            values.append(value)
            others.add(value)
    return values


def _asked(
    read: plan.Node, opaques: Mapping[int, Opaque], held: Mapping[Place, Held]
) -> set[Place]:
    """The variables whose values decided how callables were read, or are kept in such as were not
    read wholly."""
    found, kept = set[int](), set[int]()
    for function in _functions(read):
        is_read = isinstance(function, Lifted) and not _calls_what_is_kept(function.body)
        (found if is_read else kept).update(map(id, origins(function)))
    called = {place for place, o in opaques.items() if id(o) in kept or id(o) not in found}
    return {place for place, each in held.items() if each.is_asked or place[0] in called}


def _calls_what_is_kept(body: Expr) -> bool:
    return any(isinstance(part, Apply) for part in walk(body))


def _literals(read: plan.Node) -> set[Hashable]:
    """The plain constants that are no slots."""
    return {
        part.value
        for function in _functions(read)
        if isinstance(function, Lifted)
        for part in walk(function.body)
        if type(part) is Constant and isinstance(part.value, str | bytes | Number)
    }


def _every(root: Physical) -> Iterator[Physical]:
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
    """The tables in a plan, by their `id`, with their places."""
    found = [node for node in nodes(root) if isinstance(node, plan.Table)]
    return {id(node): start + tables.index(node) for node in found}


def _later(root: Any, places: Mapping[int, int]) -> substitution.Make:
    """A substitution that is made when it is first wanted."""
    made: substitution.Make | None = None

    def make(values: substitution.Values) -> Any:
        nonlocal made
        if made is None:
            made = substitution.substitution(root, places)
        return made(values)

    return make
