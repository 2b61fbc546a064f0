"""Policy and value networks: residual convolutions or strips for boards, a perceptron for tiny games."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from agents.config import NetworkOptions
from agents.network import pooling
from agents.network.attention import AttentionPolicy
from agents.network.convolution import convolve
from agents.network.normalisation import Norm
from agents.network.orientation import least_image, map_back
from envs.game import Array, Game


class Heads(NamedTuple):
    """All outputs of a network."""

    policy: Array  # logits float32[B, A] in the mover's frame
    value: Array  # float32[B]; [B, n] with more than two players
    future: Array | None
    """Logits float32[B, A, n + 1] of the player who makes each move next, or who owns its cell at the end. Classes are
    in seat order from the mover; the last is nobody. Only with `future_weight`."""


@dataclasses.dataclass(frozen=True)
class Network:
    """A network as three pure functions. Weights are a pytree with "params" and sometimes "batch_stats"."""

    init: Callable[[Array], Any]  # key -> weights
    apply: Callable[[Any, Array], tuple[Array, Array]]
    """(weights, float32[B, R, C, P]) -> logits float32[B, A] in the mover's frame, value float32[B] for the mover.
    With more than two players the value is float32[B, n] in seat order from the mover."""
    train: Callable[..., tuple[Heads, Any]]
    """(weights, planes, axis, counted=None) -> (heads for training, weights with new running statistics, if any).
    The batch is divided evenly over the devices of `axis`; with None it is whole. Only the rows `counted` bool[B] enter
    the statistics; None means all rows."""
    heads: Callable[[Any, Array], Heads]
    """(weights, planes) -> all heads, with running statistics, as in play."""


# Rows of a batch that are evaluated at once. On a CPU the activations of more rows do not fit its caches. Nor do they
# fit a TPU's vector memory: its compiler then pools every block's activations by another pass over them.
CPU_ROWS, TPU_ROWS = 64, 1024


class Conv(nn.Module):
    """3 x 3 convolution without bias."""

    channels: int
    dtype: jnp.dtype
    kernel_init: Callable[..., Array] = nn.initializers.lecun_normal()

    @nn.compact
    def __call__(self, x: Array) -> Array:
        kernel = self.param("kernel", self.kernel_init, (3, 3, x.shape[-1], self.channels))
        return convolve(x, kernel.astype(self.dtype))


def product(x: Array, kernel: Array, axes: Any, **options: Any) -> Array:
    """`jax.lax.dot_general`, on a TPU by its matrix unit even if the kernel has one column. Its compiler would sum over
    the channels of every cell instead, in another pass."""

    def two_columns(x: Array, kernel: Array) -> Array:
        wide = jnp.concatenate([kernel, jnp.zeros_like(kernel)], axis=-1)
        return jax.lax.dot_general(x, wide, axes, **options)[..., :1]

    direct = lambda x, kernel: jax.lax.dot_general(x, kernel, axes, **options)
    if kernel.shape[-1] > 1:
        return direct(x, kernel)
    return jax.lax.platform_dependent(x, kernel, tpu=two_columns, default=direct)


@jax.custom_jvp
def rectified(x: Array) -> Array:
    """`relu` with a product as derivative. Where nothing else needs the comparison with zero again, a TPU's compiler
    would store its results as bits, in a pass over all activations."""
    return nn.relu(x)


@rectified.defjvp
def rectified_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (change,) = primals, tangents
    return rectified(x), change * jnp.clip(x * 2.0**100, 0, 1)


SLIDE_CHANNELS = 4  # channels for each of the eight directions in `Slides`
VALUE_CHANNELS = 4  # per cell, for the value: a layer whose weights depend on the cell, like dense heads of policies


def beside(x: Array, columns: int) -> Array:
    """Shifts [B, C, F] right by `columns`, or left if negative; vacated cells are zero."""
    right, left = max(columns, 0), max(-columns, 0)
    return jnp.pad(x, ((0, 0), (right, left), (0, 0)))[:, left : left + x.shape[1]]


def down(x: Array, gate: Array, sideways: tuple[int, ...]) -> Array:
    """Signals `y` that arrive at every cell from above, [B, R, C, F], if the cells send `x` of the same shape.

    `y[r + 1, c + s] = x[r, c] + gate[r, c] * y[r, c]`. Each sideways step `s` gets an equal share of the channels.
    `gate` [B, R, C, 1] is the share of arriving signals that a cell passes on.
    """
    coming, rows = jnp.zeros_like(x[:, 0]), []
    for row in range(x.shape[1]):
        rows.append(coming)
        shares = jnp.split(x[:, row] + gate[:, row] * coming, len(sideways), axis=-1)
        coming = jnp.concatenate([beside(y, s) for y, s in zip(shares, sideways, strict=True)], axis=-1)
    return jnp.stack(rows, axis=1)


def along_lines(x: Array, gate: Array) -> Array:
    """Signals that arrive at every cell along rows, columns and diagonals, [B, R, C, 8 k], if the cells send `x`.

    Each direction has k channels: three down, three up, right and left. `gate` [B, R, C, 1] is the share of arriving
    signals that a cell passes on. The cell itself receives all of them: a piece may stop where it cannot move on.
    """
    turn, flip = lambda y: y.swapaxes(1, 2), lambda y: y[:, ::-1]
    k = x.shape[-1] // 8
    of_down, of_up, of_right, of_left = jnp.split(x, [3 * k, 6 * k, 7 * k], axis=-1)
    return jnp.concatenate(
        [
            down(of_down, gate, (-1, 0, 1)),
            flip(down(flip(of_up), flip(gate), (-1, 0, 1))),
            turn(down(turn(of_right), turn(gate), (0,))),
            turn(flip(down(flip(turn(of_left)), flip(turn(gate)), (0,)))),
        ],
        axis=-1,
    )


class Slides(nn.Module):
    """Passes signals along all lines of the board until cells in between block them. One layer sees as far as a queen;
    convolutions need one layer per step."""

    @nn.compact
    def __call__(self, x: Array, gate: Array) -> Array:
        dense = functools.partial(nn.Dense, dtype=x.dtype)
        heard = along_lines(dense(8 * SLIDE_CHANNELS)(x), gate)
        return dense(x.shape[-1])(0.5 * heard)


class ResidualBlock(nn.Module):
    """Pre-activation block (He et al. 2016). Its last layer starts at zero, so the block starts as the identity.

    On a board, global pooling between the two layers gives every cell a view of the whole board (Wu 2019, "Accelerating
    self-play learning in Go", section 3.3). With a `gate`, `Slides` adds the cells on its lines.
    """

    pooling: bool
    norm: Callable[[], nn.Module]
    layer: Callable[..., nn.Module]

    @nn.compact
    def __call__(self, x: Array, gate: Array | None = None) -> Array:
        near = y = self.layer()(nn.relu(self.norm()(x)))
        parts = None
        if self.pooling and x.ndim == 4:
            shift = nn.Dense(x.shape[-1], dtype=x.dtype)(pooling.pooled(near))
            y, parts = near + shift[:, None, None], (near, shift)
        if gate is not None:
            y, parts = y + Slides()(near, gate), None
        return x + self.layer(kernel_init=nn.initializers.zeros)(nn.relu(self.norm()(y, parts)))


class Strip(nn.Module):
    """Dense layer over the cells and channels of a row (`axis` 2) or column (`axis` 1), as one large matrix product.
    All rows, or all columns, share the weights."""

    axis: int
    dtype: jnp.dtype
    kernel_init: Callable[..., Array] = nn.initializers.lecun_normal()

    @nn.compact
    def __call__(self, x: Array) -> Array:
        if self.axis == 1:
            x = x.swapaxes(1, 2)
        batch, strips, length, channels = x.shape
        kernel = self.param("kernel", self.kernel_init, (length * channels, length * channels))
        y = x.reshape(batch * strips, -1) @ kernel.astype(self.dtype)
        y = y.reshape(batch, strips, length, channels)
        return y.swapaxes(1, 2) if self.axis == 1 else y


class StripBlock(nn.Module):
    """Two residual steps: along the rows, then along the columns. Both start as the identity."""

    norm: Callable[[], nn.Module]

    @nn.compact
    def __call__(self, x: Array) -> Array:
        for axis in (2, 1):
            y = nn.relu(self.norm()(x))
            y = Strip(axis, x.dtype)(y)
            x = x + y * self.param(f"gain_{axis}", nn.initializers.constant(0.3), (x.shape[-1],)).astype(x.dtype)
        return x


Body = Callable[[NetworkOptions, Callable[[], nn.Module], Array, Game], Array]
"""(config, norm, planes, game) -> features. `planes` is config.dtype[B, R, C, P], `features` [B, R, C, F] or [B, F] of
the same type, or [B, G, R, C, F] for the board seen through each of `game.symmetries`. `norm()` makes a normalisation
layer. A body is called inside a module and may create Flax modules."""


def resnet(config: NetworkOptions, norm: Callable[[], nn.Module], planes: Array, game: Game) -> Array:
    """Residual convolutions; with `slides` every block also looks along lines."""
    layer = functools.partial(Conv, config.channels, planes.dtype)
    x, gate = layer()(planes), None
    if config.slides:
        gate = nn.sigmoid(nn.Dense(1, bias_init=nn.initializers.constant(2.0), dtype=x.dtype)(x))
    for _ in range(config.blocks):
        x = ResidualBlock(config.pooling, norm, layer)(x, gate)
    return x


def strips(config: NetworkOptions, norm: Callable[[], nn.Module], planes: Array, game: Game) -> Array:
    """Whole rows and columns mixed at once, after one convolution."""
    x = Conv(config.channels, planes.dtype)(planes)
    for _ in range(config.blocks):
        x = StripBlock(norm)(x)
    return x


def mlp(config: NetworkOptions, norm: Callable[[], nn.Module], planes: Array, game: Game) -> Array:
    """A residual perceptron, for boards with a handful of cells."""
    layer = functools.partial(nn.Dense, config.channels, use_bias=False, dtype=planes.dtype)
    x = layer()(planes.reshape(len(planes), -1))
    for _ in range(config.blocks):
        x = ResidualBlock(config.pooling, norm, layer)(x)
    return x


BODIES: dict[str, Body] = {"resnet": resnet, "strips": strips, "mlp": mlp}


def register_network(name: str, body: Body) -> None:
    """Makes `--network=NAME` build networks with another body, in every program of this process. The heads stay.

    Raises:
        ValueError: the name is taken.
    """
    if name in BODIES:
        raise ValueError(f"expected a new name for a network, got '{name}'")
    BODIES[name] = body


class PolicyValue(nn.Module):
    """Body and heads. If every cell has the same kinds of actions, heads over the actions are maps over the board that
    share weights between cells. Up to two further actions (a pass) are allowed. Otherwise these heads are dense
    layers. Where a body gives the features of every symmetry, the heads answer for each, and the mean is taken. What
    the heads return, and all layers of the value but the body's features, is float32."""

    config: NetworkOptions
    game: Game
    train: bool
    axis: str | None

    @nn.compact
    def __call__(self, planes: Array, counted: Array | None = None) -> Heads:
        c = self.config
        norm = functools.partial(Norm, c.normalisation, self.train, self.axis, counted)
        x = BODIES[c.network](c, norm, planes.astype(c.dtype), self.game)
        x = nn.relu(norm()(x))
        cells = x.reshape(-1, *x.shape[2:]) if x.ndim == 5 else x
        heads = Heads(
            policy=self.of_actions(cells, 1, c.attention_policy)[..., 0],
            value=self.value(cells),
            future=self.of_actions(cells, self.game.num_players + 1) if c.future_weight else None,
        )
        return mean_of_symmetries(self.game, heads) if x.ndim == 5 else heads

    def of_actions(self, x: Array, outputs: int, attention: bool = False) -> Array:
        """A head over the actions, [B, A, outputs]; with `attention`, moves are also scored by where they lead."""
        # Starts uniform.
        dense = functools.partial(nn.Dense, kernel_init=nn.initializers.zeros, dtype=jnp.float32)
        shape = len(x), self.game.num_actions, outputs
        if x.ndim == 2:
            return dense(self.game.num_actions * outputs)(x).reshape(shape)
        of_board = x.shape[1] * x.shape[2] * self.game.actions_per_cell
        others = self.game.num_actions - of_board
        x = nn.Dense(x.shape[-1], dtype=x.dtype)(x)
        x = jax.lax.platform_dependent(x, tpu=rectified, default=nn.relu)
        if not 0 <= others <= 2:
            return dense(self.game.num_actions * outputs)(x.reshape(len(x), -1)).reshape(shape)
        of_cells = dense(self.game.actions_per_cell * outputs, dot_general=product)(x)
        of_cells = of_cells.reshape(len(x), of_board, outputs)
        if attention:
            assert self.game.offsets is not None  # `make_network` has looked
            of_cells += AttentionPolicy(tuple(map(tuple, self.game.offsets.tolist())), name="attention")(x)[..., None]
        if not others:
            return of_cells
        of_others = dense(others * outputs)(pooling.board_mean(x, jnp.float32)).reshape(len(x), others, outputs)
        return jnp.concatenate([of_cells, of_others], axis=1)

    def value(self, x: Array) -> Array:
        dense = functools.partial(nn.Dense, dtype=jnp.float32)
        if x.ndim == 4:
            cells = nn.relu(dense(VALUE_CHANNELS)(x)).reshape(len(x), -1)
            mean, highest = pooling.board_mean(x, jnp.float32), pooling.board_max(x).astype(jnp.float32)
            x = jnp.concatenate([mean, highest, cells], axis=-1)
        x = nn.relu(dense(64)(x))
        outputs = 1 if self.game.num_players == 2 else self.game.num_players
        values = jnp.tanh(dense(outputs, kernel_init=nn.initializers.zeros)(x))
        return values[:, 0] if outputs == 1 else values


def mean_of_symmetries(game: Game, heads: Heads) -> Heads:
    """The means of heads [B * G, ...] that see each position through every symmetry, with actions mapped back."""
    frames = len(game.symmetries)
    apart = lambda x: x.reshape(-1, frames, *x.shape[1:])

    def of_actions(x: Array) -> Array:
        x = apart(x)
        return jnp.stack([x[:, i, symmetry.actions] for i, symmetry in enumerate(game.symmetries)]).mean(0)

    future = None if heads.future is None else of_actions(heads.future)
    return Heads(of_actions(heads.policy), apart(heads.value).mean(1), future)


def in_parts(ask: Callable[[Any], Any], rows: int, x: Any) -> Any:
    """`ask(x)` in chunks of `rows`, the leading axis of all arrays of `x` and of the results."""
    count = len(jax.tree.leaves(x)[0])
    parts, rest = divmod(count, rows)
    if parts + (rest > 0) < 2:
        return ask(x)
    first = jax.lax.map(ask, jax.tree.map(lambda x: x[: parts * rows].reshape(parts, rows, *x.shape[1:]), x))
    answers = jax.tree.map(lambda y: y.reshape(-1, *y.shape[2:]), first)
    if not rest:
        return answers
    last = ask(jax.tree.map(lambda x: x[parts * rows :], x))
    return jax.tree.map(lambda *ys: jnp.concatenate(ys), answers, last)


def _module(game: Game, config: NetworkOptions, train: bool, axis: str | None = None) -> PolicyValue:
    return PolicyValue(config, game, train, axis)


def _as_seen(game: Game, config: NetworkOptions) -> tuple[Game, Callable[[Array], Array]]:
    """The game with the planes that a network of `config` sees, and these planes of all of the game's."""
    count, known = config.input_planes, jax.eval_shape(lambda: game.observe(game.init())).shape[-1]
    if count > known:
        raise ValueError(f"--input_planes: expected at most {known}, the planes of {game.name}, got {count}")
    if count in (0, known):
        return game, lambda planes: planes
    seen = lambda planes: planes[..., :count]
    whole = lambda planes: jnp.pad(planes, [(0, 0)] * (planes.ndim - 1) + [(0, known - count)])
    turned = lambda symmetry: dataclasses.replace(symmetry, planes=lambda planes: seen(symmetry.planes(whole(planes))))
    symmetries = tuple(turned(symmetry) for symmetry in game.symmetries)  # some exchange planes
    return dataclasses.replace(game, observe=lambda s: seen(game.observe(s)), symmetries=symmetries), seen


def make_network(game: Game, config: NetworkOptions) -> Network:
    """The network of `config` for the shapes of `game`; each of its functions is compiled.

    Raises:
        ValueError: the body is not registered, the game has fewer planes than `input_planes`, or no `offsets` for the
            attention policy.
    """
    if config.network not in BODIES:
        raise ValueError(f"--network: expected {', '.join(BODIES)}, got '{config.network}'")
    if config.attention_policy and game.offsets is None:
        raise ValueError(f"--attention_policy: expected a game that says where its actions lead, got {game.name}")
    game, seen = _as_seen(game, config)
    shape = jax.eval_shape(lambda: game.observe(game.init())).shape
    module = functools.partial(_module, game, config)

    @jax.jit
    def init(key) -> Any:
        return module(False).init(key, jnp.zeros((1, *shape)))

    @functools.partial(jax.jit, static_argnums=2)
    def train(weights, planes, axis, counted=None):
        output, changed = module(True, axis).apply(weights, planes, counted, mutable=["batch_stats"])
        return output, {**weights, **changed}

    @jax.jit
    def heads(weights, planes) -> Any:
        return module(False).apply(weights, planes)

    @jax.jit  # so that one trace serves the root, the leaves and every platform
    def answer(weights, planes) -> Any:
        return module(False).apply(weights, planes)[:2]

    @jax.jit
    def apply(weights, planes) -> Any:
        ask = functools.partial(answer, weights)
        on_cpu, on_tpu = (functools.partial(in_parts, ask, rows) for rows in (CPU_ROWS, TPU_ROWS))
        return jax.lax.platform_dependent(planes, cpu=on_cpu, tpu=on_tpu, default=ask)

    net = Network(init, apply, train, heads)
    net = _in_one_orientation(game, net) if config.canonical and len(game.symmetries) > 1 else net
    return _before(net, seen) if config.input_planes else net


def _before(net: Network, seen: Callable[[Array], Array]) -> Network:
    """The same network for other planes, of which `seen` makes its own."""
    apply = lambda weights, planes: net.apply(weights, seen(planes))
    train = lambda weights, planes, axis, counted=None: net.train(weights, seen(planes), axis, counted)
    heads = lambda weights, planes: net.heads(weights, seen(planes))
    return Network(net.init, jax.jit(apply), jax.jit(train, static_argnums=2), jax.jit(heads))


def _in_one_orientation(game: Game, net: Network) -> Network:
    """The same network behind `least_image`, in training too.

    Images of a position then have the same value and policy. A position that is its own image may still get a lopsided
    policy.
    """

    def back(heads: Heads, which: Array) -> Heads:
        future = None if heads.future is None else map_back(game, heads.future, which)
        return heads._replace(policy=map_back(game, heads.policy, which), future=future)

    def apply(weights, planes):
        seen, which = least_image(game, planes)
        logits, value = net.apply(weights, seen)
        return map_back(game, logits, which), value

    def train(weights, planes, axis, counted=None):
        seen, which = least_image(game, planes)
        heads, weights = net.train(weights, seen, axis, counted)
        return back(heads, which), weights

    def heads(weights, planes):
        seen, which = least_image(game, planes)
        return back(net.heads(weights, seen), which)

    return Network(net.init, jax.jit(apply), jax.jit(train, static_argnums=2), jax.jit(heads))
