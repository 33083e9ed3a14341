"""Tell a user's exception where it was raised: the note added to it.

    TypeError: '>=' not supported between instances of 'NoneType' and 'int'
      in where of view 'adults' (people.py:12), on row P(age=None)
      transaction rolled back: no table or view changed

The operators do not keep track of this while they run. The row is found afterwards, in the local
variables of the frame of the operator that was running.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from optimizer.errors import ReactiveError
from optimizer.explain import node_name
from optimizer.expr import Opaque
from optimizer.source import code_of

if TYPE_CHECKING:
    from reactive.graph import Node

LONGEST_ROW = 200
_NOTHING = object()


def annotate(error: Exception, node: Node, *, rolled_back: bool) -> None:
    """Add the note, once, to an exception that came out of a node's step."""
    notes = getattr(error, "__notes__", ())
    if isinstance(error, ReactiveError) or any(note.startswith("  in ") for note in notes):
        return
    place = _place(error, node)
    row = _row(error)
    shown = "" if row is _NOTHING else f", on row {_short(row)}"
    error.add_note(f"  in {_name(node)} of {_owner(node)}{place}{shown}")
    if rolled_back:
        error.add_note("  transaction rolled back: no table or view changed")


def _name(node: Node) -> str:
    return "contents" if node.plan is None or node.leaf is not None else node_name(node.plan)


def _owner(node: Node) -> str:
    names = [str(leaf) for leaf in ([node.leaf] if node.leaf is not None else node.leaves())]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return (names[0] if names else "a view being made") + more


def _place(error: Exception, node: Node) -> str:
    """The callable that was running: the one whose code is in the traceback, or the only one."""
    codes = {frame.f_code for frame in _frames(error.__traceback__)}
    running = [f for f in node.functions if code_of(f.function) in codes]
    functions: list[Opaque] = running or list(node.functions[:1])
    return f" ({functions[0].place})" if functions and functions[0].place else ""


def _row(error: Exception) -> Any:
    """The row in the hands of the innermost operator frame."""
    found = _NOTHING
    for frame in _frames(error.__traceback__):
        if frame.f_globals.get("__name__", "").startswith("reactive.operators."):
            variables = frame.f_locals
            if "row" in variables:
                found = variables["row"]
            elif "pair" in variables and type(variables["pair"]) is tuple:
                found = variables["pair"][0]
    return found


def _frames(traceback: TracebackType | None) -> Iterator[FrameType]:
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next


def _short(row: Any) -> str:
    try:
        text = repr(row)
    except Exception as error:
        text = f"<{type(row).__name__} whose repr raises {type(error).__name__}>"
    return text if len(text) <= LONGEST_ROW else text[: LONGEST_ROW - 3] + "..."
