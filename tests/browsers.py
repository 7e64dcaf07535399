"""Chromium without a window, driven by chromedriver, for the tests of pages."""

from __future__ import annotations

import shutil

import pytest
import waits

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
SIZES = [(320, 640), (1280, 900)]
needed = pytest.mark.skipif(
    not CHROMIUM or not DRIVER, reason="chromium and chromedriver are not installed"
)


def start(folder):
    """A browser that downloads to a folder; whoever starts it makes it quit."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)}
    )
    return driver


def visit(browser, address):
    """The browser on a fresh page: light, on a screen, with JavaScript."""
    show(browser)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    resize(browser, 1280, 900)
    browser.get(address)
    return browser


def show(browser, *, media="screen", scheme="light"):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def resize(browser, width, height):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def downloaded(path):
    """The text of a file that a click saves, once it is there."""
    waits.until(path.exists, f"{path.name} to be saved", limit=30)
    text = path.read_text(encoding="utf-8")
    path.unlink()
    return text


def cells(page, column):
    """The cells of a column of the worst rows that are shown, as numbers or texts."""
    script = """
      const table = document.getElementById("worst");
      const place = [...table.tHead.rows[0].cells].findIndex((c) => c.textContent.trim() === arguments[0]);
      return [...table.tBodies[0].rows].filter((row) => row.checkVisibility())
        .map((row) => row.cells[place].dataset.v ?? row.cells[place].textContent.trim());
    """
    return page.execute_script(script, column)
