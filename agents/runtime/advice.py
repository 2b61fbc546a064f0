"""Commands that messages advise: an installed copy has other ones than a checkout."""

from __future__ import annotations

import re
from pathlib import Path

CHECKOUT = (Path(__file__).parents[2] / "pyproject.toml").is_file()


def program_command(name: str) -> str:
    """The command that starts `train`, `evaluate` or `play`."""
    return f"python {name}.py" if CHECKOUT else f"ripzero-{name}"


def with_program_commands(text: str) -> str:
    """The text with the commands of this copy in place of those of a checkout."""
    return re.sub(r"\bpython (train|evaluate|play)\.py", lambda found: program_command(found[1]), text)


def extra(name: str) -> str:
    """The command that installs an optional group of dependencies."""
    return f"pip install -e '.[{name}]'" if CHECKOUT else f"pip install 'ripzero[{name}]'"


def document(path: str) -> str:
    """A document of the repository, which an installed copy does not carry."""
    return path if CHECKOUT else f"{path} of the repository"
