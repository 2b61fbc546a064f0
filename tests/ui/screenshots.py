"""Pictures of the page in docs/pictures/: python tests/ui/screenshots.py [NAME...]

Plays a few moves of every game in real Chromium, with the analysis on in some, in light and dark, and once on a phone.
"""

from __future__ import annotations

import dataclasses
import io
import sys
import time
from pathlib import Path

from browser import ROOT, browser, known_result, make, one, server, text, wait
from PIL import Image

FOLDER = ROOT / "docs" / "pictures"
LARGEST = 60_000  # bytes


@dataclasses.dataclass(frozen=True)
class Shot:
    name: str
    env: str
    moves: int = 2  # of the person
    hints: bool = False  # the person plays what the engine advises
    dark: bool = False
    phone: bool = False
    analysis: bool = False
    preview: bool = False
    opponent: str = ""  # the default one


SHOTS = (
    Shot("foq", "foq", moves=3, hints=True, preview=True),
    Shot("foq-dark", "foq", moves=3, hints=True, dark=True, analysis=True),
    Shot("foq-phone", "foq", moves=2, hints=True, phone=True),
    Shot("foq_single", "foq_single"),
    Shot("foq_multi", "foq_multi", dark=True),
    Shot("tictactoe", "tictactoe", moves=1, analysis=True),
    Shot("connect_four", "connect_four", moves=4, analysis=True),
    Shot("evopawness", "evopawness", moves=6),
    Shot("evopawness-dark", "evopawness", moves=4, dark=True, phone=True),
    Shot("go", "go", moves=4),
    Shot("go19", "go:size=19", moves=2, dark=True),
    Shot("gomoku", "gomoku", moves=4),
    Shot("hex", "hex:size=7", moves=4, dark=True),
    Shot("othello", "othello", moves=3, analysis=True),
    Shot("sum_to_100", "sum_to_100", moves=3),
    Shot("chess", "chess", moves=7, opponent="person"),
    Shot("shogi", "pgx:shogi", moves=8, opponent="person", dark=True),
)


def take(shot: Shot, folder: Path) -> None:
    size = (390, 844) if shot.phone else (1280, 900)
    options = [f"--env={shot.env}", "--seconds=2", *([f"--opponent={shot.opponent}"] if shot.opponent else [])]
    with server(*options) as address, browser(*size, dark=shot.dark) as driver:
        driver.get(address)
        for i in range(shot.moves):
            advised(driver) if shot.hints else move(driver, i)
        if shot.analysis:
            one(driver, "#analyse").click()
            wait(driver, lambda: "simulations" in text(driver, "#verdict"), "an analysis")
            known_result(driver)
        known_result(driver)
        driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": 2, "y": 2})
        if shot.preview:
            way = known_result(driver)["legal"][len(known_result(driver)["legal"]) // 2]
            driver.execute_script("preview(view.legal.find((way) => way.action === arguments[0]))", way["action"])
            wait(driver, lambda: driver.execute_script("return shown !== null"), "a preview")
        known_result(driver)
        driver.execute_script("document.activeElement.blur()")
        time.sleep(0.4)
        picture = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
    file = folder / f"{shot.name}.png"
    for colours in (256, 128, 64, 32):
        picture.quantize(colours, dither=Image.Dither.NONE).save(file, optimize=True)
        if file.stat().st_size <= LARGEST:
            break
    print(file, file.stat().st_size, flush=True)


def move(driver, number: int) -> None:
    """One of the legal moves, now here and now there."""
    ways = known_result(driver)["legal"]
    if ways:
        make(driver, ways[(5 * number + len(ways) // 3) % len(ways)])


def advised(driver) -> None:
    """The move of a hint."""
    known_result(driver)
    one(driver, "#hint").click()
    wait(driver, lambda: known_result(driver)["hint"], "a hint")
    seen = known_result(driver)
    make(driver, next(way for way in seen["legal"] if way["action"] == seen["hint"]))


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for shot in SHOTS:
        if not sys.argv[1:] or shot.name in sys.argv[1:]:
            take(shot, FOLDER)


if __name__ == "__main__":
    main()
