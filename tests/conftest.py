"""Settings and fixtures of all tests."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.budget import SEED, TIMES, some_of
from tests.postgres_server import PostgresServer, running_or_skipped

QUICKLY_COMPILED = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
QUICKLY_BEGUN = (
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote "
    "-XX:MetaspaceSize=256m -XX:NewRatio=1"
)
INTERPRETED = (
    "-Dspark.sql.codegen.wholeStage=false -Dspark.sql.codegen.factoryMode=NO_CODEGEN "
    "-Dspark.sql.lightweightPlanChangeValidation=false"
)
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    QUICKLY_COMPILED if TIMES else f"{QUICKLY_COMPILED} {QUICKLY_BEGUN} {INTERPRETED}",
)
"""Options that make every JVM of a test start quickly.

It compiles quickly, not well. The code cache has room for both compilers: the cache of the first
one alone is full after some minutes, and then nothing is compiled. With few rows, generating and
compiling code takes longer than running it, and Spark checks its own plans after each of its rules.
A starting JVM spends a quarter of its time on verifying 20,000 classes, and on collecting garbage
whenever memory is short. `make soak` uses none of the options that skip this.
"""

SPARK = Path(__file__).parent / "spark"
MANY, SOME = 10, 3
"""From `MANY` cases on, `SOME` cases of a long test are not marked as long."""

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
"""Byte code is kept, for any environment: else each of the hundreds of processes that tests
start compiles all of the library, and each worker all tests."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell has it in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "timeless",
    deadline=None,  # a machine may be busy
    max_examples=100 * TIMES or 18,
)
settings.load_profile("timeless")
settings.register_profile("repeatable", settings.get_profile("timeless"), derandomize=True)
if os.environ.get("CI"):  # elsewhere Hypothesis draws other examples in each run
    settings.load_profile("repeatable")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore modules without a long test where only long ones run: importing them takes seconds.

    Whether a test on Spark is long is not written in its module.
    """
    if config.option.markexpr != "long" or collection_path.suffix != ".py":
        return None
    if collection_path.is_relative_to(SPARK) or "mark.long" in collection_path.read_text():
        return None
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out some cases of sampled tests; a test that is named alone runs.

    Long tests run first: at the end, one core would wait for the other.
    """
    items.sort(key=lambda item: item.path.name != "test_checkers.py")
    leave_out(config, items)
    shorten(items)


def shorten(items: list[pytest.Item]) -> None:
    """Unmark some cases of a `long` test with many cases, so that `make test` runs these.

    All cases of a test marked `long(whole=True)` are left to `make test-all`.
    """
    of: dict[str, list[pytest.Item]] = {}
    for item in items:
        mark = item.get_closest_marker("long")
        if mark and not mark.kwargs.get("whole"):
            of.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in of.values():
        if len(cases) >= MANY:
            for item in cases[:: -(-len(cases) // SOME)]:
                item.own_markers[:] = [mark for mark in item.own_markers if mark.name != "long"]


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take a sample of the tests that are to be sampled."""
    if TIMES:
        return
    of: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("sampled"):
            of.setdefault(item.nodeid.partition("[")[0], []).append(item)
    out = {case for cases in of.values() for case in set(cases).difference(some_of(cases))}
    config.hook.pytest_deselected(items=[item for item in items if item in out])
    items[:] = [item for item in items if item not in out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the seed that repeats the samples of a failed run."""
    if terminalreporter.stats.get("failed"):
        terminalreporter.write_line(f"SEED={SEED} takes the same samples again")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Collections of garbage do not look at thousands of tests again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def no_collection_looks_at_what_a_module_has_left() -> Iterator[None]:
    """Freeze old objects: after thousands of tests, a full collection would take a second."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def every_commit_is_taken_back(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """An operator that cannot undo its step is a bug, which the engine only logs."""
    yield
    told = [record.getMessage() for record in caplog.get_records("call")]
    assert not [text for text in told if "could not take a commit back" in text]


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A Postgres server for all tests of this worker; none of them may stop it."""
    with running_or_skipped() as server:
        yield server


@pytest.fixture
def database(postgres: PostgresServer) -> str:
    """The DSN of a new database in it."""
    return postgres.new_database()
