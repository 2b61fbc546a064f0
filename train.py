"""Trains a network by self-play: python train.py --env=foq --num_envs=1024"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import envs
from agents.config import Config
from agents.network.network import make_network
from agents.run.folder import open_folder
from agents.run.gating import check_rating
from agents.run.loop import train_in
from agents.run.options import training
from agents.run.resume import begin_with
from agents.runtime import cli, mesh, processes


def train(config: Config, resume: Path | None) -> None:
    game = envs.make(config.env)
    check_rating(game, config)
    net = make_network(game, config)
    if config.init_from and resume is None:
        net = begin_with(net, config)
    devices = mesh.make_mesh(config.num_envs, config.batch_size, config.devices, everywhere=True)
    with open_folder(config, resume) as folder:
        train_in(folder, game, net, config, devices, resume)


def main(arguments: Sequence[str] | None = None) -> None:
    with processes.together(), cli.errors():
        cli.collect_rarely()
        cli.keep_compiled()
        config, resume = training(sys.argv[1:] if arguments is None else arguments)
        train(config, resume)


if __name__ == "__main__":
    main()
