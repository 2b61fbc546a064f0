"""Walking through a game: buttons, keys, other lines, the review as it goes."""

from __future__ import annotations

import pytest
from browser import browser, click_cell, fresh, game, known_result, make, one, press, server, text, wait
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import envs


@pytest.fixture(scope="module")
def address():
    with server("--env=tictactoe", "--opponent=person", "--num_simulations=64") as address:
        yield address


@pytest.fixture(scope="module")
def window():
    with browser(1280, 900) as driver:
        yield driver


MOVES = ("b2", "a1", "c3", "a3")


@pytest.fixture
def played(window, address):
    """Two people after four moves."""
    fresh(window, address)
    for action in MOVES:
        make(window, {"action": action, "cells": [action], "label": action})
    window.execute_script("document.activeElement.blur()")
    return window


def shown(driver) -> int:
    return driver.execute_script("return pictured().ply")


def at(driver, ply: int) -> None:
    wait(driver, lambda: shown(driver) == ply and driver.execute_script("return aim === null"), f"position {ply}")


def test_moves_stand_in_pairs(played):
    rows = [row.text.split() for row in played.find_elements(By.CSS_SELECTOR, "#moves li")]
    assert rows == [["1.", "b2", "a1"], ["2.", "c3", "a3"]]


def test_buttons_and_arrow_keys_walk(played):
    rules = envs.make("tictactoe")
    pictures = [rules.init()]
    for action in MOVES:
        pictures.append(rules.step(pictures[-1], rules.parse_action(action)))
    body = lambda key: one(played, "body").send_keys(key)
    for step, ply in (
        (lambda: press(played, "first"), 0),
        (lambda: press(played, "next"), 1),
        (lambda: body(Keys.ARROW_RIGHT), 2),
        (lambda: body(Keys.ARROW_LEFT), 1),
        (lambda: press(played, "last"), 4),
        (lambda: press(played, "back"), 3),
        (lambda: body(Keys.HOME), 0),
        (lambda: body(Keys.END), 4),
    ):
        step()
        at(played, ply)
        assert played.execute_script("return pictured().svg") == rules.svg(pictures[ply])
        now = [x.text for x in played.find_elements(By.CSS_SELECTOR, "#moves .now")]
        assert now == ([MOVES[ply - 1]] if ply else [])
    assert played.execute_script("return [$('next').disabled, $('last').disabled, $('back').disabled]") == [1, 1, 0]
    one(played, "body").send_keys(Keys.ARROW_LEFT * 3)  # faster than answers come
    at(played, 1)


def test_another_move_begins_another_line_and_both_stay(played):
    press(played, "first")
    at(played, 0)
    press(played, "next")
    at(played, 1)
    click_cell(played, "a1")  # the move that was made
    at(played, 2)
    assert game(played)["ply"] == 4
    click_cell(played, "b1")
    wait(played, lambda: game(played)["ply"] == 3, "another line")
    assert [ply["action"] for ply in game(played)["history"]] == ["b2", "a1", "b1"]
    other = played.find_elements(By.CSS_SELECTOR, "#other-lines button")
    assert [button.text for button in other] == ["3. c3 a3"]
    other[0].click()
    wait(played, lambda: game(played)["ply"] == 4, "the first line")
    assert [ply["action"] for ply in game(played)["history"]] == list(MOVES)
    assert [button.text for button in played.find_elements(By.CSS_SELECTOR, "#other-lines button")] == ["3. b1"]


def test_a_hint_stays_with_its_position(played):
    press(played, "hint")
    wait(played, lambda: played.find_elements(By.CSS_SELECTOR, "#board .advice"), "the hint")
    known_result(played)
    press(played, "back")
    at(played, 3)
    assert not played.find_elements(By.CSS_SELECTOR, "#board .advice")
    press(played, "next")
    at(played, 4)
    assert played.find_elements(By.CSS_SELECTOR, "#board .advice")


def test_buttons_of_moves_show_the_numbers_of_their_position(window, address):
    fresh(window, address)
    request = {"game": envs.make("sum_to_100").name, "players": ["person", "person"]}
    window.execute_script("open(arguments[0])", request)
    wait(window, lambda: game(window)["game"] == request["game"], "the other game")
    numbers = lambda: window.execute_script(
        "return [...document.querySelectorAll('#choices small:not(.more)')].map((x) => x.textContent)"
    )
    worth = "return known()?.report?.moves.length && !known().thinking"
    worth += " && known().legal.map((way) => `${known().report.moves.find((x) => x.action === way.action).visits}×`)"
    press(window, "analyse")
    one(window, "#overlay [data-show=visits]").click()
    for action in ("+3", "+1"):
        window.execute_script("command('move', { action: arguments[0] })", action)
        wait(window, lambda: window.execute_script(f"{worth} && view.history.at(-1)?.action") == action, "the analysis")
    present = numbers()
    press(window, "back")
    at(window, 1)
    assert numbers() != present  # not for a moment
    wait(window, lambda: numbers() == window.execute_script(worth), "the numbers of the earlier position")
    assert numbers() != present
    press(window, "present")
    at(window, 2)
    assert numbers() == present
    one(window, "#overlay [data-show=value]").click()
    press(window, "analyse")


def test_buttons_of_moves_stay_while_their_numbers_come_in(window, address):
    """A finger on a button that is drawn anew would press nothing."""
    fresh(window, address)
    limits = {"simulations": 4096, "seconds": 60}
    request = {"game": envs.make("sum_to_100").name, "players": ["person", "person"], **limits}
    window.execute_script("open(arguments[0])", request)
    wait(window, lambda: game(window)["game"] == request["game"], "the other game")
    window.execute_script("window.kept = $('choices').firstElementChild")
    press(window, "analyse")
    one(window, "#overlay [data-show=value]").click()
    number = lambda: window.execute_script("return kept.querySelector('small:not(.more)')?.textContent")
    window.execute_script("window.kept = $('choices').firstElementChild")
    wait(window, number, "a number")
    known_result(window)
    assert window.execute_script("return kept === $('choices').firstElementChild")
    press(window, "analyse")
    assert number() is None


def test_a_question_mark_lists_the_keys(played):
    one(played, "body").send_keys("?")
    wait(played, lambda: played.execute_script("return $('settings').open"), "the keys")
    listed = [node.text for node in played.find_elements(By.CSS_SELECTOR, "#key-list dt")]
    assert {"←", "→", "U", "H", "?", "Home"} <= set(listed)
    shortcuts = played.execute_script(
        "return [...document.querySelectorAll('[aria-keyshortcuts]')].map((x) => keyName(x.ariaKeyShortcuts))"
    )
    assert set(shortcuts) <= set(listed)  # every key that works is listed
    played.execute_script("$('settings').close()")


def test_a_review_fills_in_and_stops_when_asked(played):
    """O's answer by the edge is found before the rest has been searched for long."""
    played.execute_script("command('players', { players: view.players, simulations: 4096, seconds: 60 })")
    wait(played, lambda: game(played)["limits"]["simulations"] == 4096, "the limits")
    press(played, "review")
    wait(played, lambda: game(played)["thinking"], "the review under way")
    said = lambda: text(played, "#review-words")
    wait(played, lambda: "Move 0 of 4." in said() or "Move 1 of 4." in said(), "how far it is")
    press(played, "stop")
    wait(played, lambda: not game(played)["thinking"], "the end of the review")
    judged = len(game(played)["review"])
    assert judged < 4
    assert f"Stopped after {judged} of 4 moves." in said()
    assert judged or "No move lost" not in said()
    known_result(played)
