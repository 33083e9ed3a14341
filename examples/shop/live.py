"""A view and a browser: its rows at first, then their changes, until the browser leaves.

view.changes(latest=True) --> send        one delta at a time: changes during a slow send are
                                          merged into the next one
receive --> it has left                   the only way to notice that without sending
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from fastapi import WebSocket, WebSocketDisconnect

from reactive import Changes, OrderedView

UNWANTED = 1003
"""The code for closing a socket on which the browser sent a message."""


async def show(socket: WebSocket, view: OrderedView[Any]) -> None:
    """Tell a browser what a view shows, until it leaves, or the server is to stop."""
    await socket.accept()
    with view.changes(snapshot=True, latest=True) as changes:
        tasks = [asyncio.create_task(each) for each in (_tell(socket, changes), _listen(socket))]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                with suppress(WebSocketDisconnect):
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _tell(socket: WebSocket, changes: Changes[Any]) -> None:
    async for delta in changes:
        edits = delta.to_dict().get("edits", [])
        told = {"version": delta.version, "is_snapshot": delta.is_snapshot, "edits": edits}
        await socket.send_json(told)


async def _listen(socket: WebSocket) -> None:
    """Wait until the browser leaves, or sends something, which no page of the shop does."""
    message = await socket.receive()
    if message["type"] != "websocket.disconnect":
        await socket.close(UNWANTED, "this socket only tells")
