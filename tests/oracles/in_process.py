"""A program's main in this process."""

import sys

import pytest


def in_process(program, arguments, monkeypatch, capsys):
    """Runs a program's main here, which spares the start of Python; gives exit code and error text."""
    monkeypatch.setattr(sys, "argv", [program, *arguments])
    with pytest.raises(SystemExit) as stop:
        __import__(program.removesuffix(".py")).main()
    return stop.value.code, capsys.readouterr().err
