"""The output: a chart and its trees before and after an edit, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from itertools import islice

from rich import box
from rich.columns import Columns
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree as Drawn

from examples.parser.rows import Edge
from examples.parser.steps import Step
from examples.parser.trees import Parts, Tree

WIDTH = 120
TREES = 3
"""The most trees to draw."""
KINDS = 6
"""The most categories to count by name."""
WORD, GONE, CAME = "cyan", "red", "green"


def console(*, to_errors: bool = False) -> Console:
    """Return a console that is wide enough where the output is no terminal."""
    found = Console(stderr=to_errors, highlight=False)
    return found if found.is_terminal else Console(stderr=to_errors, highlight=False, width=WIDTH)


def side_by_side(before: RenderableType, after: RenderableType) -> Table:
    """Two halves."""
    halves = Table("before", "after", box=box.MINIMAL, expand=True, pad_edge=False)
    for column in halves.columns:
        column.ratio = 1
    halves.add_row(before, after)
    return halves


def chart(edges: Iterable[Edge], marked: frozenset[Edge], style: str) -> Table:
    """Return the edges by label, each as the words of its span; marked ones in a style."""
    by_label: dict[str, list[Edge]] = {}
    for edge in sorted(edges, key=lambda e: (bool(e.needs), e.start, e.end)):
        by_label.setdefault(label(edge), []).append(edge)
    table = Table.grid(padding=(0, 1))
    for name, found in by_label.items():
        spans = [Text(words_of(edge), style if edge in marked else "") for edge in found]
        table.add_row(Text(name), Text(" ").join(spans))
    return table


def label(edge: Edge) -> str:
    """Return the label of an edge: its category, and the needs of an active one.

    >>> label(Edge(0, 1, "S", ("VP",)))
    'S ... VP'
    """
    return " ".join([edge.category, *(["...", *edge.needs] if edge.needs else [])])


def words_of(edge: Edge) -> str:
    """The first and the last word of an edge, where words are numbered by the gaps before them.

    >>> words_of(Edge(0, 4, "S")), words_of(Edge(2, 3, "Noun"))
    ('0-3', '2')
    """
    last = edge.end - 1
    return str(last) if last == edge.start else f"{edge.start}-{last}"


def forest(trees: Iterable[Tree], *, brief: bool = False) -> RenderableType:
    """Parse trees, the first few; see `drawn`."""
    found = list(islice(trees, TREES + 1))
    shown: list[RenderableType] = [drawn(tree, brief=brief) for tree in found[:TREES]]
    more = [Text("...")] if len(found) > TREES else []
    return Columns([*shown, *more]) if found else Text("no parse", "dim")


def drawn(tree: Tree, *, brief: bool) -> Drawn:
    """Return a tree, downwards. A phrase that is a word takes one line.

    Parameters
    ----------
    brief: a phrase that is nothing but another one is left out, and lists are flat.
    """
    parts = _brief(tree) if brief else tree.parts
    if len(parts) == 1 and isinstance(parts[0], str):
        return Drawn(_leaf(tree.category, parts[0]))
    shown = Drawn(Text(tree.category))
    for part in parts:
        shown.add(Text(part, WORD) if isinstance(part, str) else drawn(part, brief=brief))
    return shown


def _brief(tree: Tree) -> Parts:
    parts = tree.parts
    while len(parts) == 1 and isinstance(parts[0], Tree):
        parts = parts[0].parts
    first, *others = parts
    if isinstance(first, Tree) and first.category == tree.category and not _words(others):
        return (*_brief(first), *others)
    return parts


def _words(parts: Iterable[Tree | str]) -> list[str]:
    return [part for part in parts if isinstance(part, str)]


def _leaf(category: str, word: str) -> Text:
    return Text(word, WORD) if word == category else Text.assemble(category, " ", (word, WORD))


def counted(edges: Collection[Edge], style: str) -> Text:
    """Return the number of edges by category, the most frequent first; all active ones together."""
    passive = [edge.category for edge in edges if not edge.needs]
    kinds = Counter(passive).most_common(KINDS)
    others = len(passive) - sum(count for _, count in kinds)
    counts = [*kinds, ("others", others), ("active", len(edges) - len(passive))]
    return Text("  ".join(f"{count} {name}" for name, count in counts if count), style)


def verdict(step: Step) -> Text:
    """Return the effect of an edit, in a line."""
    said, style = ("accepted", "bold green") if step.accepted else ("not accepted", "bold red")
    return Text.assemble(
        (said, style),
        f"   edges: {step.edges:,} (-{len(step.removed):,} +{len(step.added):,})",
        f"   {milliseconds(step.seconds)}, {step.touched:,} rows touched",
    )


def milliseconds(seconds: float) -> str:
    """Write a time in milliseconds.

    >>> milliseconds(0.0123)
    '12.30 ms'
    """
    return f"{seconds * 1000:,.2f} ms"


def titled(number: int, title: str) -> Text:
    """Return the title of a step."""
    return Text(f"{number}  {title}", "bold reverse")
