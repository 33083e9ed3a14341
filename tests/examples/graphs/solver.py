"""A plain solver of the points-to analysis: dictionaries, and loops until nothing changes.

It shares the rows of facts with the example, and none of its queries.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from examples.graphs.points_to import facts as f

Result = tuple[set[tuple[Any, ...]], set[tuple[Any, ...]], set[tuple[Any, ...]]]


class Solver:
    """Points-to sets of all variables and fields, and the targets of calls."""

    def __init__(self, facts: Iterable[f.Fact]) -> None:
        self._by_kind: dict[type[Any], list[Any]] = defaultdict(list)
        for fact in facts:
            self._by_kind[type(fact)].append(fact)
        self._points: dict[str, set[f.Site]] = defaultdict(set)
        self._holds: dict[tuple[f.Site, str], set[f.Site]] = defaultdict(set)
        self._calls: set[tuple[str, str]] = set()
        self._classes = self._named_classes()
        self._parents = {
            (b.symbol, base) for b in self._by_kind[f.Base] for base in self._classes[b.variable]
        }
        self._methods = self._method_tables()

    def solve(self) -> Result:
        """The rows of the three views."""
        self._begin()
        while self._pass_on() or self._call():
            pass
        points = {(variable, site) for variable, sites in self._points.items() for site in sites}
        holds = {
            (site, field, target)
            for (site, field), targets in self._holds.items()
            for target in targets
        }
        return points, holds, set(self._calls)

    def _named_classes(self) -> dict[str, set[str]]:
        named: dict[str, set[str]] = defaultdict(set)
        for d in self._by_kind[f.Define]:
            named[d.variable].add(d.symbol)
        changed = True
        while changed:
            changed = False
            for a in self._by_kind[f.Assign]:
                new = named.get(a.source, set()) - named[a.target]
                named[a.target] |= new
                changed = changed or bool(new)
        return named

    def _method_tables(self) -> dict[str, dict[str, str]]:
        """Return the methods of each class, found by a search through its bases, level by level."""
        own: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for m in self._by_kind[f.Method]:
            own[m.owner][m.name].append(m.function)
        bases: dict[str, set[str]] = defaultdict(set)
        for symbol, base in self._parents:
            bases[symbol].add(base)
        tables: dict[str, dict[str, str]] = {}
        for symbol in {*own, *bases}:
            table: dict[str, str] = {}
            level, seen = {symbol}, {symbol}
            while level:
                for name in {name for c in level for name in own.get(c, ())}:
                    found = [m for c in level for m in own.get(c, {}).get(name, ())]
                    table.setdefault(name, min(found))
                level = {base for c in level for base in bases.get(c, ())} - seen
                seen |= level
            tables[symbol] = table
        return tables

    def _begin(self) -> None:
        for n in self._by_kind[f.New]:
            self._points[n.variable].add(n.site)
        for c in self._by_kind[f.Call]:
            for symbol in self._classes.get(c.callee, ()):
                site = f.Site(c.call, symbol)
                self._points[c.call].add(site)
                init = self._methods.get(symbol, {}).get("__init__")
                if init is not None:
                    self._calls.add((c.call, init))
        for s in self._by_kind[f.SuperCall]:
            for symbol, base in self._parents:
                function = self._methods.get(base, {}).get(s.method)
                if symbol == s.owner and function is not None:
                    self._calls.add((s.call, function))

    def _pass_on(self) -> bool:
        """Apply all assignments, loads and stores once; return True if anything is new."""
        new = False
        for a in self._by_kind[f.Assign]:
            new |= self._flow(a.source, a.target)
        for use in self._by_kind[f.Load]:
            for site in list(self._points[use.base]):
                new |= _add(self._points[use.target], self._holds[site, use.field])
        for use in self._by_kind[f.Store]:
            for site in list(self._points[use.base]):
                new |= _add(self._holds[site, use.field], self._points[use.source])
        return new

    def _call(self) -> bool:
        """Add the called functions, their arguments, and their results."""
        new = self._find_functions()
        formals: dict[tuple[str, str], list[str]] = defaultdict(list)
        actuals: dict[str, list[Any]] = defaultdict(list)
        returns: dict[str, list[str]] = defaultdict(list)
        for formal in self._by_kind[f.Formal]:
            formals[formal.function, formal.slot].append(formal.variable)
        for actual in self._by_kind[f.Actual]:
            actuals[actual.call].append(actual)
        for r in self._by_kind[f.Return]:
            returns[r.function].append(r.variable)
        made = {
            c.call: {self._methods.get(symbol, {}).get("__init__") for symbol in symbols}
            for c in self._by_kind[f.Call]
            if (symbols := self._classes.get(c.callee))
        }
        for call, function in self._calls:
            for actual in actuals.get(call, ()):
                for variable in formals.get((function, actual.slot), ()):
                    new |= self._flow(actual.variable, variable)
            for variable in returns.get(function, ()):
                new |= self._flow(variable, call)
            if function in made.get(call, ()):
                for variable in formals.get((function, f.SELF), ()):
                    new |= self._flow(call, variable)
        for i in self._by_kind[f.Invoke]:
            for site in list(self._points[i.receiver]):
                found = self._methods.get(site.type, {}).get(i.method)
                for variable in formals.get((found, f.SELF), ()) if found else ():
                    new |= _add(self._points[variable], {site})
        return new

    def _find_functions(self) -> bool:
        found: set[tuple[str, str]] = set()
        for c in self._by_kind[f.Call]:
            held = self._points[c.callee]
            found |= {(c.call, site.at) for site in held if site.type == f.FUNCTION}
        for i in self._by_kind[f.Invoke]:
            for site in self._points[i.receiver]:
                method = self._methods.get(site.type, {}).get(i.method)
                if method is not None:
                    found.add((i.call, method))
                inside = self._holds.get((site, i.method), set())
                found |= {(i.call, s.at) for s in inside if s.type == f.FUNCTION}
        return _add(self._calls, found)

    def _flow(self, source: str, target: str) -> bool:
        return _add(self._points[target], self._points[source])


def _add(to: set[Any], rows: set[Any]) -> bool:
    """Add rows; return True if any is new."""
    before = len(to)
    to |= rows
    return len(to) > before
