"""Checks within one place: definitions, defaults and handlers."""

from __future__ import annotations

from dataclasses import dataclass

from examples.live_lint.facts import Class, Function
from examples.live_lint.finding import Finding
from examples.live_lint.shapes import BROAD_ERRORS, is_test
from examples.live_lint.tables import Tables
from reactive import Count, Max, Min, Relation, live


@dataclass(frozen=True, slots=True)
class Definition:
    """The common columns of functions and classes: a name in a scope."""

    file: str
    line: int
    owner: str
    name: str
    reads: int


def syntax_error(t: Tables) -> Relation[Finding]:
    """A file that Python cannot read, for its syntax or its encoding."""
    return live(Finding(b.file, b.line, "syntax-error", b.reason) for b in t.broken)


def mutable_default(t: Tables) -> Relation[Finding]:
    """A default value that all calls share and may change."""
    return live(
        Finding(
            d.file,
            d.line,
            "mutable-default",
            f"the default of {d.parameter} in {d.function} is shared by all calls: {d.value}",
        )
        for d in t.defaults
    )


def hidden_exception(t: Tables) -> Relation[Finding]:
    """A bare or overbroad `except` that drops what it catches."""
    return live(
        Finding(
            h.file,
            h.line,
            "hidden-exception",
            f"except {', '.join(h.caught)}".rstrip() + " hides all errors",
        )
        for h in t.handlers
        if h.hides and is_broad(h.caught)
    )


def duplicate_definition(t: Tables) -> Relation[Finding]:
    """Two definitions of one name in one scope, of which the first is never read."""
    functions = t.functions.where(lambda f: f.plain and not f.conditional).select(as_definition)
    classes = t.classes.where(lambda c: c.plain and not c.conditional).select(as_definition)
    return (
        functions.union_all(classes)
        .where(lambda d: d.name != "_" and not is_test(d.name))
        .group_by(lambda d: (d.file, d.owner, d.name, d.reads))
        .aggregate(Count(), Min(line), Max(line))
        .where(lambda key, count, first, last: count > 1)
        .select(
            lambda key, count, first, last: Finding(
                key[0],
                last,
                "duplicate-definition",
                f"{key[2]} is defined on line {first} already, and not used since",
            )
        )
    )


def duplicate_test(t: Tables) -> Relation[Finding]:
    """Two test classes or test functions of one name in one scope: the first never runs."""
    functions = t.functions.where(lambda f: f.kind != "nested" and not f.conditional)
    classes = t.classes.where(lambda c: c.kind != "nested" and not c.conditional)
    return (
        functions.select(as_definition)
        .union_all(classes.select(as_definition))
        .where(lambda d: is_test(d.name))
        .group_by(lambda d: (d.file, d.owner, d.name))
        .aggregate(Count(), Min(line), Max(line))
        .where(lambda key, count, first, last: count > 1)
        .select(
            lambda key, count, first, last: Finding(
                key[0],
                last,
                "duplicate-test",
                f"{key[2]} replaces the test on line {first}, which never runs",
            )
        )
    )


def as_definition(row: Function | Class) -> Definition:
    """A function or class as a name in a scope."""
    return Definition(row.file, row.line, row.owner, row.name, row.reads)


def line(row: Definition) -> int:
    """Return the line of a definition."""
    return row.line


def is_broad(caught: tuple[str, ...]) -> bool:
    """Return True if an `except` clause catches nearly everything."""
    return not caught or not BROAD_ERRORS.isdisjoint(caught)
