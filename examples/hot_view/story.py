"""What happens to the view per customer, from its first order to the last.

    grow  ->  move  ->  serve  ->  lose the JVM  ->  serve  ->  end

Orders go on coming all the time. A phase is over when something has happened, not after a time.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from threading import Timer
from time import perf_counter, sleep
from typing import Protocol

from examples.hot_view import processes
from examples.hot_view.feeder import Feeder
from examples.hot_view.figures import held, kept
from examples.hot_view.questions import QUESTIONS
from examples.hot_view.shop import Shop
from examples.terminal import duration, number
from reactive import OffloadError, OffloadStatus

GROWING = "growing, in the process"
MOVING = "moving to Spark"
SERVING = "on Spark, read while orders come"
LOSING = "losing the JVM"
SERVING_AGAIN = "on Spark again, read while orders come"
ENDING = "the rest of the orders"
COMPARING = "comparing with the same in process"
GROWN = 0.6
"""Which share of all orders may come until something moves."""
SHARE = 0.3
"""Which share of the orders that are left may come in each phase after that."""
SOON = 30.0
"""Seconds in which a move begins that is due, and Spark before it; or waiting changes are seen."""
RATE = 300
"""Orders per second, once there is something on Spark."""
ROUNDS = 3
"""How often all views are read before the JVM is lost, and again after it."""
LOOK = 0.25
"""Seconds between looks at whether something has happened."""
INTO = 0.1
"""How many seconds into a flush the JVM is killed."""


class Board(Protocol):
    """Where people see what happens."""

    def phase(self, name: str) -> None:
        """A phase begins."""
        ...

    def note(self, text: str) -> None:
        """Something has happened."""
        ...

    def answer(self, question: str, seconds: float, found: str) -> None:
        """A view was read, which took so long."""
        ...

    def look(self) -> None:
        """Some time has passed."""
        ...


class TooSmall(Exception):
    """The stream ended before the view had passed the threshold."""


def tell(shop: Shop, feeder: Feeder, board: Board) -> None:
    """Let it happen.

    Raises
    ------
    TooSmall: the stream ended before the view had passed the threshold.
    OffloadError: Spark could not be started, or not be brought back.
    """
    board.phase(GROWING)
    feeder.allow(GROWN)
    feeder.start()
    _wait(feeder, board, lambda: bool(parts(shop)) or feeder.is_idle)
    _wait(feeder, board, lambda: bool(parts(shop)), SOON)
    if not parts(shop):
        raise TooSmall
    most = held(shop)
    _begin(MOVING, feeder, board)
    before = feeder.orders
    _wait(feeder, board, lambda: all(part.flushes for part in parts(shop)))
    board.note(f"{number(feeder.orders - before, 'order')} came while it moved")
    _begin(SERVING, feeder, board)
    _serve(shop, feeder, board)
    _begin(LOSING, feeder, board)
    _lose(shop, feeder, board)
    _begin(SERVING_AGAIN, feeder, board)
    _serve(shop, feeder, board)
    board.phase(ENDING)
    feeder.allow(1)
    _wait(feeder, board, lambda: not feeder.is_alive())
    shop.db.flush()
    board.note(kept(most, held(shop)))


def parts(shop: Shop) -> OffloadStatus:
    """What has left the process, or is about to.

    Raises
    ------
    OffloadError: that did not go well.
    """
    found = shop.db.offload_status()
    for part in found:
        if part.error:
            raise OffloadError(part.error)
    return found


def _begin(phase: str, feeder: Feeder, board: Board) -> None:
    """A phase in which orders come slowly, so that there are some left for those after it."""
    board.phase(phase)
    feeder.allow(SHARE, RATE)


def _wait(feeder: Feeder, board: Board, is_over: Callable[[], bool], seconds: float = inf) -> None:
    """Until something is over, or for so long at most."""
    end = perf_counter() + seconds
    while not is_over() and perf_counter() < end:
        feeder.check()
        board.look()
        sleep(LOOK)
    feeder.check()


def _serve(shop: Shop, feeder: Feeder, board: Board) -> None:
    """Read all views some times, while they change."""
    for _ in range(ROUNDS):
        feeder.check()
        for question, ask in QUESTIONS.items():
            began = perf_counter()
            found = ask(shop)
            board.answer(question, perf_counter() - began, found)
        board.look()
        sleep(LOOK)


def _lose(shop: Shop, feeder: Feeder, board: Board) -> None:
    """Kill the JVM in the middle of a flush, and go on."""
    victim = processes.jvm()
    if victim is None:
        raise OffloadError("there is no Java process to kill")
    _wait(feeder, board, lambda: any(part.lag for part in parts(shop)), SOON)
    killing, before = Timer(INTO, processes.kill, [victim]), feeder.orders
    began = perf_counter()
    killing.start()
    shop.db.flush()
    when = "between two flushes" if killing.is_alive() else "in the middle of a flush"
    killing.join()
    shop.db.flush()
    seconds, came = perf_counter() - began, feeder.orders - before
    board.note(f"Java process {victim.number} was killed {when}")
    board.note(
        f"up to date again after {duration(seconds)}; {number(came, 'order')} came meanwhile"
    )
