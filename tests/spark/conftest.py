"""One Spark session for all tests here. Without Spark they are skipped, and say why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reactive import OffloadError
from spark_backend import SparkOffload
from spark_backend.cluster.session import check_spark
from tests.spark.ways import Ways, way

HERE = Path(__file__).parent
SMALL = {
    "spark.driver.memory": "1g",
    "spark.default.parallelism": "2",
    "spark.connect.grpc.binding.port": "0",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run tests that kill the JVM last, because a new JVM is cold for all later tests. All of these
    tests are long, except one or two per file, which `make test` runs."""
    for item in items:
        if item.path.is_relative_to(HERE) and not item.get_closest_marker("quick"):
            item.add_marker(pytest.mark.long)
    items.sort(key=lambda item: item.get_closest_marker("kills_the_jvm") is not None)


@pytest.fixture(scope="session")
def offload() -> Iterator[SparkOffload]:
    """Its session is started when it is first needed, and again after a test has killed it."""
    try:
        check_spark()
    except OffloadError as error:
        pytest.skip(str(error))
    made = SparkOffload(master="local[2]", config=SMALL)
    made.open()
    yield made
    made.close()


@pytest.fixture
def session(offload: SparkOffload) -> Any:
    """The `Session` that all share."""
    offload.session.restart()
    return offload.session


@pytest.fixture
def spark(session: Any) -> Any:
    """The `SparkSession` that all share."""
    return session.spark


@pytest.fixture
def either_way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each flush is a job or is done in the process, as the name of the test says."""
    with Ways(request.node.name).each():
        yield


@pytest.fixture
def by_jobs() -> Iterator[None]:
    """All flushes are jobs."""
    with way(is_job=True):
        yield
