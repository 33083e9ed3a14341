"""Print a plan as a tree, one node a line, inputs indented below it.

>>> from optimizer.plan import Distinct, Table
>>> print(explain(Distinct(Table(1, "orders", None, True))))
distinct
  table orders

A plan as boxes and arrows: as text, for Mermaid and Graphviz, and as SVG.

>>> drawing = Drawing((Box("distinct", "", (1,)), Box("table words", "", ())))
>>> print(drawing.text())
distinct
  table words
>>> print(drawing.mermaid())
flowchart BT
  n0["distinct"]
  n1["table words"]
  n1 --> n0
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from html import escape
from typing import TypeVar

from optimizer import plan
from optimizer.callables.opaque import FROM_TEXT
from optimizer.expr import origins
from optimizer.expressions.text import written
from optimizer.plans import headlines
from optimizer.plans.side_conditions import AnyJoin, join_match, side_conditions_of
from optimizer.record import record
from optimizer.traverse import functions


@record
class StateBound:
    """The operators of a query over streams whose state is not bounded, each with a remedy.

    It is true if there are none, as for all queries over tables.

    >>> found = StateBound((("aggregate Count() by c.page (app.py:7)", "use a window"),))
    >>> bool(found), bool(StateBound())
    (False, True)
    >>> found
    not bounded: aggregate Count() by c.page (app.py:7)
      use a window
    """

    unbounded: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return not self.unbounded

    def __repr__(self) -> str:
        lines = [f"not bounded: {operator}\n  {remedy}" for operator, remedy in self.unbounded]
        return "\n".join(lines) or "bounded"

    __str__ = __repr__


class Explanation(str):
    """The text of a plan, with a drawing of it.

    Its `repr` is the text itself. A notebook shows the picture below the text.
    """

    drawing: Drawing
    """The physical plan as boxes; the logical plan if that was explained."""
    bounded: StateBound
    """True if the state of the query does not grow with the events of its streams."""

    def __new__(cls, text: str, drawing: Drawing | None = None) -> Explanation:
        made = super().__new__(cls, text)
        made.drawing = Drawing(()) if drawing is None else drawing
        made.bounded = StateBound()
        return made

    def __repr__(self) -> str:
        return str(self)

    def mermaid(self) -> str:
        """Return the plan as it is run, as the source of a Mermaid flowchart."""
        return self.drawing.mermaid()

    def dot(self) -> str:
        """Return the plan as it is run, as the source of a Graphviz digraph."""
        return self.drawing.dot()

    def svg(self) -> str:
        """Return the plan as it is run, as an SVG image; empty without boxes."""
        return self.drawing.svg() if self.drawing.boxes else ""

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>{self.svg()}"


def explain(node: plan.Node, remark: Callable[[plan.Node], str] = lambda node: "") -> Explanation:
    """Return the plan as text; `remark` returns text to append to a node's line."""
    drawing = draw_plan(node, plan.Node.inputs, headline, remark)
    return Explanation(drawing.text(), drawing)


def source_text(node: plan.Node) -> str:
    """Return a remark with the parts of a text in another language that define a node."""
    parts = [origin.name for origin in origins(*functions(node)) if origin.role == FROM_TEXT]
    return f"    -- {', '.join(dict.fromkeys(parts))}" if parts else ""


def headline(node: plan.Node) -> str:
    """Return one node in words, without its inputs."""
    return node.facts.headline(node)


def join_headline(node: AnyJoin) -> str:
    """Return a join in words, by its keys and its residual predicate.

    The parts of the keys that its sides decide are included.
    """
    found = side_conditions_of(node)
    if found is None:
        return headline(node)
    steps = [[written(s.function) for s in side if s.is_key] for side in (found.left, found.right)]
    match = join_match(node)
    if match.left_key is not None and match.right_key is not None:
        steps = [[written(match.left_key), *steps[0]], [written(match.right_key), *steps[1]]]
    shown = [" == ".join(pair) for pair in zip(*steps, strict=True)]
    shown += [] if found.residual is None else [f"on {written(found.residual)}"]
    return f"{headlines.name(node)} {', '.join(shown)}".rstrip()


INDENTED = 40
"""Levels that are shown by indenting lines."""
CHARACTER, LINE, MARGIN = 6.7, 16, 12
"""Sizes in an SVG, in pixels: width of a character, height of a line, margin."""
LONGEST = 60
"""Characters of a line in a box."""
N = TypeVar("N")


@record
class Box:
    """A node: the line that names it, a remark, and the places of its inputs."""

    label: str
    remark: str
    inputs: tuple[int, ...]


@record
class Drawing:
    """Boxes, the first on top. A box that several boxes read is present once."""

    boxes: tuple[Box, ...]

    def text(self) -> str:
        """Return a line per box, inputs indented below; the inputs of a box are shown once."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        """Yield the indented line of each box; a box that is present again has no inputs below
        it."""
        shown: set[int] = set()
        waiting = [(0, 0)]
        while waiting:
            place, depth = waiting.pop()
            box = self.boxes[place]
            line = _indent(depth) + box.label
            if place in shown and box.inputs:
                yield line + "  (as above)"
                continue
            shown.add(place)
            yield line + box.remark
            waiting.extend((source, depth + 1) for source in reversed(box.inputs))

    def mermaid(self) -> str:
        """Return the source of a Mermaid flowchart."""
        lines = ["flowchart BT"]
        for place, box in enumerate(self.boxes):
            label = (box.label + box.remark).replace('"', "#quot;")
            lines.append(f'  n{place}["{label}"]')
        lines += [f"  n{source} --> n{place}" for place, source in self._arrows()]
        return "\n".join(lines)

    def dot(self) -> str:
        """Return the source of a Graphviz digraph."""
        lines = ["digraph plan {", "  rankdir=BT", "  node [shape=box]"]
        for place, box in enumerate(self.boxes):
            label = (box.label + box.remark).replace("\\", "\\\\").replace('"', '\\"')
            lines.append(f'  n{place} [label="{label}"]')
        lines += [f"  n{source} -> n{place}" for place, source in self._arrows()]
        return "\n".join([*lines, "}"])

    def svg(self) -> str:
        """Return an SVG image, with rows that flow upwards."""
        return _svg(self)

    def _arrows(self) -> Iterator[tuple[int, int]]:
        for place, box in enumerate(self.boxes):
            for source in box.inputs:
                yield place, source


def draw_plan(
    root: N,
    inputs: Callable[[N], Sequence[N]],
    label: Callable[[N], str],
    remark: Callable[[N], str] = lambda node: "",
    known_by: Callable[[N], Hashable] = id,
) -> Drawing:
    """Draw a node and all nodes below it, each once."""
    places: dict[Hashable, int] = {}
    found: list[N] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if known_by(node) not in places:
            places[known_by(node)] = len(found)
            found.append(node)
            waiting.extend(reversed(inputs(node)))
    return Drawing(
        tuple(
            Box(label(n), remark(n), tuple(places[known_by(source)] for source in inputs(n)))
            for n in found
        )
    )


def _indent(depth: int) -> str:
    """Return two spaces per level, and the number of the level from `INDENTED` levels on.

    Deeper indentation would make the text grow with the square of its depth.
    """
    return "  " * depth if depth <= INDENTED else f"{'  ' * INDENTED}({depth}) "


def _svg(drawing: Drawing) -> str:
    """Return a drawing as SVG: a box per node, and an arrow from each input to its reader."""
    texts = [_wrap_label(box) for box in drawing.boxes]
    sizes = [(max(map(len, t)) * CHARACTER + 2 * MARGIN, len(t) * LINE + MARGIN) for t in texts]
    corners, width, height = _place_boxes(drawing, sizes)
    shapes = []
    for place, source in drawing._arrows():
        (x, y), (w, h) = corners[place], sizes[place]
        (x2, y2), (w2, _) = corners[source], sizes[source]
        shapes.append(
            f'<line x1="{x2 + w2 / 2:.0f}" y1="{y2:.0f}" x2="{x + w / 2:.0f}" y2="{y + h:.0f}" '
            'stroke="#888" marker-end="url(#arrow)"/>'
        )
    for (x, y), (w, h), text in zip(corners, sizes, texts, strict=True):
        shapes.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{w:.0f}" height="{h:.0f}" rx="4" '
            'fill="#f4f6fa" stroke="#667"/>'
        )
        for number, line in enumerate(text):
            below = y + MARGIN / 2 + (number + 0.75) * LINE
            shapes.append(
                f'<text x="{x + MARGIN:.0f}" y="{below:.0f}" fill="#222">{escape(line)}</text>'
            )
    return _image(shapes, width, height)


def _image(shapes: Iterable[str], width: float, height: float) -> str:
    """Return the SVG document of the given shapes."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        'font-family="monospace" font-size="11">'
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#888"/></marker></defs>'
        f"{''.join(shapes)}</svg>"
    )


def _place_boxes(
    drawing: Drawing, sizes: Sequence[tuple[float, float]]
) -> tuple[list[tuple[float, float]], float, float]:
    """Return the corners of the boxes, and the width and height of the image: a row of boxes per
    level."""
    levels = _levels(drawing)
    rows: list[list[int]] = [[] for _ in range(max(levels) + 1)]
    for place, level in enumerate(levels):
        rows[level].append(place)
    widths = [sum(sizes[p][0] for p in row) + 2 * MARGIN * (len(row) + 1) for row in rows]
    width, y = max(widths), float(MARGIN)
    corners = [(0.0, 0.0)] * len(sizes)
    for row, wide in zip(rows, widths, strict=True):
        x = (width - wide) / 2 + 2 * MARGIN
        for place in row:
            corners[place] = (x, y)
            x += sizes[place][0] + 2 * MARGIN
        y += max(sizes[place][1] for place in row) + 2 * LINE
    return corners, width, y - LINE


def _levels(drawing: Drawing) -> list[int]:
    """Return the largest distance of each box from the first; inputs are below their readers."""
    readers = [0] * len(drawing.boxes)
    for _, source in drawing._arrows():
        readers[source] += 1
    levels = [0] * len(drawing.boxes)
    waiting = [0]
    while waiting:
        place = waiting.pop()
        for source in drawing.boxes[place].inputs:
            levels[source] = max(levels[source], levels[place] + 1)
            readers[source] -= 1
            if not readers[source]:
                waiting.append(source)
    return levels


def _wrap_label(box: Box) -> list[str]:
    """Return the lines of a box; too long lines are cut between words."""
    lines, line = [], ""
    for word in box.label.split(" "):
        if line and len(line) + len(word) >= LONGEST:
            lines.append(line)
            line = f"  {word}"
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line, *[box.remark.strip()] * bool(box.remark.strip())]
