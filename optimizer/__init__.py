"""Queries as data: expressions and logical plans, and what can be said of them without any rows.

Symbols only: nothing here sees data or calls a user's code. Imports point
`spark_backend -> reactive -> optimizer -> standard library`. Five modules are no room's: `plan`,
`expr` and `traverse`, of which rules of one's own are written, `errors`, and `lazy`.
"""

from optimizer.lazy import lazily

lazily(
    "optimizer.callables.reached",
    "optimizer.expressions.attempts",
    "optimizer.kinds.texts",
    "optimizer.lifting.outer_values",
    "optimizer.lifting.passed",
    "optimizer.plans.clauses",
    "optimizer.plans.closures",
    "optimizer.plans.explain",
    "optimizer.plans.fingerprint",
    "optimizer.plans.multiway",
    "optimizer.plans.per_group",
    "optimizer.plans.strata",
    "optimizer.rewriting.equality_checks",
    "optimizer.rewriting.lookups",
    "optimizer.rewriting.report",
    "optimizer.subqueries.calm",
    "optimizer.subqueries.keyed",
    "optimizer.subqueries.raising",
)
