"""How to play, and why: lessons of all games, reasons for illegal moves and for the ends of games."""

import dataclasses
import html
import re

import pytest

import envs
from agents.serve.views import lesson, look_at
from envs import check, saved

OWN = [name for name in envs.list() if not name.startswith("pgx:")]


@pytest.mark.parametrize("name", OWN)
def test_lessons_are_short_and_can_be_drawn(name):
    """`lesson` refuses illegal moves."""
    game = envs.make(name)
    steps = lesson(game)
    assert len(steps) == len(game.view.lesson) >= 2
    for step in steps:
        assert 20 <= len(step["text"]) <= 300
        assert step["svg"].startswith("<svg")
    assert len({step["text"] for step in steps}) == len(steps)


def test_a_picture_is_that_of_the_last_position():
    game = envs.make("tictactoe")
    cells = re.findall(r"<title>(\w\d): (\w+)</title>", lesson(game)[1]["svg"])
    taken = {name: html.unescape(words) for name, words in cells if words != "empty"}
    assert taken == {"b2": "X", "a3": "X", "c1": "X", "a2": "O", "b3": "O"}


def test_an_illegal_move_in_a_lesson_is_named():
    game = envs.make("tictactoe")
    steps = (dataclasses.replace(game.view.lesson[0], moves=("b2", "b2")),)
    wrong = dataclasses.replace(game, view=dataclasses.replace(game.view, lesson=steps))
    with pytest.raises(ValueError, match="move 2: 'b2' is not legal"):
        lesson(wrong)
    rule = "lesson is short and its moves are legal"
    assert "move 2: 'b2' is not legal here: b2 is taken" in (
        check.broken(rule, check.RULES[rule], check.Bench(wrong)) or ""
    )
    assert check.broken(rule, check.RULES[rule], check.Bench(game)) is None


def test_without_a_lesson_there_are_the_rules_or_nothing():
    game = envs.make("tictactoe")
    bare = lambda about: dataclasses.replace(game, view=dataclasses.replace(game.view, lesson=(), about=about))
    assert lesson(bare("Tic: who has three wins.")) == ({"text": "Who has three wins.", "svg": ""},)
    assert lesson(bare("Tic")) == ()


ILLEGAL = [  # worked out by hand: game, moves made, illegal move, reason
    ("tictactoe", "b2", "b2", "b2 is taken"),
    ("connect_four", "4 4 4 4 4 4", "4", "column 4 is full"),
    ("gomoku", "h8", "h8", "h8 is taken"),
    ("hex", "c3", "c3", "c3 is taken"),
    ("hex", "", "swap", "a swap can only answer the first stone"),
    ("hex", "c3 d4", "swap", "a swap can only answer the first stone"),
    ("othello", "", "d4", "d4 is taken"),
    ("othello", "", "a1", "a1 would enclose no disc"),
    ("othello", "", "pass", "a pass is only allowed if no disc can be placed"),
    ("sum_to_100", "+10 " * 9 + "+5", "+6", "+6 would go beyond 100"),
    ("foq", "", "h1", "h1 is attacked by Red"),
    ("foq", "", "i8", "i8 is attacked by Red"),
    ("foq", "", "i1", "i1 holds a queen"),
    ("foq", "", "b6", "b6 is not in a straight line from a8"),
    ("foq", "d5 i4", "b7", "b7 is ripped"),
    ("foq", "d5 i4 d8 i7", "d4", "the way to d4 is ripped at d7"),
    ("foq_single:rows=5,cols=5", "b4", "c2", "c2 is not in a straight line from b4"),
    ("foq_multi", "", "b8", "b8 is attacked by Red and Blue"),
    ("go", "D4", "D4", "there is a stone on D4 already"),
    ("go", "B4 C4 A3 D3 B2 C2 E5 B3 C3", "B3", "B3 cannot be taken back at once (ko)"),
    ("go", "C4 E1 B3 E2 D3 E3 C2", "C3", "C3 is suicide: the stone would have no liberty"),
    # Black sends two stones to the corner, White takes them with one, and taking that one would repeat the board.
    ("go:size=5,ko=psk", "C2 A2 D1 B2 B1 E5 A1 C1", "B1", "B1 repeats an earlier position (superko)"),
    ("evopawness", "", "m*1,4*1,0", "the soldier on 1,4 is asleep"),
    ("evopawness", "a*1,4 a*7,4 a*1,2 a*7,2", "a*1,0",
     "the soldier on 1,0 is asleep: waking it up costs 3 mana, you have 1"),
    ("evopawness", "", "a*7,4", "the soldier on 7,4 belongs to White"),
    ("evopawness", "", "a*3,3", "3,3 is empty"),
    ("evopawness", "", "m*0,4*1,0", "the king on 0,4 has no enemy in reach"),
    ("evopawness", "", "skip", "you can only skip if nothing else is possible"),
    ("evopawness", "a*1,4 a*7,4", "a*1,4", "the soldier on 1,4 is awake already"),
    ("evopawness", "a*1,4 a*7,4", "p*1,4*R", "that costs 5 mana, you have 3"),
    ("evopawness", "a*1,4 a*7,4", "p*1,4*Q", "the soldier on 1,4 cannot become a queen"),
    ("evopawness", "a*1,4 a*7,4", "m*1,4*2,0", "3,4 is out of reach of the soldier on 1,4"),
    ("evopawness", "a*1,4 a*7,4", "m*1,4*-1,0", "0,4 is taken by a piece of your own"),
    ("evopawness", "a*1,4 a*7,4", "m*1,4*-2,1", "that is off the board"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "moves", "move", "reason"), ILLEGAL)
def test_reasons_for_illegal_moves(spec, moves, move, reason):
    game = envs.make(spec)
    states, _ = saved.replay(game, game.init(), moves.split())
    assert look_at(game, states[-1]).reason(game.parse_action(move)) == reason


ON_THE_WAY = {"player": 0, "type": "soldier", "y": 2, "x": 4, "hp": 5, "atk": 1, "step": 1, "active": True}
AWAKE = {"player": 1, "type": "soldier", "y": 1, "x": 4, "hp": 5, "atk": 1, "step": 1, "active": True}
KINGS = [
    {"player": player, "type": "king", "y": 8 - 8 * player, "x": 4, "hp": 9, "atk": 3, "step": 3, "active": True}
    for player in (0, 1)
]


def evopawness(*pieces, turn=1, mana=(0, 0)):
    record = {"turn": turn, "to_move": turn % 2, "mana": list(mana), "pieces": list(pieces), "runes": []}
    game = envs.make("evopawness")
    return game, look_at(game, game.from_record(record))


def test_reasons_where_pieces_stand_in_the_way():
    """An awake soldier with White's rook right ahead could attack it; with a friend there it is stuck."""
    game, here = evopawness(*KINGS, AWAKE, ON_THE_WAY)
    assert here.reason(game.parse_action("m*0,4*0,1")) == "0,5 has nothing to attack, and kings never move"
    friend = ON_THE_WAY | {"player": 1, "type": "rook"}
    game, here = evopawness(*KINGS, AWAKE, friend, ON_THE_WAY | {"y": 6})
    stuck = "the soldier on 1,4 cannot move, nor change with 0 mana"
    assert here.reason(game.parse_action("m*1,4*1,0")) == stuck
    assert here.why_not(["1,4"]) == stuck
    assert here.why_not(["2,4", "7,8"]) == "no move leads from 2,4 to 7,8"


def test_a_hole_is_pointed_at_as_its_column():
    game = envs.make("connect_four")
    states, _ = saved.replay(game, game.init(), ["4"] * 6)
    here = look_at(game, states[-1])
    assert here.why_not(["column 4, row 6"]) == here.why_not(["column 4"]) == "column 4 is full"
    assert here.why_not(["column 3"]) == here.why_not(["elsewhere"]) == ""


OVER = [  # worked out by hand: game, its moves, the winner or None, reason
    ("tictactoe", "a3 a2 b3 b2 c3", 0, "three in a row"),
    ("tictactoe", "a3 b2 b3 c3 c2 a1", 1, "three in a row"),
    ("tictactoe", "b2 a3 c3 a1 a2 c2 b1 b3 c1", None, "nobody has three in a row, and the board is full"),
    ("connect_four", "1 2 1 2 1 2 1", 0, "four in a row"),
    ("connect_four", "1 2 1 2 1 2 3 2", 1, "four in a row"),
    ("connect_four:rows=1,cols=3,connect=3", "1 2 3", None, "nobody has three in a row, and the board is full"),
    ("gomoku", "a1 a2 b1 b2 c1 c2 d1 d2 e1", 0, "five in a row"),
    ("gomoku", "a1 a2 b1 b2 c1 c2 d1 d2 o15 e2", 1, "five in a row"),
    ("hex:size=2", "a1 b1 a2", 0, "Red has joined top and bottom"),
    ("hex:size=2", "b1 a1 b2", 0, "Red has joined top and bottom"),
    ("hex:size=2", "a1 a2 b1 b2", 1, "Blue has joined left and right"),
    ("othello", "e6 f4 e3 f6 g5 d6 e7 f5 c5", 0, "no legal move on either side, 13 discs to 0"),
    ("sum_to_100:target=4,largest=3", "+3 +1", 1, "the sum is 4"),
    ("sum_to_100:target=3,largest=3", "+3", 0, "the sum is 3"),
    ("foq:rows=5,cols=5", "b5 e3 b1 e5 c1 d5 c2 d4", 1, "White cannot move"),
    ("foq:rows=5,cols=6", "d2 c4 b2 c5 b1 b5 a2", 0, "Red cannot move"),
    ("foq_single:rows=2,cols=2", "b2 b1 a1", 1, "Second cannot move, and that wins"),
    ("foq_multi:rows=5,cols=6,players=3", "a3 e1 c2 e3 d1 f3 d2 f2", 1, "White and Blue cannot move"),
    ("go:size=5", "C3 D3 C2 D2 C4 D4 C1 D1 C5 D5 pass pass", 1, "both passed: 17.5 to 15 with komi 7.5"),
    ("go:size=5", "C3 pass pass", 0, "both passed: 25 to 7.5 with komi 7.5"),
    ("evopawness:max_plies=2", "a*1,4 a*7,4", None, "nobody has won in 2 turns"),
]


@pytest.mark.parametrize(("spec", "moves", "winner", "reason"), OVER)
def test_reasons_for_the_end(spec, moves, winner, reason):
    game = envs.make(spec)
    states, _ = saved.replay(game, game.init(), moves.split())
    end = look_at(game, states[-1])
    assert end.over
    assert end.rewards.index(max(end.rewards)) == (winner or 0)
    assert (max(end.rewards) > 0) == (winner is not None)
    assert end.why == reason


def test_reasons_for_ends_from_a_file():
    king, rook = KINGS, AWAKE | {"type": "rook"}
    game, end = evopawness(*king, ON_THE_WAY)
    assert (end.rewards, end.why) == ((1, -1), "Black has lost all pieces but the king")
    game, end = evopawness(king[1], ON_THE_WAY, rook, turn=2)
    assert (end.rewards, end.why) == ((-1, 1), "White has lost the king")
    game = envs.make("othello")
    whites = [-1 if square in (26, 27, 28, 29, 35, 36) else 0 for square in range(64)]
    end = look_at(game, game.from_record({"board": whites, "to_move": 1}))
    assert (end.rewards, end.why) == ((-1, 1), "no legal move on either side, 6 discs to 0")
    game = envs.make("go:size=5,history=1")
    record = game.to_record(saved.replay(game, game.init(), ["A1", "E5"])[0][-1]) | {"plies": 50}
    assert look_at(game, game.from_record(record)).why == "the game ends after 50 moves: 8.5 to 1 with komi 7.5"


@pytest.mark.parametrize("name", OWN)
def test_who_forfeits_is_named(name):
    game = envs.make(name)
    end = look_at(game, game.init()).after(-1)
    assert end.why == f"{game.view.seats[int(game.player(game.init()))]} made an illegal move"
