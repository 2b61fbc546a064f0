"""The networks in models/ still play about as well as their cards say, where that is quick to see: on solved positions,
in two openings that are won, and against random moves. Matches and times of the cards are not repeated here."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiers import with_nightly

import envs
from agents.arena import match, solved_positions
from agents.players.players import game_of, make_player
from agents.storage import weights as models

ROOT = pathlib.Path(__file__).parents[2]
GO, HEX = ("go_7x7", "go_9x9", "go_13x13"), ("hex_5x5", "hex_6x6", "hex_7x7", "hex_11x11")


@pytest.mark.parametrize(
    ("name", "file", "simulations", "least"),
    [
        ("tictactoe", "tictactoe_solved.jsonl.gz", 0, 1.0),
        ("sum_to_100", "sum_to_100_solved.jsonl", 0, 1.0),
        ("connect_four", "connect_four_unfiltered_solved.jsonl.gz", 0, 0.95),  # 98.3%
        pytest.param("foq", "foq_solved.jsonl.gz", 32, 0.85, marks=pytest.mark.nightly),  # its card has 91.9%
        pytest.param("foq_single", "foq_variants_solved.jsonl.gz", 0, 0.61, marks=pytest.mark.nightly),  # 70.7%
        ("hex_5x5", "hex_5x5_solved.jsonl.gz", 0, 0.93),  # 97.0%
        ("hex_6x6", "hex_6x6_solved.jsonl.gz", 0, 0.93),  # 98.0%
        ("hex_7x7", "hex_7x7_solved.jsonl.gz", 0, 0.90),  # 95.0%
    ],
)
def test_solved_positions(name, file, simulations, least):
    path = str(ROOT / "models" / name)
    game = envs.make(game_of(path))
    positions = solved_positions.read_positions(ROOT / "tests" / "golden" / file, game)
    moves = solved_positions.choose(make_player(f"{path}@{simulations}", game, simulations), positions)
    kept = positions.right[np.arange(len(moves)), moves]
    assert kept.mean() >= least


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "moves"), [("go_5x5", {"C3"}), ("foq_single", {"h8", "a1"})])
def test_first_moves_that_win(name, moves):
    """On 5 x 5 Black takes the whole board from the centre (van der Werf, van den Herik and Uiterwijk 2003); one queen
    wins by its moves into two corners and by no other, which was proved, see docs/foq_explored.md."""
    path = str(ROOT / "models" / name)
    game = envs.make(game_of(path))
    start = jax.tree.map(lambda x: jnp.asarray(x)[None], game.init())
    for simulations in (0, 64):
        player = make_player(f"{path}@{simulations}", game, simulations)
        action = jax.jit(player.act)(player.weights, jax.random.key(0), start, jnp.zeros(1, jnp.int32))
        assert game.action_name(int(action[0])) in moves


@pytest.mark.parametrize(("name", "wins"), [("hex_5x5", 13), ("hex_7x7", 14)])
def test_swaps_every_first_move_that_wins_and_no_other(name, wins):
    """The solved positions after the 25 first moves of Hex, on 7x7 up to the half turn, by the network alone."""
    path = str(ROOT / "models" / name)
    game = envs.make(game_of(path))
    positions = solved_positions.read_positions(ROOT / "tests" / "golden" / f"{name}_solved.jsonl.gz", game)
    player, swap = make_player(f"{path}@0", game, 0), game.num_actions - 1
    first = np.asarray(positions.states.plies) == 1
    swapped = solved_positions.choose(player, positions)[first] == swap
    assert first.sum() == 25 and swapped.sum() == wins
    assert (swapped == positions.right[first, swap]).all()


ALONE = [*GO, *HEX, "othello", "gomoku_9x9", "gomoku_15x15"]
CHESS = ["gardner_chess", "chess"]


SETTINGS = [*((name, 0) for name in ALONE), *((name, 16) for name in CHESS)]
COSTLY = [setting for setting in SETTINGS if setting[0] not in ("go_7x7", "gomoku_9x9")]


@pytest.mark.parametrize(("name", "simulations"), with_nightly(SETTINGS, COSTLY))
def test_random_moves_lose(name, simulations):
    """Nearly all of 20 games. The network alone is enough, but for chess, where it draws many."""
    path = str(ROOT / "models" / name)
    game = envs.make(game_of(path))
    alone, random = (make_player(spec, game, 0) for spec in (f"{path}@{simulations}", "random"))
    played = match.play_games(game, alone, random, games=20, opening_plies=2, seed=0)
    assert played.score.mean() >= 0.95


def test_every_model_has_its_card_and_is_small():
    folders = [path for path in (ROOT / "models").iterdir() if path.is_dir()]
    names = {"tictactoe", "sum_to_100", "connect_four", "foq", "foq_single", "foq_multi", "evopawness"}
    assert names | {"go_5x5", *GO, *HEX} <= {path.name for path in folders}
    for folder in folders:
        assert (folder / "README.md").read_text().count("train.py") > 0
        assert models.about(folder)["total_games"] > 0
    assert sum((folder / models.NETWORK_FILE).stat().st_size for folder in folders) < 5_000_000
