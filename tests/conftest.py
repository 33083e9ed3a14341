"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.budget import TIMES

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
"""Every JVM that a test starts is there soon: it compiles quickly, not well. The cache is that of
both compilers: one of the first alone is full after some minutes, and then nothing is compiled.
Of few rows, generating and compiling code takes longer than running it, and Spark looks at its own
plans after each of its rules. A quarter of what a JVM does that begins is to look whether 20,000
classes are sound, and to collect garbage whenever there is no room for more of them. `make soak`
has all of that."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell has it in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("timeless", deadline=None)  # a machine may be busy
settings.load_profile("timeless")
settings.register_profile("repeatable", settings.get_profile("timeless"), derandomize=True)
if os.environ.get("CI"):  # elsewhere Hypothesis explores anew in each run
    settings.load_profile("repeatable")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Collections of garbage do not look at thousands of tests again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def every_commit_is_taken_back(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """An operator that cannot undo its step is a bug, which the engine only logs."""
    yield
    told = [record.getMessage() for record in caplog.get_records("call")]
    assert not [text for text in told if "could not take a commit back" in text]
