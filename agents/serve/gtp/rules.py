"""Rules of Go as KataGo names them. Ours are area scoring without suicide; only the ko rule can be chosen."""

from __future__ import annotations

import json

from agents.serve.gtp.arguments import Refusal

KO = {"SIMPLE": "simple", "POSITIONAL": "psk"}  # KataGo's word -> ours
NAMED = {"chinese": "simple", "chinese-ogs": "psk", "chinese-kgs": "psk"}  # rulesets, but for points for a handicap
FIXED = {
    "friendlyPassOk": False,  # dead stones have to be captured
    "hasButton": False,
    "scoring": "AREA",
    "suicide": False,
    "tax": "NONE",
    "whiteHandicapBonus": "0",
}


def as_json(ko: str) -> str:
    """The rules with a ko rule of ours, as one JSON object."""
    (word,) = (word for word, known in KO.items() if known == ko)
    return json.dumps(dict(sorted({**FIXED, "ko": word}.items())), separators=(",", ":"))


def ko_of(text: str) -> str:
    """The ko rule of a ruleset: a name of KataGo's, or a JSON object whose absent fields are as in ours.

    Raises:
        Refusal: rules that are not supported.
    """
    if text.strip().lower() in NAMED:
        return NAMED[text.strip().lower()]
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    if isinstance(given, dict):
        ko = KO.get(str(given.pop("ko", "SIMPLE")).upper())
        if ko and all(name in FIXED and FIXED[name] == value for name, value in given.items()):
            return ko
    raise Refusal(f"unsupported rules: expected {', '.join(NAMED)}, or {as_json('simple')} with either ko, got {text}")
