"""Spark Connect: a server elsewhere, whose JVM this process cannot ask."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from reactive import OffloadError
from spark_backend import SparkOffload
from spark_backend.cluster import session

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def url(spark: Any) -> Iterator[str]:
    """The URL of a server in the JVM of the tests."""
    pytest.importorskip("grpc", reason="pip install '.[spark-connect]'")
    servers: Any = spark.sparkContext._jvm.org.apache.spark.sql.connect.service
    service = getattr(getattr(servers, "SparkConnectService$"), "MODULE$")
    service.start(spark.sparkContext._jsc.sc())
    yield f"sc://localhost:{service.localPort()}"
    service.stop(*(getattr(service, f"stop$default${place}")() for place in (1, 2)))


def test_all_is_as_on_a_session_of_its_own(url: str) -> None:
    command = [sys.executable, "-m", "tests.spark.connect", url]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    told = done.stdout.splitlines()
    assert told == [
        "views are their queries",
        "nests are their queries",
        "tables are on Spark",
        "streams are told, and snapshots are read",
        "the session that was given is as it was",
    ], done.stderr[-3000:]


def test_without_its_client_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        session, "find_spec", lambda name: None if name == "grpc" else find_spec(name)
    )
    offload = SparkOffload(master="sc://nowhere:1")
    with pytest.raises(OffloadError, match=r"pip install '\.\[spark-connect\]'"):
        _ = offload.session.spark


@pytest.mark.quick
def test_it_needs_no_java_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_java_version", lambda: None)
    SparkOffload(master="sc://nowhere:1")
    with pytest.raises(OffloadError, match="no Java found"):
        SparkOffload()
