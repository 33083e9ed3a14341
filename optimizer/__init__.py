"""Queries as data: expressions and logical plans, and facts about them that need no rows.

The package handles symbols only: it sees no data and calls no code of users. Imports point
`spark_backend -> reactive -> optimizer -> standard library`. Five modules belong to no room:
`plan`, `expr` and `traverse`, with which users write their own rules, `errors`, and `lazy`.
"""

from optimizer.lazy import lazily

lazily(
    "optimizer.callables.reachable_objects",
    "optimizer.expressions.attempts",
    "optimizer.kinds.texts",
    "optimizer.lifting.callable_parameters",
    "optimizer.lifting.frozen_containers",
    "optimizer.lifting.named_values",
    "optimizer.lifting.outer_values",
    "optimizer.plans.clauses",
    "optimizer.plans.closures",
    "optimizer.plans.counted_rows",
    "optimizer.plans.explain",
    "optimizer.plans.fingerprint",
    "optimizer.plans.multiway",
    "optimizer.plans.per_group",
    "optimizer.plans.strata",
    "optimizer.plans.substitution",
    "optimizer.rewriting.equality_checks",
    "optimizer.rewriting.lookups",
    "optimizer.rewriting.report",
    "optimizer.subqueries.error_freedom",
    "optimizer.subqueries.keyed_rows",
    "optimizer.subqueries.raising",
)
