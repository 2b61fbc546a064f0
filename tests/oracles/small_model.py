"""A small run that learned nothing yet, with weights that differ from their start, and the model made of it."""

import dataclasses

import jax

import envs
from agents.config import preset
from agents.network.network import make_network
from agents.run.resume import save_run
from agents.storage import weights as models
from agents.training.iteration import start_run

SPEC = "foq:rows=4,cols=5"


def run_and_model(home, spec=SPEC, **options):
    """Writes both under `home`; returns their folders. `options` override those of the run."""
    game = envs.make(spec)
    config = dataclasses.replace(
        preset(game, "cpu"),
        env=game.name,
        num_envs=4,
        channels=8,
        blocks=1,
        replay_capacity=64,
        network="resnet",
        out="a/private/place",
        **options,
    )
    run = jax.jit(lambda: start_run(game, make_network(game, config), config))()
    noise = lambda x: x + 0.3 * jax.random.normal(jax.random.key(x.size), x.shape)
    run = run._replace(learning=run.learning._replace(ema_weights=jax.tree.map(noise, run.learning.ema_weights)))
    save_run(home / "run", run, config, minutes=1.5, total_games=7, total_plies=70)
    models.export_network(home / "run", home / "model")
    return home / "run", home / "model"
