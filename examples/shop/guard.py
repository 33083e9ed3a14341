"""Limits of a request before a route sees it: the origin of its page, and its size.

another page's Origin    403; browsers ask no leave of a server for WebSockets and plain forms
a body of more bytes     413, also of one that does not say how long it is
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

MOST = 10_000
"""Bytes of a body."""


class Guard:
    """An ASGI application behind these checks."""

    def __init__(self, app: Application, most: int = MOST) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Refuse a request, or hand it on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
        elif not _is_of_this_page(scope):
            await _refuse(scope, send, 403, "a page of another origin")
        elif scope["type"] == "websocket":
            await self._app(scope, receive, send)
        else:
            await self._within_limit(scope, receive, send)

    async def _within_limit(self, scope: Message, receive: Receive, send: Send) -> None:
        """Read the body, up to the limit, before the application does."""
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self._most:
                await _refuse(scope, send, 413, f"more than {self._most:,} bytes")
                return
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        await self._app(scope, lambda: _next(whole, receive), send)


async def _next(messages: list[Message], receive: Receive) -> Message:
    return messages.pop() if messages else await receive()


def _is_of_this_page(scope: Message) -> bool:
    """Return True unless a browser says that a page of another host has sent it."""
    headers = dict(scope["headers"])
    origin = headers.get(b"origin")
    if origin is None:
        return True
    try:
        sender = urlsplit(str(origin, "latin-1")).netloc
    except ValueError:
        return False
    return sender == str(headers.get(b"host", b""), "latin-1")


async def _refuse(scope: Message, send: Send, status: int, reason: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": reason})
        return
    headers = [(b"content-type", b"text/plain"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": reason.encode()})
