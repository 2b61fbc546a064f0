"""Every option of a run with its reason, and presets for each game and device."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from envs.game import Game

DEFAULT_MINUTES = 28.0  # budget of a run with neither --iterations nor --minutes

LONG_MINUTES = 10.0  # runs with at least this budget get a preflight


def demand(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


COUNT = 2**31 - 1  # largest number that a counter on the device holds
LONGEST_TIME = 10**6  # minutes or seconds; the system's timers overflow beyond 9e9 seconds


@dataclasses.dataclass(frozen=True)
class Range:
    """Values that an option may have: from `least`, or more than `above`, to `most`. NaN and infinities never."""

    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf

    def __str__(self) -> str:
        most = "" if self.most == math.inf else str(self.most)
        if self.above > -math.inf:
            return f"more than {self.above:g}" + (f" and at most {most}" if most else "")
        if self.least == -math.inf:
            return f"at most {most}" if most else "a finite number"
        return f"{self.least} to {most}" if most else f"a finite number of at least {self.least:g}"

    def __contains__(self, value: float) -> bool:
        return -math.inf < value < math.inf and self.least <= value <= self.most and value > self.above


@functools.cache
def ranges_of(kind: type) -> dict[str, Range]:
    """The annotated range of every option of a record that has one."""
    hints = get_type_hints(kind, include_extras=True)
    found = {
        name: [x for x in getattr(hint, "__metadata__", ()) if isinstance(x, Range)] for name, hint in hints.items()
    }
    return {name: ranges[0] for name, ranges in found.items() if ranges}


@dataclasses.dataclass(frozen=True)
class Options:
    """A record of options, each within its annotated range."""

    def __post_init__(self):
        for name, allowed in ranges_of(type(self)).items():
            value = getattr(self, name)
            for number in value if isinstance(value, tuple) else (value,):
                demand(number is None or number in allowed, f"--{name}: expected {allowed}, got {number}")


@dataclasses.dataclass(frozen=True)
class RunOptions(Options):
    """The run: game, budget, folder and what it begins with."""

    env: str = "foq"
    """Game: tictactoe, connect_four, chess, othello, gomoku, hex, go, foq, foq_single, foq_multi, evopawness,
    sum_to_100, pgx:ID, or a file such as my_game.py; with options as in go:size=9,komi=7."""
    seed: Annotated[int, Range(least=0, most=2**32 - 1)] = 0
    """Random seed. The same seed on the same machine gives the same weights after N iterations."""
    iterations: Annotated[int | None, Range(least=1, most=COUNT)] = None
    """Stop after this many iterations in total, including those before a resume."""
    minutes: Annotated[float | None, Range(above=0, most=LONGEST_TIME)] = None
    """Stop after this much time in total, compiling not counted; without --iterations 28 minutes by default, or 2 for
    tiny games. The learning rate then follows the clock, so use --iterations for bit-for-bit repeatable runs."""
    out: str = ""
    """Folder of the run; by default runs/GAME-DATE-TIME."""
    checkpoint_minutes: Annotated[float, Range(least=0, most=LONGEST_TIME)] = 5.0
    """Time between two saves. A crash can lose this much work."""
    keep_checkpoints: Annotated[int, Range(least=1, most=1000)] = 2
    """Number of resumable checkpoints to keep, each with its replay buffer. Two by default: the newest, and a spare in
    case the disk damages the newest. All networks are kept."""
    preflight: bool = True
    """Learn a solved toy game with the same components after the first iteration, and end the run if that fails; by
    default in new runs of --minutes=10 or more. Takes about half a minute. --preflight forces it for any run."""
    devices: Annotated[int | None, Range(least=1, most=2**16)] = None
    """Number of devices to share the games; by default as many as possible. Each CPU core counts as one device. Lanes
    play the same games on any number of devices. Each device draws its batches from the rows of its own lanes."""

    init_from: str = ""
    """Folder of a run or model whose network replaces the random initial weights. Its sizes become the defaults. With
    more --channels, --blocks or --input_planes, or with --attention_policy, it is grown, see
    agents/network/transfer.py. The board may have another size. Use a smaller --learning_rate than for a new network:
    for example 1e-3, or 3e-3 for another board."""
    recipe: str = "default"
    """Source of the defaults for the other options: default, alphazero, evopawness or value_generations, see
    docs/training.md. value_generations is a different learning method, see agents/training/value_regression.py."""


@dataclasses.dataclass(frozen=True)
class SelfplayOptions(Options):
    """Self-play: games in lockstep, openings, resignation."""

    num_envs: Annotated[int, Range(least=1, most=2**20)] = 1024
    """Games played in lockstep (B). On a CPU by default 128 to 1024 for each core, fewer in long games and in games
    with many symmetries: with fewer games at once the network is renewed more often (docs/notes/)."""
    plies_per_iteration: Annotated[int, Range(least=1, most=4096)] = 4
    """Plies of every game between two visits to the host (T). Games continue across iterations."""
    random_opening_plies: Annotated[int, Range(least=0, most=30_000)] = 0
    """A new game begins after 0 to this many random moves. Then the network also learns unusual positions (after the
    varied openings of Wu 2019)."""
    resign_threshold: Annotated[float, Range(least=-1, most=0)] = -1.0
    """A player resigns when the searched value is below this; -1 for never. Saves moves that teach little (Silver et
    al. 2017, methods). Two-player games only."""
    played_out: Annotated[float, Range(least=0, most=1)] = 0.2
    """Share of games without resignation. They measure how often resigning is wrong, and they teach endgames."""


@dataclasses.dataclass(frozen=True)
class SearchOptions(Options):
    """Search of a move, in self-play and in play."""

    num_simulations: Annotated[int, Range(least=1, most=2**20)] = 16
    """Search simulations per move (N)."""
    search: Literal["gumbel", "puct"] = "gumbel"
    """Search algorithm. Gumbel improves the policy even with few simulations (Danihelka et al. 2022). PUCT is
    AlphaZero's search."""
    search_loop: Literal["native", "mctx"] = "native"
    """Implementation of the tree loop. The native loop writes only along the path of a simulation. mctx's own loop is
    the reference. It draws random numbers for all lanes together, so its games depend on the number of devices."""
    max_num_considered_actions: Annotated[int, Range(least=1, most=2**16)] = 8
    """Root actions that sequential halving starts with. A number above half the simulations leaves no second round."""
    play_considered_actions: Annotated[int, Range(least=1, most=2**16)] = 16
    """Maximum number of root actions in play and evaluation. With fewer the search looks deeper, which can make a
    well-trained network stronger, and one that has just begun weaker (docs/notes/)."""
    gumbel_value_scale: Annotated[float, Range(above=0)] = 0.1
    """Weight of values against the prior in Gumbel search (c_scale of Danihelka et al. 2022). 0.1 suits values rescaled
    to [0, 1], as in mctx. With `rescale_values` off use 1, their setting for Go and chess."""
    play_value_scale: Annotated[float, Range(above=0)] = 0.3
    """`gumbel_value_scale` in play and evaluation. A trained network's values deserve more trust (docs/notes/)."""
    rescale_values: bool = True
    """Rescale the values of a node's actions to [0, 1]. This is mctx's default."""
    c_puct: Annotated[float, Range(above=0)] = 1.25
    """Exploration constant of PUCT (c_init of Silver et al. 2018). Exploration grows with the logarithm of the visits
    (c_base 19652)."""
    proofs: bool = False
    """Propagate proven results up the tree, so that endings within reach are played perfectly. Two-player games only.
    Results come from games that finish in the search, from wins in one move, and from the theory of a game
    (`Hints.known_result`). Wins in one move need no simulation at the root, nor below it where `Hints.moves_are_cheap`.
    Play and evaluation always use proofs."""
    leaf_symmetry: Literal["none", "random", "average"] = "none"
    """Evaluate every leaf as it is, through a random symmetry of the game (Silver et al. 2017), or averaged over all
    symmetries, at that many times the cost."""
    root_symmetry: Literal["none", "random", "average"] = "none"
    """The same for the root. Play and evaluation average there, but for roots that were inner nodes of a kept tree."""
    fpu_reduction: Annotated[float, Range(least=0)] = 0.2
    """First-play urgency of PUCT: an action without a visit is worth this much less than its node, times the square
    root of the prior already visited (Wu 2019). With `rescale_values` it counts as the lowest instead."""
    dirichlet_alpha: Annotated[float, Range(above=0)] = 0.3
    """Concentration of PUCT's root noise. Silver et al. 2018 used about 10 divided by the usual number of legal moves:
    0.3 in chess, 0.03 in 19x19 Go."""
    dirichlet_fraction: Annotated[float, Range(least=0, most=1)] = 0.25
    """Share of that noise in the root prior (Silver et al. 2017)."""
    temperature_plies: Annotated[int, Range(least=0, most=COUNT)] = 30
    """Plies from the start of a game in which PUCT samples moves in proportion to visits (Silver et al. 2017). Later it
    plays the most visited move. Gumbel search explores through its own noise throughout."""

    early_urge: Annotated[float, Range(least=0)] = 0.0
    """Bonus on PUCT's score of root actions that the game calls urgent, times the game's own factor (`Hints.urge`:
    attack and promotion in EvoPawness). It applies in the first eighth of the run, from ply 50 on. The EvoPawness
    author uses it against games without a result."""


SearchT = TypeVar("SearchT", bound=SearchOptions)


def for_play(config: SearchT, game: Game, num_simulations: int, proofs: bool = True) -> SearchT:
    """Search settings for matches, from the options that the network was trained with."""
    return dataclasses.replace(
        config,
        num_simulations=num_simulations,
        # Twice the simulations of self-play justify a wider root, up to what suits the network.
        max_num_considered_actions=min(
            config.play_considered_actions, max(config.max_num_considered_actions, num_simulations // 2)
        ),
        gumbel_value_scale=config.play_value_scale,
        root_symmetry="average",
        early_urge=0.0,
        proofs=proofs and game.num_players == 2 and config.search_loop == "native",
    )


@dataclasses.dataclass(frozen=True)
class NetworkOptions(Options):
    """Network: kind, size and heads."""

    network: str = "resnet"
    """Body: resnet, equivariant, strips or mlp. A resnet has residual convolutions. The equivariant body has them too,
    with weights shared by the symmetries of the board, so that a turned position has the turned policy; --channels must
    be a multiple of their number. Strips mix whole rows and columns at once, faster on a CPU and where pieces act along
    lines. An mlp is a perceptron for games with a handful of cells."""
    channels: Annotated[int, Range(least=1, most=2**14)] = 32
    """Width of the body."""
    blocks: Annotated[int, Range(least=0, most=1000)] = 3
    """Residual blocks of two layers each."""
    pooling: bool = True
    """Every residual block also sees the mean and maximum over the board (Wu 2019, section 3.3)."""
    input_planes: Annotated[int, Range(least=0, most=1000)] = 0
    """How many of the game's planes the network sees, counted from the first; 0 for all. By default all that there are
    when the run begins. Put further planes of your own game behind the others, and its networks keep working."""
    slides: bool = False
    """Every residual block of a resnet or equivariant body also looks along lines up to the first blocker. It learns
    what blocks. For games whose pieces slide. A 32 x 3 network gets a third more expensive on a CPU. On by default in
    Flight of Queen on a CPU (docs/notes/); not measured on accelerators."""
    attention_policy: bool = False
    """The policy also scores every move by the cell where it starts together with the cell where it ends, as that of
    Leela Chess Zero does. On by default in games whose moves go further than to the next cell (`Game.offsets`): in
    chess it brought 282 Elo after 20 minutes, in Breakthrough nothing decided (docs/notes/). An mlp has none."""
    canonical: bool = False
    """Turn every position into one orientation before the network sees it. It is the least of the position's images
    under the symmetries of the game. Then --augment and --leaf_symmetry matter only in positions that are their own
    images."""
    normalisation: Literal["batch", "layer", "none"] = "batch"
    """Normalisation of the body. agents/network/normalisation.py gives the measurement behind the default."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Arithmetic of the body and of the policy's hidden layers; weights and the rest of the heads stay in float32."""
    future_weight: Annotated[float, Range(least=0)] = 0.0
    """Weight of an auxiliary loss: who makes each move in the rest of the game. It needs no knowledge of the game and
    teaches where play will go. In games that report the final owner of each cell (`Hints.owners`: Go and Othello),
    ownership is learned instead (Wu 2019, section 3.5)."""


@dataclasses.dataclass(frozen=True)
class LearnerOptions(Options):
    """Learning: replay, targets, optimiser."""

    replay_capacity: Annotated[int, Range(least=1, most=COUNT)] = 200_000
    """Rows in the replay buffer. It is rounded up to whole iterations and never below one game of every lane."""
    replay_share: Annotated[float, Range(above=0, most=1)] = 1.0
    """Batches come from the newest share of all rows of the run, though never from less than the longest game of every
    lane nor more than the buffer. By default 0.17, but 1 on tiny boards. Old rows slow learning down (docs/notes/)."""
    replay_ratio: Annotated[float, Range(above=0, most=1000)] = 3.0
    """Average number of times that a row is drawn. It sets the updates per iteration."""
    augment: bool = True
    """Apply a random symmetry of the game to each drawn row (Silver et al. 2016, methods). This adds positions to learn
    from at no extra cost."""
    batch_size: Annotated[int, Range(least=1, most=2**20)] = 128
    """Rows in one update."""
    optimiser: Literal["muon", "adamw"] = "muon"
    """Optimiser of the learner. Muon trains convolutional networks with fewer samples. See
    docs/notes/2026-11-21-flight-of-queen.md and agents/training/learner.py."""
    learning_rate: Annotated[float, Range(above=0)] = 5e-3
    """Peak learning rate, after `warmup_positions`. For AdamW use 2e-3."""
    final_lr_fraction: Annotated[float, Range(least=0, most=1)] = 0.05
    """Fraction of the peak left at the end of the budget. The decay is a cosine (Loshchilov and Hutter 2017)."""
    warmup_positions: Annotated[int, Range(least=0, most=COUNT)] = 12_800
    """Positions learned during linear warm-up, in 10 updates at least; 0 for none. Adam's second moments are unreliable
    before (Liu et al. 2020). A position counts each time it is drawn, so the value suits every batch size."""
    weight_decay: Annotated[float, Range(least=0)] = 0.05
    """Decoupled weight decay of kernels (Loshchilov and Hutter 2019). An update subtracts this share times the learning
    rate. A kernel before a normalisation has no natural size. Without decay it grows, and each update turns it by less.
    Liu et al. 2025 found decay crucial for Muon."""
    clip_norm: Annotated[float, Range(above=0)] = 1.0
    """Largest global norm of a gradient: game results are noisy."""
    proof_share: Annotated[float, Range(least=0, most=0.9)] = 0.0
    """Share of every batch that comes from positions with proven results. See agents/training/proof_targets.py.
    Two-player games only. Game results teach little where any move may reverse the result."""
    proof_file: str = ""
    """File of positions with exact results from another program, which replaces the proof searches of --proof_share:
    a solver written for one game decides far more. `agents.training.proof_file.write` writes it."""
    value_lambda: Annotated[float, Range(least=0, most=1)] = 1.0
    """Value target: 1 is the result of the game. Less blends in the searched values of later positions, as in
    TD(lambda) (Sutton 1988). All positions of a game share one result, which a value head can overfit. By default 0.9
    in games that may last 200 plies, 1 on tiny boards and 0.85 in all others."""
    ema_positions: Annotated[int, Range(least=0, most=COUNT)] = 64_000
    """Positions over which weights are averaged for play. An update keeps 1 - batch_size / ema_positions of the
    exponential average. The averaged network plays and is saved for play (Polyak and Juditsky 1992; Wu 2019 averages
    snapshots). 0 for the newest weights."""


@dataclasses.dataclass(frozen=True)
class MatchOptions(Options):
    """Matches during the run: rating and gate."""

    rating_games: Annotated[int, Range(least=0, most=10**6)] = 0
    """Games of a match between the current network and that of the last match. The sum of the Elo
    differences is the rating shown. Must be a multiple of the number of players, since every opening is played from all
    seats; 0 for none."""
    rating_positions: Annotated[int, Range(least=1, most=COUNT)] = 256_000
    """Positions that the network learns between two such matches."""
    gate: bool = False
    """Self-play uses the last network that won its match by `gate_share`. This is the evaluator
    of Silver et al. 2017."""
    gate_share: Annotated[float, Range(least=0, most=1)] = 0.55
    """Share of the points that the newest network needs to pass. With more than two players, the share
    that means the same difference in strength."""
    gate_decided: bool = False
    """Count only games with a winner for the gate. The EvoPawness author does so. Where most games are drawn, a share
    of all points hardly ever opens it."""


@dataclasses.dataclass(frozen=True)
class Config(MatchOptions, LearnerOptions, NetworkOptions, SearchOptions, SelfplayOptions, RunOptions):
    """All options of a training run. Checkpoints store them, so a resumed run needs none of them again. A function
    takes the record that it needs; a whole `Config` is each of them."""

    def __post_init__(self):
        super().__post_init__()
        demand(self.rating_games > 0 or not self.gate, "--gate needs --rating_games, for example 400")
        demand(self.proof_share > 0 or not self.proof_file, "--proof_file needs --proof_share, for example 0.5")
        for name in ("gate", "proof_share"):
            here = self.recipe != "value_generations" or not getattr(self, name)
            demand(here, f"--{name} is no part of --recipe=value_generations")
        mild = self.early_urge == 0 or (self.search == "puct" and self.search_loop == "native")
        demand(mild, "--early_urge is for --search=puct with --search_loop=native")


# Options that mean nothing to --recipe=value_generations, which plays and learns in whole generations.
OF_ITERATIONS = (
    "plies_per_iteration", "random_opening_plies", "resign_threshold", "played_out", "value_lambda", "replay_capacity",
    "replay_share", "replay_ratio",
)  # fmt: skip


# Options of version 0.1 and their present names.
RENAMED = {
    "weights": "init_from", "gumbel_actions": "max_num_considered_actions", "value_scale": "gumbel_value_scale",
    "first_play_urgency": "fpu_reduction", "final_learning_rate": "final_lr_fraction",
    "random_plies": "random_opening_plies", "lesson_share": "proof_share",
}  # fmt: skip
# Removed options, which brought nothing. A record must have the value given here.
REMOVED: dict[str, Any] = {
    "first_simulations": None, "full_search_share": 1.0, "fast_simulations": 8, "tree": "auto", "tree_writes": "auto",
    "visit_offset": 50.0, "lesson_positions": 1 << 15, "resign_errors": 0.05, "value_weight": 1.0, "reply_weight": 0.0,
    "surprise_weight": 0.0, "restart_share": 0.0,
}  # fmt: skip


# Planes that version 0.1 had in games that have more today.
PLANES_BEFORE = {"connect_four": 2, "gomoku": 2, "hex": 3, "othello": 2}


def config_of_record(record: dict[str, Any]) -> Config:
    """The config of a saved record, of this version or of 0.1.

    Raises:
        ValueError: an option no longer exists, is of another type or out of its range.
        TypeError: an option is unknown.
    """
    record = {RENAMED.get(name, name): value for name, value in record.items()}
    for name, usual in REMOVED.items():
        if record.pop(name, usual) != usual:
            raise ValueError(f"it was made with --{name}, an option that no longer exists")
    for old in {"warmup_updates", "rating_updates"} & record.keys():
        record[old.replace("updates", "positions")] = record.pop(old) * record["batch_size"]
    if "average_decay" in record:
        record["ema_positions"] = round(record["batch_size"] / max(1 - record.pop("average_decay"), 1e-6))
    if "resign" in record:
        record["resign_threshold"] = -record.pop("resign")
    for name in ("recipe", "search_loop"):
        if record.get(name) == "ours":
            record[name] = {"recipe": "default", "search_loop": "native"}[name]
    if "input_planes" not in record and isinstance(record.get("env"), str):
        record["input_planes"] = PLANES_BEFORE.get(record["env"].partition(":")[0], 0)
    kinds = get_type_hints(Config)
    for name in kinds.keys() & record.keys():
        demand(_is_of(record[name], kinds[name]), f"--{name} cannot be {str(record[name])[:80]!r}")
    return Config(**record)


def _is_of(value: Any, kind: Any) -> bool:
    """Whether a value of JSON is of the type of an option. A whole number may be written for a fraction, no other."""
    if get_origin(kind) is Literal:
        return isinstance(value, str) and value in get_args(kind)
    if get_args(kind):  # X | None
        return any(_is_of(value, one) for one in get_args(kind))
    return type(value) in (int, float) if kind is float else type(value) is kind


# Options that a resume may change. The others are baked into the arrays or would make it a different run.
CHANGEABLE = frozenset(
    {"iterations", "minutes", "checkpoint_minutes", "keep_checkpoints", "preflight", "devices", "proof_file"}
)

# Settings of the articles and papers that this engine follows. They override the preset; whatever a recipe leaves out
# stays that of the preset.
RECIPES: dict[str, dict[str, Any]] = {
    "default": {},
    # Silver et al. 2017, "Mastering the game of Go without human knowledge", methods.
    "alphazero": {
        "search": "puct", "rescale_values": False, "fpu_reduction": 0.0, "dirichlet_fraction": 0.25,
        "temperature_plies": 30, "leaf_symmetry": "random", "random_opening_plies": 0, "resign_threshold": -1.0,
        "optimiser": "adamw", "learning_rate": 2e-3, "future_weight": 0.0, "value_lambda": 1.0, "pooling": False,
        "slides": False, "attention_policy": False, "replay_capacity": 500_000, "replay_share": 1.0,
        "batch_size": 2048, "gate": True, "gate_share": 0.55, "weight_decay": 1e-4, "rating_games": 400,
        "rating_positions": 2_048_000,
    },
    # The EvoPawness article: a new network must win one and a half times as often as it loses.
    "evopawness": {
        "search": "puct", "c_puct": 1.0, "rescale_values": False, "fpu_reduction": 0.0, "dirichlet_alpha": 0.3,
        "dirichlet_fraction": 0.25, "temperature_plies": 30, "num_simulations": 25,
        "random_opening_plies": 0, "resign_threshold": -1.0, "optimiser": "adamw",
        "learning_rate": 1e-3, "blocks": 4, "future_weight": 0.0, "value_lambda": 1.0,
        "pooling": False, "slides": False, "attention_policy": False, "replay_capacity": 9000, "replay_share": 1.0,
        "replay_ratio": 11.0, "batch_size": 32, "gate": True, "gate_share": 0.6, "gate_decided": True,
        "weight_decay": 1e-4, "rating_games": 20, "rating_positions": 160_000,
    },
    # The tic-tac-toe article, see agents/training/value_regression.py.
    "value_generations": {
        "network": "mlp", "channels": 1024, "blocks": 0, "normalisation": "none", "optimiser": "adamw",
        "learning_rate": 1e-4, "final_lr_fraction": 1.0, "weight_decay": 1e-5, "batch_size": 128, "num_envs": 30_000,
        "iterations": 17, "minutes": None, "random_opening_plies": 0, "resign_threshold": -1.0, "future_weight": 0.0,
        "rating_games": 2000, "rating_positions": 1,
    },
}  # fmt: skip

SLIDING_GAMES = ("foq", "foq_single", "foq_multi")  # games whose pieces slide until something blocks them
LONG_PLIES = 200  # games that may last this long: `value_lambda` was measured apart (docs/notes/)
CORE_ROWS = 100_000  # most rows of the longest games of all lanes per CPU core, counted with their symmetries
TINY_CELLS = 16  # boards up to this size, and boards of one row, use a perceptron


def preset(game: Game, platform: str, recipe: str = "default", devices: int = 1) -> Config:
    """Options that suit a game and a number of devices (`cpu`, `gpu` or `tpu`), by a recipe. The number of
    games grows with the devices, on a CPU up to 1024. On GPUs and TPUs the batch grows with them too.

    Raises:
        ValueError: the recipe is unknown.
    """
    if recipe not in RECIPES:
        raise ValueError(f"unknown recipe '{recipe}'; known: {', '.join(RECIPES)}")
    ours = dataclasses.replace(_ours(game, platform, devices), recipe=recipe, **RECIPES[recipe])
    return dataclasses.replace(ours, rating_games=ours.rating_games // game.num_players * game.num_players)


def _ours(game: Game, platform: str, devices: int) -> Config:
    import jax  # only for the shape of an observation

    rows, cols, planes = jax.eval_shape(lambda: game.observe(game.init())).shape
    one_action_per_cell = 0 <= game.num_actions - rows * cols <= 2  # and perhaps a pass
    config = Config(
        env=game.name,
        input_planes=planes,  # so that the network keeps these if the game gets more
        random_opening_plies=min(10, game.max_plies // 6),
        future_weight=1.0 if one_action_per_cell else 0.0,
        attention_policy=game.offsets is not None and bool(abs(game.offsets).max() > 1),
        resign_threshold=-0.9 if game.num_players == 2 else -1.0,
        rating_games=64,
        value_lambda=0.9 if game.max_plies >= LONG_PLIES else 0.85,
        replay_share=0.17,
    )
    if rows * cols <= TINY_CELLS or rows == 1:
        tiny = {"network": "mlp", "channels": 128, "blocks": 2, "num_envs": 256, "num_simulations": 32}
        tiny |= {
            "random_opening_plies": 6,
            "resign_threshold": -1.0,
            "attention_policy": False,
            "value_lambda": 1.0,
            "replay_share": 1.0,
            "batch_size": 512,
            "ema_positions": 102_400,
            "minutes": 2.0,
        }
        return dataclasses.replace(config, **tiny, future_weight=0.0, replay_capacity=50_000)
    if platform == "cpu":
        cpu = {"num_envs": lanes_on_cpu(game, devices), "slides": game.name.split(":")[0] in SLIDING_GAMES}
        return dataclasses.replace(config, **cpu)
    # A small network leaves an accelerator idle: its cost is that of launching kernels.
    wide = {"channels": 128, "blocks": 8, "num_simulations": 32, "max_num_considered_actions": 16, "dtype": "bfloat16"}
    devices = min(devices, 256)  # more would exceed the largest batch
    wide |= {"num_envs": 1024 * devices, "batch_size": 4096 * devices, "plies_per_iteration": 32}
    return dataclasses.replace(config, **wide, replay_capacity=1_000_000)


def lanes_on_cpu(game: Game, cores: int) -> int:
    """Games in lockstep on a CPU, a power of two.

    Batches come from at least the longest game of every lane. With many lanes that window is stale, because a core
    replaces its rows slowly. With few lanes the network overfits. Rows count once for each symmetry, because batches
    apply a random one (docs/notes/2026-11-27-lanes.md).
    """
    of_core = min(max(CORE_ROWS // (game.max_plies * max(len(game.symmetries), 1)), 128), 1024)
    return min(1 << (of_core.bit_length() - 1) << (cores.bit_length() - 1), 1024)


URGENT_SHARE = 1 / 8  # of the run, in which `early_urge` counts


def stage(config: Config, progress: float) -> Config:
    """Self-play options at a share `progress` of the budget; they change in steps, each with its own program."""
    return dataclasses.replace(config, early_urge=config.early_urge if progress < URGENT_SHARE else 0.0)


def stages(config: Config) -> list[Config]:
    """All distinct `stage`s of a run, in order."""
    return list(dict.fromkeys(stage(config, (i + 0.5) / 256) for i in range(256)))
