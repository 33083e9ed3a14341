"""What is found out of a program before anything is made of it: rules, kinds, strata.

All that can be wrong with a text alone is refused here.
"""

from __future__ import annotations

from optimizer.record import record
from reactive.languages.datalog.definitions import Definitions
from reactive.languages.datalog.inference import Kinds
from reactive.languages.datalog.inlining import inlined
from reactive.languages.datalog.rules import Names, Rule, rules_of
from reactive.languages.datalog.scopes import scoped
from reactive.languages.datalog.strata import strata


@record
class Analysis:
    """The rules and facts of the relations that are computed, the kinds of what is in a rule, by
    its `id`, and the relations in an order in which each comes after what it reads."""

    definitions: Definitions
    rules: dict[str, tuple[Rule, ...]]
    facts: dict[str, tuple[Rule, ...]]
    kinds: dict[int, Kinds]
    strata: list[list[str]]


def analysed(definitions: Definitions) -> Analysis:
    """The analysis of a program.

    Raises
    ------
    PlanError: a variable has no value, or a term is of two types.
    StratificationError: a relation depends on its own negation or aggregate.
    """
    every = _rules(definitions)
    columns = definitions.columns()
    kinds = {
        id(rule): Kinds(rule, columns, definitions.types)
        for some in every.values()
        for rule in some
    }
    rules = {name: tuple(rule for rule in some if rule.goals) for name, some in every.items()}
    facts = {name: tuple(rule for rule in some if not rule.goals) for name, some in every.items()}
    return Analysis(definitions, rules, facts, kinds, strata(rules))


def _rules(definitions: Definitions) -> dict[str, list[Rule]]:
    """The rules of each relation that is computed."""
    names = Names()
    inline = definitions.inline()
    left_out = inline - definitions.read_whole()
    found: dict[str, list[Rule]] = {n: [] for n in definitions.relations if n not in left_out}
    for clause in inlined(definitions.clauses, inline, names):
        for rule in rules_of(clause, names):
            if rule.head.name in found:
                found[rule.head.name].append(scoped(rule, names))
    return found
