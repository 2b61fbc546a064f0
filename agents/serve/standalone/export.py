"""Writes a game as one HTML file that plays it: the page of agents/serve/page with a worker in place of the server."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import envs
from agents.serve.levels import levels
from agents.serve.options import UNTRAINED, Options, opponent
from agents.serve.standalone import kernel
from agents.serve.standalone.program import description, program
from agents.serve.views import way
from agents.storage import weights as models
from agents.storage.weights import TrainedNetwork
from envs import saved
from envs.game import Game, first_player, seats, titles
from envs.pictures import PAPER, Layer, Part

HERE = Path(__file__).parent
PAGE = HERE.parent / "page"
# No request leaves the page: only what it contains runs. WebAssembly needs a word of its own.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval' blob:; worker-src blob:; "
    "style-src 'unsafe-inline'; img-src data:"
)
HIDDEN = "#save-position, #copy, label:has(> #link) { display: none; }"  # a position and a link need a server


def export(options: Options) -> Path:
    """Writes the page of `options.env` and its opponent to `options.export`.

    Raises:
        ValueError: unknown game or opponent, or one that cannot be converted.
        OSError: the file cannot be written.
    """
    game = envs.make(options.env)
    player = opponent(options, game)
    trained = None
    if not player.startswith("uct:"):
        trained = models.load_network(player, game)
    path = Path(options.export)
    saved.write(path, page(game, trained, player))
    return path


def page(game: Game, trained: TrainedNetwork | None, player: str) -> str:
    """The HTML of a game. `player`, the name of the default opponent, is `uct:N` without a network."""
    bytes_ = base64.b64encode(kernel.module()).decode()
    worker = "\n".join(
        [
            *((HERE / name).read_text(encoding="utf-8") for name in ("runtime.js", "search.js", "session.js")),
            program(game, trained),
            f"const about = {json.dumps(about(game, trained, player), separators=(',', ':'))};",
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


def about(game: Game, trained: TrainedNetwork | None, player: str) -> dict[str, Any]:
    """What session.js has to know of a game, JSON-ready."""
    title, rules = titles(game)
    ways = [way(game, action) for action in range(game.num_actions)]
    others = [UNTRAINED, "uct:100", "uct:2000", "random", "person"]
    return {
        "format": saved.FORMAT,
        "game": game.name,
        "title": title,
        "rules": rules,
        "seats": seats(game),
        "begins": first_player(game),
        "opponents": list(dict.fromkeys([player, *others])),
        "levels": [dataclasses.asdict(one) for one in levels(None if player.startswith("uct:") else player)],
        "actions": [dataclasses.asdict(one) | {"words": one.words} for one in ways],
        "picture": picture(game),
        "engine": description(game, trained),
    }


def picture(game: Game) -> dict[str, Any]:
    """The picture of a game without its function, which is part of the program."""
    drawing = game.drawing
    fields = {f.name: getattr(drawing, f.name) for f in dataclasses.fields(drawing) if f.name != "look"}
    plain = lambda x: dataclasses.asdict(x) if isinstance(x, Layer | Part) else x
    lists = {name: [plain(x) for x in value] for name, value in fields.items() if isinstance(value, tuple)}
    return fields | lists | {"paper": PAPER}
