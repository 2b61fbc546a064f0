"""Real headless Chromium on a real server, for test_browser.py and screenshots.py beside it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).parents[2]
CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
WAIT = 120  # seconds; a machine that is busy compiles slowly


@contextlib.contextmanager
def server(*options: str) -> Iterator[str]:
    """The address of `python play.py` with these options."""
    command = [sys.executable, str(ROOT / "play.py"), "--port=0", "--no_open", *options]
    environment = {"JAX_PLATFORMS": "cpu"} | os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            address = re.search(r"http://\S+", said)
            assert address is not None, f"play.py said {said!r}"
            yield address[0]
        finally:
            process.terminate()


@contextlib.contextmanager
def browser(width: int = 1280, height: int = 860, dark: bool = False) -> Iterator[webdriver.Chrome]:
    """A new Chromium that knows nothing and calls nobody; it fails where there is none."""
    assert shutil.which(CHROMIUM) and shutil.which(DRIVER), "install Debian's packages chromium and chromium-driver"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        quiet = ("gpu", "quic", "background-networking", "component-update", "sync", "dev-shm-usage")
        for argument in (
            "--headless=new", "--no-sandbox", "--no-first-run", *(f"--disable-{word}" for word in quiet),
            f"--user-data-dir={profile}", f"--window-size={width},{height}",
        ):  # fmt: skip
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
        try:
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
            yield driver
        finally:
            driver.quit()


def wait(driver: webdriver.Chrome, condition: Callable[[], object], what: str):
    """What `condition` gives once it is true; it may look at elements that come and go."""
    return WebDriverWait(driver, WAIT, 0.05, ignored_exceptions=[Exception]).until(lambda _: condition(), what)


def one(driver: webdriver.Chrome, css: str) -> WebElement:
    return driver.find_element(By.CSS_SELECTOR, css)


def text(driver: webdriver.Chrome, css: str) -> str:
    return one(driver, css).get_attribute("textContent") or ""


def game(driver: webdriver.Chrome) -> dict:
    """What the page knows."""
    return driver.execute_script("return view")


def known_result(driver: webdriver.Chrome) -> dict:
    """Waits until nobody thinks and no position is on its way, and gives what the page knows."""
    wait(driver, lambda: driver.execute_script("return view && !view.thinking && !busy && aim === null"), "a rest")
    return game(driver)


def click_cell(driver: webdriver.Chrome, name: str, held: float = 0.0) -> None:
    """A click of the mouse in the middle of a cell, the button held down for so many seconds."""
    box = "const b = shapeOf(cellOf(arguments[0])).getBoundingClientRect();"
    place = driver.execute_script(f"{box} return [b.x + b.width / 2, b.y + b.height / 2]", name)
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        button = "none" if kind == "mouseMoved" else "left"
        if kind == "mouseReleased":
            time.sleep(held)
        event = {"type": kind, "x": place[0], "y": place[1], "button": button, "clickCount": 1}
        driver.execute_cdp_cmd("Input.dispatchMouseEvent", event)


def make(driver: webdriver.Chrome, way: dict) -> None:
    """Makes a move by mouse: its cells one after another, then its button if it has one."""
    before = known_result(driver)
    for cell in way["cells"]:
        click_cell(driver, cell)
    same = [other for other in before["legal"] if other["cells"][: len(way["cells"])] == way["cells"]]
    if len(same) > 1 or not way["cells"] or (len(way["cells"]) == 1 and way["label"] != way["action"]):
        one(driver, f"#choices button[data-action='{way['action']}']").click()
    wait(driver, lambda: game(driver)["version"] > before["version"], f"the move {way['action']}")


def fresh(driver: webdriver.Chrome, address: str) -> dict:
    """The page as a newcomer sees it. What it remembers is cleared where no script of its own could write it anew."""
    driver.get(f"{address}/style.css")
    driver.execute_script("sessionStorage.clear(); localStorage.clear()")
    driver.get(address)
    return known_result(driver)


def press(driver: webdriver.Chrome, name: str) -> None:
    one(driver, f"#{name}").click()


def lit(driver: webdriver.Chrome) -> set[str]:
    """Names of the cells that can be chosen."""
    return set(driver.execute_script("return [...document.querySelectorAll('.lit')].map((x) => x.dataset.cell)"))


def choose(driver: webdriver.Chrome, select: str, value: str) -> None:
    one(driver, f"#{select} option[value='{value}']").click()


AXE = (Path(__file__).parent / "axe.min.js").read_text(encoding="utf-8")
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


def violations(driver: webdriver.Chrome) -> list[str]:
    """What axe-core finds wrong with what the page shows now: rule, element and reason."""
    driver.execute_script(AXE)
    script = """
        const done = arguments[arguments.length - 1];
        const words = (rule) =>
            rule.nodes.map((node) => `${rule.id}: ${node.html.slice(0, 120)} ${node.failureSummary}`);
        axe.run(document, { runOnly: arguments[0] }).then((found) => done(found.violations.flatMap(words)));
    """
    return driver.execute_async_script(script, RULES)
