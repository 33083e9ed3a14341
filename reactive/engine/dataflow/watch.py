"""Watch captured variables: choose when to compare them with the value that was lifted.

    operators   before they step, the variables of the callables that they call
    leaves      at each commit of their tables, the variables that no operator reads

One leaf watches a segment of a query: the first leaf created over it; when that leaf is dropped,
another one takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable

from optimizer.callables.captures import Capture
from optimizer.callables.opaque import Opaque
from optimizer.expr import Function, origins
from optimizer.rewriting.optimize import Segment
from reactive.engine.dataflow.node import Guard, Node

OnStale = Callable[[Opaque, Capture, int], None]
"""Called with a callable, its changed variable, and how many similar callables share the change."""


class Watch:
    """Compares captured variables with their current values, and calls `on_stale` once per change.

    Callables created at one place may share a loop variable: `on_stale` is called once for all of
    them. They are searched in the callables of `nodes`.
    """

    def __init__(self, on_stale: OnStale, nodes: Callable[[], Iterable[Node]]) -> None:
        self._on_stale = on_stale
        self._nodes = nodes
        self._told: dict[int, Capture] = {}

    def begin(
        self,
        leaf: Node,
        segment: Segment,
        top: Node,
        ends: Container[Node | None],
        sources: Iterable[Node],
        called: Iterable[Function],
    ) -> None:
        """Let a leaf watch the callables that no operator from `top` to `ends` calls."""
        capturing = [origin for origin in origins(*called) if origin.captures]
        reached = top.upstream(ends) if capturing else ()
        seen = {id(o) for node in reached for o in origins(*node.functions)}
        guards = tuple((o, c) for o in capturing if id(o) not in seen for c in o.captures)
        _assign_guards(leaf, segment, guards, sources)

    def end(self, leaf: Node, leaves: Collection[Node], sources: Iterable[Node]) -> None:
        """Let other leaves over the same segments watch what `leaf` watched."""
        watched, leaf.watched = leaf.watched, []
        reached = [source for source in sources if leaf in source.watchers]
        for source in reached:
            source.watchers = tuple(each for each in source.watchers if each is not leaf)
        for segment, guards in watched:
            segment.watcher = None
            for heir in leaves if guards else ():
                if heir.query is not None and segment in heir.query.every():
                    _assign_guards(heir, segment, guards, reached)
                    break

    def reset(self, leaves: Iterable[Node], sources: Iterable[Node]) -> None:
        """Stop watching everything."""
        for source in sources:
            source.watchers = ()
        for leaf in leaves:
            for segment, _ in leaf.watched:
                segment.watcher = None
            leaf.watched, leaf.guards = [], ()

    def look(self, source: Node) -> None:
        """Report the changed variables that leaves watch at commits of a table."""
        for leaf in source.watchers:
            self.check(leaf)

    def check(self, node: Node) -> None:
        """Report the variables captured by the node's callables that have changed."""
        for _, capture in node.guards:
            if capture.changed():
                self._report(node)
                return

    def _report(self, node: Node) -> None:
        """Report each captured variable that has changed once, and stop to guard it."""
        changed = {(c.name, id(c.source)): (f, c) for f, c in node.guards if c.changed()}
        for function, capture in changed.values():
            if id(capture) not in self._told:  # another node has a part of the same callable
                alike = self._alike(function, capture)
                self._on_stale(function, capture, len(alike))
                self._told.update(alike)
                self._told[id(capture)] = capture
        node.guards = tuple(g for g in node.guards if not g[1].changed())

    def _alike(self, function: Opaque, capture: Capture) -> dict[int, Capture]:
        """Return other captures of the changed variable, by callables created at the same place."""
        return {
            id(other): other
            for node in self._nodes()
            for made, other in node.guards
            if other.source is capture.source
            and other.name == capture.name
            and made.place == function.place
            and other is not capture
            and id(other) not in self._told
            and other.changed()
        }


def _assign_guards(
    leaf: Node, segment: Segment, guards: tuple[Guard, ...], sources: Iterable[Node]
) -> None:
    """Make `leaf` the watcher of a segment: commits of `sources` check its guards."""
    segment.watcher = leaf
    leaf.watched.append((segment, guards))
    if guards:
        leaf.guards += guards
        for source in sources:
            if leaf not in source.watchers:
                source.watchers = (*source.watchers, leaf)
