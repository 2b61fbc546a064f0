"""The commands that the documents tell people to type."""

import pathlib
import re
import shlex

ROOT = pathlib.Path(__file__).parents[2]
DOCUMENTS = ["README.md", *(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("docs/**/*.md")))]
DOCUMENTS += [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("models/*/README.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(path: str) -> list[list[str]]:
    """The words behind `python` of every command of a document, in its blocks and its sentences."""
    text = (ROOT / path).read_text()
    shell = "".join(content for kind, content in BLOCK.findall(text) if kind == "bash").replace("\\\n", " ")
    lines = shell.splitlines() + [" ".join(said.split()) for said in re.findall(r"`([^`]+)`", BLOCK.sub("", text))]
    said = [match[1] for line in lines if (match := re.search(r"(?:^|[\s|&])python3? (\S.*)", line))]
    alone = [words.removesuffix('"') if words.count('"') % 2 else words for words in said]  # one ends a quotation
    return [shlex.split(words, comments=True) for words in alone]


def where(words: list[str]) -> str:
    """The file of a program or module."""
    if words[0] != "-m":
        return words[0]
    module = words[1].replace(".", "/")
    return f"{module}/__main__.py" if (ROOT / module).is_dir() else f"{module}.py"


CASES = [(path, words) for path in DOCUMENTS for words in commands(path) if words[0] != "-c" and words[1:2] != ["venv"]]
