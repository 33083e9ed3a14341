"""Views equal their query wherever their parts are, and whenever they move."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reactive import Database, OffloadError
from tests import generate
from tests.offload.elsewhere import Elsewhere
from tests.replica import Replica

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@settings(max_examples=200, deadline=None, suppress_health_check=SLOW)
@given(data=st.data(), history=generate.HISTORIES, optimize=st.booleans())
def test_random_queries_over_random_moves(data: Any, history: Any, optimize: bool) -> None:
    offload = Elsewhere()
    db = Database(offload=offload, optimize=optimize)
    bag, keyed = generate.tables(db)
    relations = [data.draw(generate.finals([bag, keyed])) for _ in range(2)]
    views = [relation.materialize() for relation in relations]
    replicas = [Replica(view) for view in views]
    for commit in history:
        for view in views:
            match data.draw(st.sampled_from(["move", "recall", "stay", "stay"])):
                case "move":
                    try:
                        view.offload()
                    except OffloadError as error:
                        assert "cannot be moved" in str(error)
                case "recall":
                    view.recall()
        with db.transaction():
            for change in commit:
                generate.apply(bag, keyed, change)
        if data.draw(st.booleans()):
            for view, replica in zip(views, replicas, strict=True):
                view.verify()
                replica.check()
    late = [relation.materialize() for relation in relations]
    for view in [*views, *late]:
        view.verify()
