"""Every option of a run with its reason, and the presets that suit a game and a device."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

from envs.game import Game

DEFAULT_MINUTES = 28.0  # budget of a run that is given neither iterations nor minutes

LONG_MINUTES = 10.0  # a budget from which on a run is worth a preflight


@dataclasses.dataclass(frozen=True)
class Config:
    """Options of a training run. A checkpoint keeps them, so a resumed run needs none of them again."""

    # The run
    env: str = "foq"
    """Game, as name:option=value,..."""
    seed: int = 0
    """Everything random follows from it: same seed, same machine, same weights after N iterations."""
    iterations: int | None = None
    """Stop after this many iterations in all, those before a resume counted."""
    minutes: float | None = None
    """Stop after this much running time in all. The learning rate then follows the clock, so bit-for-bit repeatable
    runs give --iterations instead. Without either, a run takes 28 minutes, or 2 for tiny games."""
    out: str = ""
    """Folder of the run; by default runs/GAME-TIME."""
    checkpoint_minutes: float = 5.0
    """Time between two saves: what a crash can cost."""
    keep_checkpoints: int = 2
    """Checkpoints to go on from that are kept, each with its replay buffer: the newest, and the one before it in case
    the disk damages the newest. Networks are all kept."""
    preflight: bool = True
    """Beside the first iterations of a run of --minutes=10 or more, learn a solved toy game with the parts of this
    configuration, which takes less than a minute, and end the run where that fails. Asked for by name, of any run."""
    devices: int | None = None
    """Devices to share the games, a CPU counting as one for each of its cores; by default as many as possible. Lanes
    play the same games on any number of devices; batches are drawn by each device from the rows of its own lanes."""

    init_from: str = ""
    """Folder of a run or model whose network the run begins with, in place of a random one; its sizes are then the
    defaults here, and with more --channels or --blocks it grows, see agents/network/transfer.py. The board may have
    another size. Take a smaller --learning_rate than for a new one: 1e-3, say, or 3e-3 where it has to learn another
    board."""
    recipe: Literal["default", "alphazero", "evopawness", "value_generations"] = "default"
    """Whose settings the other options start from, see `RECIPES`. value_generations is another way of learning
    altogether, see agents/training/value_regression.py."""

    # Self-play
    num_envs: int = 1024
    """Games played in lockstep (B)."""
    plies_per_iteration: int = 4
    """Plies of every game between two visits to the host (T). Games go on across iterations."""
    random_opening_plies: int = 0
    """A new game begins after 0 to this many random moves: positions off the beaten track are learnt too (after the
    varied openings of Wu 2019)."""
    resign_threshold: float = -1.0
    """A player resigns when the searched value of their position is below this; -1 plays every game to its end. Spares
    moves from which little is learnt (Silver et al. 2017, methods). For two players."""
    played_out: float = 0.2
    """Share of games that are never given up: they tell how often giving up is wrong, and teach endings."""
    restart_share: float = 0.0
    """Share of new games that begin where the network erred most about who wins, of the games that ended in the same
    lane (after Trudeau and Bowling 2023, "Targeted search control in AlphaZero for effective policy improvement")."""
    num_simulations: int = 16
    """Simulations of the search for each move (N)."""
    search: Literal["gumbel", "puct"] = "gumbel"
    """Gumbel improves the policy even with few simulations (Danihelka et al. 2022); puct is AlphaZero's."""
    search_loop: Literal["native", "mctx"] = "native"
    """The tree loop: the native one writes only along the path of a simulation; mctx's own is the reference for it, and
    draws for all lanes together, so that they play other games on another number of devices."""
    max_num_considered_actions: int = 8
    """Actions that sequential halving starts with at the root; more than half the simulations leave no second round."""
    gumbel_value_scale: float = 0.1
    """Weight of values against the prior in Gumbel search, c_scale of Danihelka et al. 2022: 0.1 for values spread over
    [0, 1], as mctx has it; with `rescale_values` off take 1, theirs for Go and chess."""
    play_value_scale: float = 0.3
    """The same in play and evaluation, where a trained network's values deserve more trust (docs/measurements.md)."""
    rescale_values: bool = True
    """Spread the values of a node's actions over [0, 1] before weighing them, as mctx does by default."""
    c_puct: float = 1.25
    """Exploration of PUCT, c_init of Silver et al. 2018; it grows with the logarithm of the visits (c_base 19652)."""
    proofs: bool = False
    """Carry proven results up the tree, so that endings within reach are played perfectly; for two players. Proven are
    wins in one move, at the root always and below it where `Game.moves_are_cheap`, without a simulation; what finished
    games show; and what the theory of a game knows (`Game.known_result`). Play and evaluation always do so."""
    leaf_symmetry: Literal["none", "random", "average"] = "none"
    """Evaluate every leaf as it stands, through a random symmetry of the game (Silver et al. 2017), or through all of
    them, averaged, at that many times the cost."""
    root_symmetry: Literal["none", "random", "average"] = "none"
    """The same for the position that is searched. Play and evaluation always average there."""
    fpu_reduction: float = 0.2
    """How much less than its node an action without a visit is worth to PUCT, times the root of the prior already
    visited (Wu 2019); with `rescale_values` such an action counts as the lowest instead."""
    dirichlet_alpha: float = 0.3
    """Concentration of the root noise of PUCT; Silver et al. 2018 took about 10 over the usual number of legal moves:
    0.3 in chess, 0.03 in Go on 19 lines."""
    dirichlet_fraction: float = 0.25
    """Share of that noise in the root's prior (Silver et al. 2017)."""
    temperature_plies: int = 30
    """Plies from the start of a game in which PUCT plays in proportion to visits (Silver et al. 2017); then the most
    visited. Gumbel search explores by its own noise throughout."""

    early_urge: float = 0.0
    """Added in the first eighth of the run, from ply 50 on, to PUCT's score of root actions that the game calls urgent
    (`Game.urge`: attack and promotion in EvoPawness), as many times as the game says: its author's cure for games
    without a result."""

    # Network
    network: Literal["resnet", "strips", "mlp"] = "resnet"
    """Body: residual convolutions; whole rows and columns mixed at once, quicker on a CPU and where pieces act along
    lines; or a perceptron for games of a handful of cells."""
    channels: int = 32
    """Width of the body."""
    blocks: int = 3
    """Residual blocks of two layers each."""
    pooling: bool = True
    """Let every residual block also see the mean and the maximum of its channels over the whole board (Wu 2019, section
    3.3)."""
    slides: bool = False
    """Let every residual block also follow rows, columns and diagonals up to what blocks them, which it learns itself:
    for games whose pieces slide. On a CPU it makes the network of 32 x 3 a third dearer. On by default in Flight of
    Queen on a CPU (docs/measurements.md); on accelerators it has not been measured."""
    normalisation: Literal["batch", "layer", "none"] = "batch"
    """See the docstring of agents/network/network.py for the measurement behind the default."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Arithmetic of the body; weights and heads stay in float32."""

    # Learning
    replay_capacity: int = 200_000
    """Rows in the replay buffer, rounded up to whole iterations and never below one game of every lane."""
    replay_ratio: float = 3.0
    """How often a row is drawn on average while it is in the buffer; sets the updates of an iteration."""
    augment: bool = True
    """Each drawn row is seen through a symmetry of the game (Silver et al. 2016, methods): more positions to learn
    from, and none of them dearer."""
    batch_size: int = 128
    """Rows in one update."""
    optimiser: Literal["muon", "adamw"] = "muon"
    """Muon learns a network of convolutions with fewer samples (docs/measurements.md); see
    agents/training/learner.py."""
    learning_rate: float = 5e-3
    """Peak, reached after `warmup_updates`. For AdamW take 2e-3."""
    final_lr_fraction: float = 0.05
    """Share of the peak that is left at the end of the budget; in between a cosine (Loshchilov and Hutter 2017)."""
    warmup_positions: int = 12_800
    """Positions learned during linear warm-up, in 10 updates at least; 0 for none. Adam's second moments are unreliable
    before (Liu et al. 2020). Positions count each time they are drawn, so the value suits every batch size."""
    weight_decay: float = 0.05
    """Decoupled weight decay (Loshchilov and Hutter 2019) of kernels: an update takes away this share times the
    learning rate. Kernels in front of a normalisation have no natural size. Without decay they grow, and each update
    turns them by less; Liu et al. 2025 found it crucial for Muon."""
    clip_norm: float = 1.0
    """Largest global norm of a gradient: outcomes are noisy."""
    future_weight: float = 0.0
    """Weight of an auxiliary loss: which player will make each move, if any, in the rest of the game. Needs no
    knowledge of the game and teaches where play is going to go. Of games that tell whose each cell is in the end
    (`Game.owners`: Go and Othello) that is learnt in its place, the ownership of Wu 2019, section 3.5."""
    surprise_weight: float = 0.0
    """Share of the rows that are drawn in proportion to how much their search surprised the network, the rest evenly
    (Wu 2020, policy surprise weighting)."""
    proof_share: float = 0.0
    """Share of every batch that are not rows of self-play but positions whose results are proved by search, see
    agents/training/proof_targets.py; for two players. Where each move may turn the result around, games teach little
    else of it."""
    value_lambda: float = 1.0
    """Value target: 1 is the result of the game, less blends in the searched values of the positions that followed, as
    in TD(lambda) (Sutton 1988). All positions of a long game teach the same result: few lessons, which a value head
    learns by heart. On by default in games that may last 200 plies."""
    ema_positions: int = 64_000
    """Learned positions over which the weights are averaged: an update keeps 1 - batch_size / average_positions of the
    exponential average. The averaged network plays and is saved for play (Polyak and Juditsky 1992; Wu 2019 averages
    snapshots). 0 for the newest weights."""

    # Matches during the run
    rating_games: int = 0
    """Games of a match between the network as it is and as it was at the last match: the sum of the differences is the
    rating that is shown. A multiple of the players, since every opening is played from all seats; 0 for none."""
    rating_positions: int = 256_000
    """Positions that the network learns between two such matches."""
    gate: bool = False
    """Self-play is not by the newest network but by the last one that won its match by `gate_share`, the evaluator of
    Silver et al. 2017."""
    gate_share: float = 0.55
    """Share of the points that the newest must get to play from then on; of more than two players the share that tells
    of the same difference."""
    gate_decided: bool = False
    """Only games with a winner count for the gate, as the author of EvoPawness had it: where most are drawn, a share of
    all points hardly ever opens it."""

    def __post_init__(self):
        positive = (
            "num_envs",
            "plies_per_iteration",
            "num_simulations",
            "max_num_considered_actions",
            "channels",
            "batch_size",
        )
        _demand(0 <= self.proof_share <= 0.9, f"--proof_share must be from 0 to 0.9, not {self.proof_share}")
        for name in (*positive, "replay_capacity", "rating_positions", "keep_checkpoints"):
            _demand(getattr(self, name) >= 1, f"--{name} must be at least 1, not {getattr(self, name)}")
        for name in ("iterations", "minutes", "devices"):
            value = getattr(self, name)
            _demand(value is None or value > 0, f"--{name} must be more than 0, not {value}")
        for name in (
            "learning_rate",
            "replay_ratio",
            "clip_norm",
            "gumbel_value_scale",
            "play_value_scale",
            "c_puct",
            "dirichlet_alpha",
        ):
            _demand(getattr(self, name) > 0, f"--{name} must be more than 0, not {getattr(self, name)}")
        counts = ("random_opening_plies", "blocks", "warmup_positions", "ema_positions", "seed")
        for name in (
            *counts,
            "weight_decay",
            "future_weight",
            "early_urge",
            "rating_games",
            "fpu_reduction",
            "checkpoint_minutes",
        ):
            _demand(getattr(self, name) >= 0, f"--{name} must not be negative, not {getattr(self, name)}")
        shares = ("dirichlet_fraction", "value_lambda", "played_out", "restart_share", "surprise_weight")
        shares = (*shares, "gate_share")
        for name in ("final_lr_fraction", *shares):
            _demand(0 <= getattr(self, name) <= 1, f"--{name} must be from 0 to 1, not {getattr(self, name)}")
        _demand(self.rating_games > 0 or not self.gate, "--gate needs --rating_games, for example 400")
        _demand(
            -1 <= self.resign_threshold <= 0, f"--resign_threshold must be from -1 to 0, not {self.resign_threshold}"
        )
        for name in ("gate", "proof_share", "restart_share", "surprise_weight"):
            here = self.recipe != "value_generations" or not getattr(self, name)
            _demand(here, f"--{name} is no part of --recipe=value_generations")
        mild = self.early_urge == 0 or (self.search == "puct" and self.search_loop == "native")
        _demand(mild, "--early_urge is for --search=puct with --search_loop=native")


# What options of version 0.1 are called now.
RENAMED = {
    "weights": "init_from", "gumbel_actions": "max_num_considered_actions", "value_scale": "gumbel_value_scale",
    "first_play_urgency": "fpu_reduction", "final_learning_rate": "final_lr_fraction",
    "random_plies": "random_opening_plies", "lesson_share": "proof_share",
}  # fmt: skip
# Options of version 0.1 that brought nothing, with the value that every record has to have.
REMOVED: dict[str, Any] = {
    "first_simulations": None, "full_search_share": 1.0, "fast_simulations": 8, "tree": "auto", "tree_writes": "auto",
    "visit_offset": 50.0, "lesson_positions": 1 << 15, "resign_errors": 0.05, "value_weight": 1.0, "reply_weight": 0.0,
}  # fmt: skip


def read(record: dict[str, Any]) -> Config:
    """The config of a saved record, of this version or of 0.1.

    Raises:
        ValueError: it uses an option that no longer exists.
        TypeError: an option is unknown.
    """
    record = {RENAMED.get(name, name): value for name, value in record.items()}
    for name, usual in REMOVED.items():
        if record.pop(name, usual) != usual:
            raise ValueError(f"it was made with --{name}, an option of version 0.1 that no longer exists")
    for old in {"warmup_updates", "rating_updates"} & record.keys():
        record[old.replace("updates", "positions")] = record.pop(old) * record["batch_size"]
    if "average_decay" in record:
        record["ema_positions"] = round(record["batch_size"] / max(1 - record.pop("average_decay"), 1e-6))
    if "resign" in record:
        record["resign_threshold"] = -record.pop("resign")
    for name in ("recipe", "search_loop"):
        if record.get(name) == "ours":
            record[name] = {"recipe": "default", "search_loop": "native"}[name]
    return Config(**record)


def _demand(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


# What resuming may change: everything else is baked into the arrays or would make the run another one.
CHANGEABLE = frozenset({"iterations", "minutes", "checkpoint_minutes", "keep_checkpoints", "preflight", "devices"})

# Settings of the articles and papers that this engine follows. They take the place of ours in a preset; size of the
# network, lanes and budget stay those of the preset.
RECIPES: dict[str, dict[str, Any]] = {
    "default": {},
    # Silver et al. 2017, "Mastering the game of Go without human knowledge", methods.
    "alphazero": {
        "search": "puct", "rescale_values": False, "fpu_reduction": 0.0, "dirichlet_fraction": 0.25,
        "temperature_plies": 30, "leaf_symmetry": "random", "random_opening_plies": 0, "resign_threshold": -1.0,
        "optimiser": "adamw", "learning_rate": 2e-3, "future_weight": 0.0, "value_lambda": 1.0, "pooling": False,
        "slides": False, "replay_capacity": 500_000, "batch_size": 2048, "gate": True, "gate_share": 0.55,
        "weight_decay": 1e-4, "rating_games": 400, "rating_positions": 2_048_000,
    },
    # The EvoPawness article: a new network must win one and a half times as often as it loses.
    "evopawness": {
        "search": "puct", "c_puct": 1.0, "rescale_values": False, "fpu_reduction": 0.0, "dirichlet_alpha": 0.3,
        "dirichlet_fraction": 0.25, "temperature_plies": 30, "num_simulations": 25,
        "random_opening_plies": 0, "resign_threshold": -1.0, "optimiser": "adamw",
        "learning_rate": 1e-3, "blocks": 4, "future_weight": 0.0, "value_lambda": 1.0,
        "pooling": False, "slides": False, "replay_capacity": 9000, "replay_ratio": 11.0, "batch_size": 32,
        "gate": True, "gate_share": 0.6, "gate_decided": True, "weight_decay": 1e-4,
        "rating_games": 20, "rating_positions": 160_000,
    },
    # The tic-tac-toe article, see agents/training/value_regression.py.
    "value_generations": {
        "network": "mlp", "channels": 1024, "blocks": 0, "normalisation": "none", "optimiser": "adamw",
        "learning_rate": 1e-4, "final_lr_fraction": 1.0, "weight_decay": 1e-5, "batch_size": 128, "num_envs": 30_000,
        "iterations": 17, "minutes": None, "random_opening_plies": 0, "resign_threshold": -1.0, "future_weight": 0.0,
        "rating_games": 2000, "rating_positions": 1,
    },
}  # fmt: skip

SLIDING = ("foq", "foq_single", "foq_multi")  # games of pieces that slide until something blocks them
LONG_PLIES = 200  # games that may last so long learn results through searched values (docs/measurements.md)
TINY_CELLS = 16  # boards up to this size, and boards of one row, are learnt by a perceptron


def preset(game: Game, platform: str, recipe: str = "default") -> Config:
    """Options that suit the game and the device found (`cpu`, `gpu` or `tpu`), by a recipe.

    Raises:
        ValueError: there is no such recipe.
    """
    if recipe not in RECIPES:
        raise ValueError(f"unknown recipe '{recipe}'; known: {', '.join(RECIPES)}")
    ours = dataclasses.replace(_ours(game, platform), recipe=recipe, **RECIPES[recipe])
    return dataclasses.replace(ours, rating_games=ours.rating_games // game.num_players * game.num_players)


def _ours(game: Game, platform: str) -> Config:
    import jax  # only to ask for the shape of an observation

    rows, cols, _ = jax.eval_shape(lambda: game.observe(game.init())).shape
    one_action_per_cell = 0 <= game.num_actions - rows * cols <= 2  # and perhaps a pass
    config = Config(
        env=game.name,
        random_opening_plies=min(10, game.max_plies // 6),
        future_weight=1.0 if one_action_per_cell else 0.0,
        resign_threshold=-0.9 if game.num_players == 2 else -1.0,
        rating_games=64,
        value_lambda=0.9 if game.max_plies >= LONG_PLIES else 1.0,
    )
    if rows * cols <= TINY_CELLS or rows == 1:
        tiny = {"network": "mlp", "channels": 128, "blocks": 2, "num_envs": 256, "num_simulations": 32}
        tiny |= {
            "random_opening_plies": 6,
            "resign_threshold": -1.0,
            "batch_size": 512,
            "ema_positions": 102_400,
            "minutes": 2.0,
        }
        return dataclasses.replace(config, **tiny, future_weight=0.0, replay_capacity=50_000)
    if platform == "cpu":
        return dataclasses.replace(config, slides=game.name.split(":")[0] in SLIDING)
    # An accelerator is idle with a small network: its cost is that of starting kernels.
    wide = {"channels": 128, "blocks": 8, "num_simulations": 32, "max_num_considered_actions": 16, "dtype": "bfloat16"}
    return dataclasses.replace(config, **wide, batch_size=4096, replay_capacity=1_000_000, plies_per_iteration=32)


URGENT_SHARE = 1 / 8  # of the run, in which an urge counts


def stage(config: Config, progress: float) -> Config:
    """The options of self-play when a share `progress` of the budget is used: what changes during a run does so in
    steps, each of them a program of its own."""
    return dataclasses.replace(config, early_urge=config.early_urge if progress < URGENT_SHARE else 0.0)


def stages(config: Config) -> list[Config]:
    """All different `stage`s of a run, in order."""
    return list(dict.fromkeys(stage(config, (i + 0.5) / 256) for i in range(256)))
