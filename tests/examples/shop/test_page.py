"""The page of the shop in two windows of Chromium."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from tests.examples.shop.running import Shop, until

CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--no-proxy-server"),
)
MISSING = "tests/services.sh installs chromium and chromium-driver"


@pytest.fixture
def windows(tmp_path: Path) -> Iterator[list[Chrome]]:
    """Two browsers that know nothing of each other."""
    if not (CHROMIUM.exists() and DRIVER.exists()):
        if os.environ.get("CI"):
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    found: list[Chrome] = []
    try:
        for name in ("first", "second"):
            options = ChromeOptions()
            options.binary_location = str(CHROMIUM)
            for option in (*OPTIONS, f"--user-data-dir={tmp_path / name}"):
                options.add_argument(option)
            found.append(Chrome(options, Service(str(DRIVER))))
        yield found
    finally:
        for window in found:
            window.quit()


@pytest.mark.long
def test_two_windows_see_orders_of_each_other_and_the_same_after_a_kill(
    tmp_path: Path, windows: list[Chrome]
) -> None:
    with Shop(tmp_path / "shop.db") as shop:
        for window in windows:
            window.get(f"http://127.0.0.1:{shop.port}/")
            until(lambda window=window: state(window) == "version 0")
        assert "Nobody has ordered" in placeholder(windows[0])
        order(windows[0], "<b>Ann</b>", "2.50")
        order(windows[1], "Bob", "1")
        until(lambda: [*map(shown, windows)] == [expected(shop)] * 2 and len(expected(shop)) == 2)
        assert shown(windows[0]) == [
            ("<b>Ann</b>", "1 order", "€2.50"),
            ("Bob", "1 order", "€1.00"),
        ]
        order(windows[0], "Bob", "7.77")
        until(lambda: [name for name, *_ in shown(windows[1])] == ["Bob", "<b>Ann</b>"])
        for number in range(12):
            shop.order(f"customer {number}", 100 + number)
        until(lambda: [*map(shown, windows)] == [expected(shop)] * 2)
        assert len(shown(windows[0])) == 10

        shop.kill()
        until(lambda: state(windows[0]) == "connecting")
        order(windows[0], "Cy", "1")
        until(lambda: "does not answer" in text(windows[0], "problem"))
        shop.start()
        until(lambda: [*map(shown, windows)] == [expected(shop)] * 2)
        windows[0].refresh()
        until(lambda: shown(windows[0]) == expected(shop))
        shop.order("customer 3", 5000)
        until(lambda: [*map(shown, windows)] == [expected(shop)] * 2)
        assert shown(windows[1])[0] == ("customer 3", "2 orders", "€51.03")
        assert severe(windows[1]) == []


def order(window: Chrome, customer: str, price: str) -> None:
    for name, value in {"customer": customer, "what": "tea", "price": price}.items():
        field = window.find_element(By.NAME, name)
        field.clear()
        field.send_keys(value)
    window.find_element(By.CSS_SELECTOR, "#order button").click()


def shown(window: Chrome) -> list[tuple[str, ...]]:
    """The rows of the leaderboard."""
    script = (
        "return [...document.querySelectorAll('#leaders li')]"
        ".map((li) => [...li.children].map((part) => part.textContent))"
    )
    return [tuple(row) for row in window.execute_script(script)]


def expected(shop: Shop) -> list[tuple[str, ...]]:
    """Return the rows of the page, computed by SQLite."""
    counted = {1: "1 order"}
    return [
        (row["name"], counted.get(n := row["orders"], f"{n} orders"), f"€{row['cents'] / 100:.2f}")
        for row in shop.by_sql()
    ]


def state(window: Chrome) -> str:
    return text(window, "state")


def text(window: Chrome, name: str) -> str:
    return str(window.find_element(By.ID, name).text)


def placeholder(window: Chrome) -> str:
    script = "return getComputedStyle(document.getElementById('leaders'), '::after').content"
    return str(window.execute_script(script))


def severe(window: Chrome) -> list[str]:
    """Errors of the page's script."""
    found = [entry["message"] for entry in window.get_log("browser") if entry["level"] == "SEVERE"]  # type: ignore[no-untyped-call]
    return [message for message in found if "WebSocket" not in message and "ERR_" not in message]
