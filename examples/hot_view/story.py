"""The phases of the view per customer, from its first order to the last.

    grow  ->  move  ->  serve  ->  lose the JVM  ->  serve  ->  end

Orders arrive all the time. A phase ends at an event, not after a time.
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
"""The most share of all orders before a view moves."""
SHARE = 0.3
"""The most share of the remaining orders in each later phase."""
SOON = 30.0
"""Seconds to wait for a due move and the start of Spark, or for waiting changes."""
RATE = 300
"""Orders per second, once there is something on Spark."""
ROUNDS = 3
"""Rounds of reading all views before the JVM is lost, and after it."""
LOOK = 0.25
"""Seconds between looks at whether something has happened."""
INTO = 0.1
"""Seconds after the start of a flush at which the JVM is killed."""


class Board(Protocol):
    """The output for people."""

    def phase(self, name: str) -> None:
        """Begin a phase."""
        ...

    def note(self, text: str) -> None:
        """Something has happened."""
        ...

    def answer(self, question: str, seconds: float, found: str) -> None:
        """Tell that a view was read, and the seconds that took."""
        ...

    def look(self) -> None:
        """Tell that some time has passed."""
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
    """Return the parts that are on Spark, or move there.

    Raises
    ------
    OffloadError: a move failed.
    """
    found = shop.db.offload_status()
    for part in found:
        if part.error:
            raise OffloadError(part.error)
    return found


def _begin(phase: str, feeder: Feeder, board: Board) -> None:
    """Begin a phase with a low rate of orders, so that later phases have some left."""
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
