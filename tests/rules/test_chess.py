"""Chess and Gardner's chess: published counts of positions, known games, and what the rules say by hand."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from agents.players.human import coloured
from agents.serve.views import Position, look_at
from envs.chess.moves import Bits
from envs.chess.rules import Rules

# Numbers of positions after 1, 2, 3, ... plies: chessprogramming.org, "Perft Results". They cover castling, checks,
# pins, promotions, and a capture en passant that would open a row to the king. Gardner's chess: `go perft` of
# Fairy-Stockfish 11.1.
COUNTS = [
    (8, "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", [20, 400, 8902]),
    (8, "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1", [48, 2039, 97862]),
    (8, "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", [14, 191, 2812, 43238]),
    (8, "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1", [6, 264, 9467]),
    (8, "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8", [44, 1486, 62379]),
    (8, "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10", [46, 2079, 89890]),
    (5, "rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1", [7, 53, 506, 4775, 52512]),
]
LANES = 512


@functools.cache
def compiled(size: int):
    rules = Rules(size)
    return rules, jax.jit(jax.vmap(rules.mask)), jax.jit(jax.vmap(rules.move))


@pytest.mark.parametrize(("size", "fen", "counts"), COUNTS)
def test_positions_after_some_plies_are_as_many_as_published(size, fen, counts):
    rules, mask, move = compiled(size)
    states, found = jax.tree.map(lambda x: np.asarray(x)[None], rules.from_fen(fen)), []
    for _ in counts:
        masks, after, full = [], [], np.arange(LANES)
        for at in range(0, len(states.halfmove_clock), LANES):
            place = np.minimum(full + at, len(states.halfmove_clock) - 1)
            masks.append(
                np.asarray(mask(jax.tree.map(lambda x, p=place: x[p], states)))[: len(states.halfmove_clock) - at]
            )
        lanes, actions = np.nonzero(np.concatenate(masks))
        found.append(len(lanes))
        if len(found) == len(counts):
            break
        for at in range(0, len(lanes), LANES):
            place = np.minimum(full + at, len(lanes) - 1)
            moved = move(jax.tree.map(lambda x, p=lanes[place]: x[p], states), actions[place])
            left = len(lanes) - at
            after.append(jax.tree.map(lambda x, n=left: np.asarray(x)[:n], moved))
        states = jax.tree.map(lambda *x: np.concatenate(x), *after)
    assert found == counts


# Morphy against the Duke of Brunswick and Count Isouard, Paris 1858: White castles and mates.
OPERA = (
    "e2e4 e7e5 g1f3 d7d6 d2d4 c8g4 d4e5 g4f3 d1f3 d6e5 f1c4 g8f6 f3b3 d8e7 b1c3 c7c6 c1g5 b7b5 c3b5 c6b5 c4b5 b8d7 "
    "e1c1 a8d8 d1d7 d8d7 h1d1 e7e6 b5d7 f6d7 b3b8 d7b8 d1d8"
)
# Sam Loyd's shortest stalemate.
STALEMATE = (
    "e2e3 a7a5 d1h5 a8a6 h5a5 h7h5 h2h4 a6h6 a5c7 f7f6 c7d7 e8f7 d7b7 d8d3 b7b8 d3h7 b8c8 f7g6 c8e6"
)  # fmt: skip
BOTH_PROMOTE = "a2a4 h7h5 a4a5 h5h4 a5a6 h4h3 a6b7 h3g2"


@functools.cache
def after(moves: str = "", fen: str = "", size: int = 8) -> Position:
    """The position after some moves, each of them legal."""
    game = envs.make(f"chess:size={size}")
    here = look_at(game, game.from_record({"fen": fen}) if fen else game.init())
    for move in moves.split():
        action = game.parse_action(move)
        assert action in here.legal, f"{move} after {moves}"
        here = here.after(action)
    return here


def names(here: Position) -> set[str]:
    return {way.action for way in here.ways}


def test_a_known_game_ends_in_mate():
    end = after(OPERA)
    assert (end.over, end.rewards, end.why) == (True, (1, -1), "checkmate")
    assert end.status == "White wins"
    assert end.game.show(end.state).split("\n")[0] == "8  . n . R k b . r"
    assert end.game.to_record(end.state)["fen"] == "1n1Rkb1r/p4ppp/4q3/4p1B1/4P3/8/PPP2PPP/2K5 b k - 1 17"


def test_both_colours_promote_by_name():
    here = after(BOTH_PROMOTE)
    ways = {way.action: way for way in here.ways if way.cells == ("b7", "a8")}
    labels = {"b7a8": "b7a8 (queen)", "b7a8r": "b7a8r (rook)", "b7a8b": "b7a8b (bishop)", "b7a8n": "b7a8n (knight)"}
    assert {name: way.label for name, way in ways.items()} == labels
    assert here.game.parse_action("b7a8q") == here.game.parse_action("b7a8")
    here = after(f"{BOTH_PROMOTE} b7a8q")
    assert {"g2h1", "g2h1r", "g2h1b", "g2h1n", "g2f1", "g2f1r", "g2f1b", "g2f1n"} <= names(here)
    here = after(f"{BOTH_PROMOTE} b7a8q g2h1n")
    board = here.game.show(here.state).split("\n")
    assert (board[0], board[7]) == ("8  Q n b q k b n r", "1  R N B Q K B N n")


def test_other_men_on_the_last_row_promote_to_nothing():
    """A rook that takes on h8 has the code of a pawn's promotion."""
    moves = "h2h4 g7g5 h4g5 h7h5 h1h5 a7a6"
    here = after(f"{moves} h5h8")
    assert "h5h8r" not in names(after(moves))
    assert here.game.show(here.state).split("\n")[0] == "8  r n b q k b n R"


def test_frames():
    """The second player's move is called as it is seen from White's side, and coded as Black sees it."""
    game = envs.make("chess")
    code, black = game.parse_action, game.to_mover_frame[1]
    assert game.to_mover_frame[0].tolist() == list(range(game.num_actions))
    pairs = ("e7e5", "e2e4"), ("g8f6", "g1f3"), ("e8c8", "e1c1"), ("a2a1r", "a7a8r"), ("b2c1n", "b7c8n")
    assert all(black[code(absolute)] == code(mover) for absolute, mover in pairs)


@pytest.mark.parametrize("size", [8, 5])
def test_planes_and_codes_belong_to_the_cells(size):
    """In the mover's frame a move belongs to the cell of the piece that makes it, which the first planes show, and its
    kind leads to the cell in its name."""
    game = envs.make(f"chess:size={size}")
    step, mask, observe = jax.jit(game.step), jax.jit(game.mask), jax.jit(game.observe)
    draw, s, seen = np.random.default_rng(0), game.init(), 0
    for _ in range(80):
        actions = np.flatnonzero(mask(s))
        if not len(actions):
            s = game.init()
            continue
        mine = np.asarray(observe(s))[..., :6].any(-1).ravel()
        player = int(game.player(s))
        cells, kinds = np.divmod(game.to_mover_frame[player, actions], game.actions_per_cell)
        assert mine[cells].all() and game.num_actions == game.actions_per_cell * mine.size
        ranks = [int(game.action_name(action)[3]) for action in actions]
        files = ["abcdefgh".index(game.action_name(action)[2]) for action in actions]
        rows = [size - rank if player == 0 else rank - 1 for rank in ranks]
        ends = np.stack(np.divmod(cells, size), -1) + game.offsets[kinds]
        np.testing.assert_array_equal(ends, np.stack([rows, files], -1))
        seen += len(actions)
        s = step(s, draw.choice(actions))
    assert seen > 300


def test_planes_by_hand():
    """Black, to move, sees the board from the other side: the king on e8 is at the bottom."""
    s = envs.make("chess").from_record({"fen": "4k2r/8/8/8/pP6/8/8/4K3 b k b3 25 40"})
    planes = np.asarray(envs.make("chess").observe(s))
    set_at = lambda plane: sorted("abcdefgh"[c] + str(1 + r) for r, c in np.argwhere(planes[..., plane]))
    assert (set_at(0), set_at(3), set_at(5)) == (["a4"], ["h8"], ["e8"])
    assert (set_at(6), set_at(11)) == (["b4"], ["e1"])
    kings = ["d7", "d8", "e7", "f7", "f8"]
    rooks = ["e8", "f8", "g8", *(f"h{r}" for r in range(1, 8))]
    assert set_at(12) == sorted({"b3", *kings, *rooks})
    assert set_at(13) == ["a5", "c5", "d1", "d2", "e2", "f1", "f2"]
    assert set_at(16) == ["b3"]
    assert planes[0, 0, [14, 15, 17, 18, 19, 20]].tolist() == [0, 0.25, 1, 0, 0, 0]


REASONS = [  # size, moves made, illegal move, reason
    (8, "", "e4e5", "e4 is empty"),
    (8, "", "e7e5", "the Black pawn is not yours"),
    (8, "", "a1a3", "the rook on a1 cannot move"),
    (8, "e2e4 e7e5", "d1d2", "d2 holds a White pawn"),
    (8, "e2e4 e7e5", "d1d4", "the queen cannot go from d1 to d4"),
    (8, "e2e4 e7e5", "e1d2", "d2 holds a White pawn"),
    (8, "e2e4 e7e5 d1h5 b8c6 h5f7", "e8e7", "the king could be captured"),
    (8, "e2e4 e7e5 d1h5 b8c6 h5f7", "a7a6", "the king is in check, and the pawn on a7 cannot help"),
    (5, "", "a1b2", "the rook on a1 cannot move"),
]


@pytest.mark.parametrize(("size", "moves", "move", "reason"), REASONS)
def test_reasons_for_illegal_moves(size, moves, move, reason):
    here = after(moves, size=size)
    assert here.reason(here.game.parse_action(move)) == reason


KNIGHTS = "g1f3 g8f6 f3g1 f6g8 "
ENDS = [  # position, moves, result of the first player, reason
    ("", "f2f3 e7e5 g2g4 d8h4", -1, "checkmate"),
    ("", STALEMATE, 0, "stalemate"),
    ("", f"a2a3 a7a6 {2 * KNIGHTS}", 0, "the third time in this position"),
    ("7k/8/8/8/8/8/8/R6K w - - 98 90", "a1a2 h8g8", 0, "fifty moves without a capture or a pawn move"),
    ("7k/5Q2/6K1/8/8/8/8/8 w - - 99 90", "f7g7", 1, "checkmate"),  # on the last ply, before the draw
    ("7k/8/8/8/8/8/1r6/K7 w - - 0 90", "a1b2", 0, "too few pieces for checkmate"),
    ("7k/8/8/8/8/8/1r6/K3R1R1 w - - 0 256", "a1b2", 0, "the game ends after 512 moves"),
]


@pytest.mark.parametrize(("fen", "moves", "result", "reason"), ENDS)
def test_reasons_for_the_end(fen, moves, result, reason):
    *before, _ = moves.split()
    assert not after(" ".join(before), fen).over
    end = after(moves, fen)
    if reason == "the game ends after 512 moves":
        assert not end.over  # Black still moves
        end = after(f"{moves} h8h7", fen)
    assert (end.over, end.rewards, end.why) == (True, (result, -result), reason)


FEW = [  # pieces besides the kings, whether they are too few
    ("", True), ("N", True), ("b", True), ("NN", False), ("Bn", False), ("P", False), ("r", False), ("q", False),
]  # fmt: skip


@pytest.mark.parametrize(("pieces", "few"), FEW)
def test_men_that_cannot_mate(pieces, few):
    row = f"{pieces}{8 - len(pieces)}" if pieces else "8"
    assert after(fen=f"7k/8/8/8/{row}/8/8/7K w - - 0 1").over == few


@pytest.mark.parametrize(("bishops", "few"), [("B1b5", True), ("Bb6", False), ("B1B5", True), ("BB6", False)])
def test_bishops_on_squares_of_one_colour_cannot_mate(bishops, few):
    assert after(fen=f"7k/8/8/8/{bishops}/8/8/7K w - - 0 1").over == few


def test_a_capture_en_passant_that_is_no_longer_possible_makes_another_position():
    """FIDE Laws, 9.2.3. Black might have taken on e3 the first time, so after two rounds the position is there for the
    second time, and the one after Black's next move for the third."""
    fen, around = "4k3/8/8/8/3p4/8/4P3/4K3 w - - 0 1", " e8d8 e1d1 d8e8 d1e1"
    assert "d4e3" in names(after("e2e4", fen))
    assert not after("e2e4" + 2 * around, fen).over
    assert after(f"e2e4{2 * around} e8d8", fen).why == "the third time in this position"


def test_a_pawn_that_nobody_can_capture_en_passant_changes_nothing():
    """The target is not named, and the position after it is the same one later."""
    here = after("e2e4")
    assert here.game.to_record(here.state) == {"fen": "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"}
    assert after("e2e4 " + 2 * "g8f6 g1f3 f6g8 f3g1 ").why == "the third time in this position"


def test_castling_needs_safe_squares_and_men_that_have_not_moved():
    home = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"
    assert {"e1g1", "e1c1"} <= names(after(fen=home))
    castled = lambda moves, fen=home: {"e1g1", "e1c1"} & names(after(moves, fen))
    assert castled("a1a2 a8b8 a2a1 b8b7") == {"e1g1"}  # the rook has moved
    assert castled("e1e2 a8b8 e2e1 b8a8") == set()  # the king has
    assert castled("h1h8 e8d7") == {"e1c1"}
    rook_on = lambda col: f"3k4/8/8/{'1' * col}r{'1' * (7 - col)}/8/8/8/R3K2R w KQ - 0 1"
    assert [castled("", rook_on(col)) for col in range(8)] == [
        {"e1g1", "e1c1"}, {"e1g1", "e1c1"}, {"e1g1"}, {"e1g1"}, set(), {"e1c1"}, {"e1c1"}, {"e1g1", "e1c1"},
    ]  # fmt: skip


FENS = [
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "4k3/8/8/8/3pP3/8/8/4K3 b - e3 0 7",
    "8/8/8/8/8/5k2/6q1/7K w - - 13 60",
]


@pytest.mark.parametrize("fen", FENS)
def test_a_position_in_fen_comes_back(fen):
    rules = Rules(8)
    assert rules.to_fen(rules.from_fen(fen)) == fen


REFUSED = [
    ("8/8/8/8/8/8/8/8 w - - 0 1", "one king of White, got 0"),
    ("4k3/8/8/8/8/8/8/4K3 x - - 0 1", "w or b to move, got 'x'"),
    ("4k3/8/8/8/8/8/8/4K3 w - - 0", "4 or 6 fields, got 5"),
    ("4k3/8/8/8/8/8/4K3 w - - 0 1", "8 rows of 8 squares"),
    ("4k3/8/8/8/8/8/8/4K2X w - - 0 1", "the letters pnbrqk"),
    ("4k2P/8/8/8/8/8/8/4K3 w - - 0 1", "a pawn stands on the first or last row"),
    ("4k3/8/8/8/8/8/PPPPPPPP/RNBQKBNQ w - - 0 1", "White has more pieces than pawns can become"),
    ("4k3/8/8/8/8/8/8/4K3 w K - 0 1", "castling K needs a king and a rook"),
    ("4k3/8/8/8/8/8/8/4K3 w - e6 0 1", "no pawn has just passed e6"),
    ("4k3/8/8/8/4P3/8/8/4K3 w - e3 0 1", "expected a square that a pawn has passed"),
    ("4k3/8/8/8/8/8/4R3/4K3 w - - 0 1", "the player who is not to move is in check"),
    ("4k3/8/8/8/8/8/8/4K2R w - - 9 2", "9 quiet moves and reaches move 2"),
    ("4k3/8/8/8/8/8/8/4K2R w - - 0 999", "reaches move 999"),
]


@pytest.mark.parametrize(("fen", "reason"), REFUSED)
def test_impossible_positions_are_refused(fen, reason):
    with pytest.raises(ValueError, match=f"^chess record: fen: .*{reason}"):
        envs.make("chess").from_record({"fen": fen})


def test_other_sizes_are_refused():
    with pytest.raises(ValueError, match="expected size=8 or size=5, got 6"):
        envs.make("chess:size=6")


def test_a_board_in_the_terminal_has_the_colours_of_its_players():
    here = after()
    text = coloured(here.game.show(here.state), here.game.view.cased)
    lines = text.split("\n")
    style = lambda line, at: [str(span.style) for span in lines[line].spans if span.start <= at < span.end]
    assert style(0, 3) == ["bold red"] and style(7, 3) == ["bold cyan"]
    assert style(0, 0) == style(8, 3) == ["bright_black"]


def test_a_union_outside_of_compiled_functions_is_compiled_once(caplog):
    boards = Bits((jnp.arange(4, dtype=jnp.uint32), jnp.arange(4, 8, dtype=jnp.uint32)))
    logged = []
    with jax.log_compiles():
        for _ in range(2):
            assert [int(word) for word in boards.union.words] == [3, 7]
            logged.append(len(caplog.records))
    assert 0 < logged[0] == logged[1]
