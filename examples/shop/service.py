"""The routes of the shop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Lock
from typing import Annotated

from fastapi import FastAPI, HTTPException, WebSocket
from fastapi import Path as InPath
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field
from sqlalchemy import select

from examples.shop.board import Board, open_board
from examples.shop.guard import Guard
from examples.shop.live import show
from examples.shop.models import Customer, Order, open_file

LARGEST = 2**63 - 1
"""Number of an order that SQLite can have."""
PAGE = Path(__file__).parent / "page.html"


class Wanted(BaseModel):
    """The order of a browser."""

    customer: str = Field(min_length=1, max_length=40)
    what: str = Field(min_length=1, max_length=40)
    cents: int = Field(gt=0, le=10_000_000)


class Bought(BaseModel):
    """The purchases of a customer."""

    orders: int
    cents: int


def service(path: Path) -> FastAPI:
    """Return the application for the shop of a file."""
    board: Board
    one_writer = Lock()  # SQLite has one at a time; two first orders of a customer wait here

    @asynccontextmanager
    async def opened(_: FastAPI) -> AsyncIterator[None]:
        nonlocal board
        engine = open_file(path)
        board = open_board(engine)
        yield
        board.close()
        engine.dispose()

    app = FastAPI(title="shop", lifespan=opened)
    app.add_middleware(Guard)

    @app.get("/")
    def page() -> FileResponse:
        return FileResponse(PAGE, media_type="text/html")

    @app.post("/orders", status_code=201)
    def order(wanted: Wanted) -> int:
        """Write an order; the answer is its number, and views have it."""
        with one_writer, board.sessions.begin() as session:
            found = session.scalar(select(Customer).where(Customer.name == wanted.customer))
            customer = found or Customer(name=wanted.customer)
            made = Order(what=wanted.what, cents=wanted.cents, customer=customer)
            session.add(made)
            session.flush()
            return made.id

    @app.delete("/orders/{number}", status_code=204)
    def cancel(number: Annotated[int, InPath(ge=1, le=LARGEST)]) -> None:
        with one_writer, board.sessions.begin() as session:
            found = session.get(Order, number)
            if found is None:
                raise HTTPException(404, f"there is no order {number}")
            session.delete(found)

    @app.get("/customers/{name}")
    def customer(name: str) -> Bought:
        found = board.totals.get(name)
        if found is None:
            raise HTTPException(404, f"{name} has bought nothing")
        return Bought(orders=found.orders, cents=found.cents)

    @app.get("/metrics")
    def metrics() -> dict[str, int]:
        found = board.db.metrics()
        return {"commits": found.commits, "subscribers": found.subscribers}

    @app.websocket("/leaders")
    async def leaders(socket: WebSocket) -> None:
        await show(socket, board.leaders)

    return app
