"""Matches on the host, for players that do not run in lockstep: other programs, people, searches by the clock.

Programs play several games at once, each in its own process, and think in parallel. Players of this engine move in all
waiting games together. Guests play one game after the other. Openings, seats and intervals are those of `match`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import os
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from agents.arena import match, openings
from agents.arena.match import Games
from agents.players.gtp_client import GtpProcess
from agents.players.players import Guest
from agents.players.program import Process, Program
from agents.players.spec import Player
from agents.players.uci_client import UciProcess
from envs.game import Array, Game

AT_ONCE = 8  # maximum number of games, and so of processes per program
TIMEOUT = 60.0  # seconds for one answer of a program

Anyone: TypeAlias = Player | Program | Guest


@dataclasses.dataclass
class Lane:
    """A game in progress; `players` by seat, None for a player who moves in lockstep."""

    pair: int
    half: int
    seat: int  # of player A
    players: list[Process | Guest | None]
    start: Any
    state: Any
    moves: list[int]
    score: float | None = None  # for A, once it is over

    @property
    def programs(self) -> list[Process]:
        return [player for player in self.players if isinstance(player, Process)]

    def close(self) -> None:
        for process in self.programs:
            process.close()


class HostGame:
    """The game on the host: who moves, which actions are legal, and reports of moves to the programs."""

    def __init__(self, game: Game):
        self.game = game
        self.facts = jax.jit(lambda s: (game.over(s), game.player(s), game.rewards(s), game.mask(s)))
        self.move = jax.jit(game.move)

    def play(self, lane: Lane, action: int, by: Process | None) -> None:
        """Makes a legal move and tells it to the programs that do not know it."""
        _, mover, _, legal = jax.device_get(self.facts(lane.state))
        lane.state, lane.moves = self.move(lane.state, action), [*lane.moves, action]
        for process in lane.programs:
            process.tell(self.game, int(mover), lane.moves, legal, made=process is by)

    def answer(self, lane: Lane, process: Process, mover: int) -> None:
        """Takes the move that a program was asked for."""
        said = process.take(mover)
        if said.lower() == "resign":
            lane.score = float(mover != lane.seat)
            return
        try:
            action = process.action_of(self.game, said)
            legal = bool(self.facts(lane.state)[3][action])
        except ValueError:
            legal, action = False, -1
        if not legal:
            raise ValueError(f"{process.name} plays '{said[:20]}' at move {len(lane.moves) + 1}, which is not legal")
        self.play(lane, action, process)


def play_host_games(
    game: Game,
    a: Anyone,
    b: Anyone,
    *,
    games: int,
    opening_plies: int,
    seed: int,
    fair: bool = False,
    stop: Callable[[np.ndarray], bool] | None = None,
    timeout: float = TIMEOUT,
    tell: Callable[[int, Lane], None] = lambda done, lane: None,
) -> Games:
    """As `match.play_games`, between any players. After each game `tell` gets the number of finished games
    and the game.

    With `stop` the complete pairs before the first incomplete one are judged after each game.

    Raises:
        ValueError: a program that cannot be started, ends, does not answer in time or plays what is not legal; a game
            that is not for two.
    """
    if game.num_players != 2:
        raise ValueError(f"people, clocks and other programs play games for two; {game.name} is for {game.num_players}")
    match.check_match(game, games, opening_plies)
    table, pairs = HostGame(game), games // 2
    opening_key, key = jax.random.split(jax.random.key(seed))  # as `arena.make_match` does
    drawn = next(openings.make_openings(game, pairs, opening_plies, fair)(opening_key))
    starts = [[move for move in moves if move >= 0] for moves in drawn.moves.tolist()]
    movers = np.asarray(jax.vmap(game.player)(drawn.states))
    todo = ((pair, half) for pair in range(pairs) for half in range(2))
    width = min(games, AT_ONCE, max(2, os.cpu_count() or 2))
    width = 1 if Guest in (type(a), type(b)) else width
    seats = enumerate(zip((a, b), jax.random.split(key), strict=True))
    ours = {i: asker(player, width, own) for i, (player, own) in seats if isinstance(player, Player)}
    score, plies = np.full((2, pairs), np.nan), np.zeros((2, pairs), int)
    code, opening = np.zeros((2, pairs), np.uint64), openings.wide(drawn.code)
    lanes: list[Lane] = []
    try:
        while True:
            for pair, half in todo if len(lanes) < width else ():
                lanes.append(open_lane(table, (a, b), starts[pair], int(movers[pair]), pair, half, timeout))
                if len(lanes) == width:
                    break
            if not lanes:
                break
            advance_lanes(table, lanes, ours)
            for lane in [lane for lane in lanes if lane.score is not None]:
                at = lane.half, lane.pair
                score[at], plies[at], code[at] = lane.score, len(lane.moves), fingerprint(lane)
                lane.close()
                lanes.remove(lane)
                tell(int((~np.isnan(score)).sum()), lane)
            whole = int(np.isnan(score).any(0).argmax()) if np.isnan(score).any() else pairs
            complete = Games(*(x[..., :whole] for x in (score, plies, match.codes(code, 0, a, b), opening)))
            if stop is not None and whole and stop(match.evidence(complete)):
                return complete
    finally:
        for lane in lanes:
            lane.close()
    return Games(score, plies, match.codes(code, 0, a, b), opening)


def open_lane(
    table: HostGame,
    players: tuple[Anyone, Anyone],
    moves: list[int],
    mover: int,
    pair: int,
    half: int,
    limit: float,
) -> Lane:
    """A game after its opening, with player `mover` to move: player A in the first half of the games."""
    start = table.game.init()
    lane = Lane(pair, half, (mover + half) % 2, [None, None], start, start, [])
    try:
        for i, player in enumerate(players):
            seat = lane.seat if i == 0 else 1 - lane.seat
            if isinstance(player, Guest):
                lane.players[seat] = player
            if isinstance(player, Program):
                speaks = UciProcess if player.limit else GtpProcess
                process = lane.players[seat] = speaks(player, limit)
                process.begin(table.game)
        for move in moves:
            table.play(lane, move, None)
        score_if_over(table, lane)
    except BaseException:
        lane.close()
        raise
    return lane


def score_if_over(table: HostGame, lane: Lane) -> None:
    over, _, rewards, _ = table.facts(lane.state)
    if over and lane.score is None:
        lane.score = float(rewards[lane.seat]) / 2 + 0.5


def advance_lanes(table: HostGame, lanes: list[Lane], ours: dict[int, Callable[..., np.ndarray]]) -> None:
    """One move in every game. Programs are asked first, so that they think while this engine's players do."""
    going = [lane for lane in lanes if lane.score is None]
    turns = [(lane, int(table.facts(lane.state)[1])) for lane in going]
    at = [(lane, mover, lane.players[mover]) for lane, mover in turns]
    asked = [(lane, mover, player) for lane, mover, player in at if isinstance(player, Process)]
    for _, mover, process in asked:
        process.request(mover)
    for lane, _, player in at:
        if isinstance(player, Guest):
            table.play(lane, player.move(lane.start, lane.moves, lane.state), None)
    for i, choose in ours.items():
        waiting = [lane for lane, mover in turns if (mover == lane.seat) == (i == 0)]
        if waiting:
            for lane, action in zip(waiting, choose(waiting), strict=True):
                table.play(lane, int(action), None)
    for lane, mover, process in asked:
        table.answer(lane, process, mover)
    for lane in going:
        score_if_over(table, lane)


def asker(player: Player, width: int, key: Array) -> Callable[[list[Lane]], np.ndarray]:
    """`choose(lanes) -> actions` of a player of this engine, in batches of `width`, so that it compiles once."""
    act, turns = jax.jit(player.act), itertools.count()

    def choose(lanes: list[Lane]) -> np.ndarray:
        filled = [lanes[i] if i < len(lanes) else lanes[0] for i in range(width)]
        states = jax.tree.map(lambda *x: jnp.stack(x), *(lane.state for lane in filled))
        plies = jnp.array([len(lane.moves) for lane in filled], jnp.int32)
        turn_key = jax.random.fold_in(key, next(turns))
        return np.asarray(act(player.weights, turn_key, states, plies))[: len(lanes)]

    return choose


def fingerprint(lane: Lane) -> np.uint64:
    """A hash of the moves and seats: the same moves with exchanged seats are a different game."""
    text = repr((lane.seat, lane.moves)).encode()
    return np.frombuffer(hashlib.blake2b(text, digest_size=8).digest(), np.uint64)[0]
