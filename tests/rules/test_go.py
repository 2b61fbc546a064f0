"""Go against recorded games, a plain program, counts worked out by hand and small pictures."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from go_boards import cells, points
from plain_go import PlainGo

import envs
from envs import go
from envs.go.points import to_rows

step, mask = jax.jit(go.step), jax.jit(go.mask)


def position(picture: str, to_move: int, ko: str = "simple") -> go.State:
    """Reads a drawing: X black, O white, . empty."""
    rows = [line.split() for line in picture.strip().splitlines()]
    board = ["O.X".index(cell) - 1 for row in rows for cell in row]
    return go.from_record({"size": len(rows), "komi": 0, "ko": ko, "board": board, "to_move": to_move})


def compiled_for(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has every program take the branches of this platform."""
    choose = lambda *given, default, **branches: branches.get(platform, default)(*given)
    monkeypatch.setattr(jax.lax, "platform_dependent", choose)


# Recorded games


@pytest.mark.parametrize(
    ("size", "ko", "count", "platform"),
    [
        (9, "simple", 30, "cpu"),
        (9, "psk", 15, "cpu"),
        (9, "psk", 15, "cuda"),
        (19, "simple", 10, "cpu"),
        (19, "psk", 5, "cpu"),
        (19, "psk", 5, "cuda"),
    ],
)
def test_recorded_games_are_reproduced(golden, monkeypatch, size, ko, count, platform):
    compiled_for(platform, monkeypatch)
    games = [game for game in golden("go.jsonl.gz") if (game["size"], game["ko_rule"]) == (size, ko)]
    assert len(games) == count
    longest = max(len(game["moves"]) for game in games) // 5 + 1
    moves = np.full((count, longest * 5), -1, np.int32)  # what comes after the end may not matter
    for i, game in enumerate(games):
        moves[i, : len(game["moves"])] = game["moves"]

    @jax.jit
    @jax.vmap
    def replay(moves):
        one = lambda s, a: (go.step(s, a), go.over(s))

        def five(s, moves):
            following, over = jax.lax.scan(one, s, moves)
            return following, (s.stones, go.mask(s), over)

        last, seen = jax.lax.scan(five, go.init(size, ko), moves.reshape(-1, 5))
        return last, seen, go.area(last)

    last, (stones, legal, over), area = jax.device_get(replay(moves))
    boards, finals = cells(stones), cells(last.stones)
    for i, game in enumerate(games):
        end = len(game["moves"])
        for t, (want, board) in enumerate(zip(game["legal"], game["board_after"], strict=False)):
            assert points(legal[i, t]) == want
            assert boards[i, t].tolist() == board
        assert len(game["board_after"]) >= len(game["legal"]) == (end + 4) // 5
        assert finals[i].tolist() == game["final_board"]
        assert not over[i].ravel()[:end].any() and over[i].ravel()[end:].all()
        assert bool(go.over(jax.tree.map(lambda x: x[i], last)))
        assert area[i].tolist() == game["area"]
        assert (last.plies[i], last.passes[i] == 2, last.forfeit[i]) == (end, game["end"] == "passes", -1)
        # Every stone that was put down and is not there any more was taken.
        for colour, taken in ((0, game["captured"][1]), (1, game["captured"][0])):
            placed = sum(a != size * size for a in game["moves"][colour::2])
            assert placed - (finals[i] == 1 - 2 * colour).sum() == taken
        black, white = np.asarray(go.rewards(jax.tree.map(lambda x: x[i], last), game["komi"]))
        assert (black, white) == (np.sign(game["score"]), -np.sign(game["score"]))


# Random games against the plain program


def test_move_sequence_counts(expand):
    # On 5 x 5 after 3 moves: 25 24 24 with two plays first, 25 25 each for a play and a pass, none after two passes.
    # After 4: likewise, less the 8 22 + 8 suicides in a corner, of which Black has just taken both neighbours.
    third = 25 * 24 * 24 + 2 * 25 * 25
    fourth = 25 * 24 * 23 * 23 - 8 * 22 + 3 * 25 * 24 * 24 - 8 + 25 * 25
    layers = expand(go.mask, go.step, go.init(5), 3)
    counts = [int(layer.ways.sum()) for layer in layers]
    assert counts == [1, 26, 25 * 25 + 26, third]
    assert int((layers[-1].ways * layers[-1].legal.sum(-1)).sum()) == fourth


# Small positions


def test_a_ko_may_be_retaken_after_a_move_elsewhere():
    s = position(
        """
        . X O . .
        X O . O .
        . X O . .
        . . . . .
        . . . . .
        """,
        to_move=1,
    )
    taken = step(s, 7)
    assert cells(taken.stones)[[6, 7]].tolist() == [0, 1] and int(taken.ko) == 6
    assert 6 not in points(mask(taken))
    assert int(step(taken, 6).forfeit) == 1
    later = step(step(taken, 25), 24)
    assert 6 in points(mask(later))
    assert cells(step(later, 6).stones)[[6, 7]].tolist() == [-1, 0]


def test_suicide_is_illegal_unless_it_captures():
    picture = """
        . O X . .
        X X X . .
        O O . . .
        X O . . .
        . X . . .
    """
    white, black = (points(mask(position(picture, to_move))) for to_move in (-1, 1))
    assert 0 not in white  # two stones without a liberty
    assert 0 in black  # takes B5
    assert 20 in black  # joins A2 to B1, which has a liberty
    assert 20 in white  # takes A2, which gives it a liberty
    taken = step(position(picture, -1), 20)
    assert (cells(taken.stones)[[15, 16, 20, 21]].tolist(), int(taken.ko)) == ([0, -1, -1, 1], 15)


COUNTED = """
    X . O . .
    X X O . .
    . X O . .
    X X O . .
    . X O . .
"""  # Black has 7 stones and 2 eyes, White 5 stones and 10 points behind them; one point is nobody's


def ended(komi: float, picture: str = COUNTED) -> list[float]:
    return np.asarray(go.rewards(step(step(position(picture, 1), 25), 25), komi)).tolist()


def test_area_and_komi_decide():
    assert np.asarray(go.area(position(COUNTED, 1))).tolist() == [9, 15]
    assert ended(7.5) == [-1, 1]
    assert ended(-5.5) == [-1, 1] and ended(-6) == [0, 0] and ended(-6.5) == [1, -1]
    assert ended(-6 - 1e-12) == [1, -1] and ended(1e300) == [-1, 1] and ended(-1e300) == [1, -1]
    empty = "\n".join([". . . . ."] * 5)
    assert ended(0, empty) == [0, 0] and ended(-0.5, empty) == [1, -1]


def test_after_a_pass_the_player_who_is_ahead_has_won():
    """Black has 9 points and White 15, so komi of -6 makes them equal."""
    known = lambda s, komi: float(go.known_result(s, komi))
    for passes_now, ahead, behind in ((-1, -6.5, -5.5), (1, -5.5, -6.5)):
        before = position(COUNTED, passes_now)._replace(passes=jnp.int8(0))
        passed = step(before, 25)
        assert known(passed, ahead) == 1
        for s, komi in ((passed, behind), (passed, -6), (before, ahead), (before, behind), (step(passed, 25), ahead)):
            assert np.isnan(known(s, komi))
    game = envs.make("go:size=5")
    found = [float(game.hints.known_result(s)) for s in (game.init(), game.move(game.init(), 25))]
    assert np.isnan(found[0]) and found[1] == 1


@pytest.mark.parametrize("size", [5, 9])
@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_area_of_random_boards(monkeypatch, platform, size):
    """Boards of few to many stones, whether or not they can occur."""
    compiled_for(platform, monkeypatch)
    rng, free = np.random.default_rng(size), np.linspace(0.1, 0.98, 60)
    boards = np.stack([rng.choice([-1, 0, 1], (size, size), p=[(1 - f) / 2, f, (1 - f) / 2]) for f in free])
    plain = PlainGo(size, superko=False)
    want = []
    for board in boards:
        plain.boards = [tuple(board.ravel().tolist())]
        want.append(plain.area())
    rows = jax.vmap(to_rows)(jnp.stack([boards == 1, boards == -1], axis=1))
    states = jax.vmap(lambda stones: go.init(size)._replace(stones=stones))(rows)
    assert jax.vmap(go.area)(states).tolist() == want


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_walls_across_the_board_part_it(monkeypatch, platform):
    """The empty points are above and below stones only, or beside them only."""
    compiled_for(platform, monkeypatch)
    board = np.zeros((5, 5), int)
    board[2], board[3] = 1, -1
    for turned in (board, board.T):
        record = {"size": 5, "komi": 0, "ko": "simple", "board": turned.ravel().tolist(), "to_move": 1}
        assert go.area(go.from_record(record)).tolist() == [15, 10]


@pytest.mark.parametrize("size", [5, 9, 19])
@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_a_colour_reaches_the_end_of_a_long_corridor(monkeypatch, platform, size):
    compiled_for(platform, monkeypatch)
    # Every other row is black but for one crossing, at the right and the left in turn. White stands at the end of this
    # corridor, so every empty point touches both colours through its region.
    board = np.zeros((size, size), int)
    board[1::2] = 1
    board[1::4, -1] = board[3::4, 0] = 0
    board[-1, 0 if (size - 1) % 4 == 2 else -1] = -1
    for turned in (board, board[::-1], board.T, board.T[:, ::-1]):
        record = {"size": size, "komi": 0, "ko": "simple", "board": turned.ravel().tolist(), "to_move": 1}
        assert go.area(go.from_record(record)).tolist() == [(size // 2) * (size - 1), 1]


def test_memory_is_not_part_of_what_is_remembered():
    size = lambda s: sum(x.nbytes for x in jax.tree.leaves(s))
    boards, liberties = (envs.make(f"go:size=9,ko=psk,history={history}") for history in (8, 0))
    board = 2 * 9 * 4 + 1  # two words a row, and whose turn
    assert size(boards.observation_state(boards.init())) == 8 * board + 1  # and how many
    kept = liberties.observation_state(liberties.init())
    assert size(kept) == 3 * board + 2 + 2 * 9 * 4 + 1  # the ko, two words a row for liberties, and how many
    assert size(go.init(9)) == 196 and size(go.init(19)) == 957


def test_planes_of_liberties():
    """White to move may not take back at B3. White's own stone there was the move before the last."""
    game = envs.make("go:size=5")
    state = game.init()
    for name in ["B4", "C4", "A3", "D3", "B2", "C2", "E5", "B3", "C3"]:
        state = game.step(state, game.parse_action(name))
    everything = " ".join(f"{column}{row}" for column in "ABCDE" for row in range(1, 6))
    sets = ["C4 D3 C2", "B4 A3 B2 C3 E5", "", "C3", "C4 C2", "E5", "B3", "C3", "B3", everything, ""]
    want = np.zeros((5, 5, len(sets)))
    for plane, names in enumerate(sets):
        for point in map(game.parse_action, names.split()):
            want[point // 5, point % 5, plane] = 1
    assert np.array_equal(game.observe(state), want)
    after = game.step(state, game.parse_action("pass"))
    assert np.asarray(game.observe(after))[..., [6, 7, 8, 10]].sum((0, 1)).tolist() == [0, 0, 1, 25]
    loaded = game.from_record({k: v for k, v in game.to_record(state).items() if k != "past"})
    assert np.array_equal(game.observe(loaded)[..., :7], want[..., :7])
    assert not np.asarray(game.observe(loaded))[..., 7:9].any(), "moves that are not known"


def test_planes_of_boards():
    game = envs.make("go:size=5,history=8")
    moves = [0, 25, 6, 1, 5, 12, 25, 13, 14, 25]

    @jax.jit
    def play(moves):
        return jax.lax.scan(lambda s, a: (game.step(s, a), game.observe(s)), game.init(), moves)[1]

    planes = np.asarray(play(np.array(moves)))
    assert planes.shape == (len(moves), 5, 5, 17)
    plain = PlainGo(5, superko=False)
    for t, move in enumerate(moves):
        for back in range(8):
            board = plain.boards[t - back] if back <= t else (0,) * 25
            mine, other = planes[t, :, :, back], planes[t, :, :, 8 + back]
            assert mine.ravel().tolist() == [float(c == plain.turn) for c in board]
            assert other.ravel().tolist() == [float(c == -plain.turn) for c in board]
        assert (planes[t, :, :, 16] == (t % 2 == 0)).all()
        plain.play(move)
    assert 0 in plain.board and envs.make("go:size=5,history=1").observe(go.init(5)).shape == (5, 5, 3)


# Options and records


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("size=30", "5 to 19 lines, got 30"),
        ("size=4", "5 to 19 lines, got 4"),
        ("size=-9", "got -9"),
        ("ko=situational", "known: simple, psk"),
        ("komi=nan", "finite"),
        ("komi=-inf", "finite"),
        ("komi=x", "not of type float"),
        ("history=-1", "0 to 100"),
        ("history=101", "0 to 100"),
    ],
)
def test_options_out_of_range_are_refused(options, reason):
    with pytest.raises(ValueError, match=reason):
        envs.make(f"go:{options}")


def test_komi_is_part_of_the_game():
    assert envs.make("go").name == "go:size=9,komi=7.5,ko=simple,history=0"
    assert envs.make("go:komi=7") is envs.make("go:komi=7.0") is not envs.make("go:komi=-7")
    assert envs.make("go:komi=-0.0") is envs.make("go:komi=0")
    assert envs.make("go:komi=-0.0").name.split(",")[1] == "komi=0.0"


def board(**stones: int) -> list[int]:
    """Cells of 5 x 5 with stones on named points."""
    empty = [0] * 25
    for name, colour in stones.items():
        empty[go.parse_point(name, 5)] = colour
    return empty


START = {"size": 5, "komi": 7.5, "ko": "simple", "board": board(), "to_move": 1}
NEW = START | {"passes": 0, "plies": 0, "ko_point": -1}
TWO = NEW | {"board": board(A1=1, B1=-1), "plies": 2}
KO = board(B5=1, C5=-1, A4=1, C4=1, D4=-1, B3=1, C3=-1)  # Black has just taken B4 with C4
PSK = TWO | {"ko": "psk", "earlier": [board(), board(A1=1)]}
REFUSED = {
    "no board": ({k: v for k, v in START.items() if k != "board"}, "fields"),
    "plies alone": (START | {"plies": 0}, "fields"),
    "unknown field": (NEW | {"winner": 1}, "fields"),
    "memory with the simple rule": (NEW | {"earlier": []}, "fields"),
    "ko rule": (NEW | {"ko": "none"}, "ko: expected"),
    "size": (NEW | {"size": 4}, "size"),
    "another size": (NEW | {"size": 6, "board": [0] * 36}, "size is 6, but 5"),
    "another komi": (NEW | {"komi": 0.5}, "komi is 0.5, but 7.5"),
    "another ko rule": (NEW | {"ko": "psk", "earlier": []}, "ko is 'psk'"),
    "24 cells": (NEW | {"board": [0] * 24}, "25 cells"),
    "strange stone": (NEW | {"board": [2] + [0] * 24}, "25 cells"),
    "half a stone": (NEW | {"board": [0.5] + [0] * 24}, "25 cells"),
    "nobody to move": (NEW | {"to_move": 0}, "to_move"),
    "no liberty": (TWO | {"board": board(A1=1, B1=-1, A2=-1), "plies": 4}, "A1 has no liberty"),
    "wrong turn": (TWO | {"plies": 3}, "not the turn of 1"),
    "plies": (TWO | {"plies": 51}, "plies"),
    "plies as truth": (TWO | {"plies": True}, "plies"),
    "passes": (TWO | {"passes": 3}, "passes"),
    "more passes than moves": (NEW | {"passes": 1}, "passes"),
    "too many stones": (TWO | {"board": board(A1=1, B1=1, C1=-1)}, "too few"),
    "stones by a pass": (TWO | {"passes": 1}, "too few"),
    "no stone of the last play": (TWO | {"board": board(A1=1)}, "no stone"),
    "ko on a stone": (TWO | {"ko_point": 20}, "ko at A1"),
    "ko in the open": (TWO | {"ko_point": 12}, "ko at C3"),
    "ko after a pass": (NEW | {"board": KO, "to_move": -1, "plies": 11, "passes": 1, "ko_point": 6}, "ko at B4"),
    "forfeit of the other": (TWO | {"forfeit": 1}, "forfeited"),
    "forfeit after the end": (NEW | {"plies": 2, "passes": 2, "forfeit": 0}, "over"),
}
REFUSED_PSK = {
    "no memory": ({k: v for k, v in PSK.items() if k != "earlier"}, "fields"),
    "memory too short": (PSK | {"earlier": [board()]}, "the 2 boards"),
    "memory is no list": (PSK | {"earlier": 5}, "the 2 boards"),
    "no board in memory": (PSK | {"earlier": [board(), 5]}, "earlier board"),
    "start with a stone": (PSK | {"earlier": [board(A1=1), board(A1=1)]}, "must be empty"),
    "two stones at once": (PSK | {"earlier": [board(), board()]}, "no move leads"),
    "passes not told": (PSK | {"plies": 4, "earlier": [*PSK["earlier"], *[TWO["board"]] * 2]}, "passes must be 2"),
    "ko that is none": (PSK | {"ko_point": 12}, "ko at C3"),
}


@pytest.mark.parametrize(("record", "reason"), REFUSED.values(), ids=REFUSED)
def test_impossible_positions_are_refused_with_the_reason(record, reason):
    with pytest.raises(ValueError, match=reason):
        envs.make("go:size=5").from_record(record)


@pytest.mark.parametrize(("record", "reason"), REFUSED_PSK.values(), ids=REFUSED_PSK)
def test_impossible_memories_are_refused_with_the_reason(record, reason):
    with pytest.raises(ValueError, match=reason):
        envs.make("go:size=5,ko=psk").from_record(record)


def test_records_with_and_without_the_past():
    game, superko = envs.make("go:size=5"), envs.make("go:size=5,ko=psk,history=1")
    for record in (NEW, TWO, NEW | {"board": KO, "to_move": -1, "plies": 11, "ko_point": 6}):
        assert game.to_record(game.from_record(record)) == record | {"past": []}
    assert superko.to_record(superko.from_record(PSK)) == PSK
    brief = {k: v for k, v in PSK.items() if k not in ("passes", "plies", "ko_point", "earlier")}
    assert superko.to_record(superko.from_record(brief)) == PSK
    white_only = brief | {"board": board(A1=-1, C3=-1), "to_move": -1}
    record = superko.to_record(superko.from_record(white_only))
    assert (record["plies"], record["passes"]) == (5, 1)
    assert record["earlier"] == [board(), board(), board(C3=-1), board(C3=-1), board(C3=-1, A1=-1)]


# For people


def test_names_leave_out_the_letter_i():
    game = envs.make("go")
    assert [game.action_name(a) for a in (0, 7, 8, 9, 80, 81)] == ["A9", "H9", "J9", "A8", "J1", "pass"]
    assert [game.parse_action(text) for text in (" j1 ", "PASS", "h9")] == [80, 81, 7]
    with pytest.raises(ValueError, match="A1 to J9"):
        game.parse_action("I5")
    assert envs.make("go:size=19").action_name(360) == "T1"


def test_picture_of_a_position():
    s = position(COUNTED, 1)
    assert go.show(s).splitlines() == [
        " 5  X . O . .",
        " 4  X X O . .",
        " 3  . X O . .",
        " 2  X X O . .",
        " 1  . X O . .",
        "    A B C D E",
        "Black (X) to move",
    ]
    ended = step(step(s, 25), 25)
    assert go.show(s._replace(passes=jnp.int8(1))).endswith("\nBlack (X) to move, who may pass too and end the game")
    assert go.show(ended, 7.5).endswith("\nWhite (O) wins by 13.5: area 9 to 15, komi 7.5")
    assert go.show(ended, -6).endswith("\ndraw: area 9 to 15, komi -6")
    assert go.show(step(s, 0)).endswith("\nWhite (O) wins, as the other made an illegal move")
