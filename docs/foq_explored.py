"""Explores Flight of Queen and writes docs/foq_explored.md with its pictures: python docs/foq_explored.py

Small boards are solved; the full board is searched by the network in models/foq. A run takes about two hours on one
core, 9 GB of memory and a C compiler; `--minutes=M` limits the time per board. `python docs/foq_explored.py first
games` rewrites only these parts of the page. The parts are small (boards), single (the full board with one queen),
sizes, first (moves) and games.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parents[1]))

import envs
from agents.arena import match
from agents.config import for_play
from agents.players.players import make_player
from agents.runtime import cli, mesh
from agents.search.policies import make_search
from agents.solvers.solve import make_solver
from agents.storage import weights as models
from envs import draw, saved

DOCS = Path(__file__).parent
PICTURES = DOCS / "pictures" / "explored"
MODEL = Path(__file__).parents[1] / "models" / "foq"
DOUBLE = ["3,3", "3,4", "3,5", "3,6", "4,4", "4,5", "4,6", "4,7", "5,5", "5,6", "5,7", "6,6", "6,7", "7,7"]
SINGLE = ["3,3", "3,4", "3,5", "4,4", "4,5", "4,6", "5,5", "5,6", "5,7", "6,6", "6,7", "7,7"]
CHANCES = ["4,4", "4,6", "5,6", "5,7", "6,6", "6,7", "7,7", "8,8", "8,9"]
SIMULATIONS = (64, 256, 1024)
ROOM, ROOM_SMALL = 24_000_000, 3_000_000
SOLVER = Path(__file__).parents[1] / "tests" / "oracles" / "solve_foq.c"
TABLE_BITS, VISITS = 26, 1_000_000_000  # of the solver, for one queen on the full board: 3 GB, and most for a move
LARGE = 42  # squares; larger boards need more memory
VALUED_EVERY = 5  # moves between the evaluations of an annotated game
UNBROKEN = "\u00a0"  # a space at which no line ends
HARDWARE = ""  # names the machine on the page where jax cannot see that others use it too, see `main`


def spec(form: str, sides: str) -> str:
    rows, cols = sides.split(",")
    return f"{form}:rows={rows},cols={cols}"


def table(head: list[str], rows: list[list[Any]]) -> str:
    line = lambda cells: "| " + " | ".join(map(str, cells)) + " |"
    return "\n".join([line(head), "|" + "---|" * len(head), *map(line, rows)])


def solved_boards(form: str, boards: list[str], seconds: float) -> str:
    """A table of the winner and the result of every first move on each board."""
    rows = []
    for sides in boards:
        game = envs.make(spec(form, sides))
        solve = make_solver(game, ROOM if game.num_actions > LARGE else ROOM_SMALL)
        solve(game.init(), seconds=0)  # compiles
        verdict = solve(game.init(), all_moves=True, seconds=seconds, tell=say)
        names = {kind: [game.action_name(a) for a, v in verdict.moves.items() if v == kind] for kind in (1, -1, None)}
        winner = {1: "the first", -1: "the second", None: "undecided"}[verdict.value]
        cost = f"{verdict.positions:,}", f"{verdict.seconds:.1f} s"
        size = sides.replace(",", " x ")
        rows.append([size, winner, *(" ".join(names[kind]) or "none" for kind in (1, -1, None)), *cost])
    head = ["board", "winner", "first moves that win", "that lose", "undecided", "positions", "time"]
    return table(head, rows)


def chances(boards: list[str]) -> str:
    """How often the first player wins, and how long games last, between equal weak players."""
    rows = []
    for form in ("foq", "foq_single"):
        for sides in boards:
            game, cells = envs.make(spec(form, sides)), []
            for name, games in (("random", 4000), ("uct:100", 200)):
                say(f"{game.name}, {name}")
                player = make_player(name, game, 0)
                played = match.play_games(game, player, player, games=games, opening_plies=0, seed=1)
                share = np.concatenate([played.score[0], 1 - played.score[1]]).mean()
                cells += [f"{share:.1%}", f"{played.plies.mean():.1f}"]
            rows.append([f"`{form}`", sides.replace(",", " x "), *cells])
    head = ["game", "board", "random: first wins", "moves", "`uct:100`: first wins", "moves"]
    return table(head, rows)


def first_moves(game: envs.Game, search: Any, weights: Any) -> dict[str, float]:
    """The value of every first move for its mover, from a search of the position after the move."""
    actions = np.flatnonzero(game.mask(game.init()))
    after = jax.vmap(game.move, in_axes=(None, 0))(game.init(), jnp.asarray(actions))
    found = search(weights, jax.random.key(0), after, jnp.ones(len(actions), jnp.int32))
    return {game.action_name(int(a)): -float(v) for a, v in zip(actions, found.value, strict=True)}


def searcher(game: envs.Game, simulations: int) -> tuple[Any, Any]:
    """The compiled search of the network, and its weights."""
    trained = models.load_network(MODEL, game)
    search = make_search(game, trained.net, for_play(trained.config, game, simulations), explore=False)
    return jax.jit(search), trained.weights


def full_board(game: envs.Game) -> str:
    """The first moves valued by the network with increasing search, and the results of its games against itself."""
    columns = {}
    for simulations in SIMULATIONS:
        say(f"first moves, {simulations} simulations each")
        columns[simulations] = first_moves(game, *searcher(game, simulations))
    few, most = columns[SIMULATIONS[0]], columns[SIMULATIONS[-1]]
    order = sorted(most, key=lambda name: -most[name])
    rows = [[name, *(f"{column[name]:+.2f}" for column in columns.values())] for name in order]
    say("games of the network against itself")
    player = make_player(f"{MODEL}@32", game, 0)
    played = match.play_games(game, player, player, games=200, opening_plies=2, seed=1, fair=True)
    # Without exploration both games from an opening are identical, so the sample is the openings.
    first = ((played.score[0] + 1 - played.score[1]) / 2)[np.unique(played.opening, return_index=True)[1]]
    return FULL.format(
        moves=table(["move", *(f"{n} simulations" for n in columns)], rows),
        picture=heat_map(game, most),
        best=order[0],
        value=most[order[0]],
        moved=max(abs(most[name] - few[name]) for name in most),
        openings=len(first),
        share=first.mean(),
        error=100 * first.std(ddof=1) / len(first) ** 0.5,
        plies=played.plies.mean(),
    )


def heat_map(game: envs.Game, values: dict[str, float]) -> str:
    rows, cols = game.init().ripped.shape
    grid = np.full(rows * cols, np.nan)
    for name, value in values.items():
        grid[game.parse_action(name)] = value
    figure = Figure(figsize=(5.4, 4.6), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(grid.reshape(rows, cols), cmap="RdYlGn", vmin=-1, vmax=1)
    for name, value in values.items():
        row, col = divmod(game.parse_action(name), cols)
        axes.text(col, row, f"{value:+.2f}".replace("0.", "."), ha="center", va="center", fontsize=8)
    for player, square in zip(("W", "R"), np.asarray(game.init().queens), strict=True):
        axes.text(square % cols, square // cols, player, ha="center", va="center", weight="bold")
    axes.set_xticks(range(cols), [game.action_name(c)[0] for c in range(cols)])
    axes.set_yticks(range(rows), [game.action_name(r * cols)[1:] for r in range(rows)])
    figure.colorbar(image, label="value for White, who begins")
    figure.savefig(PICTURES / "first_moves.png", dpi=110)
    return "pictures/explored/first_moves.png"


def play(game: envs.Game, white: str, red: str, seed: int) -> list[str]:
    """One game between two players, as names of moves."""
    players, state, names = [make_player(p, game, 0) for p in (white, red)], game.init(), []
    acts = [jax.jit(player.act) for player in players]
    while not bool(game.over(state)):
        one, seat = jax.tree.map(lambda x: x[None], state), int(game.player(state))
        key = jax.random.fold_in(jax.random.key(seed), len(names))
        action = int(acts[seat](players[seat].weights, key, one, jnp.full(1, len(names), jnp.int32))[0])
        names.append(game.action_name(action))
        state = game.move(state, action)
    return names


def opinions(game: envs.Game, states: list[Any]) -> str:
    """The network's searched values of a game's positions, for the first player."""
    search, weights = searcher(game, 256)
    some = range(0, len(states), VALUED_EVERY)
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *(states[ply] for ply in some))
    values = np.asarray(search(weights, jax.random.key(0), stacked, jnp.asarray(some, jnp.int32)).values)[:, 0]
    return ", ".join(f"{ply + 1}: {value:+.2f}" for ply, value in zip(some, values, strict=True))


def annotated(game: envs.Game, title: str, names: list[str], picture: str, solve: Any, seconds: float) -> str:
    """A game with the network's values and the proved part: the first proved position, and each later move that gave a
    win away. Proofs run backwards from the end of the game until one takes too long."""
    say(f"proofs of: {title}")
    states, actions = saved.replay(game, game.init(), names)
    values: dict[int, float] = {}
    for ply in range(len(actions) - 1, -1, -1):
        verdict = solve(states[ply], seconds=seconds, tell=say)
        if verdict.value is None:
            break
        values[ply] = verdict.value
    proved = min(values, default=len(actions))
    mistakes = [p for p in sorted(values) if values[p] == 1 and values.get(p + 1, -1) == 1]
    numbered = [f"{i + 1}. {name}" + ("?" if i in mistakes else "") for i, name in enumerate(names)]
    moves = filled(" ".join(move.replace(" ", UNBROKEN) for move in numbered)).replace(UNBROKEN, " ")
    seats = game.view.seats
    mover = seats[int(game.player(states[proved]))] if proved < len(actions) else ""
    wins = {1.0: "wins", -1.0: "loses"}.get(values.get(proved, 0.0), "")
    says = (
        f"From move {proved + 1} on every position is proved: {mover}, to move there, {wins} with best play."
        if mover
        else ""
    )
    errors = ", ".join(f"{i + 1}. {names[i]}" for i in mistakes)
    says += f" Moves that gave a win away: {errors}." if mistakes else " No move after that gave a win away."
    winner = seats[int(np.argmax(game.rewards(states[-1])))]
    (PICTURES / picture).write_bytes(draw.draw(game, states[0], names[:proved], ".png", 320, 1.0, False))
    thought = f"Searched value for {seats[0]} before the numbered move: {opinions(game, states[:-1])}."
    ended = f"{winner} made the last of {len(names)} moves and won. {says}"
    head = f"### {title}\n\n```text\n{moves}\n```\n\n{ended}\n\n{thought}"
    return f"{head}\n\n![position before move {proved + 1}](pictures/explored/{picture})"


def cores() -> str:
    count = jax.device_count()
    return f"{count} {'core' if count == 1 else 'cores'}, no accelerator"


def say(text: str) -> None:
    print(f"\r\033[K{time.strftime('%H:%M:%S')} {text[:110]}", end="", file=sys.stderr, flush=True)


HEAD = """# Flight of Queen, explored

Made by `python docs/foq_explored.py`. Each part names its day and machine.

Each claim is of one of three kinds. **Exact** claims are proved by a search to the ends of the game, as by `python
evaluate.py prove foq`. Positions are distinguished by hashes of 64 bits; two among ten million agree by chance once in
400,000 such searches. **Searched** claims come from the network in models/foq at their date. **Estimated** claims come
from games between weak players.
"""

SMALL = """## Who wins on small boards (exact)

{made}, {minutes:g} minutes a board at most. Two queens start in opposite corners, and a player without a legal move
loses. Squares are named from the lower left. All first moves were searched, each until it was decided or the time was
up. Times include some seconds of compiling.

{double}

One queen; a player without a legal move wins:

{single}

Results of an independent solver, for 3 x 3, 3 x 5, 4 x 4, 4 x 6, 5 x 6, 5 x 7 and 6 x 6, are the same
(`pytest -m slow tests/slow/test_long_proofs.py`; the quickest in `tests/unit/test_prove.py`).
"""

SINGLE_BOARD = """## One queen on the full board (exact)

On 8 x 8, where a player without a legal move wins, {winner} wins:

| first moves that win | that lose |
|---|---|
| {wins} | {loses} |

{made}; {minutes:.0f} minutes of its time and 3 GB of memory. A proof-number search in C decides all {count} moves:

```bash
cc -O3 -march=native -DTABLE_BITS={bits} -o solve_foq tests/oracles/solve_foq.c
echo {start} | ./solve_foq 1 {visits}
```

It prints `{printed}`: the bits of the moves that win.
"""

SIZES = """## How the advantage changes with the size (estimated)

{made}. Share of games won by the first player, and the mean number of moves. Two random players played 4000 games, two
players with 100 random playouts a move played 200 (one standard error is 3.5 points):

{chances}
"""

FIRST = """## The first move on the full board (searched)

{made}, by {network}. Value of every first move for White, who begins,
by a search of the position after it: -1 is lost, +1 won. The agreement of the columns shows how far search confirms
them; nothing here is proved.

{full}
"""

FULL = """{moves}

![first moves by value]({picture})

So the winner on the full board is open. The best move for White, {best}, is worth {value:+.2f} to the network, and its
values moved by up to {moved:.2f} between the first column and the last. In 200 games against itself, with 32
simulations a move from {openings} openings of two random moves, the first player won {share:.1%} (one standard error:
{error:.1f} points; both games from an opening are the same), in {plies:.1f} moves on average."""

GAMES = """## Three games

{made}, by {network}. A question
mark follows a move that lost a won position (exact, as far back as proofs reach).

{games}
"""


def small(minutes: float) -> str:
    seconds = 60 * minutes
    double, single = solved_boards("foq", DOUBLE, seconds), solved_boards("foq_single", SINGLE, seconds)
    return SMALL.format(made=made(), minutes=minutes, double=double, single=single)


def single(minutes: float) -> str:
    game = envs.make("foq_single")
    start, queen = game.init(), int(game.init().queens[0])
    asked = f"{1 << queen:x} {queen} 0"
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "solve_foq"
        subprocess.run(["cc", "-O3", "-march=native", f"-DTABLE_BITS={TABLE_BITS}", "-o", program, SOLVER], check=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        answer = subprocess.run([program, "1", str(VISITS)], input=asked, capture_output=True, text=True, check=True)
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    printed = answer.stdout.strip()
    moves = np.flatnonzero(game.mask(start)).tolist()
    wins = [a for a in moves if int(printed, 16) >> a & 1]
    names = lambda actions: " ".join(map(game.action_name, actions)) or "none"
    return SINGLE_BOARD.format(
        made=made(),
        winner="the first player" if wins else "the second player",
        wins=names(wins),
        loses=names([a for a in moves if a not in wins]),
        minutes=seconds / 60,
        count=len(moves),
        bits=TABLE_BITS,
        visits=VISITS,
        start=asked,
        printed=printed,
    )


def sizes(minutes: float) -> str:
    return SIZES.format(made=made(), chances=chances(CHANCES))


def first(minutes: float) -> str:
    return FIRST.format(made=made(), network=network(), full=full_board(envs.make("foq")))


def games(minutes: float) -> str:
    game, ours = envs.make("foq"), str(MODEL)
    solve = make_solver(game, ROOM_SMALL)
    chosen = [
        ("The network against itself, 1024 simulations a move", [f"{ours}@1024"] * 2, "itself.png"),
        ("White: the network with 256 simulations; Red: 1000 random playouts", [f"{ours}@256", "uct:1000"], "uct.png"),
        ("Two players of 200 random playouts", ["uct:200"] * 2, "uct_uct.png"),
    ]
    texts = [
        annotated(game, title, play(game, *players, seed=3), file, solve, 100.0) for title, players, file in chosen
    ]
    return GAMES.format(made=made(), network=network(), games="\n\n".join(texts))


TITLES = {
    "small": "Who wins on small",
    "single": "One queen on the full",
    "sizes": "How the advantage",
    "first": "The first move",
    "games": "Three games",
}
PARTS = {"small": small, "single": single, "sizes": sizes, "first": first, "games": games}  # in the order of the page


def filled(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def wrapped(page: str) -> str:
    """The page with its prose in lines of at most 120 columns."""
    as_it_is = ("|", "#", "!", "```")
    blocks = page.strip().split("\n\n")
    return "\n\n".join(block if block.startswith(as_it_is) else filled(block) for block in blocks) + "\n"


def made() -> str:
    hardware = HARDWARE or (cores() if jax.default_backend() == "cpu" else jax.devices()[0])
    return f"Made on {time.strftime('%Y-%m-%d')}; {hardware}"


def network() -> str:
    about = models.about(MODEL)
    config = about["config"]
    return f"the network of {config.channels} channels and {config.blocks} blocks in models/foq"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; by default all")
    parser.add_argument("--minutes", type=float, default=12.0, help="for each board")
    parser.add_argument("--hardware", default="", help="what the page says of the machine, by default what jax finds")
    options = parser.parse_args()
    global HARDWARE
    HARDWARE = options.hardware
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown part {unknown.pop()}; known: {', '.join(PARTS)}")
    mesh.claim_cores()
    cli.keep_compiled()
    PICTURES.mkdir(parents=True, exist_ok=True)
    page = DOCS / "foq_explored.md"
    there = page.read_text().split("\n## ")[1:] if page.exists() else []
    old = {
        title: "## " + part.rstrip("\n") + "\n" for part in there for title in TITLES if part.startswith(TITLES[title])
    }
    wanted = options.parts or list(PARTS)
    parts = [make(options.minutes) if name in wanted or name not in old else old[name] for name, make in PARTS.items()]
    saved.write(page, wrapped("\n".join([HEAD, *parts])))
    print(f"\n{page}")


if __name__ == "__main__":
    main()
