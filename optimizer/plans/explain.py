"""Print a plan as a tree, one node a line, inputs indented below it.

>>> from optimizer.plan import Distinct, Table
>>> print(explain(Distinct(Table(1, "orders", None, True))))
distinct
  table orders
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from optimizer import plan
from optimizer.callables.opaque import FROM_TEXT
from optimizer.expr import origins
from optimizer.expressions.text import written
from optimizer.plans import headlines
from optimizer.plans.drawing import Drawing, drawn
from optimizer.plans.side_conditions import AnyJoin, match_of, side_conditions_of
from optimizer.traverse import functions


class Explanation(str):
    """A plan in words: a text that shows itself as it is, at a prompt too, and as a picture.

    In a notebook the picture is below the text.
    """

    drawing: Drawing
    """The plan as it is run, as boxes; of one that is explained as written, that plan."""

    def __new__(cls, text: str, drawing: Drawing | None = None) -> Explanation:
        made = super().__new__(cls, text)
        made.drawing = Drawing(()) if drawing is None else drawing
        return made

    def __repr__(self) -> str:
        return str(self)

    def mermaid(self) -> str:
        """The plan as it is run, as the source of a Mermaid flowchart."""
        return self.drawing.mermaid()

    def dot(self) -> str:
        """The plan as it is run, as the source of a Graphviz digraph."""
        return self.drawing.dot()

    def svg(self) -> str:
        """The plan as it is run, as an SVG image; empty where there is none."""
        return self.drawing.svg() if self.drawing.boxes else ""

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>{self.svg()}"


def explain(node: plan.Node, remark: Callable[[plan.Node], str] = lambda node: "") -> Explanation:
    """The plan as text; `remark` may add something at the end of a node's line."""
    drawing = drawn(node, plan.Node.inputs, headline, remark)
    return Explanation(drawing.text(), drawing)


def source_text(node: plan.Node) -> str:
    """What to remark on a node that comes from a text in another language: the parts of it."""
    parts = [origin.name for origin in origins(*functions(node)) if origin.role == FROM_TEXT]
    return f"    -- {', '.join(dict.fromkeys(parts))}" if parts else ""


def headline(node: plan.Node) -> str:
    """One node in words, without its inputs."""
    return node.facts.headline(node)


def joined(node: AnyJoin) -> str:
    """A join by its keys, and what is asked of pairs beside them; what its sides decide is part of
    these."""
    found = side_conditions_of(node)
    if found is None:
        return headline(node)
    steps = [[written(s.function) for s in side if s.is_key] for side in (found.left, found.right)]
    match = match_of(node)
    if match.left_key is not None and match.right_key is not None:
        steps = [[written(match.left_key), *steps[0]], [written(match.right_key), *steps[1]]]
    shown = [" == ".join(pair) for pair in zip(*steps, strict=True)]
    shown += [] if found.residual is None else [f"on {written(found.residual)}"]
    return f"{headlines.name(node)} {', '.join(shown)}".rstrip()
