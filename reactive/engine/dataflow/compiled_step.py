"""A commit of one or some tables as one generated function: `Graph.commit` and `Schedule.step`
unrolled.

    out_4 = step_4(in_0)
    if out_4:
        out_5 = step_5(out_4)
    if out_5 and channel_5.subscribers: told += ...
    if between is not None: between()
    finalize_4()
    delivery_queue.extend(told)

It is made of the nodes of a schedule that has proved to be in use, and asks none of them for what
it knows of itself. If anything raises, what has been stepped is undone. Nodes stand in blocks, so
that many that nothing has come to are passed over together:

    if out_3 or out_17:
        if out_3: out_25 = step_25(out_3)
        ...

State:  none.
Cost:   a tenth of a microsecond per node that is reached, beside its step, and a fiftieth per block
        of others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reactive.engine.codegen.functions import Values, build
from reactive.engine.dataflow.borrowed import Borrowed
from reactive.engine.dataflow.delta import Delta
from reactive.engine.dataflow.step import traced

if TYPE_CHECKING:
    from reactive.engine.dataflow.node import Node
    from reactive.engine.operators.in_line import InLine
    from reactive.engine.operators.order_by import OrderBy

BLOCK = 24
"""Nodes of a block."""
CompiledStep = Callable[..., None]
"""Commits a delta of each of its sources, as the version that it gets last; `between` is called
when all has stepped, and nothing is published."""


def compiled_step(
    sources: Sequence[Node], nodes: Sequence[Node], calls: Mapping[str, Any]
) -> CompiledStep:
    """The function for sources that reach these nodes, in this order.

    Parameters
    ----------
    calls: what the function calls by name. `graph` and `delivery_queue`; `check` looks at what a
           node
        captured, `watch` at what the leaves of a source did; `take_back` gets an exception and the
        nodes that were stepped.
    """
    values = Values()
    values.by_name |= {"Delta": Delta, "new": Delta.__new__, "traced": traced, "nothing": ()}
    values.by_name |= calls
    values.by_name |= {f"source_{number}": source for number, source in enumerate(sources)}
    names = {source: f"in_{number}" for number, source in enumerate(sources)}
    begin = [*names.values()]
    steps: list[str] = []
    settles: list[str] = []
    tells: list[str] = []
    forgets: list[str] = []  # after all tells: leaves may have the same edits
    fed: list[str] = []
    asks: dict[str, str] = {}  # of what would have to be found to be asked whether it is empty
    blocks = _Blocks((steps, settles, tells), begin)
    for number, node in enumerate(nodes, 1):
        blocks.begin(number)
        given = [names.get(each, "()") for each in node.inputs]
        some = list(dict.fromkeys(name for name in given if name != "()"))
        is_some = " or ".join([asks.get(name, name) for name in some])
        is_given = f"if {is_some}: " if set(some).isdisjoint(begin) else ""
        if node not in names:  # else it is fed, and emits that
            names[node] = given[0] if _is_bare(node) else f"out_{number}"
        if hasattr(node.operator, "settle"):
            asks[names[node]] = f"{names[node]} is not nothing"
        values.by_name |= {f"node_{number}": node, f"step_{number}": node.step}
        in_line = _in_line(node)
        if in_line is not None:
            values.by_name |= {f"{name}_{number}": it for name, it in in_line.by_name.items()}
        steps += _step(number, node, given, is_given, in_line)
        fed.append(f"(node_{number}, {' or '.join(some)})")
        if node.stateful:
            values.by_name[f"finalize_{number}"] = node.finalize
            settles += _finalize(number, is_given, in_line)
        if node.leaf is not None and not node.deferred:
            values.by_name[f"channel_{number}"] = node.leaf
            values.by_name[f"key_{number}"] = node.leaf.key
            values.by_name[f"columns_{number}"] = columns = node.leaf.columns
            tells.append(_tell(number, names[node], node.operator, has_names=columns is not None))
            if _order_of(node.operator) is not None:
                values.by_name[f"order_{number}"] = node.operator.order
                forgets.append(f"        order_{number}.edits = []")
        blocks.add(some, f"out_{number}")
    blocks.begin(1)
    text = _TEXT.format(
        begin=", ".join(begin),
        reads="\n    graph.trees.settle()"
        * any(hasattr(node.operator, "settle") for node in nodes),
        outs=" = ".join([*dict.fromkeys(n for n in names.values() if n not in begin), "()"]),
        watches="\n".join(_WATCH.format(number=number) for number in range(len(sources))),
        steps="\n".join(steps),
        settles="\n".join(settles),
        tells="\n".join([*tells, *forgets]),
        fed=", ".join(fed),
        end=len(fed) + 1,
    )
    return build("commit", text, values)


class _Blocks:
    """Lines of code in blocks, each asked for only if something has come to one of its nodes."""

    def __init__(self, lines: Sequence[list[str]], begin: Sequence[str]) -> None:
        self._lines = lines
        self._first = frozenset(begin)
        self._begin()

    def _begin(self) -> None:
        self._starts = [len(lines) for lines in self._lines]
        self._given: dict[str, None] = {}
        self._own: set[str] = set()

    def add(self, given: Sequence[str], out: str) -> None:
        """A node, by what it is given and what comes out of it."""
        self._given.update(dict.fromkeys(given))
        self._own.add(out)

    def begin(self, number: int) -> None:
        """End a block before every so many nodes, and begin the next."""
        if (number - 1) % BLOCK:
            return
        given = [name for name in self._given if name not in self._own]
        for lines, start in zip(self._lines, self._starts, strict=True):
            if given and self._first.isdisjoint(given) and len(lines) > start + 1:
                first = lines[start]
                indent = first[: len(first) - len(first.lstrip())]
                body = [f"    {line}".replace("\n", "\n    ") for line in lines[start:]]
                lines[start:] = [f"{indent}if {' or '.join(given)}:", *body]
        self._begin()


def _in_line(node: Node) -> InLine | None:
    """What the operator of a node does with a single row, as lines of the commit."""
    write: Callable[[], InLine | None] | None = getattr(node.operator, "in_line", None)
    return None if write is None or node.deferred else write()


def _step(
    number: int, node: Node, given: Sequence[str], is_given: str, in_line: InLine | None
) -> list[str]:
    """The lines that step a node."""
    if _is_bare(node):
        return []
    lines = [f"at = {number}"]
    lines += [f"if node_{number}.guards: check(node_{number})"] * bool(node.guards)
    if in_line is None:
        lines.append(f"out_{number} = step_{number}({', '.join(given)})")
    else:
        named = dict(zip(("left", "right"), given, strict=False))
        text = in_line.step.format(n=number, out=f"out_{number}", given=given[0], **named)
        lines += text.split("\n")
    if not is_given:
        return [f"        {line}" for line in lines]
    return [f"        {is_given.strip()}", *(f"            {line}" for line in lines)]


def _finalize(number: int, is_given: str, in_line: InLine | None) -> list[str]:
    """The lines that finalize a node."""
    if in_line is None:
        return [f"    {is_given}finalize_{number}()"]
    lines = in_line.finalize.format(n=number).split("\n")
    if not is_given:
        return [f"    {line}" for line in lines]
    return [f"    {is_given.strip()}", *(f"        {line}" for line in lines)]


def _is_bare(node: Node) -> bool:
    """Whether it is a leaf that emits what it is given."""
    operator = node.operator
    is_shown = isinstance(operator, Borrowed) and type(operator).step is Borrowed.step
    return is_shown and not node.deferred and not node.guards


def _tell(number: int, out: str, operator: Any, *, has_names: bool) -> str:
    """The lines that put what a leaf emits into the delivery queue."""
    edits = "()" if _order_of(operator) is None else f"tuple(order_{number}.edits)"
    columns = f"            delta._columns = columns_{number}\n" if has_names else ""
    return _TELL.format(number=number, out=out, edits=edits, columns=columns)


def _order_of(leaf: Any) -> OrderBy | None:
    """The order that a leaf follows."""
    order: OrderBy | None = getattr(leaf, "order", None)
    return order


_TELL = """\
        if channel_{number}.subscribers and {out}:
            delta = new(Delta)
            delta.version, delta._pairs, delta._key = version, {out}, key_{number}
            delta._edits, delta._by_path, delta.is_snapshot = {edits}, None, False
            delta._parts = None if graph.moved is None else traced(node_{number})
{columns}\
            told += ((channel_{number}.subscribers, delta),)"""
"""As `Delta(...)`, whose call takes half as long again."""

_WATCH = "        if source_{number}.watchers: watch(source_{number})"

_TEXT = """\
def commit({begin}, version, between=None):
    at, told = 0, ()
    {outs}{reads}
    graph.stepping = True
    try:
{watches}
{steps}
{tells}
        if between is not None:
            at = {end}
            between()
    except BaseException as error:
        begun = [{fed}][:at]
        node = begun[-1][0] if 0 < at < {end} else None  # by this name, messages find what raised
        take_back(error, [each for each, given in begun if given])
        raise
    graph.version = version
{settles}
    if told: delivery_queue.extend(told)
    graph.stepping = False
"""
