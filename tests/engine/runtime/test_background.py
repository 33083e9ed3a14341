"""A job thread ends on request, whatever the jobs do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from reactive import OffloadError
from reactive.engine.runtime.background import Background


class Owner:
    """Owner of jobs, with a list of the finished ones."""

    def __init__(self) -> None:
        self.done: list[str] = []


def noted(name: str) -> Callable[[Owner], None]:
    return lambda owner: owner.done.append(name)


def test_jobs_are_done_one_after_the_other_and_a_job_may_give_others() -> None:
    owner = Owner()
    background = Background(owner, noted("regularly"), None)

    def first(of: Owner) -> None:
        background.do(noted("later"))
        of.done.append("first")

    background.do(first)
    background.settle()
    assert owner.done == ["first", "later"]
    background.stop()


@pytest.mark.parametrize(
    ("error", "has_place"), [(OffloadError("full"), False), (KeyError(1), True)]
)
def test_what_a_job_raises_is_told_and_the_next_one_is_done(
    error: Exception, has_place: bool, caplog: pytest.LogCaptureFixture
) -> None:
    owner = Owner()
    background = Background(owner, noted("regularly"), None)

    def job(_: Owner) -> None:
        raise error

    background.do(job)
    background.settle()
    assert background.error is error
    (record,) = caplog.records
    assert record.message.startswith("offloading: ")
    assert bool(record.exc_info) == has_place
    background.do(noted("next"))
    background.settle()
    assert background.error is None
    assert owner.done == ["next"]
    background.stop()


def test_it_stops_while_a_job_gives_another_one_which_is_not_done() -> None:
    owner, began, go = Owner(), threading.Event(), threading.Event()
    background = Background(owner, noted("regularly"), 0.01)

    def job(of: Owner) -> None:
        began.set()
        assert go.wait(30)
        background.do(noted("given as it was stopped"))
        of.done.append("first")

    background.do(job)
    background.do(noted("waiting"))
    assert began.wait(30)
    before = set(threading.enumerate())
    stopping = threading.Thread(target=background.stop, daemon=True)
    stopping.start()
    while not background.is_over:
        time.sleep(0.001)
    go.set()
    stopping.join(30)
    assert not stopping.is_alive()
    assert owner.done == ["first"]
    background.do(noted("given later"))
    background.start()
    background.stop()
    assert set(threading.enumerate()) < before
    assert owner.done == ["first"]


def test_a_job_may_stop_it_and_who_waits_for_others_goes_on() -> None:
    owner, began, go = Owner(), threading.Event(), threading.Event()
    background = Background(owner, noted("regularly"), None)

    def stop(of: Owner) -> None:
        began.set()
        assert go.wait(30)
        background.stop()
        of.done.append("stopped")

    background.do(stop)
    background.do(noted("waiting"))
    assert began.wait(30)
    settling = threading.Thread(target=background.settle, daemon=True)
    settling.start()
    thread = background._thread
    assert thread is not None
    go.set()
    for each in (settling, thread):
        each.join(30)
        assert not each.is_alive()
    assert owner.done == ["stopped"]
