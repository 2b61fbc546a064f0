"""The page as it is seen and touched: nothing jumps, everything can be read, named, hit and turned off."""

from __future__ import annotations

import pytest
from browser import browser, click_cell, fresh, game, known_result, make, one, press, server, text, violations, wait
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys


@pytest.fixture(scope="module")
def address():
    with server("--env=tictactoe", "--opponent=random", "--num_simulations=16") as address:
        yield address


@pytest.fixture(scope="module")
def window():
    with browser(1280, 900) as driver:
        yield driver


def play(driver) -> None:
    make(driver, known_result(driver)["legal"][0])
    known_result(driver)


def analyse(driver) -> None:
    press(driver, "analyse")
    wait(driver, lambda: driver.find_elements(By.CSS_SELECTOR, "#lines tbody tr"), "an analysis")
    known_result(driver)


def review(driver) -> None:
    press(driver, "review")
    wait(driver, lambda: game(driver)["review"] and not game(driver)["thinking"], "a review")


PLACES = """return ['board', 'turn', 'undo', 'moves', 'review', 'analyse'].map((name) => {
  const box = document.getElementById(name).getBoundingClientRect();
  return [name, box.x, box.y, box.width, box.height].map((x) => (x.toFixed ? x.toFixed(1) : x)).join(' ');
})"""


def test_nothing_jumps(window, address):
    """Moves, thinking, chances, hints, the analysis and earlier positions move neither the board nor a card."""
    fresh(window, address)
    places = window.execute_script(PLACES)
    seen = []
    for step in (
        lambda: play(window),
        lambda: analyse(window),
        lambda: press(window, "back"),
        lambda: press(window, "present"),
        lambda: press(window, "hint"),
        lambda: play(window),
        lambda: press(window, "analyse"),
    ):
        step()
        known_result(window)
        seen.append(window.execute_script(PLACES))
    assert seen == [places] * len(seen)


def test_thinking_moves_no_button(window, address):
    """A thought that begins or ends while the mouse is on its way must not take the button from under it."""
    fresh(window, address)
    play(window)
    press(window, "back")
    known_result(window)
    place = "const b = $('present').getBoundingClientRect(); return [b.x, b.y, b.width]"
    seen = [window.execute_script(f"$('thinking').hidden = {hidden}; {place}") for hidden in ("true", "false")]
    assert seen[0] == seen[1]
    assert seen[0][2] > 0  # the button is there


def test_a_mouse_leaves_no_focus_ring(window, address):
    fresh(window, address)
    press(window, "flip")
    press(window, "flip")
    click_cell(window, "b2")
    known_result(window)
    assert window.execute_script("return document.activeElement === document.body")
    assert not window.find_elements(By.CSS_SELECTOR, "#board .focus")


def test_players_have_the_colours_of_their_pieces(window, address):
    fresh(window, address)
    play(window)
    analyse(window)
    colours = "return [...document.querySelectorAll('#chance-bar i')].map((x) => getComputedStyle(x).backgroundColor)"
    assert window.execute_script(colours) == ["rgb(36, 40, 45)", "rgb(185, 50, 43)"]  # X is dark, O is red
    play(window)
    known_result(window)
    wait(window, lambda: one(window, "#graph").is_displayed(), "the graph")
    fills = [node.get_attribute("fill") for node in window.find_elements(By.CSS_SELECTOR, "#curve polygon")]
    assert fills == ["#24282d", "#b9322b"]
    press(window, "analyse")


def test_moves_are_animated_unless_that_is_turned_off(window, address):
    """The new position is drawn at once; only its pieces fade or slide in."""
    fresh(window, address)
    count = "animations = 0; const own = Element.prototype.animate; Element.prototype.animate = function (...x) "
    window.execute_script(f"window.{count} {{ animations++; return own.apply(this, x); }}")
    play(window)
    assert window.execute_script("return animations") == 2  # X's stone and O's
    press(window, "keys")
    one(window, "#moving").click()
    one(window, "#settings .main").click()
    play(window)
    assert window.execute_script("return animations") == 2
    window.refresh()
    known_result(window)
    assert not window.execute_script("return $('moving').checked")  # and that is remembered


def test_keys_of_one_character_can_be_turned_off(window, address):
    fresh(window, address)
    flip = lambda: (one(window, "body").send_keys("f"), one(window, "#flip").get_attribute("aria-pressed"))[1]
    assert [flip(), flip()] == ["true", "false"]
    press(window, "keys")
    one(window, "#single-keys").click()
    one(window, "#settings .main").click()
    window.execute_script("document.activeElement.blur()")
    assert flip() == "false"
    window.refresh()
    play(window)
    assert flip() == "false"  # and that is remembered
    assert one(window, "#flip").get_attribute("aria-keyshortcuts") is None
    assert not one(window, "#flip").get_attribute("title")
    one(window, "body").send_keys("?")
    assert not window.execute_script("return $('settings').open")
    one(window, "body").send_keys(Keys.HOME)
    wait(window, lambda: window.execute_script("return past?.ply") == 0, "the first position")
    press(window, "keys")
    one(window, "#single-keys").click()
    one(window, "#settings .main").click()
    window.execute_script("document.activeElement.blur()")
    assert flip() == "true"


def test_the_page_asks_in_its_own_dialog(window, address):
    fresh(window, address)
    press(window, "resign")
    assert text(window, "#question") == "Resign this game?"
    window.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not window.execute_script("return $('asking').open")
    assert not game(window)["over"]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", [(1280, 900), (390, 844)])
def test_axe_finds_nothing(address, size, dark):
    with browser(*size, dark=dark) as driver:
        fresh(driver, address)
        screens = {"start": violations(driver)}
        play(driver)
        play(driver)
        analyse(driver)
        review(driver)
        screens["analysis"] = violations(driver)
        press(driver, "back")
        wait(driver, lambda: driver.execute_script("return past !== null"), "an earlier position")
        screens["past"] = violations(driver)
        for opener, dialog in (("new", "setup"), ("files", "share"), ("guide", "lesson"), ("keys", "settings")):
            press(driver, opener)
            wait(driver, lambda name=dialog: driver.execute_script("return $(arguments[0]).open", name), dialog)
            screens[dialog] = violations(driver)
            driver.execute_script("$(arguments[0]).close()", dialog)
        assert screens == {name: [] for name in screens}
        driver.execute_script("$('resign').textContent = ''")
        assert any("button-name" in words for words in violations(driver))  # and it does look


def test_dark_is_dark_by_the_system_and_by_choice(address):
    """The style has the dark colours twice, so that a page is dark before its scripts run."""
    with browser(dark=True) as driver:
        fresh(driver, address)
        colours = """theme(arguments[0]);
            const names = [...document.styleSheets[0].cssRules[0].style].filter((name) => name.startsWith('--'));
            const style = getComputedStyle(document.documentElement);
            return [...names, 'color-scheme'].map((name) => style.getPropertyValue(name))"""
        system, light, dark = (driver.execute_script(colours, name) for name in ("", "light", "dark"))
        assert system == dark
        assert len(dark) > 10 and all(one != other for one, other in zip(light, dark, strict=True))


def test_what_is_pressed_can_be_told_in_high_contrast(address):
    with browser() as driver:
        features = [{"name": "forced-colors", "value": "active"}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        fresh(driver, address)
        play(driver)
        analyse(driver)
        ground = "return getComputedStyle(document.querySelector(arguments[0])).backgroundColor"
        for pressed, other in (("#analyse", "#review"), ("#moves .now", "#moves button")):
            assert driver.execute_script(ground, pressed) != driver.execute_script(ground, other)
        parts = "return [...document.querySelectorAll('#chance-bar i')].map((x) => getComputedStyle(x).backgroundColor)"
        assert len(set(driver.execute_script(parts))) == 2


def test_fingers_hit_what_they_aim_at(address):
    """Targets are at least 24 x 24 pixels (WCAG 2.2, 2.5.8), and the page is no wider than the phone."""
    with browser(390, 844) as phone:
        fresh(phone, address)
        play(phone)
        play(phone)
        analyse(phone)
        review(phone)
        small = """return [...document.querySelectorAll('button, select, input:not(.unseen), [role=button]')]
            .filter((node) => node.checkVisibility())
            .map((node) => [node.outerHTML.slice(0, 80), node.getBoundingClientRect()])
            .filter(([, box]) => Math.min(box.width, box.height) < 24).map(([words]) => words)"""
        assert phone.execute_script(small) == []
        assert phone.execute_script("return document.documentElement.scrollWidth") <= 390


def test_small_screens_show_everything(address):
    """Nothing is cut off at 320 pixels (WCAG 2.2, 1.4.10), and a phone on its side has as large a board as upright."""
    outside = """const right = (node) => node.getBoundingClientRect().right;
        return [...document.querySelectorAll('button, p, svg')]
        .filter((node) => node.checkVisibility() && right(node) > right(node.closest('.card') || document.body))
        .map((node) => node.outerHTML.slice(0, 80))"""
    board = "const b = svg().getBoundingClientRect(); return [b.width, b.height]"
    with browser(320, 640) as phone:
        fresh(phone, address)
        play(phone)
        play(phone)
        analyse(phone)
        review(phone)
        phone.execute_script("$('overlay').querySelector('[data-show=owners]').hidden = false")  # as in Go
        assert phone.execute_script(outside) == []
        assert phone.execute_script("return document.documentElement.scrollWidth") <= 320
        upright = phone.execute_script(board)
        metrics = {"width": 740, "height": 360, "deviceScaleFactor": 1, "mobile": True}
        phone.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        assert min(phone.execute_script(board)) >= min(upright) - 1
        assert phone.execute_script(board)[1] <= 360  # and all of it can be in sight
