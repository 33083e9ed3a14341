"""The shop, from outside: orders reach browsers, and outlive the process."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from websockets import ConnectionClosed, InvalidStatus, Origin
from websockets.sync.client import connect

from examples.shop import __main__ as command
from examples.shop.board import open_board
from examples.shop.live import show
from examples.shop.models import Customer, Order, open_file
from tests.examples.shop.running import PATIENCE, Shop, until


@pytest.mark.long
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


@pytest.fixture(scope="module")
def open_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with Shop(tmp_path_factory.mktemp("shop") / "shop.db") as shop:
        yield shop
        assert shop.client.get("/metrics").is_success
        assert "Traceback" not in shop.terminate()


@pytest.mark.parametrize("number", [0, -1, -(2**63), -(10**30), 2**63, 10**30, "x", "1.5", "%00"])
def test_a_number_that_no_order_has_is_refused(open_shop: Shop, number: object) -> None:
    assert open_shop.client.delete(f"/orders/{number}").status_code == 422


@pytest.mark.parametrize("origin", ["http://evil.test", "null", "http://[", "http://127.0.0.1:1"])
def test_a_page_of_another_origin_is_refused(open_shop: Shop, origin: str) -> None:
    headers = {"origin": origin}
    order = {"customer": "Ann", "what": "tea", "cents": 1}
    assert open_shop.client.post("/orders", json=order, headers=headers).status_code == 403
    assert open_shop.client.delete("/orders/1", headers=headers).status_code == 403
    with pytest.raises(InvalidStatus, match="403"):
        connect(f"ws://127.0.0.1:{open_shop.port}/leaders", origin=Origin(origin))


def test_a_page_of_the_shop_is_not_refused(open_shop: Shop) -> None:
    headers = {"origin": f"http://127.0.0.1:{open_shop.port}"}
    order = {"customer": "Ann", "what": "tea", "cents": 1}
    assert open_shop.client.post("/orders", json=order, headers=headers).status_code == 201
    with connect(f"ws://127.0.0.1:{open_shop.port}/leaders", origin=Origin(headers["origin"])) as s:
        assert s.recv()


@pytest.mark.parametrize("is_told", [True, False])
def test_a_body_that_is_too_large_is_refused(open_shop: Shop, is_told: bool) -> None:
    pieces = [b" " * 1_000] * 1_000
    content: Any = b"".join(pieces) if is_told else iter(pieces)
    try:
        answer = open_shop.client.post("/orders", content=content)
    except httpx.TransportError:  # the server closed before the whole body was sent
        return
    assert answer.status_code == 413


@pytest.mark.parametrize("frame", [b"\x00\xff", "text", b"", b" " * 100_000, "x" * 100_000])
def test_what_is_sent_through_a_socket_closes_it(open_shop: Shop, frame: str | bytes) -> None:
    with connect(f"ws://127.0.0.1:{open_shop.port}/leaders") as socket:
        socket.recv()
        with suppress(ConnectionClosed):
            socket.send(frame)
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(PATIENCE)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == (1009 if len(frame) > 1_000 else 1003)


@pytest.mark.long
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
    """A browser that reads nothing until it is released."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.sent, self.is_read, self.has_left = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def accept(self) -> None:
        pass

    async def send_json(self, told: Any) -> None:
        self.told.append(told)
        self.sent.set()
        await self.is_read.wait()

    async def receive(self) -> dict[str, Any]:
        await self.has_left.wait()
        return {"type": "websocket.disconnect"}


def _order_until_it_ends(shop: Shop, acknowledged: list[int]) -> None:
    try:
        while True:
            acknowledged.append(shop.order("late", 1))
    except httpx.TransportError:
        pass
