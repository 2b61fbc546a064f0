"""Writes games as HTML files that play them: the page of agents/serve/page with a worker in place of the server."""

from __future__ import annotations

import base64
import dataclasses
import functools
import importlib.util
import json
import re
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import envs
from agents.players.human import demand_playable
from agents.players.spec import NETWORK, UCT, PlayerSpec, parse_player
from agents.runtime import advice, cli
from agents.serve.levels import levels
from agents.serve.options import UNTRAINED, Limits, PlayOptions, opponent
from agents.serve.standalone import kernel
from agents.serve.standalone.program import description, javascript_program
from agents.serve.views import lesson, way
from agents.storage import weights as models
from agents.storage.weights import TrainedNetwork
from envs import saved
from envs.draw import random_moves
from envs.game import Game, first_player, seats, titles
from envs.pictures import PAPER, Layer, Part

HERE = Path(__file__).parent
PAGE = HERE.parent / "page"
# No request leaves the page: only what it contains runs. WebAssembly needs a word of its own.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval' blob:; worker-src blob:; "
    "style-src 'unsafe-inline'; img-src data:"
)
ALL = "all"  # as a game: every one with a shipped network
PLIES = 12  # of the random games in the pictures of an index
HIDDEN = "#save-position { display: none; }"  # only Python writes and reads the record of a position


@dataclasses.dataclass(frozen=True)
class Offer:
    """A game and its opponent on a page."""

    game: Game
    opponent: str
    """Folder of a network, or uct:N."""
    limits: Limits
    """Of a move, as long as nobody chooses others on the page."""

    @functools.cached_property
    def trained(self) -> TrainedNetwork | None:
        """The opponent's network; None if it plays by random playouts."""
        return models.load_network(self.opponent, self.game) if parse_player(self.opponent).kind == NETWORK else None

    @property
    def name(self) -> str:
        """Of its file: the network's, or that of the game with its options."""
        network = parse_player(self.opponent).kind == NETWORK
        return Path(self.opponent).name if network else re.sub(r"\W+", "_", self.game.name.removesuffix(".py"))


def export(options: PlayOptions) -> list[Path]:
    """Writes the pages of the games in `options.env`, each with its opponent, to the file or folder `options.export`.

    Returns:
        The files; in a folder the last one is the index.

    Raises:
        ValueError: unknown game or opponent, or one that cannot be converted.
        OSError: a file cannot be written.
    """
    path, chosen = Path(options.export), offers(options)
    if path.suffix == ".html":
        if len(chosen) > 1:
            raise ValueError(f"--export: expected a folder for {len(chosen)} games, got {path}")
        saved.write(path, game_page(chosen[0]))
        return [path]
    path.mkdir(parents=True, exist_ok=True)
    written = [path / f"{offer.name}.html" for offer in chosen]
    for file, offer in zip(written, chosen, strict=True):
        saved.write(file, game_page(offer))
    saved.write(path / "index.html", index(chosen))
    return [*written, path / "index.html"]


def offers(options: PlayOptions) -> list[Offer]:
    """The games in `options.env`, which are separated by spaces; `all` means those of the shipped networks."""
    names = _with_shipped_networks() if options.env == ALL else options.env.split()
    games = (demand_playable(envs.make(name)) for name in names)
    return [Offer(game, _convertible(opponent(options, game)), options.limits) for game in dict.fromkeys(games)]


def _with_shipped_networks() -> list[str]:
    """The games with a shipped network. Those of pgx are left out, with a note, where it is not installed."""
    names = models.shipped_games()
    if importlib.util.find_spec("pgx") is not None:
        return names
    for name in names:
        if name.startswith("pgx:"):
            cli.note(f"note: {name} is left out, since pgx is not installed: {advice.extra('pgx')}")
    return [name for name in names if not name.startswith("pgx:")]


def _convertible(player: str) -> str:
    spec = parse_player(player)
    if spec not in (PlayerSpec(NETWORK, spec.path), PlayerSpec(UCT, number=spec.number)):
        raise ValueError(f"--opponent: expected the folder of a network or uct:N with --export, got {player}")
    return player


def index(chosen: list[Offer]) -> str:
    """The HTML of a list of games with their pictures, each a link to its page in the same folder."""
    html = (HERE / "index.html").read_text(encoding="utf-8")
    return html.replace("<!-- games -->", "\n".join(map(_card, chosen)))


def _card(offer: Offer) -> str:
    title, rules = titles(offer.game)
    options = offer.game.name.partition(":")[2].replace(",", ", ")
    svg = base64.b64encode(_picture_in_play(offer.game).encode()).decode()
    return (
        f'<li><a href="{quote(offer.name)}.html"><img src="data:image/svg+xml;base64,{svg}" alt="">'
        f"<h2>{escape(title)}</h2><p>{escape(rules)}</p><small>{escape(options)}</small></a></li>"
    )


def _picture_in_play(game: Game) -> str:
    """The picture of a position after some random moves."""
    moves = random_moves(game, game.init(), min(PLIES, game.max_plies // 2), seed=0)
    states, _ = saved.replay(game, game.init(), moves)
    return game.svg(states[-1])


COMPILED = "The rules are being compiled, once. This takes seconds, for large games minutes."  # by a server


def game_page(offer: Offer) -> str:
    """The HTML of a game."""
    bytes_ = base64.b64encode(kernel.module()).decode()
    worker = "\n".join(
        [
            *((HERE / name).read_text(encoding="utf-8") for name in ("runtime.js", "search.js", "session.js")),
            javascript_program(offer.game, offer.trained),
            f"const about = {json.dumps(session_facts(offer), separators=(',', ':'))};",
            f'const kernel = Uint8Array.from(atob("{bytes_}"), (c) => c.charCodeAt(0));',
            (HERE / "worker.js").read_text(encoding="utf-8"),
        ]
    )
    html, style = ((PAGE / name).read_text(encoding="utf-8") for name in ("index.html", "style.css"))
    client = (HERE / "client.js").read_text(encoding="utf-8")
    links = re.findall(r'<script src="(.+?)" defer></script>', html)
    scripts = [client, *((PAGE / name).read_text(encoding="utf-8") for name in links)]
    charset, policy = '<meta charset="utf-8">', f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    parts = {
        charset: f"{charset}\n{policy}",
        COMPILED: "The page is being loaded.",
        '<link rel="stylesheet" href="style.css">': f"<style>\n{style}\n{HIDDEN}\n</style>",
        **{f'<script src="{name}" defer></script>': "" for name in links},
        "</body>": f'<script type="text/plain" id="worker">\n{_inside(worker)}</script>\n'
        + "".join(f"<script>\n{_inside(script)}</script>\n" for script in scripts)
        + "</body>",
    }
    for old, new in parts.items():
        assert html.count(old) == 1, old
        html = html.replace(old, new)
    return html


def _inside(script: str) -> str:
    """A script's text, safe within its element."""
    return script.replace("</script", "<\\/script")


def session_facts(offer: Offer) -> dict[str, Any]:
    """What session.js has to know of a game, JSON-ready."""
    game = offer.game
    title, rules = titles(game)
    ways = [way(game, action) for action in range(game.num_actions)]
    player = parse_player(offer.opponent).short_name
    others = [UNTRAINED, "uct:100", "uct:2000", "random", "person"]
    return {
        "format": saved.FORMAT,
        "game": game.name,
        "title": title,
        "rules": rules,
        "lesson": lesson(game),
        "seats": seats(game),
        "begins": first_player(game),
        "limits": dataclasses.asdict(offer.limits),
        "opponents": list(dict.fromkeys([player, *others])),
        "levels": [dataclasses.asdict(one) for one in levels(player if offer.trained else None)],
        "actions": [dataclasses.asdict(one) | {"words": one.words} for one in ways],
        "picture": picture(game),
        "engine": description(game, offer.trained),
    }


def picture(game: Game) -> dict[str, Any]:
    """The picture of a game without its function, which is part of the program."""
    drawing = game.drawing
    fields = {f.name: getattr(drawing, f.name) for f in dataclasses.fields(drawing) if f.name != "look"}
    plain = lambda x: dataclasses.asdict(x) if isinstance(x, Layer | Part) else x
    lists = {name: [plain(x) for x in value] for name, value in fields.items() if isinstance(value, tuple)}
    return fields | lists | {"paper": PAPER}
