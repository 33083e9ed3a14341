"""Commits the stream, in a thread of its own, so that orders go on coming whatever else happens."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from math import inf

from examples.hot_view.shop import Shop
from examples.hot_view.stream import Batch


class Feeder(threading.Thread):
    """Feed a shop until the stream ends, or `stop` is called.

    `orders` counts inserted orders, `went` deleted ones, including corrections.
    """

    def __init__(self, shop: Shop, stream: Iterator[Batch], total: int) -> None:
        super().__init__(name="feeder", daemon=True)
        self.orders = self.went = 0
        self._shop = shop
        self._stream = stream
        self._total = total
        self._rate = self._limit = inf
        self._is_stopped = False
        self._news = threading.Condition()
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            for batch in self._stream:
                self._wait(len(batch.new))
                if self._is_stopped:
                    return
                self._shop.take(batch)
                self.orders += len(batch.new)
                self.went += len(batch.went)
        except BaseException as error:
            self._error = error

    def allow(self, share: float, rate: float = inf) -> None:
        """Feed this share of the remaining orders, at most `rate` of them per second."""
        with self._news:
            self._limit = self.orders + share * (self._total - self.orders)
            self._rate = rate
            self._news.notify()

    @property
    def is_idle(self) -> bool:
        """Return True if all allowed orders have been fed."""
        return self.orders >= self._limit or not self.is_alive()

    def check(self) -> None:
        """Raise here what it raised."""
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Stop feeding."""
        with self._news:
            self._is_stopped = True
            self._news.notify()
        if self.is_alive():
            self.join()

    def _wait(self, count: int) -> None:
        """Wait as the rate demands, and then until more orders are allowed."""
        with self._news:
            self._news.wait_for(lambda: self._is_stopped, count / self._rate)
            self._news.wait_for(lambda: self._is_stopped or self.orders < self._limit)
