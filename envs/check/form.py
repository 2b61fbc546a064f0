"""Rules about the form of a game: dtypes, shapes, sizes and the first position. They play no game."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import envs
from envs.check.bench import Bench
from envs.check.rule import form, same
from envs.game import Game


@form
def answers_have_the_promised_dtypes_and_shapes(bench: Bench) -> None:
    game = bench.game
    promised(game, "mask", game.mask, bool, game.num_actions)
    promised(game, "over", game.over, bool)
    promised(game, "player", game.player, np.int32)
    promised(game, "rewards", game.rewards, np.float32, game.num_players)
    planes = jax.eval_shape(lambda: game.observe(game.init()))
    assert (planes.dtype, planes.ndim) == (np.float32, 3), f"observe: expected float32[R, C, P], got {shaped(planes)}"
    if game.hints.evaluate is not None:
        promised(game, "evaluate", game.hints.evaluate, np.float32)
    if game.hints.owners is not None:
        promised(game, "owners", game.hints.owners, np.int8, game.num_actions)


def promised(game: Game, name: str, function: Callable[[Any], Any], dtype: Any, *shape: int) -> None:
    """Requires this dtype and shape of the function's answer for a position."""
    got = jax.eval_shape(lambda: jnp.asarray(function(game.init())))
    want = jax.ShapeDtypeStruct(shape, dtype)
    assert (got.dtype, got.shape) == (want.dtype, want.shape), f"{name}: expected {shaped(want)}, got {shaped(got)}"


def shaped(x: jax.ShapeDtypeStruct) -> str:
    return f"{x.dtype}{list(x.shape)}"


@form
def name_gives_the_game_back(bench: Bench) -> None:
    game = bench.game
    assert envs.make(game.name) is game


@form
def sizes_are_plain_positive_numbers(bench: Bench) -> None:
    game = bench.game
    for name in ("num_players", "num_actions", "max_plies", "max_legal"):
        size = getattr(game, name)
        assert type(size) is int and size >= 1, f"{name}: expected a positive int, got {size!r}"
    assert game.num_players >= 2, f"num_players: expected 2 or more, got {game.num_players}"
    most = f"at most num_actions = {game.num_actions}"
    assert game.max_legal <= game.num_actions, f"max_legal: expected {most}, got {game.max_legal}"
    assert max(game.num_actions, game.max_plies) < 2**15, "codes and plies are kept in 16 bits"


@form
def actions_of_cells_fill_the_board(bench: Bench) -> None:
    game = bench.game
    if game.actions_per_cell != 1:
        rows, cols, _ = jax.eval_shape(game.observe, jax.eval_shape(game.init)).shape
        least = rows * cols * game.actions_per_cell
        wanted = f"{rows} * {cols} cells * actions_per_cell = {least}, or one or two more"
        assert 0 <= game.num_actions - least <= 2, f"num_actions: expected {wanted}, got {game.num_actions}"


@form
def symmetries_are_given(bench: Bench) -> None:
    wanted = "the identity first; a game without symmetries has no_symmetries(num_actions)"
    assert bench.game.symmetries, f"symmetries: expected {wanted}, got none"


@form
def offsets_say_where_each_kind_leads(bench: Bench) -> None:
    offsets = bench.game.offsets
    if offsets is not None:
        wanted, got = [bench.game.actions_per_cell, 2], list(offsets.shape)
        assert got == wanted and offsets.dtype.kind == "i", f"offsets: expected int32{wanted}, got {offsets.dtype}{got}"


@form
def to_mover_frame_is_a_permutation_for_each_player(bench: Bench) -> None:
    game = bench.game
    if game.to_mover_frame is not None:
        wanted, got = [game.num_players, game.num_actions], list(game.to_mover_frame.shape)
        assert got == wanted, f"to_mover_frame: expected the shape {wanted}, got {got}"
        for player, codes in enumerate(game.to_mover_frame):
            every = sorted(codes.tolist()) == list(range(game.num_actions))
            assert every, f"to_mover_frame[{player}]: expected every code once"


@form
def step_and_move_keep_structure_and_dtypes(bench: Bench) -> None:
    game = bench.game
    s = like = jax.eval_shape(game.init)
    for function in (game.step, game.move):
        for action in (0, np.int32(0), np.int64(0), jnp.int8(0)):
            got = jax.eval_shape(function, s, action)
            assert jax.tree.structure(got) == jax.tree.structure(like), "expected a state of the same fields as init's"
            for (path, want), have in zip(jax.tree.leaves_with_path(like), jax.tree.leaves(got), strict=True):
                field, alike = jax.tree_util.keystr(path).strip("."), shaped(have) == shaped(want)
                assert alike, f"{field}: expected {shaped(want)} as from init, got {shaped(have)}"
                assert not have.weak_type, f"{field}: expected a type of its own, got a weak one: use astype"


@form
def init_takes_a_key_or_none(bench: Bench) -> None:
    game = bench.game
    start, keyed = jax.jit(game.init)(), jax.jit(game.init)(jax.random.key(0))
    same(jax.jit(game.init)(None), start)
    assert jax.tree.structure(keyed) == jax.tree.structure(start)


@form
def some_action_is_legal_at_the_start(bench: Bench) -> None:
    game = bench.game
    mask, over = jax.jit(lambda: (game.mask(game.init()), game.over(game.init())))()
    assert mask.any(), "mask: expected a legal action in the first position, got none"
    assert not over, "over: expected False in the first position, got True"
