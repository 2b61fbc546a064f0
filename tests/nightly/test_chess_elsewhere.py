"""Random games of chess and Gardner's chess replayed in pgx, and their positions in OpenSpiel."""

from __future__ import annotations

import functools
import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import pyspiel
import pytest

import envs
from envs.chess.rules import Rules

compiled = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})  # for one run only
SIGNS = {"": -1, "r": 0, "b": 1, "n": 2}  # what a pawn becomes, in pgx


def labels(rules: Rules, module) -> np.ndarray:
    """int32[A]: pgx's code of every code in the mover's frame, -1 off the board. pgx numbers squares file by file."""
    size = rules.size
    number = lambda square: square % size * size + size - 1 - square // size
    there = jax.device_get(jax.vmap(module.Action._from_label)(jnp.arange(size * size * rules.kinds)))
    code_of = {way: code for code, way in enumerate(zip(*map(np.ndarray.tolist, _fields(there)), strict=True))}
    moves_by_code = ((number(way[0]), number(way[1]), SIGNS[way[2]]) if way else None for way in rules.moves_by_code)
    return np.array([code_of.get(way, -1) if way else -1 for way in moves_by_code], np.int32)


def _fields(actions):
    return np.asarray(actions.from_), np.asarray(actions.to), np.asarray(actions.underpromotion)


GAMES = [(8, "chess", "pgx._src.games.chess", 12), (5, "gardner_chess", "pgx.gardner_chess", 48)]


@pytest.mark.parametrize(("size", "name", "module", "lanes"), GAMES)
def test_random_games_are_the_same_in_pgx(size, name, module, lanes):
    """Legal moves before every ply, the end and the result."""
    game, env, rules = envs.make(f"chess:size={size}"), pgx.make(name), Rules(size)
    label, frame = labels(rules, importlib.import_module(module)), jnp.asarray(rules.to_mover_frame)
    assert ((label >= 0) | np.array([way is None or bool(way[2]) for way in rules.moves_by_code])).all()

    @compiled
    @jax.vmap
    def play(key):
        state = env.init(jax.random.PRNGKey(0))
        first = state.current_player

        def ply(carry, key):
            s, state = carry
            legal, seat = game.mask(s), game.player(s)
            theirs = jnp.where(label >= 0, state.legal_action_mask[label], False)[frame[seat]]
            over, done = game.over(s), state.terminated
            same = over | ((legal == theirs).all() & (state.legal_action_mask.sum() == legal.sum()))
            same &= over == done
            action = jax.random.categorical(key, jnp.where(legal, 0.0, -1e9))
            stepped = env.step(state, jnp.asarray(label)[frame[seat]][action])
            after = jax.tree.map(lambda old, new: jnp.where(done, old, new), state, stepped)
            return (game.step(s, jnp.where(over, 0, action)), after), same

        keys = jax.random.split(key, game.max_plies + 1)
        (s, state), same = jax.lax.scan(ply, (game.init(), state), keys)
        theirs = jnp.where(first == 0, state.rewards, state.rewards[::-1])
        return same.all(), game.over(s), (game.rewards(s) == theirs).all(), game.rewards(s)[0], s.ply

    same, over, equal, result, plies = jax.device_get(play(jax.random.split(jax.random.key(7), lanes)))
    assert same.all() and over.all() and equal.all()
    assert len(set(result.tolist())) >= 2 and plies.sum() > 1500


def test_in_pgx_a_double_step_makes_another_position():
    """Although nobody can capture the pawn en passant. By the FIDE Laws, 9.2, the third occurrence ends the game."""
    game, env, rules = envs.make("chess"), pgx.make("chess"), Rules(8)
    label, frame = labels(rules, importlib.import_module("pgx._src.games.chess")), rules.to_mover_frame
    step, move = jax.jit(env.step), jax.jit(game.move)
    s, state = game.init(), env.init(jax.random.PRNGKey(0))
    for ply, name in enumerate(["e2e4", *2 * ["g8f6", "g1f3", "f6g8", "f3g1"], "g8f6"]):
        assert not state.terminated and game.over(s) == (ply == 9)
        action = game.parse_action(name)
        s, state = move(s, action), step(state, label[frame[ply % 2, action]])
    assert state.terminated  # the position after the knight's move is there for the third time


def test_positions_have_the_same_successors_in_openspiel():
    """As placement, player to move and castling of a FEN."""
    rules, theirs = Rules(8), pyspiel.load_game("chess")
    mask, move = jax.jit(rules.mask), jax.jit(jax.vmap(rules.move, (None, 0)))
    draw, s, seen = np.random.default_rng(3), rules.init(), 0
    for ply in range(160):
        actions = np.flatnonzero(mask(s))
        if not len(actions):
            s = rules.init()
            continue
        after = move(s, np.resize(actions, 218))
        at = lambda i, after=after: jax.tree.map(lambda x: x[i], after)
        if ply % 8 == 0:
            ours = sorted(rules.to_fen(at(i)).split()[:3] for i in range(len(actions)))
            there = theirs.new_initial_state(rules.to_fen(s))
            assert ours == sorted(str(there.child(action)).split()[:3] for action in there.legal_actions())
            seen += len(actions)
        s = at(draw.integers(len(actions)))
    assert seen > 300
