"""A long program, edited word by word, and the table of operators edited under it."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.text import Text as Line

from examples.parser import show
from examples.parser.figures import figures, sizes
from examples.parser.grammars.statements import KINDS
from examples.parser.steps import Step
from examples.parser.workbench import Options, Workbench

AROUND = 6
"""The number of words to show on both sides of an edit."""
PHRASES, LONGEST = ("Statement", "Expression"), 20
"""The phrases to draw as trees, and their most words."""
SUMS, PRODUCTS = ("+", "-"), ("*", "/", "%")


def run(out: Console, options: Options) -> None:
    """Show some edits, make all of them, and give the figures.

    Raises
    ------
    NotVerifiedError: the edges are not those of a parse from scratch.
    """
    out.rule("A language of statements and expressions")
    bench = Workbench(options)
    out.print(sizes(bench), "")
    steps, left = [], options.shown
    for number, edit in enumerate(bench.edits(), 1):
        before = _around(bench, edit.at, edit.old, show.GONE) if left else ""
        steps.append(step := bench.edit(edit))
        if left and step.removed | step.added:
            left -= 1
            after = _around(bench, edit.at, edit.new, show.CAME)
            _print(out, number, step, before, after)
    bench.verify()
    out.print(figures(bench, steps), "")
    _edit_operators(out, bench)


def _edit_operators(out: Console, bench: Workbench) -> None:
    """Let sums bind as tightly as products, from left to right, in the whole program."""
    level = next(o.level for o in bench.grammar.operators if o.word in PRODUCTS)
    sums = [o for o in bench.grammar.operators if o.word in SUMS and o.side == "left"]
    words = bench.text.words
    at = next((at for at in range(1, len(words)) if _is_mixed(words[at - 1 : at + 4])), 1)
    before = _around(bench, at, words[at], show.WORD)
    title = f"{' '.join(SUMS)} bind as tightly as {' '.join(PRODUCTS)}"
    step = bench.edit_operators(title, {o: o._replace(level=level) for o in sums})
    after = _around(bench, at, words[at], show.WORD)
    _print(out, bench.options.edits + 1, step, before, after)


def _is_mixed(words: list[str]) -> bool:
    """Return True if these words are like `a + b * c`."""
    operands = {kind.word for kind in KINDS}
    return (
        len(words) == 5
        and operands.issuperset(words[::2])
        and words[1] in SUMS
        and words[3] in PRODUCTS
    )


def _print(
    out: Console, number: int, step: Step, before: RenderableType, after: RenderableType
) -> None:
    gone, came = show.counted(step.removed, show.GONE), show.counted(step.added, show.CAME)
    halves = show.side_by_side(Group(before, "", gone), Group(after, "", came))
    out.print(show.titled(number, step.title))
    out.print(halves, show.verdict(step), "")


def _around(bench: Workbench, at: int, word: str | None, style: str) -> RenderableType:
    """Return the words around a place, and the tree of a phrase there."""
    words = bench.text.words
    before = words[max(at - AROUND, 0) : at]
    after = words[at + (word is not None) :][:AROUND]
    middle = ("_", "dim") if word is None else (word, style)
    line = Line(" ").join([Line(" ".join(before)), Line(*middle), Line(" ".join(after))])
    edge = bench.phrase(at, PHRASES, LONGEST)
    trees = () if edge is None else bench.parser.trees_of(edge)
    return Group(line, "", show.forest(trees, brief=True))
