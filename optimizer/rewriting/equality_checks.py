"""Queries under a policy, which are planned again with checks once values in them have clashed.

    first plan          operators look values up as in a query without a policy
    with checks         rows with values that clash in a look-up are left out

Checks cost a look at each value that is looked up, so a query has none until a `==` raises in it.
From then on the plan with checks replaces it, also inside of queries over it. Other plans of the
query, such as its errors, are planned again with it.

Sound:  both plans have the same rows, as long as no values clash.
Needs:  rows that can be read again; rows of earlier commits (`plan.Previous`) cannot.
Source: `clash_checks.py`, which makes the checks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from optimizer import plan
from optimizer.plans.properties import nodes
from optimizer.plans.strata import FORMS, ByPolicy, with_form
from optimizer.plans.substitution import derive
from optimizer.rewriting.on_error import GuardedQuery, Policy, add_guards, guard_query
from optimizer.traverse import with_inputs

PLANNED = "planned by"
Part = Callable[[GuardedQuery], plan.Node]


class PolicyQuery:
    """A query under a policy, with its first plan and its plan with checks.

    Parameters as for `guard_query`.
    """

    __slots__ = ("_guard", "_parts", "_with_checks", "first")

    def __init__(self, root: plan.Node, policy: Policy, *, read: bool) -> None:
        self._guard = partial(guard_query, root, policy, read=read)
        self._with_checks: GuardedQuery | None = None
        self._parts: dict[Part, plan.Node] = {}
        found = derive(root, (policy, read), partial(_guard_first, policy=policy, read=read))
        if isinstance(found, bool):
            query = self.mark_part(replace(root), _query_of) if found else root
            self.first = GuardedQuery(query, (), {})
        else:
            made = with_form(found.query, ByPolicy(root, policy, read))
            self.mark_part(made, _query_of)
            self.first = found

    @property
    def has_checks(self) -> bool:
        return self._with_checks is not None

    def add_checks(self) -> None:
        """Plan the query with checks from now on."""
        if self._with_checks is None:
            self._with_checks = self._guard(checks=True)

    def mark_part(self, made: plan.Node, part: Part) -> plan.Node:
        """Mark a plan as the part `part` of the query; return `made` itself."""
        made.known[PLANNED] = self, part
        return made

    def current(self, made: plan.Node, part: Part) -> plan.Node:
        """Return the current plan for a first plan: `made` itself while there are no checks."""
        if self._with_checks is None:
            return made
        if part not in self._parts:
            self._parts[part] = part(self._with_checks)
        return self._parts[part]


def _guard_first(root: plan.Node, *, policy: Policy, read: bool) -> GuardedQuery | bool:
    """Return the first plan of a query; if it is the query, True if checks may change it."""
    found = add_guards(root, policy, read=read)
    if found.query is not root:
        return found
    if isinstance(root, plan.Table):
        return False
    return add_guards(root, policy, read=read, checks=True).query is not root


def policy_of(root: plan.Node) -> PolicyQuery | None:
    """Return the policy of a whole query, or of its errors; None if it has none."""
    found = root.known.get(PLANNED)
    return None if found is None else found[0]


def policies_in(root: plan.Node) -> list[PolicyQuery]:
    """Return the policies of a query and of the queries that it is over."""
    found = map(policy_of, nodes(root, until=_is_past))
    return list(dict.fromkeys(policy for policy in found if policy is not None))


def with_checks(root: plan.Node) -> plan.Node:
    """Return the plan with the current checks of its policies; itself if they have none."""
    made: dict[int, plan.Node] = {}
    waiting = [root]
    while waiting:
        node = waiting[-1]
        now = _current(node)
        below = () if _is_past(now) else (*now.inputs(), *FORMS.parts(now))
        missing = [each for each in below if id(each) not in made]
        if missing:
            waiting.extend(missing)
            continue
        waiting.pop()
        if id(node) not in made:
            inputs = now.inputs() if _is_past(now) else [made[id(s)] for s in now.inputs()]
            found = with_inputs(now, inputs)
            if found is not now:
                FORMS.carry(now, found, lambda part: made[id(part)])
            made[id(node)] = found
    return made[id(root)]


def _current(node: plan.Node) -> plan.Node:
    found = node.known.get(PLANNED)
    return node if found is None else found[0].current(node, found[1])


def _query_of(found: GuardedQuery) -> plan.Node:
    return found.query


def _is_past(node: plan.Node) -> bool:
    return isinstance(node, plan.Previous)
