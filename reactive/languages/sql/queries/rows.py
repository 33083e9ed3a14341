"""What FROM gives: a plan, and which columns the sources have in its bindings.

orders o                      one binding, o.total is b0.total
orders o, customers c         two, c.name is b1.name
o left join (c join x)        two, the second of which is a tuple of c and x, or None
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from optimizer import plan
from optimizer.expr import Expr, Item, Parameter, all_parameters, constant, substitute, walk
from optimizer.record import record
from reactive.languages.sql.terms.catalog import Named
from reactive.languages.sql.terms.scope import Scope, Source
from reactive.languages.sql.terms.values import Value


@record
class Rows:
    """A plan of `bindings` bindings, and its columns as values of these."""

    node: plan.Node
    bindings: int
    sources: tuple[Source, ...]
    merged: Mapping[str, Value] = field(default_factory=dict)
    """Columns that USING made of two, by their folded names."""

    def scope(self, around: Scope) -> Scope:
        """Their names."""
        made = around.over(self.sources, self.bindings)
        made.merged = dict(self.merged)
        return made

    def with_node(self, node: plan.Node) -> Rows:
        """As many bindings of another plan."""
        return replace(self, node=node)

    def moved(self, start: int, *, missing: bool) -> Rows:
        """The same as one binding behind `start` others; it is None where it may be `missing`."""
        place = Parameter(start)
        of: tuple[Expr, ...] = (place,)
        if self.bindings > 1:
            of = tuple(Item(place, constant(n)) for n in range(self.bindings))
        return self._changed(of, (place,) if missing else ())

    def missing(self) -> Rows:
        """The same, where all bindings may be None."""
        return self._changed(all_parameters(self.bindings), None)

    def _changed(self, of: tuple[Expr, ...], missing: tuple[Expr, ...] | None) -> Rows:
        def changed(value: Value) -> Value:
            expr = substitute(value.expr, of)
            inner = tuple(substitute(leaf, of) for leaf in value.nulls)
            before = missing if missing is not None else _bindings_of(value)
            return Value(expr, value.type, tuple(dict.fromkeys((*before, *inner))))

        sources = tuple(
            Source(s.name, tuple((name, changed(value)) for name, value in s.columns))
            for s in self.sources
        )
        merged = {name: changed(value) for name, value in self.merged.items()}
        return Rows(self.node, self.bindings, sources, merged)

    def columns(self, *, merged_first: bool = False) -> Iterator[tuple[str, str, Value]]:
        """Source, name and value of what a star stands for, in order; merged columns once, before
        all others or where the first of them stands."""
        told = set[str]()
        if merged_first:
            told = set(self.merged)
            yield from (("", self._spelling(name), value) for name, value in self.merged.items())
        for source in self.sources:
            for name, value in source.columns:
                folded = name.casefold()
                if folded not in self.merged:
                    yield source.name, name, value
                elif folded not in told:
                    told.add(folded)
                    yield "", name, self.merged[folded]

    def _spelling(self, folded: str) -> str:
        names = (n for source in self.sources for n, _ in source.columns)
        return next((n for n in names if n.casefold() == folded), folded)


def _bindings_of(value: Value) -> tuple[Expr, ...]:
    """The bindings that a value reads."""
    found: dict[Expr, None] = {}
    pending = [value.expr, *value.nulls]
    for expr in pending:
        for each in _parameters(expr):
            found[each] = None
    return tuple(found)


def _parameters(expr: Expr) -> Iterator[Parameter]:
    return (e for e in walk(expr) if isinstance(e, Parameter))


def rows_of(found: Named, name: str, names: tuple[str, ...] = ()) -> Rows:
    """The rows of a plan under an alias; `names` are of its first columns."""
    values = [value for _, value in found.columns]
    called = (*names, *(name for name, _ in found.columns[len(names) :]))
    source = Source(name, tuple(zip(called, values, strict=True)))
    return Rows(found.node, found.bindings, (source,))
