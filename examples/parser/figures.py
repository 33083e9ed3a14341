"""The size of a program, and the cost of its edits."""

from __future__ import annotations

from statistics import median

from rich.table import Table

from examples.parser.show import milliseconds
from examples.parser.steps import Step
from examples.parser.workbench import Workbench


def sizes(bench: Workbench) -> str:
    """Return the size of the program and the grammar, and the loading times."""
    words, grammar = bench.text.words, bench.grammar
    levels = {operator.level for operator in grammar.operators}
    accepted = "accepted" if bench.parser.is_accepted else "not accepted"
    return (
        f"{len(words):,} words in {words.count('function')} functions, {accepted}; "
        f"{len(bench.parser.edges):,} edges\n"
        f"{len(grammar.rules)} rules, {len(grammar.operators)} operators of {len(levels)} levels, "
        f"{len(grammar.terminals)} words with a category\n"
        f"{milliseconds(bench.loading)} to fill tables and views, "
        f"{milliseconds(bench.scratch[0])} for a parse from scratch that finds the same edges"
    )


def figures(bench: Workbench, steps: list[Step]) -> Table:
    """Return the cost of edits beside that of a parse from scratch, as a table."""
    title = f"{len(steps)} edits of single words, against a parse from scratch"
    table = Table("", "median", "worst", title=title, min_width=72)
    for column in table.columns[1:]:
        column.justify = "right"
    scratch, seconds = median(bench.scratch), [step.seconds for step in steps]
    usual, worst = median(seconds), max(seconds)
    table.add_row("an edit", milliseconds(usual), milliseconds(worst))
    table.add_row("from scratch", milliseconds(scratch), milliseconds(max(bench.scratch)))
    table.add_row("times faster", f"{scratch / usual:,.0f} x", f"{scratch / worst:,.1f} x")
    table.add_row("rows touched", *_counts([step.touched for step in steps]))
    changes = [len(step.removed) + len(step.added) for step in steps]
    table.add_row("edges that came or went", *_counts(changes))
    accepted = sum(step.accepted for step in steps)
    table.caption = (
        f"the program was accepted after {accepted} of the edits\n"
        f"compared with a parse from scratch {len(bench.scratch)} times, equal each time"
    )
    return table


def _counts(numbers: list[int]) -> tuple[str, str]:
    return f"{median(numbers):,.0f}", f"{max(numbers):,}"
