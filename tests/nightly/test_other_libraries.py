"""Games of ours replayed in pgx and in OpenSpiel: legal actions, turn, end and result before every ply.

Where a library follows another rule, a test of its own says which one, who is right, and that nothing else differs;
docs/rules/compared.md sums this up. pgx (Koyamada et al. 2023) and OpenSpiel (Lanctot et al. 2019) are needed by
these tests only.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import pgx.go
import pyspiel
import pytest
from plain_go import sending_two
from plain_stones import rows_through

import envs


class Answers(NamedTuple):
    """What one program says before every ply: numpy arrays with leading axes [game, ply]."""

    legal: Any  # bool[..., A]
    over: Any  # bool[...]
    player: Any  # int[...], who is to move while the game goes on
    rewards: Any  # float[..., 2], counted from the position in which the game has just ended


# Playing

compiled = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})  # for one run only


@functools.cache
def played(spec: str, lanes: int, *openings: tuple[int, ...]) -> tuple[Any, np.ndarray, Answers]:
    """States, actions and answers of random games of ours, played inside one compiled scan.

    Game i begins with the actions of `openings[i]`, where -1 leaves the choice to chance.
    """
    game = envs.make(spec)
    forced = np.full((lanes, game.max_plies + 3), -1, np.int32)
    for lane, moves in enumerate(openings):
        forced[lane, : len(moves)] = moves

    @compiled
    @jax.vmap
    def play(forced, lots):
        def ply(s, draw):
            forced, lots = draw
            legal = game.mask(s)
            action = jnp.where(forced < 0, jnp.where(legal, lots, -1.0).argmax(), forced)
            return game.step(s, action), (s, action, Answers(legal, game.over(s), game.player(s), game.rewards(s)))

        return jax.lax.scan(ply, game.init(), (forced, lots))[1]

    return jax.device_get(play(forced, np.random.default_rng(0).random((*forced.shape, game.num_actions), np.float32)))


def in_pgx(env: pgx.Env, actions: np.ndarray, ahead: bool = False) -> tuple[Answers, Any, Any]:
    """pgx's answers for the same actions; with `ahead` also whether each code would end the game, and the rewards then.

    pgx hands out seats by lot; here, as with us, player 0 is the one who begins.
    """
    codes = jnp.arange(env.num_actions if ahead else 0)

    @compiled
    @jax.vmap
    def replay(key, actions):
        start = env.init(key)
        seats = jnp.stack([start.current_player, 1 - start.current_player])

        def ply(state, action):
            player = (state.current_player != seats[0]).astype(jnp.int32)
            said = Answers(state.legal_action_mask, state.terminated, player, state.rewards[seats])
            after = jax.vmap(lambda code: env.step(state, code))(codes)
            return env.step(state, action), (said, after.terminated, after.rewards[:, seats])

        return jax.lax.scan(ply, start, actions)[1]

    return jax.device_get(replay(jax.random.split(jax.random.PRNGKey(0), len(actions)), actions))


def in_openspiel(game: Any, actions: np.ndarray, codes: np.ndarray, look=lambda lane, ply, state: None) -> Answers:
    """OpenSpiel's answers for the same actions, of which `codes` are its numbers.

    `look` is shown every position in which the game goes on.
    """
    shape = actions.shape
    said = Answers(
        np.zeros((*shape, len(codes)), bool), np.ones(shape, bool), np.zeros(shape, int), np.zeros((*shape, 2))
    )
    for lane, moves in enumerate(actions):
        state = game.new_initial_state()
        for ply, move in enumerate(codes[moves]):
            if state.is_terminal():
                said.rewards[lane, ply] = state.returns()
                break
            said.over[lane, ply] = False
            said.player[lane, ply] = state.current_player()
            legal = state.legal_actions()
            said.legal[lane, ply] = np.isin(codes, legal)
            assert said.legal[lane, ply].sum() == len(legal)  # all of its actions are among ours
            look(lane, ply, state)
            if move not in legal:
                said.over[lane, ply:] = False  # our game is over, this one is not
                break
            state.apply_action(int(move))
    return said


def ends(answers: Answers) -> np.ndarray:
    """Plies after which each game is over."""
    assert answers.over.any(1).all()
    return answers.over.argmax(1)


def agree(ours: Answers, theirs: Answers, before: np.ndarray | None = None):
    """Demands the same answers up to the end of every game, or on the plies below `before` only."""
    last = ends(ours)[:, None] if before is None else before[:, None]
    ply = np.arange(ours.over.shape[1])
    open_ = ply < last
    assert not ours.over[open_].any() and not ours.legal[ours.over].any()
    for theirs_, ours_ in zip(theirs[:3], ours[:3], strict=True):
        np.testing.assert_array_equal(theirs_[open_], ours_[open_])
    if before is None:
        assert theirs.over[ply == last].all()
        np.testing.assert_array_equal(theirs.rewards[ply == last], ours.rewards[ply == last])


def results(answers: Answers) -> set[int]:
    """1, 0, -1: results of the first player that came up."""
    return set(answers.rewards[np.arange(len(answers.over)), ends(answers), 0].astype(int).tolist())


# Games that are the same

SWAPS = ((-1, 121),) * 24  # these games begin with any stone, which is then taken over
WIPE_OUT = tuple(envs.make("othello").parse_action(f"{c}{r}") for c, r in zip("fdcfefgee", "565476563", strict=True))
SAME = [  # game of ours, number of games, openings, id in pgx, name and options in OpenSpiel, results that must come up
    ("tictactoe", 200, (), "tic_tac_toe", ("tic_tac_toe", {}), {1, 0, -1}),
    ("connect_four", 1000, (), "connect_four", ("connect_four", {}), {1, 0, -1}),
    ("connect_four:rows=7,cols=5,connect=5", 60, (), None, ("connect_four", dict(rows=7, columns=5, x_in_row=5)), {0}),
    ("connect_four:rows=3,cols=6,connect=3", 60, (), None, ("connect_four", dict(rows=3, columns=6, x_in_row=3)), {1}),
    ("hex", 60, SWAPS, "hex", ("hex", dict(swap=True)), {1, -1}),
    ("hex:size=4,swap=false", 60, (), None, ("hex", dict(board_size=4)), {1, -1}),
    ("gomoku", 60, (), None, ("mnk", dict(m=15, n=15, k=5)), {1, -1}),
    ("gomoku:size=6", 100, (), None, ("mnk", dict(m=6, n=6, k=5)), {1, 0, -1}),
    ("othello", 400, (WIPE_OUT,), None, ("othello", {}), {1, 0, -1}),
    ("sum_to_100:target=21,largest=21", 100, (), None, ("nim", dict(pile_sizes="21", is_misere=False)), {1, -1}),
]


@pytest.mark.parametrize(("spec", "lanes", "openings", "pgx_id", "other", "seen"), SAME, ids=[row[0] for row in SAME])
def test_the_same_games(spec, lanes, openings, pgx_id, other, seen):
    """Both libraries swap in Hex as we do: the stone taken over moves across the diagonal."""
    _, actions, ours = played(spec, lanes, *openings)
    assert results(ours) >= seen
    name, options = other
    agree(ours, in_openspiel(pyspiel.load_game(name, options), actions, np.arange(ours.legal.shape[-1])))
    if pgx_id is not None:
        agree(ours, in_pgx(pgx.make(pgx_id), actions)[0])


# Othello: when it ends


def test_othello_ends_in_pgx_only_after_two_passes():
    """Where neither player can place a disc, pgx asks both to pass first, unless the board is full or a colour is gone.

    We are right: by the rules of the World Othello Federation the game is over as soon as neither can move, as it is
    in OpenSpiel. The result is the same.
    """
    states, actions, ours = played("othello", 400, WIPE_OUT)
    lanes, end = np.arange(len(actions)), ends(ours)
    theirs, _, _ = in_pgx(pgx.make("othello"), np.where(ours.over, 64, actions))
    agree(ours, theirs, before=end)
    discs = np.stack([np.bitwise_count(x).sum(-1) for x in (states.mine, states.others)], -1)[lanes, end]
    at_once = (discs.sum(-1) == 64) | (discs == 0).any(-1)
    np.testing.assert_array_equal(theirs.over[lanes, end], at_once)
    for ply in (0, 1):  # the two passes
        waiting = lanes[~at_once], end[~at_once] + ply
        assert not theirs.over[waiting].any()
        assert (theirs.legal[waiting] == (np.arange(65) == 64)).all()
    last = np.where(at_once, end, end + 2)
    assert theirs.over[lanes, last].all()
    np.testing.assert_array_equal(theirs.rewards[lanes, last], ours.rewards[lanes, end])
    assert 1 < (~at_once).sum() < at_once.sum() and (discs == 0).any()
    assert (actions == 64)[~ours.over].any()  # single passes, which are the same, came up too


# Gomoku: rows of six and more


def test_openspiel_has_no_exact_five():
    """With `exact` a row of six or more does not win, while OpenSpiel's k in a row, like our default, counts it.

    Both are right: freestyle gomoku counts longer rows, standard gomoku does not.
    """
    _, actions, ours = played("gomoku:size=9,exact=true", 150)
    theirs = in_openspiel(pyspiel.load_game("mnk", {"m": 9, "n": 9, "k": 5}), actions, np.arange(81))
    end, longer = ends(theirs), 0
    agree(ours, theirs, before=end)
    for lane, ply in enumerate(end):
        board = np.zeros(81, int)
        board[actions[lane, :ply]] = 1 - 2 * (np.arange(ply) % 2)
        rows = rows_through(board.reshape(9, 9), *divmod(int(actions[lane, ply - 1]), 9))
        if max(rows) > 5 and 5 not in rows:
            assert not ours.rewards[lane, ply].any() and theirs.rewards[lane, ply].any()
            assert ours.over[lane, ply] == (ply == 81)
            longer += 1
        else:
            assert ours.over[lane, ply]
            np.testing.assert_array_equal(theirs.rewards[lane, ply], ours.rewards[lane, ply])
    assert 5 <= longer < 75


# Go: repeated boards, and draws


def go_codes(size: int) -> np.ndarray:
    """OpenSpiel numbers the points from the bottom row up; both names are the same."""
    codes = np.arange(size * size + 1)
    codes[:-1] = codes[:-1].reshape(size, size)[::-1].ravel()
    state, ours = pyspiel.load_game("go", {"board_size": size}).new_initial_state(), envs.make(f"go:size={size}")
    for action, code in enumerate(codes):
        assert state.action_to_string(0, int(code)).lower() == f"b {ours.action_name(action).lower()}"
    return codes


def first_repetitions(stones: np.ndarray, actions: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Plies after which a play has brought back an earlier board for the first time; the number of plies for never."""
    found = np.full(len(end), actions.shape[1])
    for lane in range(len(end)):
        boards = [board.tobytes() for board in stones[lane, : end[lane] + 1]]
        for ply in range(end[lane], 0, -1):
            if boards[ply] != boards[ply - 1] and boards[ply] in boards[:ply]:
                found[lane] = ply
    return found


@pytest.mark.parametrize(("size", "komi", "lanes"), [(9, 7.5, 40), (5, 1.0, 160)])
def test_go_with_the_simple_ko_rule(size, komi, lanes):
    """Captures, suicide, ko, passes, the cap of 2 n n moves and the score are the same up to a repeated board.

    A play that brings back an earlier board, other than by retaking a ko, is legal with our ko rule `simple`, as by
    the Japanese rules. Both libraries end the game there: in pgx the one who repeated loses, in OpenSpiel it is a
    draw, "for simplicity", as its source says. Our `psk` is the rule that they stand in for, see the next test.

    Equal areas, possible with a whole komi, are a draw by Tromp and Taylor's rules, which all three follow; pgx gives
    the game to White. We and OpenSpiel are right. The games that pgx lists have a komi of 7.5 and never come to that.
    """
    states, actions, ours = played(f"go:size={size},komi={komi},history=1", lanes, *[sending_two(size)] * (lanes // 4))
    rows, end = np.arange(lanes), ends(ours)
    repeated = first_repetitions(states.stones, actions, end)
    stop = np.minimum(end, repeated)
    passed = (actions[rows, end - 1] == size * size) & (actions[rows, end - 2] == size * size)
    assert (states.ko[:, :-1] >= 0)[~ours.over[:, 1:]].sum() > 20 and 0 < passed.sum() < lanes  # others reach the cap
    assert ((end == 2 * size * size) | passed).all()
    assert (repeated[: lanes // 4] == 9).all() and (repeated > end).sum() > lanes // 2

    spiel = in_openspiel(pyspiel.load_game("go", {"board_size": size, "komi": komi}), actions, go_codes(size))
    env = pgx.make("go_9x9") if size == 9 else pgx.go.Go(size=size, komi=komi)
    theirs, _, _ = in_pgx(env, actions)
    mover = (stop - 1) % 2
    lost = np.where(np.arange(2) == mover[:, None], -1, 1)
    counted = ours.rewards[rows, end]
    drawn = ~counted.any(-1, keepdims=True)
    for said, after_repetition, after_end in (
        (theirs, lost, np.where(drawn, [-1, 1], counted)),
        (spiel, np.zeros((lanes, 2)), counted),
    ):
        agree(ours, said, before=stop)
        assert said.over[rows, stop].all()
        want = np.where((repeated <= end)[:, None], after_repetition, after_end)
        np.testing.assert_array_equal(said.rewards[rows, stop], want)
    assert drawn[repeated > end].any() == (komi == 1)


@pytest.mark.parametrize(("size", "lanes"), [(5, 40)])
def test_go_with_positional_superko(size, lanes):
    """With `psk` exactly those plays are illegal after which both libraries would end the game as a repetition.

    We are right, as the rule says that a play may not repeat a board. The libraries offer such a play as legal and let
    it end the game: lost in pgx, as an illegal action is with us, and drawn in OpenSpiel, so that there a player who
    is behind may draw by choice.
    """
    _, actions, ours = played(f"go:size={size},ko=psk,history=1", lanes, *[sending_two(size)[:-1]] * (lanes // 2))
    end, cap = ends(ours), 2 * size * size
    points = np.arange(size * size + 1) < size * size
    early = np.arange(actions.shape[1]) < np.minimum(end, cap - 1)[:, None]  # the last move ends it in any case

    codes, over_next = go_codes(size), np.zeros(ours.legal.shape, bool)

    def look(lane, ply, state):
        for code in np.flatnonzero(np.isin(codes[:-1], state.legal_actions())):
            after = state.child(int(codes[code]))
            over_next[lane, ply, code] = after.is_terminal()
            assert not after.is_terminal() or not early[lane, ply] or after.returns() == [0, 0]

    spiel = in_openspiel(pyspiel.load_game("go", {"board_size": size}), actions, codes, look)
    theirs, terminated, rewards = in_pgx(pgx.go.Go(size=size, komi=7.5), actions, ahead=True)
    for said, ended in ((spiel, over_next), (theirs, terminated & points)):
        np.testing.assert_array_equal(ours.legal[early], (said.legal & ~ended)[early])
        late = ~early & ~ours.over
        assert (said.legal | ~ours.legal)[late].all()
        agree(ours, said._replace(legal=ours.legal))
    refused = theirs.legal & ~ours.legal & early[..., None]
    lane, ply, code = np.nonzero(refused)
    assert len(code) > lanes // 2 and set(code) > {1}
    assert (np.take_along_axis(rewards[lane, ply, code], ours.player[lane, ply][:, None], 1) == -1).all()
