"""What the page shows of an analysis: few visits are pale, owners and the expected score, words for every number."""

from __future__ import annotations

import pytest
from browser import browser, fresh, game, known_result, make, one, press, server, text, violations, wait
from selenium.webdriver.common.by import By


def analysed(driver) -> dict:
    """The report of a finished analysis."""
    press(driver, "analyse")
    wait(driver, lambda: game(driver)["report"] and not game(driver)["thinking"], "the analysis")
    return game(driver)["report"]


def play(driver, *names: str) -> None:
    for name in names:
        make(driver, next(way for way in known_result(driver)["legal"] if way["action"] == name))


@pytest.mark.nightly
def test_owners_of_go():
    with server("--env=go:size=7", "--opponent=person", "--num_simulations=32") as address, browser() as driver:
        fresh(driver, address)
        play(driver, "D4", "C3")
        report = analysed(driver)
        score = report["score"]
        assert ("Black by" if score > 0 else "White by" if score < 0 else "even") in text(driver, "#verdict")
        one(driver, "#overlay [data-show=owners]").click()
        squares = driver.find_elements(By.CSS_SELECTOR, "#board .owner")
        assert len(squares) == sum(abs(x) >= 0.1 for x in report["owners"].values()) > 0
        fills = {square.get_attribute("fill") for square in squares}
        assert fills <= {"#24282d", "#ffffff"}  # Black's and White's
        assert not driver.find_elements(By.CSS_SELECTOR, "#board .plate")
        assert text(driver, "#overlay-words").startswith("Owners:")
        assert violations(driver) == []


def test_moves_with_few_visits_are_pale_and_words_explain_the_numbers():
    with server("--env=connect_four", "--opponent=person", "--num_simulations=64") as address, browser() as driver:
        fresh(driver, address)
        report = analysed(driver)
        few = [move["few"] for move in report["moves"]]
        assert any(few) and not few[0]
        rows = driver.find_elements(By.CSS_SELECTOR, "#lines tbody tr")
        assert ["few" in (row.get_attribute("class") or "") for row in rows] == few
        assert len(driver.find_elements(By.CSS_SELECTOR, "#board .plate.few")) == sum(few)
        assert not one(driver, "#overlay [data-show=owners]").is_displayed()
        for kind, word in (("visits", "Visits:"), ("prior", "Prior:"), ("value", "Chance:")):
            one(driver, f"#overlay [data-show={kind}]").click()
            assert text(driver, "#overlay-words").startswith(word)
            assert one(driver, f"#lines [data-show={kind}]").get_attribute("title").startswith(word)
        press(driver, "hint")
        wait(driver, lambda: game(driver)["hint"] and not game(driver)["thinking"], "the hint")
        assert game(driver)["hint"] == game(driver)["report"]["moves"][0]["action"]


def test_chances_add_up_to_a_hundred():
    with server("--env=foq_multi", "--opponent=person") as address, browser() as driver:
        fresh(driver, address)
        shown = lambda shares: driver.execute_script("return percentages(arguments[0])", shares)
        assert shown([0.525, 0.475]) == ["53%", "47%"]
        assert shown([1, 1, 1]) == ["34%", "33%", "33%"]
        assert shown([0.006, 0.497, 0.497]) == ["0%", "50%", "50%"]
