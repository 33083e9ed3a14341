"""Rules change only nodes of their declared kinds."""

from __future__ import annotations

import pytest

from optimizer.plans.properties import nodes
from optimizer.rewriting.phases import PHASES, RULE_KINDS
from tests.golden.cases import RULES, cases


def test_only_rules_of_the_phases_have_kinds() -> None:
    assert RULE_KINDS.keys() <= {rule for phase in PHASES for rule in phase}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_leaves_nodes_of_other_kinds_as_they_are(name: str) -> None:
    for case in cases(name):
        for node in nodes(case.before()):
            for rule, kinds in RULE_KINDS.items():
                assert isinstance(node, kinds) or rule(node) is node, rule.__name__
