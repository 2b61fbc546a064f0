"""The page in real Chromium, as people use it: mouse, keyboard, touch, whole games, reloads, several windows."""

from __future__ import annotations

import json
import time

import pytest
from browser import browser, choose, click_cell, fresh, game, known_result, lit, make, one, press, server, text, wait
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import envs

SMALL = "foq:rows=5,cols=5"


@pytest.fixture(scope="module")
def foq():
    with server(f"--env={SMALL}", "--opponent=uct:16", "--num_simulations=32") as address:
        yield address


@pytest.fixture(scope="module")
def evopawness():
    with server("--env=evopawness:max_plies=24,history=1", "--opponent=random") as address:
        yield address


@pytest.fixture(scope="module")
def window():
    with browser() as driver:
        yield driver
        # Chromium reports answers of 404 and 409 too, which tests ask for.
        log = [entry["message"] for entry in driver.get_log("browser")]
        assert not [message for message in log if "Failed to load resource" not in message]


def start(driver, address: str, name: str, opponent: str, seat: str = "0"):
    """A new game by way of the dialog."""
    fresh(driver, address)
    press(driver, "new")
    wait(driver, lambda: one(driver, "#setup").is_displayed(), "the dialog")
    choose(driver, "pick-game", name)
    kind, _, number = opponent.partition(":")
    choose(driver, "pick-opponent", kind)
    if number:
        one(driver, "#pick-number").clear()
        one(driver, "#pick-number").send_keys(number)
    if opponent != "person":
        choose(driver, "pick-seat", seat)
    old = game(driver)["id"]
    press(driver, "start")
    wait(driver, lambda: game(driver)["id"] != old, "the new game")
    return known_result(driver)


def move(driver, action: str) -> dict:
    """Makes a move by mouse and waits for the answer; its first cell is lit."""
    way = next(way for way in known_result(driver)["legal"] if way["action"] == action)
    assert set(way["cells"][:1]) <= lit(driver)
    make(driver, way)
    return known_result(driver)


def replayed(view: dict):
    """The position that the rules reach by the moves on the page."""
    rules = envs.make(view["game"])
    state = rules.init()
    for ply in view["history"]:
        assert int(rules.player(state)) == ply["player"]
        assert bool(rules.mask(state)[rules.parse_action(ply["action"])])
        state = rules.step(state, rules.parse_action(ply["action"]))
    return rules, state


def test_before_the_game_is_there_the_page_says_why_and_takes_no_orders(window, foq):
    """The answer to the first call is held back here, as compiling large rules holds it back."""
    held = "window.answeredHere = () => new Promise((done) => { window.answer = done; });"
    fresh(window, foq)
    window.execute_script("sessionStorage.clear()")
    script = window.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": held})
    try:
        window.get(foq)
        wait(window, lambda: window.execute_script("return !!window.answer"), "the call")
        assert "rules are being compiled" in text(window, "#turn-words")
        enabled = [x for x in window.find_elements(By.CSS_SELECTOR, "nav button, main button") if x.is_enabled()]
        assert [x.get_attribute("id") for x in enabled] == ["theme", "keys"]
        keys = lambda *which: window.switch_to.active_element.send_keys(*which)
        keys("u", "r", "h", "a", "f", Keys.HOME, Keys.END, Keys.ARROW_LEFT, Keys.ARROW_RIGHT)
        window.execute_script("document.querySelector('.skip').focus()")
        keys(Keys.ENTER)
        keys(Keys.ARROW_LEFT, Keys.ENTER, Keys.ESCAPE, Keys.TAB)
        window.execute_script("answer({ ok: false, status: 400, json: async () => ({ error: 'It is broken.' }) })")
        wait(window, lambda: text(window, "#turn-title") == "There is no game", "the reason")
        assert text(window, "#turn-words") == "It is broken."
    finally:
        window.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    assert fresh(window, foq)["ply"] == 0
    assert one(window, "#flip").is_enabled() and one(window, "#guide").is_enabled()


def test_a_whole_game_of_foq_with_the_mouse(window, foq):
    view = fresh(window, foq)
    assert text(window, "#turn-title") == "Your move"
    assert "choose a highlighted place" in text(window, "#turn-words")
    assert lit(window) == {way["action"] for way in view["legal"]} != set()
    # From a5 the queen rips all squares up to d5, and that is shown before it is done.
    window.execute_script("preview(view.legal.find((way) => way.action === 'd5'))")
    wait(window, lambda: window.execute_script("return shown && shown.changed.length") == 4, "a preview")
    assert len(window.find_elements(By.CSS_SELECTOR, "#board .will")) == 4
    assert game(window)["ply"] == 0
    while not view["over"]:
        view = move(window, view["legal"][len(view["legal"]) // 2]["action"])
        assert window.find_elements(By.CSS_SELECTOR, "#board .last-to") or view["over"]
    rules, state = replayed(view)
    assert bool(rules.over(state))
    won = float(rules.rewards(state)[0]) > 0
    assert text(window, "#turn-title") == ("You win" if won else "You lose")
    assert not lit(window)
    press(window, "review")
    view = wait(window, lambda: (v := game(window))["review"] and not v["thinking"] and v, "the review")
    assert len(view["review"]) == view["ply"]
    assert one(window, "#review-words").is_displayed()
    assert one(window, "#graph svg").is_displayed()
    press(window, "undo")
    wait(window, lambda: not game(window)["over"], "the move taken back")
    assert known_result(window)["to_move"] == 0
    press(window, "redo")
    wait(window, lambda: game(window)["ply"] == view["ply"], "the move made again")


def test_tic_tac_toe_with_the_keyboard_alone(window, foq):
    start(window, foq, "tictactoe", "uct:400")
    keys = lambda *which: window.switch_to.active_element.send_keys(*which)
    # The link is out of sight until it has the focus, which the driver gives only to what is in sight.
    window.execute_script("document.querySelector('.skip').focus()")
    keys(Keys.ENTER)
    focused = lambda: window.execute_script("return document.activeElement.dataset.cell")
    keys(Keys.TAB)
    assert focused() == "a3"
    keys(Keys.ARROW_RIGHT)
    assert focused() == "b3"
    keys(Keys.ARROW_DOWN)
    assert focused() == "b2"
    keys(Keys.ENTER)
    wait(window, lambda: game(window)["ply"] >= 1, "the move")
    view = known_result(window)
    assert view["history"][0]["action"] == "b2"
    assert "Your move" in text(window, "#say")
    while not view["over"]:
        window.execute_script("document.querySelector('[data-cell][tabindex=\"0\"]').focus()")
        keys("h")
        wait(window, lambda: game(window)["hint"], "the hint")
        hint = known_result(window)["hint"]
        assert hint in text(window, "#turn-words")
        window.execute_script("cellOf(arguments[0]).focus()", hint)
        keys(Keys.ENTER)
        wait(window, lambda ply=view["ply"]: game(window)["ply"] > ply, "the move")
        view = known_result(window)
    rules, state = replayed(view)
    assert float(rules.rewards(state)[0]) >= 0  # with hints nobody loses at tic-tac-toe


def test_a_whole_game_of_evopawness(window, evopawness):
    """Pieces wake up by a button, move by two clicks, and say what they are."""
    view = fresh(window, evopawness)
    assert (view["to_move"], view["players"][1]) == (1, "person")
    assert "You are Black: choose a highlighted place." in text(window, "#turn-words")
    click_cell(window, "1,4")
    assert "Black soldier, asleep, 5 hp, 1 atk, step 1" in text(window, "#about-cell")
    assert one(window, "#choices button").text.split("\n") == ["Wake up", "3 mana"]
    click_cell(window, "1,2")
    assert "1,2" in text(window, "#about-cell")
    one(window, "#choices button").click()
    wait(window, lambda: game(window)["ply"] == 2, "the move and its answer")
    view = known_result(window)
    assert view["history"][0]["action"] == "a*1,2"
    assert "choose a highlighted piece, then where it goes" in text(window, "#turn-words")
    kinds = set()
    while not view["over"]:
        actions = [way["action"] for way in view["legal"]]
        new = [a for a in actions if a[0] not in kinds] or actions
        kinds.add(new[0][0])
        view = move(window, new[0])
    assert {"a", "m"} <= {ply["action"][0] for ply in view["history"] if ply["player"] == 1}
    rules, state = replayed(view)
    assert bool(rules.over(state))
    assert view["ply"] <= 24


def test_a_slow_click_is_a_click(window, foq):
    """What the move would change is on its way while the button is held down; the pressed cell must stay."""
    view = fresh(window, foq)
    click_cell(window, view["legal"][0]["cells"][0], held=1.0)
    wait(window, lambda: game(window)["ply"] >= 1, "the move")


def test_undo_hint_and_flip(window, foq):
    view = fresh(window, foq)
    view = move(window, view["legal"][0]["action"])
    assert view["ply"] == 2
    press(window, "undo")
    wait(window, lambda: game(window)["ply"] == 0, "the undo")
    press(window, "hint")
    wait(window, lambda: game(window)["hint"], "the hint")
    assert window.find_elements(By.CSS_SELECTOR, "#board .advice")
    press(window, "flip")
    assert "flipped" in (one(window, "#board").get_attribute("class") or "")
    assert known_result(window)["hint"] in {way["action"] for way in game(window)["legal"]}
    move(window, game(window)["hint"])  # the cell is elsewhere now, and still the one that is meant
    press(window, "flip")


def test_two_quick_undos_take_back_two_moves(window, foq):
    start(window, foq, "tictactoe", "person")
    for action in ("a1", "a2", "a3"):
        move(window, action)
    window.execute_script("$('undo').click(); $('undo').click()")
    wait(window, lambda: game(window)["ply"] == 1, "both undos")
    assert not one(window, "#toast").is_displayed()


def test_escape_frees_the_piece_that_the_mouse_has_chosen(window, evopawness):
    view = fresh(window, evopawness)
    click_cell(window, view["legal"][0]["cells"][0])
    assert "or Escape" in text(window, "#about-cell")
    assert window.execute_script("return path.length") == 1
    one(window, "body").send_keys(Keys.ESCAPE)
    assert window.execute_script("return path.length") == 0


def test_a_hint_and_a_pause_are_read_aloud(window, foq):
    start(window, foq, "tictactoe", "uct:16", "1")
    wait(window, lambda: game(window)["ply"] == 1, "the engine's move")
    known_result(window)
    press(window, "hint")
    wait(window, lambda: game(window)["hint"] and not game(window)["thinking"], "the hint")
    assert text(window, "#say") == f"Your move. Hint: {game(window)['hint']}."
    press(window, "undo")
    wait(window, lambda: game(window)["paused"], "the pause")
    assert text(window, "#say") == "X to move. The engine waits for you."


def test_each_game_is_in_the_dialog_once(window, foq):
    """The server plays another board than the usual one, so that the game is there with both."""
    fresh(window, foq)
    press(window, "new")
    wait(window, lambda: one(window, "#setup").is_displayed(), "the dialog")
    names = lambda: window.execute_script("return [...$('pick-game').options].map((x) => x.value)")
    before = names()
    choose(window, "pick-rows", "7")
    wait(window, lambda: "rows=7" in window.execute_script("return $('pick-game').value"), "the other board")
    after = names()
    assert len(set(after)) == len(after) == len(before)
    assert len(set(before) - set(after)) == 1
    press(window, "cancel")


def test_thinking_shows_how_far_it_is_and_can_be_stopped(window, foq):
    start(window, foq, SMALL, "person")
    window.execute_script("command('players', { players: view.players, simulations: 4096, seconds: 60 })")
    wait(window, lambda: game(window)["limits"]["simulations"] == 4096, "the limits")
    press(window, "analyse")
    reached = "const p = $('progress'); return p.checkVisibility() && p.value > 0 && p.value < 1 && p.value"
    wait(window, lambda: window.execute_script(reached), "some of the thought")
    assert "so far" in text(window, "#verdict")
    press(window, "stop")
    found = known_result(window)["report"]
    assert 0 < found["simulations"] < 4096
    assert not one(window, "#stop").is_displayed()
    assert f"after {found['simulations']} simulations" in text(window, "#verdict")
    one(window, "#overlay [data-show=prior]").click()
    shown = {node.text for node in window.find_elements(By.CSS_SELECTOR, "#board .number")}
    assert shown == {str(int(100 * move["prior"] + 0.5)) for move in found["moves"]}


def test_who_resigns_has_lost_and_may_take_it_back(window, foq):
    fresh(window, foq)
    press(window, "resign")
    one(window, "#asking button[value='']").click()
    assert not game(window)["over"]
    press(window, "resign")
    press(window, "agree")
    wait(window, lambda: game(window)["over"], "the end")
    assert text(window, "#turn-title") == "You lose"
    assert text(window, "#turn-words") == "Red wins after 0 moves. White resigned."
    assert not lit(window)
    press(window, "undo")
    wait(window, lambda: not game(window)["over"], "the game again")
    assert lit(window)


def test_what_is_pressed_stays_while_answers_come_in(window, foq):
    """Graph and review are drawn anew only where they show something else; what is said late of a game that was left is
    not heard."""
    view = fresh(window, foq)
    while view["ply"] < 4 and not view["over"]:
        view = move(window, view["legal"][0]["action"])
    press(window, "review")
    wait(window, lambda: (v := game(window))["review"] and not v["thinking"], "the review")
    here = "return [$('curve').firstChild, $('review-words').firstChild]"
    before = window.execute_script(here)
    old = window.execute_script("const { id, version } = view; return { id, version }")
    window.execute_script("return refresh()")
    assert window.execute_script(here) == before
    left = window.execute_script(
        "const left = { ...view }; return open({}).then(() => { take(left); return left.id; })"
    )
    assert left == old["id"] != game(window)["id"]
    assert game(window)["ply"] == 0


def test_analysis_shows_every_move_on_the_board(window, foq):
    start(window, foq, "tictactoe", "person")
    press(window, "analyse")
    wait(window, lambda: len(window.find_elements(By.CSS_SELECTOR, "#board .number")) == 9, "numbers on all cells")
    view = known_result(window)
    assert f"{view['report']['simulations']} simulations" in text(window, "#verdict")
    assert len(window.find_elements(By.CSS_SELECTOR, "#lines tbody tr")) == 9
    one(window, "#overlay [data-show=visits]").click()
    shown = {node.text for node in window.find_elements(By.CSS_SELECTOR, "#board .number")}
    assert shown == {str(move["visits"]) for move in view["report"]["moves"]}
    press(window, "analyse")
    assert not window.find_elements(By.CSS_SELECTOR, "#board .number")


def test_a_reload_in_the_middle_changes_nothing(window, foq):
    view = fresh(window, foq)
    view = move(window, view["legal"][1]["action"])
    window.refresh()
    again = known_result(window)
    assert (again["id"], again["version"], again["svg"]) == (view["id"], view["version"], view["svg"])
    # Nor does a server that has forgotten the game: the page brings it along.
    window.execute_async_script(
        "const done = arguments[arguments.length - 1]; call('DELETE', `sessions/${view.id}`).then(() => done())"
    )
    window.refresh()
    revived = known_result(window)
    assert revived["id"] != view["id"]
    assert revived["svg"] == view["svg"]


def test_two_windows_side_by_side(window, foq):
    first = fresh(window, foq)
    tab = window.current_window_handle
    window.switch_to.new_window("tab")
    try:
        second = fresh(window, foq)
        assert first["id"] != second["id"]
        second = move(window, second["legal"][0]["action"])
        window.switch_to.window(tab)
        assert known_result(window)["ply"] == 0
        first = move(window, first["legal"][-1]["action"])
        # The same game in both: what is done in one makes the other's position an old one.
        window.execute_script("call('POST', `sessions/${view.id}/resign`, { version: view.version })")
        asked = "return fetch(`api/sessions/${view.id}`).then((reply) => reply.json())"
        wait(window, lambda: window.execute_script(asked)["over"], "the game given up elsewhere")
        click_cell(window, first["legal"][0]["cells"][0])
        wait(window, lambda: one(window, "#toast").is_displayed(), "the refusal")
        assert "gone on" in text(window, "#toast")
        wait(window, lambda: game(window)["over"], "the new position")
        # So does a walk to an earlier position, which the server refuses for an old version.
        window.execute_script("view.version = 0; lookAt(0)")
        wait(window, lambda: game(window)["version"] > 0, "the present game")
    finally:
        for handle in window.window_handles:
            if handle != tab:
                window.switch_to.window(handle)
                window.close()
        window.switch_to.window(tab)


def test_a_resting_mouse_shows_no_preview_of_the_next_move(window, foq):
    """The square under it is legal again here because the move is taken back."""
    old = fresh(window, foq)["id"]
    window.execute_script("open({ game: view.game, players: ['person', 'person'] })")
    wait(window, lambda: game(window)["id"] != old, "the game of two people")
    click_cell(window, "d5")
    wait(window, lambda: game(window)["ply"] == 1, "the move")
    window.execute_script("$('undo').click()")
    wait(window, lambda: game(window)["ply"] == 0, "the position before")
    time.sleep(0.5)
    assert window.execute_script("return shown") is None
    box = "const b = shapeOf(cellOf('d5')).getBoundingClientRect();"
    x, y = window.execute_script(f"{box} return [b.x + b.width / 2, b.y + b.height / 2]")
    window.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x + 2, "y": y + 2})
    wait(window, lambda: window.execute_script("return shown && shown.label"), "the preview")


def test_a_link_carries_the_position(window, foq):
    view = fresh(window, foq)
    view = move(window, view["legal"][2]["action"])
    press(window, "files")
    link = one(window, "#link").get_attribute("value")
    assert link.startswith(f"{foq}/#play=")
    window.execute_script("$('share').close(); sessionStorage.clear()")
    window.get("about:blank")
    window.get(link)
    there = known_result(window)
    assert there["id"] != view["id"]
    assert there["svg"] == view["svg"]
    assert there["history"] == view["history"]
    assert "#" not in window.current_url


@pytest.mark.parametrize("damage", ["W10", "x", ""])
def test_a_damaged_link_keeps_the_game(window, foq, damage):
    """W10 is an empty list."""
    view = fresh(window, foq)
    window.execute_script(f"location.hash = '#play={damage}'")
    wait(window, lambda: "no game" in text(window, "#toast"), "the message")
    assert game(window)["id"] == view["id"]
    assert "#" not in window.current_url


def test_a_link_may_end_with_what_a_mail_program_added(window, foq):
    view = fresh(window, foq)
    view = move(window, view["legal"][1]["action"])
    press(window, "files")
    link = one(window, "#link").get_attribute("value")
    window.execute_script("$('share').close(); sessionStorage.clear()")
    window.get("about:blank")
    window.get(link + ").")
    assert known_result(window)["history"] == view["history"]


def test_a_reviewed_game_can_be_looked_at_move_by_move(window, foq):
    """Earlier positions are those that were on the board, and the review stays."""
    view = fresh(window, foq)
    pictures = [view["svg"]]
    view = move(window, view["legal"][0]["action"])
    view = move(window, view["legal"][0]["action"])
    moves = len(view["history"])
    press(window, "review")
    wait(window, lambda: (v := game(window))["review"] and not v["thinking"], "the review")
    first = window.find_elements(By.CSS_SELECTOR, "#moves button")[0]
    first.click()
    wait(window, lambda: text(window, "#turn-title") == "After move 1", "the position after the first move")
    rules = envs.make(view["game"])
    after = rules.step(rules.init(), rules.parse_action(view["history"][0]["action"]))
    assert window.execute_script("return past.svg") == rules.svg(after) != pictures[0]
    marked = window.find_elements(By.CSS_SELECTOR, "#review-words button")
    assert len(marked) == sum(bool(one["mark"]) for one in game(window)["review"])
    for button, one_move in zip(marked, [x for x in game(window)["review"] if x["mark"]], strict=True):
        button.click()
        wait(window, lambda m=one_move: window.execute_script("return past?.better") == m["best"], "the better move")
        assert one_move["best"] in text(window, "#turn-words")
        assert window.find_elements(By.CSS_SELECTOR, "#board .advice")
    press(window, "present")
    wait(window, lambda: window.execute_script("return past === null"), "the game")
    assert lit(window)
    assert len(game(window)["history"]) == moves
    assert game(window)["review"]


def test_an_earlier_position_is_analysed_apart_from_the_game(window, foq):
    """What stands beside an earlier position is of that one, and nothing there acts on the present one."""
    start(window, foq, "tictactoe", "person")
    press(window, "analyse")
    for ply, action in enumerate(("a3", "b1", "b3", "a1", "c3"), 1):
        window.execute_script("command('move', { action: arguments[0] })", action)
        wait(window, lambda n=ply: game(window)["ply"] == n, "the move")
        if ply == 2:  # seven moves are left
            wait(window, lambda: len(window.find_elements(By.CSS_SELECTOR, "#lines tbody tr")) == 7, "the analysis")
            window.find_elements(By.CSS_SELECTOR, "#moves button")[0].click()
            wait(window, lambda: text(window, "#turn-title") == "After move 1", "the position after the first move")
            disabled = [word for word in ("undo", "redo", "hint", "resign") if not one(window, f"#{word}").is_enabled()]
            assert disabled == ["undo", "redo", "hint", "resign"]
            wait(window, lambda: len(window.find_elements(By.CSS_SELECTOR, "#lines tbody tr")) == 8, "its analysis")
            press(window, "present")
            wait(window, lambda: len(window.find_elements(By.CSS_SELECTOR, "#lines tbody tr")) == 7, "the present one")
    over = known_result(window)
    assert over["over"]
    assert "The game is over" in text(window, "#verdict")
    window.find_elements(By.CSS_SELECTOR, "#moves button")[3].click()
    there = "return past?.ply === 4 && study?.view?.report && !study.view.thinking && study.view"
    found = wait(window, lambda: window.execute_script(there), "the analysis of a finished game")
    assert found["report"]["moves"][0]["action"] == "c3"  # which wins at once
    assert text(window, "#verdict").startswith("X: ")
    worth = window.execute_script("return percent(study.view.report.values[0])")
    assert f"X {worth}" in text(window, "#chance-words")
    places = "[...document.querySelectorAll('#board .plate')].map((x) => x.outerHTML.match(/cx.*? r/)[0])"
    assert len(set(window.execute_script(f"return {places}"))) == 5  # each on its own cell
    press(window, "present")
    assert game(window)["version"] == over["version"]
    # A click in the graph goes to the move under it, which is marked.
    press(window, "review")
    wait(window, lambda: (v := game(window))["review"] and not v["thinking"], "the review")
    assert "100%" in text(window, "#curve")
    at = "const b = document.querySelectorAll('#curve .grid')[0].getBoundingClientRect(); return [b.x, b.y, b.width]"
    window.execute_script("document.querySelector('#curve').scrollIntoView()")
    x, y, width = window.execute_script(at)
    for kind in ("mousePressed", "mouseReleased"):
        event = {"type": kind, "x": x + width * 0.41, "y": y - 5, "button": "left", "clickCount": 1}
        window.execute_cdp_cmd("Input.dispatchMouseEvent", event)
    wait(window, lambda: text(window, "#turn-title") == "After move 2", "the move that was clicked")
    seen = window.execute_script("return document.querySelector('#curve .seen').getBoundingClientRect().x")
    assert abs(seen - (x + width * 0.4)) < 2
    press(window, "analyse")


def test_any_number_of_random_games_and_several_people(window, foq):
    view = start(window, foq, "tictactoe", "uct:37")
    assert view["players"] == ["person", "uct:37"]
    press(window, "new")
    wait(window, lambda: one(window, "#pick-number").is_displayed(), "the dialog")
    number = one(window, "#pick-number")
    assert number.get_attribute("value") == "37"
    for node in window.find_elements(By.CSS_SELECTOR, "#setup select, #setup input"):
        assert not node.is_displayed() or node.accessible_name, node.get_attribute("outerHTML")
    number.send_keys("37", Keys.ENTER)  # 3737
    wait(window, lambda: game(window)["id"] != view["id"], "another game, by the key alone")
    view = known_result(window)
    assert view["players"] == ["person", "uct:3737"]
    press(window, "new")
    wait(window, lambda: one(window, "#pick-number").is_displayed(), "the dialog")
    window.execute_script("$('pick-number').value = 4097")
    press(window, "keep")
    assert window.execute_script("return $('setup').open")  # until the number is right
    window.execute_script("$('pick-number').value = 4096")
    press(window, "keep")
    wait(window, lambda: game(window)["players"] == ["person", "uct:4096"], "the same game with another opponent")
    assert game(window)["id"] == view["id"]
    view = start(window, foq, envs.make("foq_multi").name, "random", "0,2")
    assert view["players"] == ["person", "random", "person"]


def test_files_and_what_is_none(window, foq, tmp_path):
    """A game goes into a file and comes back; what holds no game says so inside the dialog and changes nothing."""
    view = fresh(window, foq)
    view = move(window, view["legal"][2]["action"])
    window.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    press(window, "files")
    saved = {}
    for kind in ("game", "position"):
        press(window, f"save-{kind}")
        saved[kind] = tmp_path / f"foq-{kind}-2.json"
        wait(window, lambda kind=kind: json.loads(saved[kind].read_text()), "the file")
    assert json.loads(saved["game"].read_text())["actions"] == [ply["action"] for ply in view["history"]]
    window.execute_script("$('share').close()")
    illegal = json.dumps({"game": view["game"], "actions": [ply["action"] for ply in view["history"][:1]] * 2})
    files = {
        "null.json": ("null", "null.json holds no game"),
        "list.json": ("[1]", "list.json holds no game"),
        "broken.json": ("{", "expected a file that Save the game has written"),
        "other.json": ('{"format": "x", "actions": 7}', "other.json was not opened: "),
        "twice.json": (
            illegal,
            f"twice.json was not opened: move 2: {view['history'][0]['action']} is not legal there",
        ),
        "go.sgf": ("(;GM[1]SZ[9];B[aa])", "python play.py --env=go:size=9 --ui=text"),
    }
    press(window, "files")
    words = text(window, "#link-words")
    assert words.startswith("Flight of Queen") and "after 2 moves. It opens on this computer only" in words
    for name, (content, message) in files.items():
        (tmp_path / name).write_text(content)
        window.execute_script("$('toast').hidden = true")
        one(window, "#load").send_keys(str(tmp_path / name))
        wait(window, lambda: window.execute_script("return !$('toast').hidden"), "the message")
        assert message in text(window, "#toast")
        assert window.execute_script("return $('share').contains($('toast'))")
        assert game(window)["id"] == view["id"]
    one(window, "#load").send_keys(str(saved["game"]))
    wait(window, lambda: game(window)["id"] != view["id"], "the game from the file")
    loaded = known_result(window)
    assert loaded["history"] == view["history"]
    assert not window.execute_script("return $('share').open")
    press(window, "files")
    one(window, "#load").send_keys(str(saved["position"]))
    wait(window, lambda: game(window)["id"] != loaded["id"], "the position from the file")
    there = known_result(window)
    assert (there["history"], there["to_move"], there["status"]) == ([], view["to_move"], view["status"])


def test_keys_work_wherever_the_focus_is(window, foq):
    view = fresh(window, foq)
    view = move(window, view["legal"][0]["action"])
    window.execute_script("document.activeElement.blur()")
    one(window, "body").send_keys("u")
    wait(window, lambda: game(window)["ply"] == 0, "the undo")
    one(window, "body").send_keys("h")
    wait(window, lambda: game(window)["hint"], "the hint")
    assert one(window, "#undo").get_attribute("aria-keyshortcuts") == "u"
    press(window, "new")
    wait(window, lambda: window.execute_script("return $('setup').open"), "the dialog")
    one(window, "body").send_keys("f")  # not while somebody is asked something
    assert "flipped" not in (one(window, "#board").get_attribute("class") or "")
    window.execute_script("$('setup').close()")


def test_on_a_phone_a_tap_shows_and_a_second_one_plays(foq):
    with browser(360, 740, dark=True) as phone:
        phone.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
        view = fresh(phone, foq)
        assert phone.execute_script("return document.documentElement.scrollWidth <= innerWidth")
        assert phone.execute_script("return svg().getBoundingClientRect().bottom <= innerHeight")
        cell = view["legal"][0]["cells"][0]
        tap(phone, cell)
        wait(phone, lambda: "Tap again" in text(phone, "#about-cell"), "the preview")
        assert game(phone)["ply"] == 0
        tap(phone, cell)
        wait(phone, lambda: game(phone)["ply"] == 2, "the move and its answer")


def test_on_a_phone_every_cell_says_what_it_is(evopawness):
    with browser(360, 740, dark=True) as phone:
        phone.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
        fresh(phone, evopawness)
        tap(phone, "7,2")  # the other side's
        wait(phone, lambda: "White soldier, asleep" in text(phone, "#about-cell"), "its words")
        assert "woken up, for 3 mana" in text(phone, "#about-cell")
        assert phone.execute_script("return document.documentElement.scrollWidth <= innerWidth")
        tap(phone, "4,4")
        wait(phone, lambda: "every five turns a rune comes here, +2 hp" in text(phone, "#about-cell"), "of a rune")
        tap(phone, "1,4")
        wait(phone, lambda: "Choose what it does." in text(phone, "#about-cell"), "the choice")  # and no key is named
        phone.execute_script("cellOf('1,4').focus()")
        keys = lambda key: phone.switch_to.active_element.send_keys(key)
        keys(Keys.ARROW_DOWN)
        assert phone.execute_script("return document.activeElement.dataset.cell") == "4,4"
        keys(Keys.ARROW_DOWN)
        assert phone.execute_script("return document.activeElement.dataset.cell") == "7,4"
        assert "White soldier" in (phone.switch_to.active_element.accessible_name or "")
        # The numbers of a piece can be read, whatever is drawn at its side is light on the dark page.
        size = "const t = cellOf('1,4').querySelectorAll(':scope > text'); return t[0].getBoundingClientRect().height"
        assert phone.execute_script(size) >= 11
        assert "invert" in phone.execute_script("return getComputedStyle(document.querySelector('.key')).filter")
        # Reading order is the order of sight, and the tools are of one row and one size.
        tops = "return ['board', 'turn', 'moves', 'analyse'].map((x) => $(x).getBoundingClientRect().top)"
        assert phone.execute_script(tops) == sorted(phone.execute_script(tops))
        boxes = "return [...document.querySelectorAll('.tools button')].map((x) => x.getBoundingClientRect().toJSON())"
        tools = phone.execute_script(boxes)
        assert len({box["top"] for box in tools}) == 1
        assert max(box["width"] for box in tools) - min(box["width"] for box in tools) < 1
        press(phone, "new")
        wait(phone, lambda: one(phone, "#setup").is_displayed(), "the dialog")
        ends = "return ['cancel', 'keep', 'start'].map((x) => $(x).getBoundingClientRect().top)"
        assert len(set(phone.execute_script(ends))) == 1
        assert phone.execute_script("return $('pick-simulations').clientWidth") > 160


def tap(driver, cell: str) -> None:
    box = "const b = shapeOf(cellOf(arguments[0])).getBoundingClientRect();"
    x, y = driver.execute_script(f"{box} return [b.x + b.width / 2, b.y + b.height / 2]", cell)
    driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


# Luminance and contrast of WCAG 2.2 for what is written on the page, over the first background that is not transparent.
CONTRAST = """
const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
const luminance = (c) => c.slice(0, 3).map((x) => (x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
  .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
const ground = (node) => { for (; node; node = node.parentElement) {
  const c = rgb(getComputedStyle(node).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } };
return [...document.querySelectorAll("h1, h2, p, button:not(:disabled), th, td, li, small, figcaption, label, select")]
  .filter((node) => node.textContent.trim() && node.offsetParent && !node.closest(".unseen"))
  .map((node) => { const [a, b] = [luminance(rgb(getComputedStyle(node).color)), luminance(ground(node))];
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), node.id || node.textContent.slice(0, 20)]; })
  .filter(([ratio]) => ratio < 4.5);
"""


def test_everything_has_a_name_and_can_be_read_in_light_and_dark(window, foq):
    view = fresh(window, foq)
    move(window, view["legal"][0]["action"])
    press(window, "analyse")
    wait(window, lambda: window.find_elements(By.CSS_SELECTOR, "#lines tbody tr"), "lines")
    known_result(window)
    for theme in ("light", "dark"):
        window.execute_script("theme(arguments[0])", theme)
        wait(window, lambda: window.execute_script(CONTRAST) == [], "enough contrast once the colours have changed")
    for node in window.find_elements(By.CSS_SELECTOR, "button, select, input, [role=button], [role=region], progress"):
        if node.is_displayed():
            assert node.accessible_name, node.get_attribute("outerHTML")
    fetched = window.execute_script("return performance.getEntriesByType('resource').map((x) => x.name)")
    assert fetched and all(name.startswith(foq) for name in fetched)
