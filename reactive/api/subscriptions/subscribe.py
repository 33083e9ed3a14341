"""Attach subscriptions to the graph: whoever hears of changes without keeping rows.

Views of an IPython cell that was run again: those that only its history still holds are closed.

    In [3]: v = rows.where(f).materialize(); v      `v`, Out[3], _3 and _ hold a first view
    In [4]: the same cell                           `v` holds a second; Out[3], _3, __ the first

Nobody waits for the first view any more, but every commit would go on to keep it up to date, and
each further run would leave one more. Who reads it is told which cell made it anew. What anything
else holds (another name, a container, a subscription) stays. A subscription that a cell ends in,
and nobody else holds, ends in the same way.

A cell is the same if the front end says so by its id, or else if its text is the same.

State:  weak references to what cells have made and somebody holds.
Cost:   a look through the names of the notebook, after the run of a cell that had made something.
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
"""All rows of now, consolidated; and in their order, if they have one."""
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
    """Subscribe to a relation that nobody needs to read: only its changes pass, nothing is kept."""
    with engine.shaping():
        channel = Channel(query, None, place)

        def attached(source: Node) -> tuple[Node, Rows | None]:
            order = source.operator if isinstance(query, plan.OrderBy) else None
            rows = _rows(engine, source, order) if snapshot else None
            return engine.graph.attach(ChangesOnly(order), source, channel, fill=False), rows

        node, rows = over(engine.queries, query, channel, attached, complete=snapshot)
        engine.queries.watch(node, query)
        begin = None if rows is None else lambda: rows
        return join(engine, node, callback, LeafHolder(engine, node), begin, way)


def _rows(engine: Engine, source: Node, order: order_by.OrderBy | None) -> Rows:
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
    """Add a subscription to a leaf; it holds `held`, and begins with the snapshot if there is one.

    The snapshot takes its place among the deltas that wait to be delivered: after those of the
    commits that it contains, which go to the subscribers of then, and before all later ones.
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
    """A subscription to all deltas of a leaf from now on, and how the leaf knows it. Inside."""
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
"""The names that IPython gives to what cells ended in."""
LAST = ("_", "__", "___")
CONTAINERS = (tuple, list, set, frozenset)


@record
class CellRun:
    """What a run of a cell has made; neither is held by this."""

    thing: weakref.ref[Any]
    run: weakref.ref[Any]


class Runs:
    """What the cells of one shell have made."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._made: dict[str, list[CellRun]] = {}
        shell.events.register("post_run_cell", self.ran)

    def note(self, thing: Any, run: Any) -> None:
        """A cell that is being run has made something."""
        made = CellRun(weakref.ref(thing), weakref.ref(run))
        self._made.setdefault(_cell(run), []).append(made)

    def ran(self, run: Any) -> None:
        """A cell has been run; one that failed has replaced nothing."""
        cell = _cell(run)
        made = [made for made in self._made.pop(cell, ()) if made.thing() is not None]
        old = [made for made in made if made.run() is not run]
        if old and run.success:
            runs = [*filter(None, (made.run() for made in old)), self._shell.last_execution_result]
            for one in reversed(old):  # subscriptions hold the views that were made before them
                self._close_if_over([one.thing()], runs, _name(run))
        left = [one for one in made if not getattr(one.thing(), "closed", True)]
        if left:
            self._made[cell] = left

    def _close_if_over(self, box: list[Any], runs: list[Any], by: str) -> None:
        """Close what is in the box if only the history of the notebook holds it beside the box."""
        (thing,) = box
        is_open = thing is not None and not thing.closed
        del thing
        if is_open and _references(box) == self._remembered(runs)[id(box[0])]:
            if not isinstance(box[0], Subscription):  # whose channel may be that of an open view
                box[0]._channel.reason = f"{by} ran the cell again that made it"
            box[0].close()

    def _remembered(self, runs: list[Any]) -> Counter[int]:
        """How often the history refers to each object, by its `id`."""
        found = Counter(map(id, self._history(runs)))
        boxes = {id(v): [v] for v in self._history(runs) if isinstance(v, CONTAINERS)}
        for number, box in boxes.items():
            if _references(box) == found[number]:
                found.update(map(id, box[0]))
        return found

    def _history(self, runs: list[Any]) -> Iterator[Any]:
        """What IPython remembers of what cells gave, once for each reference to it."""
        shell = self._shell
        yield from shell.user_ns.get("_oh", {}).values()
        for names in (shell.user_ns, shell.user_ns_hidden):
            yield from (value for name, value in names.items() if REMEMBERS.fullmatch(name))
        shown = vars(shell.displayhook)
        yield from (shown[name] for name in LAST if name in shown)
        yield from {id(run): run.result for run in runs if run is not None}.values()


def note(thing: Any) -> None:
    """A view or subscription has been made: remember of which cell, if it is one that runs now."""
    shell = running_shell()
    if shell is None or threading.current_thread() is not threading.main_thread():
        return
    run = getattr(shell.displayhook, "exec_result", None)
    if run is not None and run.info is not None:
        _runs_of(shell).note(thing, run)


def _runs_of(shell: Any) -> Runs:
    """What is known of a shell's cells; the shell holds it."""
    for callback in shell.events.callbacks["post_run_cell"]:
        owner = getattr(callback, "__self__", None)
        if isinstance(owner, Runs):
            return owner
    return Runs(shell)


def _cell(run: Any) -> str:
    """What tells a cell from others."""
    return str(getattr(run.info, "cell_id", None) or run.info.raw_cell)


def _name(run: Any) -> str:
    return "another run" if run.execution_count is None else f"In[{run.execution_count}]"


def _references(box: list[Any]) -> int:
    """How many references there are to the only thing in a box, beside that of the box."""
    return sys.getrefcount(box[0]) - _OWN


def _own() -> int:
    """What `getrefcount` counts of a thing that only a box holds."""
    box = [object()]
    return sys.getrefcount(box[0])


_OWN = _own()
