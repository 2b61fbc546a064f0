"""Trains a network by self-play: python train.py --env=foq --num_envs=1024"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import envs
from agents.config import Config
from agents.network.network import make_network
from agents.run.folder import open_folder
from agents.run.gating import check_rating
from agents.run.loop import PREFLIGHT_THREAD, train_in
from agents.run.options import training
from agents.run.resume import begin_with
from agents.runtime import cli, mesh, processes
from envs import check


def train(config: Config, resume: Path | None) -> None:
    began = time.monotonic()
    game = envs.make(config.env)
    check.demand_form(game)
    check_rating(game, config)
    net = make_network(game, config)
    if config.init_from and resume is None:
        net = begin_with(net, config)
    devices = mesh.make_mesh(config.num_envs, config.batch_size, config.devices, everywhere=True)
    with open_folder(config, resume) as folder:
        train_in(folder, game, net, config, devices, resume, began)


def leave(code: int) -> None:
    """Ends the program at once if the preflight is still running, for example after a stop request. Its compilation may
    take minutes more, and its thread does not survive the shutdown of Python."""
    if any(thread.name == PREFLIGHT_THREAD for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main(arguments: Sequence[str] | None = None) -> None:
    try:
        with processes.together(), cli.errors():
            cli.keep_compiled()
            config, resume = training(sys.argv[1:] if arguments is None else arguments)
            train(config, resume)
    except SystemExit as end:
        leave(end.code if isinstance(end.code, int) else 0)
        raise
    leave(0)


if __name__ == "__main__":
    main()
