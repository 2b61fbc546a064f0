"""How to play, why a move is illegal, and what the end means, in real Chromium."""

import pytest
from browser import browser, click_cell, fresh, game, known_result, make, one, press, server, text, violations, wait
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys


@pytest.fixture(scope="module")
def address():
    with server("--env=tictactoe", "--opponent=person") as address:
        yield address


@pytest.fixture(scope="module")
def window():
    with browser(1280, 900) as driver:
        yield driver


def pictures(driver):
    wait(driver, lambda: driver.find_elements(By.CSS_SELECTOR, "#lesson-steps img"), "the pictures")
    script = "return [...document.querySelectorAll('#lesson-steps img')].map((x) => [x.alt, x.naturalWidth > 0])"
    wait(driver, lambda: all(there for _, there in driver.execute_script(script)), "drawn pictures")
    return [alt for alt, _ in driver.execute_script(script)]


def test_the_lesson_opens_closes_with_escape_and_gives_the_focus_back(window, address):
    fresh(window, address)
    one(window, "#guide").send_keys(Keys.ENTER)
    assert pictures(window) == ["Tic-tac-toe, O to move", "Tic-tac-toe, X wins", "Tic-tac-toe, draw"]
    assert text(window, "#lesson-title") == "How to play Tic-tac-toe"
    assert "Three of your signs in a row win" in text(window, "#lesson-steps")
    assert violations(window) == []
    window.switch_to.active_element.send_keys(Keys.ESCAPE)
    wait(window, lambda: not window.execute_script("return $('lesson').open"), "the page again")
    assert window.execute_script("return document.activeElement.id") == "guide"


@pytest.mark.parametrize("dark", [False, True])
def test_on_a_phone_the_lesson_scrolls_from_its_beginning(address, dark):
    with browser(390, 844, dark=dark) as phone:
        fresh(phone, address)
        press(phone, "guide")
        pictures(phone)
        box = (
            "const d = $('lesson'); return [d.scrollTop, d.scrollHeight > d.clientHeight, d.scrollWidth, d.clientWidth]"
        )
        top, scrolls, wide, room = phone.execute_script(box)
        assert (top, scrolls) == (0, True)
        assert wide <= room
        close = one(phone, "#lesson .main")
        phone.execute_script("arguments[0].scrollIntoView()", close)
        close.click()
        assert not phone.execute_script("return $('lesson').open")


def test_an_illegal_click_says_why_and_moves_nothing(window, address):
    make(window, next(way for way in fresh(window, address)["legal"] if way["action"] == "b2"))
    places = "return ['board', 'turn', 'moves', 'about-cell'].map((x) => JSON.stringify($(x).getBoundingClientRect()))"
    version, before = known_result(window)["version"], window.execute_script(places)
    click_cell(window, "b2")
    wait(window, lambda: text(window, "#why") == "b2 is taken", "the reason")
    assert one(window, "#why").is_displayed()
    assert violations(window) == []
    assert window.execute_script(places) == before
    assert game(window)["version"] == version
    click_cell(window, "a3")  # the next move takes it away
    wait(window, lambda: game(window)["version"] > version, "the move")
    assert text(window, "#why") == ""
    click_cell(window, "b2")
    wait(window, lambda: text(window, "#why") == "b2 is taken", "the reason")
    wait(window, lambda: text(window, "#why") == "", "its end")


def test_the_end_says_who_won_and_why(window, address):
    fresh(window, address)
    for name in ("a3", "a2", "b3", "b2", "c3"):
        click_cell(window, name)
        known_result(window)
    wait(window, lambda: game(window)["over"], "the end")
    assert text(window, "#turn-title") == "X wins"
    assert text(window, "#turn-words") == "X wins after 5 moves. Three in a row."
    assert all(one(window, f"#{name}").is_displayed() for name in ("rematch", "swap", "review"))
    click_cell(window, "c1")  # nobody is to move: there is no reason to give
    assert text(window, "#why") == ""


def test_the_end_says_what_it_means_for_the_person():
    """The only moves of this game: the person adds 3 and leaves the 1 that wins."""
    with server("--env=sum_to_100:target=4,largest=3", "--opponent=uct:50") as address, browser(1280, 900) as driver:
        start = fresh(driver, address)
        make(driver, next(way for way in start["legal"] if way["action"] == "+3"))
        wait(driver, lambda: game(driver)["over"], "the end")
        assert text(driver, "#turn-title") == "You lose"
        assert text(driver, "#turn-words") == "Second wins after 2 moves. The sum is 4."
        press(driver, "swap")
        wait(driver, lambda: game(driver)["players"] == ["uct:50", "person"], "the other side")
