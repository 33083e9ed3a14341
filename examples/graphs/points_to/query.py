"""The analysis: three recursions, each over the complete result of the one before.

    meanings    the classes of a name, through imports and assignments
    methods     the function of a class for a method: its own, or that of the nearest base
    points_to   four relations that define each other:

        points(v, o)     if  v = new o
        points(v, o)     if  flows(v, w) and points(w, o)
        points(v, o)     if  v = w.f, points(w, p) and holds(p, f, o)
        points(v, o)     if  w.m(...), points(w, o), o has a method m, and v is its self
        holds(p, f, o)   if  v.f = w, points(v, p) and points(w, o)
        calls(c, g)      if  call c is w(...) and points(w, function g)
        calls(c, g)      if  call c is w.m(...), points(w, o), and g is the method m of o
        calls(c, g)      if  call c is w.m(...), points(w, o) and holds(o, m, function g)
        flows(v, w)      if  v = w
        flows(v, w)      if  calls(c, g), c passes w, and g takes it into v
        flows(v, w)      if  calls(c, g), g returns w, and v is the result of c

The called functions depend on the objects in variables, which depend on the called functions. The
order of files does not matter: an edit of one file changes the possible objects in the others.

Source: L. O. Andersen: *Program Analysis and Specialization for the C Programming Language*, 1994;
as recursive queries: M. Bravenboer, Y. Smaragdakis: *Strictly Declarative Specification of
Sophisticated Points-to Analyses*, OOPSLA 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from examples.graphs.points_to.facts import FUNCTION, SELF, Assign, Define, Formal, Invoke, Site
from examples.graphs.points_to.tables import Tables
from reactive import Min, Relation, fixpoint


class Points(NamedTuple):
    """A variable may hold objects made at a site."""

    variable: str
    site: Site

    def __str__(self) -> str:
        return f"{self.variable} may hold {self.site}"


class Holds(NamedTuple):
    """A field of the objects of a site may hold objects of another one."""

    site: Site
    field: str
    target: Site

    def __str__(self) -> str:
        return f"{self.site}, .{self.field} may hold {self.target}"


class Calls(NamedTuple):
    """A call may be one of a function."""

    call: str
    function: str

    def __str__(self) -> str:
        return f"{self.call} calls {self.function}"


class Parent(NamedTuple):
    """A class has a base."""

    symbol: str
    base: str


class Found(NamedTuple):
    """The function that a class has for a method, and how many bases away it is defined."""

    owner: str
    name: str
    function: str
    away: int


@dataclass(frozen=True, slots=True)
class Analysis:
    """The results."""

    points: Relation[Points]
    holds: Relation[Holds]
    calls: Relation[Calls]


def meanings(t: Tables) -> Relation[Define]:
    """Return the classes that a name may stand for."""
    return fixpoint(
        lambda means: t.defines.union(
            means.join(t.assigns, on=lambda m, a: m.variable == a.source).select(
                lambda m, a: Define(a.target, m.symbol)
            )
        )
    )


def parents(t: Tables) -> Relation[Parent]:
    """Classes and their bases, as far as both are known."""
    named = t.bases.join(meanings(t), on=lambda b, m: b.variable == m.variable)
    return named.select(lambda b, m: Parent(b.symbol, m.symbol)).distinct()


def methods(t: Tables) -> Relation[Found]:
    """For each class and method name, the nearest function; of equally near ones, the first."""
    own = t.methods.select(lambda m: Found(m.owner, m.name, m.function, 0))
    above = parents(t)
    return fixpoint(
        lambda found: own.union(
            found.join(above, on=lambda f, p: f.owner == p.base).select(
                lambda f, p: Found(p.symbol, f.name, f.function, f.away + 1)
            )
        ),
        keep=Min(lambda f: (f.away, f.function)),
        by=lambda f: (f.owner, f.name),
    )


def made(t: Tables) -> Relation[Define]:
    """Return calls of classes, each with what it makes an object of."""
    named = t.calls.join(meanings(t), on=lambda c, m: c.callee == m.variable)
    return named.select(lambda c, m: Define(c.call, m.symbol)).distinct()


def inits(t: Tables) -> Relation[Calls]:
    """Return the `__init__` that making an object calls."""
    own = methods(t).where(lambda f: f.name == "__init__")
    found = made(t).join(own, on=lambda new, f: new.symbol == f.owner)
    return found.select(lambda new, f: Calls(new.variable, f.function))


def inherited(t: Tables) -> Relation[Calls]:
    """Return the functions that calls of methods of `super()` call."""
    return (
        t.super_calls.join(parents(t), on=lambda c, p: c.owner == p.symbol)
        .join(methods(t), on=lambda c, p, f: p.base == f.owner and c.method == f.name)
        .select(lambda c, p, f: Calls(c.call, f.function))
    )


def news(t: Tables) -> Relation[Points]:
    """Return new objects: those of facts, and those of calls of classes."""
    stated = t.news.select(lambda n: Points(n.variable, n.site))
    return stated.union(made(t).select(lambda m: Points(m.variable, Site(m.variable, m.symbol))))


def selves(t: Tables) -> Relation[Formal]:
    """Return the variable that is the `self` of a function."""
    return t.formals.where(lambda f: f.slot == SELF)


def known_flows(t: Tables) -> Relation[Assign]:
    """Return flows that do not depend on objects: assignments, and new objects into `__init__`."""
    into = inits(t).join(selves(t), on=lambda c, f: c.function == f.function)
    return t.assigns.union(into.select(lambda c, f: Assign(f.variable, c.call)))


def points_to(t: Tables) -> Analysis:
    """Return the objects in variables and fields, and the functions that calls may call."""

    def step(
        points: Relation[Points],
        holds: Relation[Holds],
        calls: Relation[Calls],
        flows: Relation[Assign],
    ) -> tuple[Relation[Points], Relation[Holds], Relation[Calls], Relation[Assign]]:
        asked = points.join(t.invokes, on=lambda p, i: p.variable == i.receiver)
        methods_asked = asked.join(
            methods(t), on=lambda p, i, f: p.site.type == f.owner and i.method == f.name
        )
        return (
            news(t)
            .union(flowed(points, flows))
            .union(loaded(t, points, holds))
            .union(received(t, methods_asked)),
            stored(t, points),
            inits(t)
            .union(inherited(t))
            .union(named(t, points))
            .union(methods_asked.select(lambda p, i, f: Calls(i.call, f.function)))
            .union(in_fields(asked, holds)),
            known_flows(t).union(passed(t, calls)).union(returned(t, calls)),
        )

    points, holds, calls, _ = fixpoint(step)
    return Analysis(points, holds, calls)


def flowed(points: Relation[Points], flows: Relation[Assign]) -> Relation[Points]:
    """Return the objects that reach a variable by assignment."""
    found = points.join(flows, on=lambda p, a: p.variable == a.source)
    return found.select(lambda p, a: Points(a.target, p.site))


def loaded(t: Tables, points: Relation[Points], holds: Relation[Holds]) -> Relation[Points]:
    """Return the objects that are read from a field."""
    return (
        points.join(t.loads, on=lambda p, use: p.variable == use.base)
        .join(holds, on=lambda p, use, h: p.site == h.site and use.field == h.field)
        .select(lambda p, use, h: Points(use.target, h.target))
    )


def stored(t: Tables, points: Relation[Points]) -> Relation[Holds]:
    """Return the objects that are written to a field."""
    return (
        points.join(t.stores, on=lambda p, use: p.variable == use.base)
        .join(points, on=lambda p, use, q: use.source == q.variable)
        .select(lambda p, use, q: Holds(p.site, use.field, q.site))
    )


def received(t: Tables, asked: Relation[Points, Invoke, Found]) -> Relation[Points]:
    """Return each object whose method is called, as the `self` of that method."""
    found = asked.join(selves(t), on=lambda p, i, f, own: f.function == own.function)
    return found.select(lambda p, i, f, own: Points(own.variable, p.site))


def named(t: Tables, points: Relation[Points]) -> Relation[Calls]:
    """Return calls of functions that a variable holds."""
    found = points.join(t.calls, on=lambda p, c: p.variable == c.callee)
    functions = found.where(lambda p, c: p.site.type == FUNCTION)
    return functions.select(lambda p, c: Calls(c.call, p.site.at))


def in_fields(asked: Relation[Points, Invoke], holds: Relation[Holds]) -> Relation[Calls]:
    """Return calls of functions that a field holds."""
    found = asked.join(holds, on=lambda p, i, h: p.site == h.site and i.method == h.field)
    functions = found.where(lambda p, i, h: h.target.type == FUNCTION)
    return functions.select(lambda p, i, h: Calls(i.call, h.target.at))


def passed(t: Tables, calls: Relation[Calls]) -> Relation[Assign]:
    """Return the flows from the arguments of a call to the parameters of the function."""
    return (
        calls.join(t.actuals, on=lambda c, a: c.call == a.call)
        .join(t.formals, on=lambda c, a, f: c.function == f.function and a.slot == f.slot)
        .select(lambda c, a, f: Assign(f.variable, a.variable))
    )


def returned(t: Tables, calls: Relation[Calls]) -> Relation[Assign]:
    """Return the flows from the results of a function to its calls."""
    found = calls.join(t.returns, on=lambda c, r: c.function == r.function)
    return found.select(lambda c, r: Assign(c.call, r.variable))
