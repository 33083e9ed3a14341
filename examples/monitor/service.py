"""The routes of the page, by the standard library.

GET  /              the page, and its style and script
GET  /state         all that the page shows, as JSON
GET  /events        the same as server-sent events: at first all parts, then those that change
POST /acknowledge   {"incident": 3, "by": "Ann"}
POST /limits        {"sensor": "oven", "low": 220, "high": 235}
POST /readings      [{"sensor": "oven", "at": "2026-05-01T12:00:00Z", "value": 221.5}]

An error is {"error": "..."}, with the status 400 for what cannot be read, 403 for a page of another
origin, 404 for what is not there, 409 for what was done already, 413 for what is too large.

A slow browser costs no memory: each reads the views when it can, and is sent the state of then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Condition, Thread
from types import MappingProxyType
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from examples.monitor.monitor import Monitor, NotThere, Refusal
from examples.monitor.rows import Limit, Reading

HERE = Path(__file__).parent
FILES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "/": ("page.html", "text/html; charset=utf-8"),
        "/page.css": ("page.css", "text/css; charset=utf-8"),
        "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    }
)
MOST = 100_000
"""Bytes of a request."""
NAME = 40
"""Characters of a person's name."""
PAGES = 50
"""Browsers that may follow the events at a time."""
QUIET = 10.0
"""Seconds without a change after which a browser is sent a comment, to see whether it is there."""
PAUSE = 0.1
"""Seconds between two events of a browser, at least."""

Parts: TypeAlias = dict[str, str]


class Unreadable(Exception):
    """A request that does not say what it should, with the reason."""


class Board:
    """The state that the page shows, and the wait for its changes."""

    def __init__(self, monitor: Monitor) -> None:
        self.monitor = monitor
        self.pages = 0
        self.is_closed = False
        self._changed = Condition()
        self._version = 0
        shown = (monitor.alerts, monitor.cards, monitor.minutes, monitor.latest, monitor.late)
        self._subscriptions = [each.subscribe(lambda delta: self._advance()) for each in shown]

    def parts(self) -> Parts:
        """Return the parts of the page as JSON."""
        monitor = self.monitor
        means: dict[str, list[list[Any]]] = {}
        for minute in sorted(monitor.minutes, key=lambda m: m.start):
            means.setdefault(minute.sensor, []).append([minute.start, round(minute.mean, 2)])
        cards = [{**card._asdict(), "means": means.get(card.id, [])} for card in monitor.cards]
        found = {
            "alerts": [alert._asdict() for alert in monitor.alerts],
            "sensors": cards,
            "notices": [notice._asdict() for notice in monitor.latest],
            "clock": {"now": monitor.now, "late": monitor.late.value},
        }
        return {name: json.dumps(part, default=datetime.isoformat) for name, part in found.items()}

    def wait(self, version: int, seconds: float) -> int:
        """Wait until there is another version than this; return it, or the same after a while."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_closed or self._version != version, seconds)
            return self._version

    def wait_closed(self, seconds: float) -> None:
        """Wait a while, unless the board is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_closed, seconds)

    def enter(self, by: int) -> bool:
        """Count a browser that comes, 1, or goes, -1; return False if there are too many."""
        with self._changed:
            if self.pages + by > PAGES:
                return False
            self.pages += by
            return True

    def close(self) -> None:
        """Let no browser wait any longer."""
        for subscription in self._subscriptions:
            subscription.close()
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()

    def _advance(self) -> None:
        with self._changed:
            self._version += 1
            self._changed.notify_all()


@contextmanager
def serve(monitor: Monitor, host: str, port: int) -> Iterator[str]:
    """Serve the page in threads; yield its address.

    Raises
    ------
    OSError: the address is in use, or is none of this machine.
    """
    board = Board(monitor)

    class Handler(_Handler):
        _board = board

    server = ThreadingHTTPServer((host, port), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = Thread(target=server.serve_forever, args=(0.1,), name="page", daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.server_address[1]}"
    finally:
        board.close()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    """The answer to one request."""

    _board: Board
    protocol_version = "HTTP/1.1"
    timeout = 60
    """Seconds that a request may take to arrive."""

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path in FILES:
            name, kind = FILES[path]
            self._send(HTTPStatus.OK, (HERE / name).read_bytes(), kind)
        elif path == "/state":
            parts = ", ".join(f'"{name}": {part}' for name, part in self._board.parts().items())
            self._send(HTTPStatus.OK, f"{{{parts}}}".encode())
        elif path == "/events":
            self._follow()
        elif path in POSTS:
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} takes POST")
        else:
            self._refuse(HTTPStatus.NOT_FOUND, f"there is no page {path!r:.100}")

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        act = POSTS.get(path)
        if act is None:
            self._refuse(HTTPStatus.NOT_FOUND, f"nothing can be sent to {path!r:.100}")
            return
        if not self._is_of_this_page():
            self._refuse(HTTPStatus.FORBIDDEN, "a page of another origin")
            return
        try:
            body = self._read()
        except Unreadable as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
            return
        if body is None:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MOST:,} bytes")
            return
        self._act(act, body)

    def _act(self, act: Act, body: bytes) -> None:
        try:
            answer = act(self._board.monitor, _parsed(body))
        except Unreadable as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        except NotThere as error:
            self._refuse(HTTPStatus.NOT_FOUND, str(error))
        except Refusal as error:
            self._refuse(HTTPStatus.CONFLICT, str(error))
        else:
            self._send(HTTPStatus.OK, json.dumps(answer).encode())

    def _follow(self) -> None:
        """Send the parts of the page as they change, until the browser leaves."""
        if not self._board.enter(1):
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, f"more than {PAGES} pages are open")
            return
        try:
            self.close_connection = True
            self._begin(HTTPStatus.OK, "text/event-stream", {"connection": "close"})
            self.wfile.write(b"retry: 1000\n\n")
            with suppress(OSError):  # it has left
                self._send_events()
        finally:
            self._board.enter(-1)

    def _send_events(self) -> None:
        sent: Parts = {}
        version = -1
        while not self._board.is_closed:
            found = self._board.wait(version, QUIET)
            events = [": still here\n\n"] if found == version else []
            for name, part in self._board.parts().items():
                if sent.get(name) != part:
                    events.append(f"event: {name}\ndata: {part}\n\n")
                    sent[name] = part
            self.wfile.write("".join(events).encode())
            version = found
            self._board.wait_closed(PAUSE)

    def _is_of_this_page(self) -> bool:
        """Return True unless a browser says that a page of another host has sent it."""
        origin = self.headers.get("origin")
        if origin is None:
            return True
        try:
            return urlsplit(origin).netloc == self.headers.get("host", "")
        except ValueError:
            return False

    def _read(self) -> bytes | None:
        """Return the body; None if it is too large.

        Raises
        ------
        Unreadable: it does not say how long it is.
        """
        length = self.headers.get("content-length", "")
        if not (length.isascii() and length.isdigit()):
            raise Unreadable("the request does not say its content-length")
        return None if int(length[:20]) > MOST else self.rfile.read(int(length))

    def _send(
        self, status: HTTPStatus, body: bytes, kind: str = "application/json", **headers: str
    ) -> None:
        self._begin(status, kind, {"content-length": str(len(body)), **headers})
        self.wfile.write(body)

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        """Send an error, and close: the body of the request may be unread."""
        self.close_connection = True
        self._send(status, json.dumps({"error": reason}).encode(), connection="close")

    def _begin(self, status: HTTPStatus, kind: str, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"content-type": kind, **SAFE, **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that the library refuses, such as one of another method."""
        status = HTTPStatus(code)
        self._refuse(status, message or status.phrase)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing: the terminal shows notices."""


SAFE: Mapping[str, str] = MappingProxyType(
    {
        "cache-control": "no-store",
        "content-security-policy": "default-src 'self'; img-src data:; frame-ancestors 'none'",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
    }
)


# The requests that write.

Act: TypeAlias = Callable[[Monitor, Any], Any]


def _acknowledge(monitor: Monitor, body: Any) -> None:
    fields = _fields(body, incident=int, by=str)
    by = fields["by"].strip()
    if not 0 < len(by) <= NAME or not by.isprintable():
        raise Unreadable(f"by is a name of 1 to {NAME} characters, not {by!r:.60}")
    monitor.acknowledge(fields["incident"], by)


def _set_limits(monitor: Monitor, body: Any) -> None:
    fields = _fields(body, sensor=str, low=float, high=float)
    low, high = fields["low"], fields["high"]
    if low > high:
        raise Unreadable(f"low, {low:g}, is above high, {high:g}")
    monitor.set_limits(Limit(fields["sensor"], low, high))


def _take(monitor: Monitor, body: Any) -> dict[str, int]:
    if not isinstance(body, list):
        raise Unreadable("readings are a list of objects")
    return monitor.take([_reading(each) for each in body])._asdict()


def _reading(body: Any) -> Reading:
    if isinstance(body, dict) and body.get("value", 0) is None:
        fields = {**_fields({**body, "value": 0}, sensor=str, at=str, value=float), "value": None}
    else:
        fields = _fields(body, sensor=str, at=str, value=float)
    try:
        at = datetime.fromisoformat(fields["at"])
    except ValueError:
        raise Unreadable(
            f"at is a moment such as 2026-05-01T12:00:00Z, not {fields['at']!r:.60}"
        ) from None
    if at.utcoffset() is None:
        raise Unreadable(f"at has no time zone: {fields['at']!r:.60}")
    return Reading(fields["sensor"], at, fields["value"])


POSTS: Mapping[str, Act] = MappingProxyType(
    {"/acknowledge": _acknowledge, "/limits": _set_limits, "/readings": _take}
)
KINDS = {int: "a whole number", float: "a number", str: "a text"}


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise Unreadable("the request is not JSON") from None


def _fields(body: Any, **kinds: type) -> dict[str, Any]:
    """Return the fields of an object: these, and no others.

    Raises
    ------
    Unreadable: one is missing, is of another kind, or is not known.
    """
    if not isinstance(body, dict):
        raise Unreadable(f"the request is no object with {', '.join(kinds)}")
    for name in body:
        if name not in kinds:
            raise Unreadable(f"{name!r:.60} is none of {', '.join(kinds)}")
    return {name: _field(body, name, kind) for name, kind in kinds.items()}


def _field(body: dict[str, Any], name: str, kind: type) -> Any:
    if name not in body:
        raise Unreadable(f"{name} is missing")
    value: Any = body[name]
    accepted: Any = (int, float) if kind is float else kind
    if isinstance(value, bool) or not isinstance(value, accepted):
        raise Unreadable(f"{name} is {KINDS[kind]}, not {json.dumps(value)[:60]}")
    if kind is not float:
        return value
    if not (-1e300 < value < 1e300):
        raise Unreadable(f"{name} is a number, not {value!r:.60}")
    return float(value)
