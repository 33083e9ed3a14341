"""The analyses of `logic/` as a worklist in plain Python, from scratch.

A place holds objects: a variable in a context, a field or the elements of an object, a static
field, or the exceptions of a method in a context. Objects flow along edges between places; a new
object in a variable adds the edges of its loads, stores and calls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from examples.doop.extract import Facts

Context: TypeAlias = Any
Object: TypeAlias = tuple[Any, str]
"""The context of the heap, and the allocation."""
Place: TypeAlias = tuple[Any, ...]

EVERYWHERE = "<everywhere>"
OBJECT = "java/lang/Object"


@dataclass(frozen=True)
class Contexts:
    """One kind of contexts: how they are made."""

    start: Context
    allocate: Callable[[Context], Any]
    call: Callable[[Context, str, Object], Context]
    call_static: Callable[[Context, str], Context]


CONTEXTS: Mapping[str, Contexts] = {
    "insensitive": Contexts(
        EVERYWHERE,
        lambda context: EVERYWHERE,
        lambda context, invocation, receiver: EVERYWHERE,
        lambda context, invocation: context,
    ),
    "callSite": Contexts(
        (EVERYWHERE,),
        lambda context: context,
        lambda context, invocation, receiver: (invocation,),
        lambda context, invocation: (invocation,),
    ),
    "twoObjects": Contexts(
        (EVERYWHERE, EVERYWHERE),
        lambda context: context[:1],
        lambda context, invocation, receiver: (receiver[1], receiver[0][0]),
        lambda context, invocation: context,
    ),
}


@dataclass
class Result:
    """The relations of an analysis, as sets of plain tuples."""

    VarPointsTo: set[tuple[Any, ...]] = field(default_factory=set)
    CallEdge: set[tuple[Any, ...]] = field(default_factory=set)
    Reachable: set[tuple[Any, ...]] = field(default_factory=set)
    MayFail: set[tuple[Any, ...]] = field(default_factory=set)


class Hierarchy:
    """The classes of a program: their subtypes, methods and fields."""

    def __init__(self, facts: Facts) -> None:
        self.classes = {name for (name,) in facts.get("ClassType", ())}
        self.interfaces = {name for (name,) in facts.get("InterfaceType", ())}
        self.elements = _by(facts.get("ArrayType", ()), 0, 1)
        self.superclasses = _by(facts.get("DirectSuperclass", ()), 0, 1)
        self.above = _by(
            {*facts.get("DirectSuperclass", ()), *facts.get("DirectSuperinterface", ())}, 0, 1
        )
        self.abstract = {name for (name,) in facts.get("AbstractMethod", ())}
        self.methods = _by(facts.get("DeclaredMethod", ()), (1, 2), 0)
        self.fields = _by(facts.get("DeclaredField", ()), (1, 2), 0)
        self._supers: dict[str, set[str]] = {}

    def supers(self, kind: str) -> set[str]:
        """Return the classes and interfaces above a type, and itself."""
        if kind not in self._supers:
            found, pending = {kind, OBJECT}, [kind, OBJECT]
            while pending:
                for above in self.above.get(pending.pop(), ()):
                    if above not in found:
                        found.add(above)
                        pending.append(above)
            self._supers[kind] = found
        return self._supers[kind]

    def is_subtype(self, kind: str, other: str) -> bool:
        """Return True if all objects of a type are of another type."""
        if other in self.supers(kind):
            return True
        return any(
            self.is_subtype(element, wanted)
            for element in self.elements.get(kind, ())
            for wanted in self.elements.get(other, ())
        )

    def lookup(self, kind: str, descriptor: str) -> set[str]:
        """Return the methods that a call runs on an object of a type."""
        return self._inherited(kind, descriptor) or self._defaults(kind, descriptor)

    def _inherited(self, kind: str, descriptor: str) -> set[str]:
        declared = self.methods.get((kind, descriptor))
        if declared:
            return declared - self.abstract if kind in self.classes else set()
        above = self.superclasses.get(kind, ())
        return {method for each in above for method in self._inherited(each, descriptor)}

    def _defaults(self, kind: str, descriptor: str) -> set[str]:
        found = {
            each: methods
            for each in self.supers(kind) & self.interfaces
            if (methods := self.methods.get((each, descriptor), set()) - self.abstract)
        }
        return {
            method
            for each, methods in found.items()
            if not any(other != each and each in self.supers(other) for other in found)
            for method in methods
        }

    def lookup_field(self, kind: str, name: str) -> set[tuple[str, str]]:
        """Return the fields of a name in a class, each with its owner."""
        declared = self.fields.get((kind, name))
        if declared:
            return {(kind, each) for each in declared}
        return {
            found for above in self.above.get(kind, ()) for found in self.lookup_field(above, name)
        }


class Worklist:
    """One analysis of a program from scratch."""

    def __init__(self, facts: Facts, contexts: Contexts) -> None:
        self.facts = facts
        self.contexts = contexts
        self.hierarchy = hierarchy = Hierarchy(facts)
        self.objects: dict[Place, set[Object]] = defaultdict(set)
        self.edges: dict[Place, set[tuple[Place, str | None]]] = defaultdict(set)
        self.calls: set[tuple[Any, ...]] = set()
        self.reachable: set[tuple[Context, str]] = set()
        self.initialized: set[str] = set()
        self.pending: list[tuple[Place, Object]] = []
        rows = facts.get
        self.type_of = {heap: kind for heap, kind, _, _ in rows("Allocate", ())}
        self.fields = {
            reference: hierarchy.lookup_field(kind, name)
            for reference, kind, name in rows("FieldReference", ())
        }
        self.allocations = _by(rows("Allocate", ()), 3, (0, 2))
        self.assigned = _by(rows("Assign", ()), 1, 0)
        self.casts = _by(rows("Cast", ()), 2, (1, 0))
        self.loads = _by(rows("Load", ()), 1, (0, 2))
        self.stored_into = _by(rows("Store", ()), 0, (1, 2))
        self.array_loads = _by(rows("ArrayLoad", ()), 1, 0)
        self.array_stored_into = _by(rows("ArrayStore", ()), 0, 1)
        self.static_loads = _by(rows("StaticLoad", ()), 2, (0, 1))
        self.static_stores = _by(rows("StaticStore", ()), 1, 0)
        self.static_used = _by(rows("StaticLoad", ()), 2, 1)
        for reference, _, method in rows("StaticStore", ()):
            self.static_used.setdefault(method, set()).add(reference)
        self.static_calls = _by(rows("StaticInvoke", ()), 3, (0, 1, 2))
        self.special_calls = _by(rows("SpecialInvoke", ()), 1, (0, 2, 3))
        self.virtual_calls = _by(rows("VirtualInvoke", ()), 1, (0, 3))
        self.invoked_in = {
            row[0]: row[-1]
            for kind in ("StaticInvoke", "SpecialInvoke", "VirtualInvoke")
            for row in rows(kind, ())
        }
        self.this = _by(rows("This", ()), 0, 1)
        self.formals = _by(rows("Formal", ()), 0, (1, 2))
        self.actuals = _by(rows("Actual", ()), (0, 1), 2)
        self.returned = _by(rows("Returned", ()), 0, 1)
        self.results = _by(rows("ResultOf", ()), 0, 1)
        self.thrown = _by(rows("Thrown", ()), 1, 0)
        self.caught = _by(rows("Caught", ()), 0, (1, 2))
        self.initializers = _by(rows("ClassInitializer", ()), 0, 1)
        self.owner = {method: kind for method, kind, _ in rows("DeclaredMethod", ())}

    def run(self) -> Result:
        """Follow the program from `main` until nothing is new."""
        for (method,) in self.facts.get("MainMethod", ()):
            self._reach(self.contexts.start, method)
            if method in self.owner:
                self._initialize(self.owner[method])
        while self.pending:
            place, found = self.pending.pop()
            for target, kind in [*self.edges[place]]:
                self._flow(target, kind, found)
            if place[0] == "variable":
                self._variable(place[1], place[2], found)
        return self._result()

    def _result(self) -> Result:
        result = Result(CallEdge=self.calls, Reachable=self.reachable)
        for place, objects in self.objects.items():
            if place[0] == "variable":
                result.VarPointsTo |= {(*found, place[1], place[2]) for found in objects}
                for to, kind in self.casts.get(place[2], ()):
                    if any(not self._fits(found[1], kind) for found in objects):
                        result.MayFail.add((to, kind))
        return result

    def _fits(self, heap: str, kind: str) -> bool:
        return self.hierarchy.is_subtype(self.type_of[heap], kind)

    def _flow(self, target: Place, kind: str | None, found: Object) -> None:
        """Put an object into a place, if it is of the type that the edge lets through."""
        if found not in self.objects[target] and (kind is None or self._fits(found[1], kind)):
            self.objects[target].add(found)
            self.pending.append((target, found))

    def _edge(self, source: Place, target: Place, kind: str | None = None) -> None:
        if (target, kind) not in self.edges[source]:
            self.edges[source].add((target, kind))
            for found in [*self.objects[source]]:
                self._flow(target, kind, found)

    def _reach(self, context: Context, method: str) -> None:
        if (context, method) in self.reachable:
            return
        self.reachable.add((context, method))
        for heap, to in self.allocations.get(method, ()):
            made = (self.contexts.allocate(context), heap)
            self._flow(("variable", context, to), None, made)
            self._initialize(self.type_of[heap])
        for reference in self.static_used.get(method, ()):
            for owner, _ in self.fields.get(reference, ()):
                self._initialize(owner)
        for to, reference in self.static_loads.get(method, ()):
            for _, static in self.fields.get(reference, ()):
                self._edge(("static", static), ("variable", context, to))
        for invocation, kind, descriptor in self.static_calls.get(method, ()):
            callee = self.contexts.call_static(context, invocation)
            for other in self.hierarchy.lookup(kind, descriptor):
                self._initialize(self.owner[other])
                self._call(context, invocation, callee, other)
        for kind, to in self.caught.get(method, ()):
            self._edge(("thrown", context, method), ("variable", context, to), kind)

    def _initialize(self, kind: str) -> None:
        if kind not in self.initialized:
            self.initialized.add(kind)
            for method in self.initializers.get(kind, ()):
                self._reach(self.contexts.start, method)
            for above in self.hierarchy.superclasses.get(kind, ()):
                self._initialize(above)

    def _call(self, context: Context, invocation: str, callee: Context, method: str) -> None:
        if (context, invocation, callee, method) in self.calls:
            return
        self.calls.add((context, invocation, callee, method))
        self._reach(callee, method)
        for index, formal in self.formals.get(method, ()):
            for actual in self.actuals.get((invocation, index), ()):
                self._edge(("variable", context, actual), ("variable", callee, formal))
        for to in self.results.get(invocation, ()):
            for source in self.returned.get(method, ()):
                self._edge(("variable", callee, source), ("variable", context, to))
        caller = self.invoked_in[invocation]
        self._edge(("thrown", callee, method), ("thrown", context, caller))

    def _variable(self, context: Context, variable: str, found: Object) -> None:
        """Follow the statements of a variable that holds a new object."""
        here = ("variable", context, variable)
        for to in self.assigned.get(variable, ()):
            self._edge(here, ("variable", context, to))
        for to, kind in self.casts.get(variable, ()):
            self._edge(here, ("variable", context, to), kind)
        for reference in self.static_stores.get(variable, ()):
            for _, static in self.fields.get(reference, ()):
                self._edge(here, ("static", static))
        for method in self.thrown.get(variable, ()):
            self._edge(here, ("thrown", context, method))
        for to, reference in self.loads.get(variable, ()):
            for _, name in self.fields.get(reference, ()):
                self._edge(("field", found, name), ("variable", context, to))
        for reference, source in self.stored_into.get(variable, ()):
            for _, name in self.fields.get(reference, ()):
                self._edge(("variable", context, source), ("field", found, name))
        for to in self.array_loads.get(variable, ()):
            self._edge(("elements", found), ("variable", context, to))
        for source in self.array_stored_into.get(variable, ()):
            for kind in self.hierarchy.elements.get(self.type_of[found[1]], ()):
                self._edge(("variable", context, source), ("elements", found), kind)
        for invocation, method in self._targets(variable, found):
            callee = self.contexts.call(context, invocation, found)
            for this in self.this.get(method, ()):
                self._call(context, invocation, callee, method)
                self._flow(("variable", callee, this), None, found)

    def _targets(self, variable: str, receiver: Object) -> Iterator[tuple[str, str]]:
        """Yield the calls on a variable, with the methods that they run on an object."""
        for invocation, descriptor in self.virtual_calls.get(variable, ()):
            for method in self.hierarchy.lookup(self.type_of[receiver[1]], descriptor):
                yield invocation, method
        for invocation, kind, descriptor in self.special_calls.get(variable, ()):
            for method in self.hierarchy.lookup(kind, descriptor):
                yield invocation, method


def solve(facts: Facts, analysis: str) -> Result:
    """Return the result of an analysis: `insensitive`, `callSite` or `twoObjects`."""
    return Worklist(facts, CONTEXTS[analysis]).run()


def _by(
    rows: Iterable[tuple[Any, ...]], key: int | tuple[int, ...], value: int | tuple[int, ...]
) -> dict[Any, set[Any]]:
    """Return rows as sets of some columns by others."""
    found: dict[Any, set[Any]] = defaultdict(set)
    for row in rows:
        found[_columns(row, key)].add(_columns(row, value))
    return dict(found)


def _columns(row: tuple[Any, ...], chosen: int | tuple[int, ...]) -> Any:
    return row[chosen] if isinstance(chosen, int) else tuple([row[n] for n in chosen])
