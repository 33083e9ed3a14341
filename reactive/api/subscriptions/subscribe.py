"""Attach subscriptions to the graph, which deliver changes without keeping rows.

Close views of an IPython cell that was run again, if only the history of the shell refers to them.

    In [3]: v = rows.where(f).materialize(); v      `v`, Out[3], _3 and _ refer to a first view
    In [4]: the same cell                           `v` refers to a second; Out[3], _3, __ to the
    first

No code needs the first view, but every commit would maintain it, and each further run would leave
one more. A later use raises an error that names the new cell. A view stays open if anything else
refers to it (another name, a container, a subscription). A subscription that is the last value of a
cell, and has no other reference, is closed in the same way.

Two runs are of one cell if the front end gives them one id, or else if their text is equal.

State:  weak references to the objects that cells made and that are still referenced.
Cost:   a search of the names of the notebook, after the run of a cell that had made something.
"""

from __future__ import annotations

import re
import sys
import threading
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.callables.source import Place, caller, result_is_discarded, running_shell
from optimizer.record import record
from reactive.api.subscriptions.observe import LeafHolder, Relay, Subscription
from reactive.engine.collections.zset import Pair, Row, consolidate
from reactive.engine.compiler.lineage import LeafLineage, over
from reactive.engine.dataflow.delta import Channel, Delta
from reactive.engine.dataflow.leaves import ChangesOnly
from reactive.engine.dataflow.node import Node
from reactive.engine.operators import order_by

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine


Callback = Callable[[Delta[Any]], object]
Rows = tuple[Sequence[Pair], Iterable[Row] | None]
"""All current rows, consolidated; and in their order, if they have one."""
Snapshot = Callable[[], Rows]


def subscribe(
    engine: Engine,
    query: plan.Node,
    callback: Callback,
    place: Place,
    *,
    snapshot: bool,
    way: Relay | None,
) -> Subscription[Any]:
    """Subscribe to a relation without a view: only its changes pass, and no rows are kept.

    With `snapshot`, the first delta has the current rows. `way` delivers the deltas if the callback
    runs elsewhere; None if not.
    """
    with engine.shaping():
        channel = Channel(query, None, place)

        def attach_leaf(source: Node) -> tuple[Node, Rows | None]:
            order = source.operator if isinstance(query, plan.OrderBy) else None
            rows = _current_rows(engine, source, order) if snapshot else None
            return engine.graph.attach(ChangesOnly(order), source, channel, fill=False), rows

        node, rows = over(engine.queries, query, channel, attach_leaf, complete=snapshot)
        engine.queries.watch(node, query)
        begin = None if rows is None else lambda: rows
        return join(engine, node, callback, LeafHolder(engine, node), begin, way)


def _current_rows(engine: Engine, source: Node, order: order_by.OrderBy | None) -> Rows:
    """Return the current rows of a node with their weights, and the sequence of an order."""
    sequence = None if order is None else order.sequence()
    return consolidate(engine.graph.contents(source)), sequence


def join(
    engine: Engine,
    leaf: Node,
    callback: Callback,
    held: object,
    snapshot: Snapshot | None,
    way: Relay | None,
) -> Subscription[Any]:
    """Add a subscription to a leaf; it refers to `held`, and may begin with a snapshot.

    The snapshot is queued among the deltas to deliver: after those of the commits that it contains,
    which go to the earlier subscribers, and before all later ones.
    """
    channel = leaf.leaf
    with engine.shaping():
        subscription, reference = listen(engine, leaf, callback, held, way)
        if snapshot is not None:
            rows, order = snapshot()
            engine.graph.send((reference,), channel.snapshot(engine.version, rows, order))
        if result_is_discarded():
            place = caller()
            warnings.warn_explicit(_UNHELD, RuntimeWarning, place.file, place.line)
        note(subscription)
        return subscription


def listen(
    engine: Engine, leaf: Node, callback: Callback, held: object, way: Relay | None = None
) -> tuple[Subscription[Any], weakref.ref[Subscription[Any]]]:
    """Return a subscription to all later deltas of a leaf, and its reference. Hold the lock."""
    channel = leaf.leaf
    subscription = Subscription(channel, callback, held, way)
    reference = channel.add(subscription)
    engine.feeds.add(channel)
    if channel.lineage is None:
        channel.lineage = LeafLineage(leaf)
    return subscription, reference


_UNHELD = (
    "this subscription ends at once, since nobody holds it\n"
    "  keep the Subscription that subscribe() and observe() return, or use it in a `with`"
)


REMEMBERS = re.compile(r"_{1,3}|_\d+")
"""The names that IPython gives to the last values of cells."""
LAST = ("_", "__", "___")
CONTAINERS = (tuple, list, set, frozenset)


@record
class CellRun:
    """Weak references to an object that a cell made, and to the run of the cell."""

    thing: weakref.ref[Any]
    run: weakref.ref[Any]


class Runs:
    """The objects that the cells of one shell made."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._made: dict[str, list[CellRun]] = {}
        shell.events.register("post_run_cell", self.ran)

    def note(self, thing: Any, run: Any) -> None:
        """Record an object that a running cell made."""
        made = CellRun(weakref.ref(thing), weakref.ref(run))
        self._made.setdefault(_cell(run), []).append(made)

    def ran(self, run: Any) -> None:
        """Handle the end of a run; a cell that failed has replaced nothing."""
        cell = _cell(run)
        made = [made for made in self._made.pop(cell, ()) if made.thing() is not None]
        old = [made for made in made if made.run() is not run]
        if old and run.success:
            runs = [*filter(None, (made.run() for made in old)), self._shell.last_execution_result]
            for one in reversed(old):  # subscriptions refer to views that were made before them
                self._close_if_over([one.thing()], runs, _describe_run(run))
        left = [one for one in made if not getattr(one.thing(), "closed", True)]
        if left:
            self._made[cell] = left

    def _close_if_over(self, box: list[Any], runs: list[Any], by: str) -> None:
        """Close the object in the box if only the box and the notebook's history refer to it."""
        (thing,) = box
        is_open = thing is not None and not thing.closed
        del thing
        if is_open and _references(box) == self._count_references(runs)[id(box[0])]:
            if not isinstance(box[0], Subscription):  # whose channel may be that of an open view
                box[0]._channel.reason = f"{by} ran the cell again that made it"
            box[0].close()

    def _count_references(self, runs: list[Any]) -> Counter[int]:
        """Return the number of references of the history to each object, by its `id`."""
        found = Counter(map(id, self._history(runs)))
        boxes = {id(v): [v] for v in self._history(runs) if isinstance(v, CONTAINERS)}
        for number, box in boxes.items():
            if _references(box) == found[number]:
                found.update(map(id, box[0]))
        return found

    def _history(self, runs: list[Any]) -> Iterator[Any]:
        """Yield the results of cells that IPython remembers, once for each reference."""
        shell = self._shell
        yield from shell.user_ns.get("_oh", {}).values()
        for names in (shell.user_ns, shell.user_ns_hidden):
            yield from (value for name, value in names.items() if REMEMBERS.fullmatch(name))
        shown = vars(shell.displayhook)
        yield from (shown[name] for name in LAST if name in shown)
        yield from {id(run): run.result for run in runs if run is not None}.values()


def note(thing: Any) -> None:
    """Record a new view or subscription with the running cell, if there is one."""
    shell = running_shell()
    if shell is None or threading.current_thread() is not threading.main_thread():
        return
    run = getattr(shell.displayhook, "exec_result", None)
    if run is not None and run.info is not None:
        _runs_of(shell).note(thing, run)


def _runs_of(shell: Any) -> Runs:
    """Return the `Runs` of a shell; the shell refers to it."""
    for callback in shell.events.callbacks["post_run_cell"]:
        owner = getattr(callback, "__self__", None)
        if isinstance(owner, Runs):
            return owner
    return Runs(shell)


def _cell(run: Any) -> str:
    """Return the identity of a cell."""
    return str(getattr(run.info, "cell_id", None) or run.info.raw_cell)


def _describe_run(run: Any) -> str:
    return "another run" if run.execution_count is None else f"In[{run.execution_count}]"


def _references(box: list[Any]) -> int:
    """Return the number of references to the only object in a box, beside that of the box."""
    return sys.getrefcount(box[0]) - _OWN


def _count_own_references() -> int:
    """Return the `getrefcount` of an object that only a box refers to."""
    box = [object()]
    return sys.getrefcount(box[0])


_OWN = _count_own_references()
