"""A query that has a row if and only if another has one, and less to do."""

from __future__ import annotations

from optimizer import plan
from optimizer.subqueries.raising import raises_nothing


def stripped(query: plan.Node) -> plan.Node:
    """The query without what changes its rows and not whether there are any."""
    while True:
        match query:
            case plan.Distinct(source) | plan.OrderBy(source, _, None, 0):
                query = source
            case plan.Select(source) | plan.Extend(source) if raises_nothing(query):
                query = source
            case _:
                return query
