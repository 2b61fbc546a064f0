"""The direction of imports: games know nothing of agents, and inside agents/ a package knows only packages above it."""

from __future__ import annotations

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
ORDER = [
    "config",
    "runtime",
    "actions",
    "network",
    "search",
    "solvers",
    "storage",
    "training",
    "players",
    "arena",
    "run",
    "serve",
]
OURS = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (path.is_dir() and any(path.glob("*.py")))}
FACE = ROOT / "agents" / "__init__.py"  # hands on the public names of the packages


def imported(path: pathlib.Path) -> set[str]:
    """Dotted names of everything that a file imports, inside functions as well; `from a import b` counts as a.b."""
    package = path.relative_to(ROOT).parent.parts
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            names |= {f"{base}.{alias.name}" for alias in node.names}
    return names


def files(folder: str) -> list[pathlib.Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def show_path(path: pathlib.Path) -> str:
    return path.relative_to(ROOT).as_posix()


def part(path: pathlib.Path) -> str:
    """The entry of ORDER that a file of agents/ belongs to: its name, or that of its folder."""
    return path.relative_to(ROOT / "agents").parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", files("envs"), ids=show_path)
def test_games_import_nothing_of_the_project_outside_envs(path):
    tops = {name.split(".")[0] for name in imported(path)}
    assert tops & OURS <= {"envs"}


def test_every_file_of_agents_has_its_place_in_the_order():
    assert {part(path) for path in files("agents")} <= {*ORDER, "__init__"}
    assert len(list((ROOT / "agents").glob("*.py"))) <= 3


@pytest.mark.parametrize("folder", ["players", "arena", "serve"])
def test_play_and_matches_know_nothing_of_training(folder):
    names = {".".join(name.split(".")[:2]) for path in files(f"agents/{folder}") for name in imported(path)}
    assert not names & {"agents.training", "agents.run"}


@pytest.mark.parametrize("path", [path for path in files("agents") if path != FACE], ids=show_path)
def test_agents_import_only_packages_above_them(path):
    names = {tuple(name.split(".")) for name in imported(path)}
    assert {name[0] for name in names} & OURS <= {"envs", "agents"}
    above = ORDER[: ORDER.index(part(path))] if part(path) in ORDER else []
    inside = {name[1] for name in names if name[0] == "agents" and len(name) > 1}
    assert inside <= {*above, *([part(path)] if path.parent.name != "agents" else [])}
