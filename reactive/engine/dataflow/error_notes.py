"""Add a note to a user's exception that names the query and the row.

    TypeError: '>=' not supported between instances of 'NoneType' and 'int'
      in where of view 'adults' (people.py:12), on row P(age=None)
      transaction rolled back: no table or view changed

The operators do not track this while they run. The row is found afterwards, in the local variables
of the engine's frames in the traceback.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import FROM_TEXT, Opaque
from optimizer.callables.source import Place, code_of
from optimizer.errors import ReactiveError
from optimizer.expr import origins
from optimizer.plans import headlines
from reactive.engine.collections import bag_folds
from reactive.engine.dataflow.node import Node

LONGEST_ROW = 200
ROWS_ARE_IN = (
    "reactive.engine.operators.",
    "reactive.engine.dataflow.leaves",
    "reactive.engine.collections.zset",
    "reactive.engine.collections.index",
)
WHERE, ROLLED_BACK = "  in ", "  transaction rolled back: no table or view changed"
SQL = "<sql>"
REMEDY = "  None is neither less nor more: "


def annotate(error: Exception, node: Node, *, rolled_back: bool) -> None:
    """Add the note to an exception that a node's step raised."""
    if isinstance(error, ReactiveError):
        return
    notes = getattr(error, "__notes__", [])
    notes[:] = [
        n for n in notes if not n.startswith((WHERE, REMEDY)) and n != ROLLED_BACK
    ]  # added earlier
    frames = list(_frames(error.__traceback__))
    at = _find_node_to_name(node, error)
    function = _running(frames, at)
    place = f" ({function.place})" if function is not None and function.place else ""
    method, rows = _find_method_name(at, function), _describe_rows(error, frames)
    error.add_note(f"{WHERE}{method} of {_owner(node)}{place}{rows}")
    remedy = _of_none(error, at)
    if remedy is not None:
        error.add_note(remedy)
    if rolled_back:
        error.add_note(ROLLED_BACK)


def _of_none(error: Exception, node: Node) -> str | None:
    """Return the remedy if an expression over names, `col("price") > 5`, met a None; else None."""
    if not isinstance(error, TypeError) or "'NoneType'" not in str(error):
        return None
    for each in origins(*node.functions):
        identity = each.identity
        is_stated = isinstance(identity, tuple) and identity[:1] == ("stated",)
        found = re.search(r"\.(\w+)", each.name) if is_stated else None
        if found is not None and each.place is not None and each.place.file != SQL:
            return (
                f"{REMEDY}where(col({found[1]!r}).is_not_none()) first, or "
                'materialize(on_error="drop"), leaves rows with a None out'
            )
    return None


def stepped_in(error: BaseException) -> Node | None:
    """Return the node that was stepping: the innermost `node` of the engine's frames; or None."""
    found: Node | None = None
    traceback = error.__traceback__
    while traceback is not None:
        node = traceback.tb_frame.f_locals.get("node")
        if isinstance(node, Node):
            found = node
        traceback = traceback.tb_next
    return found


def _find_node_to_name(node: Node, error: Exception) -> Node:
    """Return the node to name: if a row cannot be hashed, the node that made the row."""
    while node.leaf is not None or ("unhashable" in str(error) and _passes_on(node)):
        node = node.inputs[0]
    return node


def _passes_on(node: Node) -> bool:
    """Return True if the rows of a node are the rows of its input."""
    if isinstance(node.plan, plan.Distinct):
        return not node.functions and len(node.inputs) == 1  # it may have a chain below
    return isinstance(node.plan, plan.Where | plan.OrderBy) and len(node.inputs) == 1


def _owner(node: Node) -> str:
    """Return the name of the view that a node belongs to, and how many more there are."""
    names = [str(leaf) for leaf in ([node.leaf] if node.leaf is not None else node.leaves())]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return (names[0] if names else f"{node.graph.making or 'a view'}, being made") + more


def _find_method_name(node: Node, function: Opaque | None) -> str:
    """Return the method that received the callable, or else the name of the node."""
    if function is not None and function.role != FROM_TEXT:
        if function.role == "through":  # the operator is a class of the user's
            return f"through {function.name}"
        method = function.role.rpartition(" ")[2]
        return method if method.islower() else "aggregate"
    return "view" if node.plan is None else headlines.name(node.plan)


def _running(frames: list[FrameType], node: Node) -> Opaque | None:
    """Return the callable whose code is in the traceback, or the only one; None if unknown."""
    codes = {frame.f_code for frame in frames}
    places = {Place(code.co_filename, code.co_firstlineno) for code in codes}
    asked = origins(*node.functions)
    running = [o for o in asked if code_of(o.function) in codes]
    running = running or [o for o in asked if o.place in places]
    return next(
        iter(running or _find_value_callable(frames, node) or (asked if len(asked) == 1 else ())),
        None,
    )


def _find_value_callable(frames: list[FrameType], node: Node) -> list[Opaque]:
    """Return the value callables of the aggregate that was running; none if it is not known."""
    if not isinstance(node.plan, plan.Aggregate):
        return []
    at = [p for f in frames if type(p := f.f_locals.get("position")) is int and p > 0]
    values = [node.plan.aggregates[position - 1].value for position in at[-1:]]
    return list(origins(*values))


def _describe_rows(error: Exception, frames: list[FrameType]) -> str:
    """Describe the rows in the innermost engine frame that has some."""
    for frame in reversed(frames):
        if frame.f_globals.get("__name__", "").startswith(ROWS_ARE_IN):
            variables = dict(frame.f_locals)
            if {"group", "key"} <= variables.keys() and "row" not in variables:
                return (
                    f", in group {_shorten_repr(variables['key'])}"
                    if variables["key"] != ()
                    else ""
                )
            held = _rows_in_variables(variables)
            if held:
                why = bag_folds.unhashable_reason(held[0]) if isinstance(error, TypeError) else None
                row = held[0] if len(held) == 1 else tuple(held)
                return f", on row {_shorten_repr(row)}" + (f": {why}" if why else "")
    return ""


def _rows_in_variables(variables: dict[str, Any]) -> list[Any]:
    """Return the rows that the local variables of an engine frame hold; maybe none."""
    if "row" in variables:
        return [variables[name] for name in ("row", "other") if name in variables]
    pair = variables.get("pair")
    return [pair[0]] if type(pair) is tuple else []


def _frames(traceback: TracebackType | None) -> Iterator[FrameType]:
    """Yield the frames from the one that caught the exception to the one that raised it.

    An exception object that was raised before has its earlier frames behind the current ones.
    """
    first = None if traceback is None else traceback.tb_frame.f_code
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next
        if traceback is not None and traceback.tb_frame.f_code is first:
            return


def _shorten_repr(row: Any) -> str:
    """Return the `repr` of a row, cut to `LONGEST_ROW`; never raises an `Exception`."""
    try:
        text = repr(row)
    except Exception as error:
        text = f"<{type(row).__name__} whose repr raises {type(error).__name__}>"
    return text if len(text) <= LONGEST_ROW else text[: LONGEST_ROW - 3] + "..."
