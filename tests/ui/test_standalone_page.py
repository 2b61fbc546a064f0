"""The page without a server in real Chromium, opened from the disk."""

from __future__ import annotations

import json

import pytest
from browser import browser, game, known_result, make, one, text, wait
from in_javascript import compare, rules

import envs
from agents.serve.options import PlayOptions
from agents.serve.standalone.convert import convert
from agents.serve.standalone.export import export
from envs import saved


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Writes the page of a game once, and gives its address."""
    folder, written = tmp_path_factory.mktemp("pages"), {}

    def address(env, opponent=""):
        if (env, opponent) not in written:
            path = folder / f"{len(written)}.html"
            (written[env, opponent],) = export(PlayOptions(env=env, opponent=opponent, export=str(path)))
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


def in_chromium(driver):
    """An engine for `compare`, on an empty page."""
    driver.get("about:blank")
    return lambda script, asked: driver.execute_script(f"{script} return answers(JSON.parse(arguments[0]))", asked)


@pytest.mark.parametrize("name", ["chess:size=5", "foq", "go"])
def test_rules_are_equal(window, name):
    """The integration tests compare all games, in node."""
    rules_of = envs.make(name)
    assert compare(rules_of, convert(rules(rules_of)), in_chromium(window)) == []


def test_a_changed_rule_is_found(window):
    rules_of = envs.make("tictactoe")
    text = convert(rules(rules_of))
    changed = text.replace("(1-a1_move)", "(0+a1_move)")  # the turn does not pass
    assert changed != text
    assert {name for name, _ in compare(rules_of, changed, in_chromium(window))} == {"move"}


PLAYED = ["tictactoe", "connect_four", "sum_to_100", "othello", "foq", "foq_single", "foq_multi", "evopawness"]
PLAYED += ["go:size=5,komi=24.5", "gomoku:size=9", "hex:size=5"]


@pytest.mark.parametrize("env", PLAYED)
def test_a_whole_game_by_clicking(window, page, env):
    opened(window, page(env))
    quick = "command('players', {players: view.players, simulations: 8, seconds: 1}).then(arguments[0])"
    window.execute_async_script(quick)
    rules_of = envs.make(env)
    for _ in range(rules_of.max_plies):
        if game(window)["over"]:
            break
        play(window)
    states, _ = saved.replay(rules_of, rules_of.init(), game(window)["save"]["actions"])
    assert game(window)["over"] and bool(rules_of.over(states[-1]))
    assert [float(x) for x in rules_of.rewards(states[-1])] == game(window)["result"]


def test_an_index_leads_to_its_games(window, tmp_path):
    *_, index = export(PlayOptions(env="tictactoe hex:size=5,swap=false", opponent="uct:5", export=str(tmp_path)))
    window.get(index.as_uri())
    pictures = "return [...document.images].map((image) => image.complete && image.naturalWidth > 0)"
    assert window.execute_script(pictures) == [True, True]
    one(window, "li:nth-child(2) a").click()
    wait(window, lambda: game(window)["version"] > 0, "the game")
    assert game(window)["game"] == "hex:size=5,swap=false"


def test_limits_of_the_export_are_those_of_the_page(window, page, tmp_path):
    assert opened(window, page("tictactoe", "uct:5"))["limits"] == {"simulations": 4096, "seconds": 1}
    limits = {"num_simulations": 24, "seconds": 90.0}
    file = str(tmp_path / "game.html")
    (path,) = export(PlayOptions(env="tictactoe", opponent="models/tictactoe", export=file, **limits))
    assert opened(window, path.as_uri())["limits"] == {"simulations": 24, "seconds": 90}
    press(window, "hint")
    wait(window, lambda: game(window)["hint"], "the hint")
    assert game(window)["report"]["simulations"] <= 32  # eight at once
    press(window, "new")
    shown = "return ['simulations', 'seconds'].map((name) => $(`pick-${name}`).value)"
    wait(window, lambda: window.execute_script(shown) == ["24", "90"], "the dialog")


def test_each_page_of_a_folder_keeps_its_own_game(window, tmp_path):
    first, second, _ = export(PlayOptions(env="tictactoe sum_to_100", opponent="uct:5", export=str(tmp_path)))
    made = {}
    for page in (first, second):
        window.get(page.as_uri())
        wait(window, lambda: game(window)["version"] > 0, "the game")
        play(window)
        made[page] = game(window)["history"]
        assert made[page]
    for page in (first, second, first):
        window.get(page.as_uri())
        wait(window, lambda: game(window)["version"] > 0, "the game")
        assert game(window)["history"] == made[page]
        assert not one(window, "#toast").is_displayed()


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


def test_other_lines_are_kept_once_and_lead_elsewhere(window, page):
    opened(window, page("tictactoe", "uct:5"))

    def do(word, **more):
        script = "command(arguments[0], arguments[1]).then(arguments[2])"
        window.execute_async_script(script, word, more)
        return [line["words"] for line in game(window)["lines"]]

    window.execute_async_script("open({ players: ['person', 'person'] }).then(arguments[0])")
    for action in ("b2", "a1", "c3", "a3"):
        do("move", action=action)
    assert do("branch", ply=2, action="b1") == [["c3", "a3"]]
    for _ in range(3):  # the move that was made, again and again
        assert do("branch", ply=2, action="c3") == [["b1"], ["a3"]]
        assert do("branch", ply=2, action="b1") == [["c3"], ["c3", "a3"]]
    do("line", index=1)
    assert do("move", action="c1") == [["b1"]]


def test_a_link_leads_to_the_position(window, page):
    opened(window, page("tictactoe"))
    play(window)
    press(window, "files")
    made, link = game(window)["history"], one(window, "#link").get_attribute("value")
    assert len(made) == 2 and link.startswith(page("tictactoe"))
    assert "on this computer only. For anybody else" in text(window, "#link-words")
    window.get("about:blank")
    window.get(link)
    wait(window, lambda: game(window)["history"] == made, "the position of the link")
    assert "#" not in window.current_url


def test_a_game_from_a_position_is_refused(window, page, tmp_path):
    opened(window, page("tictactoe"))
    path, rules_of = tmp_path / "game.json", envs.make("tictactoe")
    path.write_text(json.dumps({"start": rules_of.to_record(rules_of.init()), "actions": []}))
    window.execute_script("document.querySelector('#share').showModal()")
    one(window, "#load").send_keys(str(path))
    wait(window, lambda: "loads games from their beginning" in text(window, "#toast"), "the refusal")


def test_the_lesson_has_its_pictures(window, page):
    opened(window, page("tictactoe"))
    press(window, "guide")
    drawn = "return [...document.querySelectorAll('#lesson-steps img')].map((x) => [x.alt, x.naturalWidth > 0])"
    wait(window, lambda: len(found := window.execute_script(drawn)) == 3 and all(x for _, x in found), "the pictures")
    titles = [alt for alt, _ in window.execute_script(drawn)]
    assert titles == ["Tic-tac-toe, O to move", "Tic-tac-toe, X wins", "Tic-tac-toe, draw"]
    assert text(window, "#lesson-title") == "How to play Tic-tac-toe"
    assert "Three of your signs in a row win" in text(window, "#lesson-steps")


def test_a_browser_that_cannot_compile_the_kernel_says_what_is_needed(tmp_path):
    (path,) = export(PlayOptions(env="tictactoe", opponent="uct:5", export=str(tmp_path / "game.html")))
    html = path.read_text()
    broken = html.replace('kernel = Uint8Array.from(atob("AGFzb', 'kernel = Uint8Array.from(atob("AGFzc')
    assert broken != html
    path.write_text(broken)
    with browser() as driver:
        driver.get(path.as_uri())
        wait(driver, lambda: text(driver, "#turn-title") == "There is no game", "the reason")
        assert "needs WebAssembly with SIMD" in text(driver, "#turn-words")
        again = "call('GET', 'games').catch((error) => arguments[0](error.message))"
        assert "needs WebAssembly with SIMD" in driver.execute_async_script(again)


def test_no_request_leaves_the_file(page):
    with browser() as driver:
        opened(driver, page("tictactoe"))
        script = "fetch('http://127.0.0.1:9/').then(() => arguments[0]('sent'), (e) => arguments[0](String(e)))"
        assert "Failed to fetch" in driver.execute_async_script(script)
        assert any("Content Security Policy" in entry["message"] for entry in driver.get_log("browser"))


def test_a_phone_shows_everything(page):
    with browser(width=390, height=844) as driver:
        for env in ("connect_four", "foq", "evopawness", "gomoku:size=9", "hex:size=5"):
            opened(driver, page(env))
            assert driver.execute_script("return document.documentElement.scrollWidth") <= 390
        opened(driver, page("connect_four"))
        play(driver)
        assert len(game(driver)["history"]) == 2
        assert "Red" in text(driver, "#turn-words")
