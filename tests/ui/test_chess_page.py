"""A whole game of chess, by two people with the mouse, in real Chromium."""

import pytest
from browser import browser, click_cell, fresh, game, known_result, lit, one, press, server, text, violations, wait
from selenium.webdriver.common.by import By

# Lasker's trap in the Albin countergambit: Black promotes to a knight, castles and mates.
TRAP = (
    "d2d4 d7d5 c2c4 e7e5 d4e5 d5d4 e2e3 f8b4 c1d2 d4e3 d2b4 e3f2 e1e2 f2g1n e2e1 d8h4 e1d2 b8c6 d1e2 c8e6 b1c3 "
    "e8c8 d2e3 h4d4"
)


@pytest.mark.nightly
def test_a_whole_game_of_chess_with_the_mouse():
    with server("--env=chess", "--opponent=person") as address, browser(1280, 900) as driver:
        fresh(driver, address)
        assert text(driver, "#turn-title") == "White to move"
        for ply, name in enumerate(TRAP.split(), 1):
            start, end, sign = name[:2], name[2:4], name[4:]
            assert start in lit(driver)
            click_cell(driver, start)
            wait(driver, lambda end=end: end in lit(driver), f"{name} to be possible")
            click_cell(driver, end)
            if sign:
                words = {button.text for button in driver.find_elements(By.CSS_SELECTOR, "#choices button")}
                assert words == {"f2g1\nqueen", "f2g1r\nrook", "f2g1b\nbishop", "f2g1n\nknight"}
                one(driver, f"#choices button[data-action='{name}']").click()
            wait(driver, lambda ply=ply: game(driver)["ply"] == ply, name)
            known_result(driver)
            assert driver.execute_script("return svg().lastElementChild.matches('.marks')")  # nothing hides them
            marked = driver.execute_script("return document.querySelectorAll('#board .last, #board .last-to').length")
            assert marked == (4 if name == "e8c8" else 2)  # the rook moves too
        end = game(driver)
        assert [move["words"] for move in end["history"]] == TRAP.split()
        assert (end["over"], end["result"]) == (True, [-1, 1])
        assert text(driver, "#turn-title") == "Black wins"
        assert text(driver, "#turn-words") == "Black wins after 24 moves. Checkmate."
        assert violations(driver) == []
        press(driver, "guide")
        wait(driver, lambda: len(driver.find_elements(By.CSS_SELECTOR, "#lesson-steps img")) == 4, "the lesson")
        assert text(driver, "#lesson-title") == "How to play Chess"


def test_an_illegal_move_of_chess_is_explained():
    with server("--env=chess:size=5", "--opponent=person") as address, browser(1280, 900) as driver:
        fresh(driver, address)
        click_cell(driver, "a5")
        wait(driver, lambda: text(driver, "#why") == "the Black rook is not yours", "the reason")
        click_cell(driver, "c1")
        wait(driver, lambda: text(driver, "#why") == "the bishop on c1 cannot move", "another reason")
        click_cell(driver, "b1")
        click_cell(driver, "b3")
        wait(driver, lambda: text(driver, "#why") == "the knight cannot go from b1 to b3", "the last reason")
