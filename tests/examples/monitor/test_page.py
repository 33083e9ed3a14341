"""The page in Chromium: alerts, acknowledgements and limits, by keyboard, narrow and wide."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from examples.monitor.monitor import Monitor
from examples.monitor.outbox import Outbox
from examples.monitor.rows import Limit, Reading, Sensor
from examples.monitor.service import serve
from reactive import Database
from tests.examples.shop.running import until
from tests.examples.shop.test_page import CHROMIUM, DRIVER, MISSING, OPTIONS

BEGIN = datetime(2024, 5, 1, 12, tzinfo=UTC)
NAME = "<b>Kiln</b> " + "of-a-long-name" * 5


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Chrome]:
    if not (CHROMIUM.exists() and DRIVER.exists()):
        if os.environ.get("CI"):
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    options = ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for option in (*OPTIONS, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(option)
    found = Chrome(options, Service(str(DRIVER)))
    try:
        yield found
    finally:
        found.quit()


@pytest.mark.long
def test_alerts_are_acknowledged_and_limits_moved_on_the_page(
    tmp_path: Path, window: Chrome
) -> None:
    with (
        Database(tmp_path / "monitor.db") as db,
        closing(Outbox(tmp_path / "monitor.jsonl")) as outbox,
        closing(Monitor(db, BEGIN, outbox)) as monitor,
    ):
        monitor.watch([(Sensor("kiln", NAME, "°C", BEGIN), Limit("kiln", 10.0, 20.0))], BEGIN)
        page = ExitStack()
        address = page.enter_context(serve(monitor, "127.0.0.1", 0))
        window.get(address)
        until(lambda: text(window, "#state") == "live")
        assert text(window, "#sensors h3") == NAME
        for minute, value in enumerate((15.0, 25.0)):
            at = BEGIN + timedelta(minutes=minute)
            monitor.take([Reading("kiln", at, value)], at)
        until(lambda: text(window, "#alerts .what") == f"{NAME} is above its limit")
        until(lambda: len(points(window)) == 2)

        for width in (360, 1280):
            size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
            window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            assert window.execute_script("return document.documentElement.scrollWidth") <= width

        high = window.find_element(By.NAME, "high")
        high.clear()
        high.send_keys("5", Keys.ENTER)
        until(lambda: text(window, "#sensors .problem") == "low, 10, is above high, 5")
        at += timedelta(seconds=1)
        monitor.take([Reading("kiln", at, 26.0)], at)
        until(lambda: text(window, ".value") == "26.0 °C")
        assert high.get_property("value") == "5"  # what is being typed stays
        high.clear()
        high.send_keys("30", Keys.ENTER)
        until(lambda: monitor.limits["kiln"].high == 30)
        until(lambda: text(window, "#sensors .problem") == "")

        window.find_element(By.ID, "by").send_keys("<i>Ann</i>", Keys.TAB, Keys.ENTER)
        until(lambda: text(window, "#alerts .by") == "seen by <i>Ann</i>")
        assert not window.find_element(By.CSS_SELECTOR, "#alerts button").is_displayed()

        page.close()
        until(lambda: text(window, "#state") == "connecting")
        at += timedelta(seconds=1)
        monitor.take([Reading("kiln", at, 9.0)], at)
        with serve(monitor, "127.0.0.1", int(address.rpartition(":")[2])):
            until(lambda: text(window, "#state") == "live")
            until(lambda: not window.find_elements(By.CSS_SELECTOR, "#alerts li"))
            assert text(window, "#notices li").endswith(": ended")
        errors = [entry for entry in severe(window) if "Failed to load resource" not in entry]
        assert [entry for entry in errors if "ERR_" not in entry] == []


def text(window: Chrome, selector: str) -> str:
    """Return the text of the first element; empty without one."""
    found = window.find_elements(By.CSS_SELECTOR, selector)
    return str(found[0].text) if found else ""


def points(window: Chrome) -> list[str]:
    line = window.find_element(By.CSS_SELECTOR, "#sensors path")
    return (line.get_dom_attribute("d") or "").split("h0")[:-1]


def severe(window: Chrome) -> list[str]:
    found = window.get_log("browser")  # type: ignore[no-untyped-call]
    return [entry["message"] for entry in found if entry["level"] == "SEVERE"]
