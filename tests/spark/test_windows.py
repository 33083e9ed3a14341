"""Windows on Spark: they stay in the process, and say why; the rows below them may be moved."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from reactive import Database, OffloadError, desc
from spark_backend import SparkOffload
from spark_backend.cluster.session import Session
from spark_backend.fragments.roster import find_column_obstacle
from tests.spark.fragments import fragment_of


def test_a_fragment_with_a_window_says_why_it_is_none(session: Session) -> None:
    fragment = fragment_of(
        lambda o, c: o.over(by=lambda o: o.customer, order=desc(lambda o: o.id)).select(
            lambda o, w: (o.id, w.lag(o.id))
        )
    )
    assert "lag(o.id) does not say what it returns" in (
        find_column_obstacle(session, fragment) or ""
    )


def test_a_view_with_a_window_stays_in_the_process(session: Session) -> None:
    db = Database(offload=SparkOffload(session=session.spark, threshold_rows=None))
    pairs = db.table(tuple[int, int], name="pairs")
    ranked = pairs.over(by=lambda p: p[0], order=lambda p: p[1])
    view = ranked.select(lambda p, w: (p, w.rank())).materialize("ranked")
    pairs.add_all((n % 3, n) for n in range(9))
    with pytest.raises(OffloadError, match="rank"):
        view.offload()
    pairs.add((0, -1))
    assert sorted(view)[:2] == [((0, -1), 1), ((0, 0), 2)]
    view.verify()
