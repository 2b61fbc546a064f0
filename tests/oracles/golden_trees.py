"""Golden trees: searches of mctx, written down by the paths to their nodes.

python tests/oracles/golden_trees.py

writes tests/golden/trees.jsonl anew, which tests/integration/test_search_forms.py compares with the trees of our own
loop.
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import mctx
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

from toys import noisy_network, stack

import envs
from agents.config import Config
from agents.network.inference import make_evaluate
from agents.search import selection
from agents.search.mctx_reference import make_recurrent
from envs.game import Game

FILE = pathlib.Path(__file__).parents[1] / "golden" / "trees.jsonl"
SPEC, SIMULATIONS = "foq:rows=6,cols=6", 20
STARTS = [[], [2], [2, 33]]


def positions(game: Game):
    """The positions after the moves of STARTS, as a batch."""
    return stack([functools.reduce(game.step, moves, game.init()) for moves in STARTS])


def grow(kind: str) -> mctx.Tree:
    """By mctx alone, without noise and with the constants of our defaults. No game may end within these trees: mctx
    goes on below the end, ours does not."""
    game, config = envs.make(SPEC), Config()
    states, evaluate = positions(game), make_evaluate(game, noisy_network(game.num_actions), "none")
    logits, values = evaluate({}, jax.random.key(0), states)
    mover = jax.vmap(game.player)(states)
    value = jnp.take_along_axis(values, mover[:, None], axis=-1)[:, 0]
    root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=states)  # type: ignore[call-arg]
    invalid = (~jax.vmap(game.mask)(states)).astype(jnp.float32)
    common = ({}, jax.random.key(1), root, make_recurrent(game, evaluate), SIMULATIONS, invalid)
    if kind == "puct":
        return mctx.muzero_policy(*common, dirichlet_fraction=0.0, pb_c_init=config.c_puct).search_tree
    qtransform = functools.partial(
        mctx.qtransform_completed_by_mix_value,
        value_scale=config.gumbel_value_scale,
        maxvisit_init=selection.VISIT_OFFSET,
    )
    return mctx.gumbel_muzero_policy(
        *common, qtransform=qtransform, max_num_considered_actions=config.max_num_considered_actions, gumbel_scale=0.0
    ).search_tree


def paths(tree: mctx.Tree, lane: int) -> dict[str, int]:
    """Visits of every edge that was taken, by the actions that lead down it."""
    children, visits = np.asarray(tree.children_index[lane]), np.asarray(tree.children_visits[lane])

    def below(node: int, path: tuple[int, ...]):
        for action in np.flatnonzero(visits[node]).tolist():
            yield " ".join(map(str, (*path, action))), int(visits[node, action])
            yield from below(children[node, action], (*path, action))

    return dict(below(0, ()))


def main() -> None:
    lines = []
    for kind in ("gumbel", "puct"):
        tree = jax.device_get(grow(kind))
        assert not jax.vmap(jax.vmap(envs.make(SPEC).over))(tree.embeddings)[tree.node_visits > 0].any()
        for lane, moves in enumerate(STARTS):
            value = round(float(tree.node_values[lane, 0]), 6)
            lines.append(json.dumps({"search": kind, "moves": moves, "value": value, "visits": paths(tree, lane)}))
    FILE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
