"""A grammar: rules, the categories of words, operators, and the category of a whole sentence."""

from __future__ import annotations

from dataclasses import dataclass

from examples.parser.rows import Operator, Rule, Terminal


@dataclass(frozen=True, slots=True)
class Grammar:
    """All that is known before the sentence."""

    start: str
    rules: tuple[Rule, ...]
    terminals: tuple[Terminal, ...]
    operators: tuple[Operator, ...] = ()


def rule(text: str) -> Rule:
    """Read a rule.

    Raises
    ------
    ValueError: there is nothing on one side of the arrow.

    >>> rule("S -> NP VP")
    Rule(head='S', body=('NP', 'VP'))
    """
    head, _, body = (part.strip() for part in text.partition("->"))
    if not head or not body:
        raise ValueError(f"a rule is written 'head -> part part ...', not {text!r}")
    return Rule(head, tuple(body.split()))


def rules(text: str) -> tuple[Rule, ...]:
    """Read rules, one per line; empty lines do not count."""
    return tuple(rule(line) for line in text.splitlines() if line.strip())


def terminals(text: str) -> tuple[Terminal, ...]:
    """Read categories with their words, one per line.

    >>> terminals("Noun: green ideas")
    (Terminal(word='green', category='Noun'), Terminal(word='ideas', category='Noun'))
    """
    lines = (line.partition(": ") for line in text.splitlines() if line.strip())
    return tuple(
        Terminal(word, category.strip()) for category, _, words in lines for word in words.split()
    )
