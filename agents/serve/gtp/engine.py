"""One game of Go for another program: its positions, its clock and the tree player of either colour.

Colours may move in any order, even after two passes. The position is then set up anew with the other colour to move,
which discards the earlier moves and their ko restrictions.
"""

from __future__ import annotations

import copy
import dataclasses
import re
import sys
import time
from typing import Any, NamedTuple

import envs
from agents.players.players import game_of
from agents.players.spec import NETWORK, UCT, PlayerSpec, parse_player
from agents.players.stateful import TreePlayer, same_board
from agents.serve import options as settings
from agents.serve import sgf
from agents.serve.options import PlayOptions
from agents.storage import weights
from envs import go, saved
from envs.game import Game, HistoryState

FEWEST_MOVES_LEFT = 10  # moves to keep time for, however full the board is
USUAL_LENGTH = 0.7  # usual moves of a game, of both colours, per point of the board
SHARE = 0.95  # of the time for a move; the rest covers communication
LAG = 0.05  # seconds of communication for every move
LOST_MOVES = 3  # moves in a row with the value of a lost game after which a player resigns
OPENING = 0.25  # moves per point of the board before anybody resigns, whatever the handicap, as in Leela Zero


class Step(NamedTuple):
    """One position of a game: `actions` lead to it from `start`; `last` (player, action) is the latest move of the
    game."""

    start: Any
    actions: tuple[int, ...]
    state: Any
    last: tuple[int, int] | None
    value: float | None = None  # of `last` for its player, if the engine chose it


@dataclasses.dataclass(frozen=True)
class Clock:
    """Time settings of a controller."""

    main: float
    extra: float  # seconds for every `stones` moves after the main time
    stones: int

    @property
    def limited(self) -> bool:
        """In the protocol, extra time for no stones means no limits."""
        return not (self.extra > 0 and self.stones == 0)

    @property
    def full(self) -> tuple[float, int]:
        """Initial seconds, and the moves they are for; 0 in the main time."""
        return (self.main, 0) if self.main > 0 else (self.extra, self.stones)

    def budget(self, left: float, stones: int, moves_to_come: float) -> float:
        """Seconds for the next move. `left` covers `stones` moves or, if 0, the rest of the main time."""
        share = left / (stones or max(FEWEST_MOVES_LEFT, moves_to_come))
        if not stones and self.stones:  # extra time follows the main time
            share = max(share, min(left, self.extra / self.stones))
        return max(SHARE * share - LAG, 1e-3)

    def after(self, left: float, stones: int, spent: float) -> tuple[float, int]:
        """Seconds and stones left after a move."""
        left = left - spent
        if stones == 1 or (stones == 0 and left <= 0 and self.stones):
            return self.extra, self.stones
        return max(left, 0.0), max(stones - 1, 0)


def without_passes(state: Any) -> Any:
    """The position with its passes cleared. The record of a set-up position may need a pass, and one more would end the
    game."""
    if isinstance(state, HistoryState):
        return state._replace(now=without_passes(state.now))
    return state._replace(passes=state.passes * 0)


class Engine:
    """A game of Go and its player. `clock` is None until a controller sets one."""

    def __init__(self, options: PlayOptions, game: Game):
        """
        Raises:
            ValueError: the game is not Go, or the player does not search.
        """
        if not game.name.startswith("go:"):
            raise ValueError(f"--ui=gtp: expected Go, for example --env=go:size=9, got {game.name}")
        self.options = options
        self._turned: tuple[Step, Step] | None = None  # a position, and the same with the other player to move
        self.spec = _searcher(settings.opponent(options, game), options.limits.simulations)
        self.clock: Clock | None = None
        self.left = [(0.0, 0), (0.0, 0)]
        self.take_game(game)

    def take_game(self, game: Game) -> None:
        """Sets another board or komi, and clears the board. If a clock is set, compiles at once: none runs meanwhile.

        Raises:
            ValueError: the network asked for is for another board.
        """
        self.plays_with = _spec_for(self.spec, game, asked=bool(self.options.opponent))
        self.game, self._tree_player = game, None
        self.mask, self.move = saved.compiled(game)
        record = game.to_record(game.init())
        self.size, self.komi, self.ko = record["size"], record["komi"], record["ko"]
        self.clear()
        self._prepare()

    def take_clock(self, clock: Clock) -> None:
        """Sets the clocks of both players, and compiles at once if that was not done before."""
        self.clock = clock
        self.restart_clocks()
        self._prepare()

    def restart_clocks(self) -> None:
        """For a new game with the same time settings."""
        if self.clock is not None:
            self.left = [self.clock.full] * 2

    def _prepare(self) -> None:
        if self.timed and self._tree_player is None:
            self.compile()

    def compile(self) -> None:
        """Compiles what moves of both players need."""
        print(f"{self.game.name}: compiling the search of {self.tree_player.name}", file=sys.stderr, flush=True)
        trial = copy.copy(self)
        trial.clear()
        for player in range(2):
            trial.think(player, simulations=1)
            trial.play(player, trial.tree_player.best()[0])
        print("ready", file=sys.stderr, flush=True)

    def other_game(self, size: int, komi: float, ko: str | None = None) -> Game:
        """Raises ValueError for an unsupported board."""
        history = re.findall(r"history=\w+", self.game.name)
        return envs.make(",".join([f"go:size={size}", f"komi={komi}", f"ko={ko or self.ko}", *history]))

    def take_komi(self, komi: float) -> None:
        """Sets the komi and keeps the moves. A network evaluates for its own komi; finished games count with the new
        one."""
        if komi != self.komi:
            steps = self.steps
            self.take_game(self.other_game(self.size, komi))
            self.steps = steps  # positions do not hold the komi

    def take_ko(self, ko: str) -> None:
        """Sets the ko rule, `simple` or `psk`, and keeps the moves.

        Raises:
            ValueError: a move is illegal by that rule.
        """
        if ko == self.ko:
            return
        trial, board = copy.copy(self), self.game.to_record(self.steps[0].state)["board"]
        black, white = (frozenset(p for p, cell in enumerate(board) if cell == colour) for colour in (1, -1))
        trial.take_game(self.other_game(self.size, self.komi, ko))
        trial.set_up(sgf.set_up(trial.game, (black, white), int(self.game.player(self.steps[0].state))))
        for player, action in self.moves():
            trial.play(player, action)
        vars(self).update(vars(trial))  # all or nothing

    @property
    def tree_player(self) -> TreePlayer:
        """Created on first use: compilation takes seconds."""
        if self._tree_player is None:
            self._tree_player = TreePlayer(self.plays_with, self.game, trees=self.options.trees)
        return self._tree_player

    @property
    def player_name(self) -> str:
        return dataclasses.replace(self.plays_with, number=None).short_name

    @property
    def timed(self) -> bool:
        return self.clock is not None and self.clock.limited

    @property
    def now(self) -> Step:
        return self.steps[-1]

    @property
    def to_move(self) -> int:
        return int(self.game.player(self.now.state))

    @property
    def over(self) -> bool:
        return bool(self.game.over(self.now.state))

    def clear(self) -> None:
        self.set_up(self.game.init())

    def set_up(self, start: Any) -> None:
        start = without_passes(start)
        self.steps = [Step(start, (), start, None)]

    def board(self) -> list[int]:
        """1 black, -1 white, 0 empty, point by point."""
        return self.game.to_record(self.now.state)["board"]

    def moves(self) -> list[tuple[int, int]]:
        return [step.last for step in self.steps if step.last is not None]

    def turn_to(self, player: int) -> Step:
        """The current position with `player` to move and the game not over."""
        step = self.now
        if not self.over and self.to_move == player:
            return step
        if self._turned and self._turned[0] is step and int(self.game.player(self._turned[1].state)) == player:
            return self._turned[1]  # so that a further search goes on with its tree
        board = self.board()
        black, white = (frozenset(p for p, cell in enumerate(board) if cell == colour) for colour in (1, -1))
        state = without_passes(sgf.set_up(self.game, (black, white), player))
        self._turned = step, Step(state, (), state, step.last)
        return self._turned[1]

    def play(self, player: int, action: int, value: float | None = None) -> None:
        """Raises ValueError for an illegal move."""
        step = self.turn_to(player)
        if not self.mask(step.state)[action]:
            raise ValueError("illegal move")
        state = self.move(step.state, action)
        self.steps.append(Step(step.start, (*step.actions, action), state, (player, action), value))

    def think(
        self,
        player: int,
        seconds: float | None = None,
        simulations: int | None = None,
        among: frozenset[int] | None = None,
    ) -> int:
        """Searches with `player` to move until either budget is spent, over all legal moves or only `among`. Returns
        the number of simulations."""
        step = self.turn_to(player)
        self.tree_player.place(step.start, step.actions, step.state, among)
        return self.tree_player.think(seconds, simulations)

    def choose(self, player: int) -> tuple[int, float | None]:
        """The move of `player` within the time limit, and its value; in a finished game a pass."""
        last = set(self.moves()[-2:])  # the last pass may have been out of turn: then the rules see no end
        if self.over or last == {(0, self.size**2), (1, self.size**2)}:
            return self.size**2, None
        began = time.monotonic()
        self.think(player, *self.budget(player))
        self.spend(player, time.monotonic() - began)
        return self.tree_player.best()

    def make_move(self, player: int, action: int, value: float | None) -> str:
        """Plays a move of this value and returns its name, or resigns."""
        if self.hopeless(player, value):
            return "resign"
        self.play(player, action, value)
        return go.point_name(action, self.size)

    def hopeless(self, player: int, value: float | None) -> bool:
        """Whether `player` resigns rather than play a move of this value."""
        before = [step.value for step in self.steps if step.last is not None and step.last[0] == player]
        values = [*before[-LOST_MOVES + 1 :], value]
        if len(values) < LOST_MOVES or len(self.steps) <= OPENING * self.size**2:
            return False
        return all(value is not None and value < self.options.resign_threshold for value in values)

    def budget(self, player: int) -> tuple[float, int | None]:
        """Seconds and maximum simulations of the next move; with a clock only the time counts."""
        if self.clock is None or not self.timed:
            return self.options.limits.seconds, self.spec.number
        to_come = (USUAL_LENGTH * self.size**2 - len(self.steps)) / 2
        return self.clock.budget(*self.left[player], to_come), None

    def spend(self, player: int, seconds: float) -> None:
        """Deducts time; the controller's own count replaces it later."""
        if self.clock is not None and self.timed:
            self.left[player] = self.clock.after(*self.left[player], seconds)


def _searcher(opponent: str, num_simulations: int) -> PlayerSpec:
    """The player to search with, and its simulations."""
    spec = parse_player(opponent)
    number = num_simulations if spec.number is None else spec.number
    spec = dataclasses.replace(spec, number=number)
    if not spec.searches or spec.proof_positions is not None or spec.seconds is not None:
        raise ValueError(f"player '{opponent}': expected a network that searches, or uct:N, for --ui=gtp")
    game_of(spec)  # refuses a folder that does not exist
    return spec


def _spec_for(spec: PlayerSpec, game: Game, asked: bool) -> PlayerSpec:
    """`spec` if its network fits the board. Otherwise a shipped network or UCT, unless a person asked for `spec`.

    Raises:
        ValueError: a person asked for a network of another board.
    """
    of = game_of(spec)
    if asked if of is None else same_board(of, game.name):
        return spec
    if asked:
        raise ValueError(f"expected a network for {game.name}, got one for {of} in {spec}")
    shipped = weights.shipped(game, same_board)
    return PlayerSpec(NETWORK, shipped, spec.number) if shipped else PlayerSpec(UCT, number=spec.number)
