"""Views compared with their queries, all of a database together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from optimizer.plans.properties import tables
from reactive.engine.compiler import equality_checks
from reactive.engine.reference.verify import verify_together

if TYPE_CHECKING:
    from reactive.api.view import AnyView


def verify_views(engine: Any, views: Sequence[AnyView]) -> None:
    """Raise `VerificationError` unless each view has the rows of its query.

    With `Database(strict=True)` the tables that are read are verified too.
    """
    engine.check_open()
    if not views:
        return
    with engine.inside():
        engine.offloading.flush()
        _verify(engine, views)
        if engine.strict:
            read = {id(t): t for view in views for t in tables(view.relation.plan)}
            for table in read.values():
                engine.table_of(table).verify()


def _verify(engine: Any, views: Sequence[AnyView]) -> None:
    """Compare views with their queries, evaluated with the checks of equality that they have.

    If a `==` raises in the evaluation, checks are added, and the views are evaluated again.
    """
    queries = engine.queries
    while True:
        shown = [(queries.base(v.relation.plan), v._contents, str(v._channel)) for v in views]
        try:
            verify_together(shown, lambda t: engine.table_of(t)._all(), engine.graph.running())
            return
        except Exception as error:
            written = [view.relation.plan for view in views]
            if not any(equality_checks.check_again(queries, each, error) for each in written):
                raise
