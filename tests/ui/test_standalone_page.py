"""The page without a server in real Chromium, opened from the disk."""

from __future__ import annotations

import json

import pytest
from browser import browser, game, known_result, make, one, text, wait

import envs
from agents.serve.options import Options
from agents.serve.standalone.export import export


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Writes the page of a game once, and gives its address."""
    folder, written = tmp_path_factory.mktemp("pages"), {}

    def address(env, opponent=""):
        if (env, opponent) not in written:
            path = folder / f"{len(written)}.html"
            written[env, opponent] = export(Options(env=env, opponent=opponent, export=str(path)))
        return written[env, opponent].as_uri()

    return address


@pytest.fixture(scope="module")
def window():
    with browser() as driver:
        yield driver
        assert not driver.get_log("browser")  # errors of scripts, and requests that the policy forbade


def opened(driver, address):
    driver.get(address)
    driver.execute_script("sessionStorage.clear(); localStorage.clear()")
    driver.get(address)
    wait(driver, lambda: game(driver)["version"] > 0, "the game")
    return game(driver)


def press(driver, name):
    one(driver, f"#{name}").click()


def play(driver):
    """The first legal move, by clicking, until the opponent has answered or the game is over."""
    make(driver, game(driver)["legal"][0])
    known_result(driver)


GAMES = ["tictactoe", "connect_four", "sum_to_100", "othello"]


@pytest.mark.parametrize("env", GAMES)
def test_a_whole_game_by_clicking(window, page, env):
    opened(window, page(env, opponent="" if env == "tictactoe" else "uct:20"))
    rules = envs.make(env)
    for _ in range(rules.max_plies):
        if game(window)["over"]:
            break
        play(window)
    s = rules.init()
    for name in game(window)["save"]["actions"]:
        s = rules.step(s, rules.parse_action(name))
    assert bool(rules.over(s)) == game(window)["over"]
    assert [float(x) for x in rules.rewards(s)] == (game(window)["result"] or [0.0] * rules.num_players)


def test_undo_hint_analysis_save_and_load(window, page, tmp_path):
    opened(window, page("connect_four"))
    first = game(window)
    assert first["players"] == ["person", "models/connect_four"] and len(first["legal"]) == 7
    press(window, "hint")
    wait(window, lambda: game(window)["hint"], "the hint")
    play(window)
    assert len(game(window)["history"]) == 2
    press(window, "undo")
    wait(window, lambda: not game(window)["history"], "the undo")
    press(window, "analyse")
    wait(window, lambda: game(window)["report"] and game(window)["report"]["simulations"] > 100, "the analysis")
    press(window, "analyse")
    press(window, "redo")
    wait(window, lambda: len(game(window)["history"]) == 2, "the redo")
    path = tmp_path / "game.json"
    path.write_text(json.dumps(game(window)["save"]))
    opened(window, page("connect_four"))
    window.execute_script("document.querySelector('#share').showModal()")
    one(window, "#load").send_keys(str(path))
    wait(window, lambda: len(game(window)["history"]) == 2, "the loaded game")


def test_no_request_leaves_the_file(page):
    with browser() as driver:
        opened(driver, page("tictactoe"))
        script = "fetch('http://127.0.0.1:9/').then(() => arguments[0]('sent'), (e) => arguments[0](String(e)))"
        assert "Failed to fetch" in driver.execute_async_script(script)
        assert any("Content Security Policy" in entry["message"] for entry in driver.get_log("browser"))


def test_a_phone_shows_everything(page):
    with browser(width=390, height=844) as driver:
        opened(driver, page("connect_four"))
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 390
        play(driver)
        assert len(game(driver)["history"]) == 2
        assert "Red" in text(driver, "#turn-words")
