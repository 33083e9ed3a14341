"""The shop, from outside: orders come to browsers, and outlive the process."""

from __future__ import annotations

import asyncio
import signal
import threading
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from examples.shop import __main__ as command
from examples.shop.board import open_board
from examples.shop.live import show
from examples.shop.models import Customer, Order, open_file
from tests.examples.shop.running import Shop, until


def test_browsers_see_each_order_of_others_and_survive_a_kill(tmp_path: Path) -> None:
    random = Random(1)
    acknowledged: list[int] = []
    with Shop(tmp_path / "shop.db") as shop:
        first, second = shop.watch(), shop.watch()
        assert (first.hear(), first.rows) == (0, [])
        for _ in range(30):
            shop.order(f"customer {random.randrange(13)}", random.randrange(1, 1000))
        for browser in (first, second):
            browser.hear_of(shop.by_sql())
        gone = shop.client.delete("/orders/1")
        assert gone.status_code == 204
        first.hear_of(shop.by_sql())

        writer = threading.Thread(target=_order_until_it_ends, args=(shop, acknowledged))
        writer.start()
        until(lambda: len(acknowledged) >= 10)
        shop.kill()
        writer.join()
        shop.start()
        third = shop.watch()
        third.hear()
        assert third.rows == shop.by_sql()
        late = shop.client.get("/customers/late").json()
        assert late["orders"] in (len(acknowledged), len(acknowledged) + 1)
        assert shop.client.get("/customers/nobody").status_code == 404
        assert shop.client.delete("/orders/1").status_code == 404
        assert shop.client.delete(f"/orders/{10**30}").status_code == 422
        assert shop.client.post("/orders", json={"customer": ""}).status_code == 422


def test_a_browser_that_leaves_is_noticed_and_sigterm_ends_the_shop_at_once(tmp_path: Path) -> None:
    with Shop(tmp_path / "shop.db") as shop:
        leaving = [shop.watch() for _ in range(5)]
        staying = shop.watch()
        until(lambda: shop.subscribers() == 6)
        for browser in leaving[:3]:
            browser.close()
        for browser in leaving[3:]:
            browser.socket.socket.close()  # without a word
        until(lambda: shop.subscribers() == 1)
        staying.hear()
        errors = shop.terminate()
        assert shop.process.returncode in (0, -signal.SIGTERM)
        assert "Traceback" not in errors


def test_a_slow_browser_is_told_what_came_meanwhile_at_once(tmp_path: Path) -> None:
    engine = open_file(tmp_path / "shop.db")
    board = open_board(engine)

    async def main() -> list[Any]:
        socket = _SlowSocket()
        showing = asyncio.create_task(show(socket, board.leaders))  # type: ignore[arg-type]
        await socket.sent.wait()
        for number in range(50):
            with board.sessions.begin() as session:
                customer = session.get(Customer, 1) or Customer(name="ann")
                session.add(Order(what="tea", cents=number, customer=customer))
            await asyncio.sleep(0)
        socket.is_read.set()
        while socket.told[-1]["version"] < board.db.version:
            await asyncio.sleep(0.01)
        socket.has_left.set()
        await showing
        return socket.told

    told = asyncio.run(main())
    assert len(told) <= 3
    assert told[-1]["edits"][-1]["row"] == {"name": "ann", "orders": 50, "cents": 49 * 25}
    assert board.db.metrics().subscribers == 0
    board.close()
    engine.dispose()


def test_what_fails_to_be_told_is_raised(tmp_path: Path) -> None:
    engine = open_file(tmp_path / "shop.db")
    board = open_board(engine)
    socket = _SlowSocket()
    socket.send_json = None  # type: ignore[assignment, method-assign]
    with pytest.raises(TypeError):
        asyncio.run(show(socket, board.leaders))  # type: ignore[arg-type]
    assert board.db.metrics().subscribers == 0
    board.close()
    engine.dispose()


def test_wrong_arguments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        command.main(["--port", "x"])
    assert "invalid int value" in capsys.readouterr().err


class _SlowSocket:
    """A browser that reads nothing until it is told to."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.sent, self.is_read, self.has_left = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def accept(self) -> None:
        pass

    async def send_json(self, told: Any) -> None:
        self.told.append(told)
        self.sent.set()
        await self.is_read.wait()

    async def receive_text(self) -> str:
        from fastapi import WebSocketDisconnect

        await self.has_left.wait()
        raise WebSocketDisconnect


def _order_until_it_ends(shop: Shop, acknowledged: list[int]) -> None:
    try:
        while True:
            acknowledged.append(shop.order("late", 1))
    except httpx.TransportError:
        pass
