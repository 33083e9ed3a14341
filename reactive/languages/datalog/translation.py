"""From a program to plans: one of each relation, stratum after stratum.

rules        a select of a query over the goals, with the columns of the head
relation     distinct of the union of its rules, its facts and its input
stratum      such a union by itself, or a fixpoint of several
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from optimizer import plan
from optimizer.plans.nodes.values import values
from optimizer.plans.properties import bindings, is_set
from reactive.api.fixpoint import fixpoint
from reactive.api.relation import AnyRelation, Relation
from reactive.languages.datalog.analysis import Analysis
from reactive.languages.datalog.bodies import Body, stuck
from reactive.languages.datalog.expressions import Expressions, call, lifted, value_of
from reactive.languages.datalog.kinds import Field, class_of
from reactive.languages.datalog.rules import Rule
from reactive.languages.datalog.strata import dependencies
from reactive.languages.datalog.syntax import variables
from reactive.languages.datalog.totals import add_total

Given = Callable[[str], plan.Node | None]


class Translation:
    """The plans of the relations of a program.

    Parameters
    ----------
    engine: that of the database.
    given: what finds the rows of a relation that come from elsewhere, if there are some, as rows of
        its class.
    bits: the width of its numbers, if they have one.
    """

    def __init__(
        self,
        analysis: Analysis,
        engine: Any,
        given: Given,
        bits: int | None,
    ) -> None:
        self._analysis = analysis
        self._engine = engine
        self._given = given
        self._bits = bits
        self._unit = values([()])
        self._columns = analysis.definitions.columns()
        self.nodes: dict[str, plan.Node] = {}
        """The plan of each relation."""
        self._translate()

    def node(self, name: str) -> plan.Node:
        """The rows of a relation."""
        return self.nodes[name]

    def fields(self, name: str) -> tuple[Field, ...]:
        """Its columns."""
        return self._columns[name]

    def unit(self) -> plan.Node:
        """One row, of which nothing is read."""
        return self._unit

    def row_class(self, name: str) -> Any:
        """The class of the rows of a relation."""
        return class_of(name, self._columns[name])

    def _translate(self) -> None:
        rules = self._analysis.rules
        for group in self._analysis.strata:
            read = [d.name for n in group for r in rules[n] for d in dependencies(r.goals)]
            if any(name in group for name in read):
                self._recursive(group, rules)
            else:
                self._plain(group[0], rules[group[0]])

    def _expressions(self, rule: Rule) -> Expressions:
        kinds, types = self._analysis.kinds[id(rule)], self._analysis.definitions.types
        return Expressions(kinds, types, self._bits)

    def _fact(self, rule: Rule) -> Any:
        expressions = self._expressions(rule)
        values = [value_of(expressions.of(each, {})) for each in rule.head.arguments]
        return self.row_class(rule.head.name)(*values)

    def _plain(self, name: str, rules: Sequence[Rule]) -> None:
        made = self._union(name, rules)
        self.nodes[name] = made if is_set(made) else plan.Distinct(made)

    def _recursive(self, group: Sequence[str], rules: Mapping[str, Sequence[Rule]]) -> None:
        def step(*relations: AnyRelation) -> list[AnyRelation]:
            for name, relation in zip(group, relations, strict=True):
                self.nodes[name] = relation.plan
            unions = [self._union(name, rules[name]) for name in group]
            return [Relation(self._engine, node) for node in unions]

        made = fixpoint(step, names=list(group), max_rounds=None)
        for name, relation in zip(group, made, strict=True):
            self.nodes[name] = relation.plan

    def _union(self, name: str, rules: Sequence[Rule]) -> plan.Node:
        """All rows of a relation."""
        given = self._given(name)
        parts = [] if given is None else [given]
        facts = [self._fact(rule) for rule in self._analysis.facts[name]]
        if facts:
            parts.append(values(dict.fromkeys(facts), (self.row_class(name),)))
        parts += map(self._query, rules)
        if not parts:
            return plan.Empty(1)
        made = parts[0]
        for part in parts[1:]:
            made = plan.UnionAll(made, part)
        assert bindings(made) == 1
        return made

    def _query(self, rule: Rule) -> plan.Node:
        """The rows that a rule gives."""
        body = Body(self, self._expressions(rule), add_total)
        left = body.hold(rule.goals, variables(rule.head))
        if left:
            raise stuck(left)
        node = body.node
        made = call(self.row_class(rule.head.name), body.rows_of(rule.head.arguments))
        return plan.Select(node, lifted(made, body.names))
