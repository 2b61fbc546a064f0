#!/usr/bin/env bash
# Draws the pictures of all games in docs/pictures/games/ anew.
set -euo pipefail
cd "$(dirname "$0")/../.."
draw() { python -m envs.draw "$1" --out="docs/pictures/games/$2" "${@:3}"; }

# Lasker's trap in the Albin countergambit, from tests/ui/test_chess_page.py.
draw chess chess.png --width=260 --moves="d2d4 d7d5 c2c4 e7e5 d4e5 d5d4 e2e3 f8b4 c1d2 d4e3 d2b4 e3f2 e1e2 f2g1n"
draw connect_four connect_four.png --width=260 --moves="4 4 4 3 5 6 3 5 2 4 3 3"
draw evopawness evopawness.png --width=360 --random_plies=40 --seed=3
draw foq foq.png --width=260 --moves="d5 f4 e6 d4 f5 c3 g6 b2 f7"
# The network of models/foq (White, 256 simulations) against 1000 random playouts, from docs/foq_explored.md.
draw foq foq.gif --width=340 --caption --seconds=0.6 --moves="e8 d6 i8 c5 e4 f2 b1 g2 a1 h1 a2 g1 a3 e1 a4 d2 b3 d1 e6 f3 e7 i6 d7 i7 c7 h6 b7 i5 a7 i4 a6 h3 b6 i2 c6 i3 b5 h4 a5 g5 b4 f6 c3 g7 b2 f7 c1"
draw foq_multi foq_multi.png --width=260 --random_plies=9 --seed=3
draw foq_single foq_single.png --width=260 --random_plies=6 --seed=3
draw chess:size=5 gardner_chess.png --width=260 --moves="d2d3 e4d3 c2d3 b4b3 a2b3 a4b3"
draw go go.png --width=260 --moves="E5 C6 C4 G4 F3 G6 D6 C5 B5 D7 E7 B4 B6 C3 D4 B3 F7 G3"
draw gomoku gomoku.png --width=260 --moves="h8 i9 i8 g8 h9 h10 g10 f11 h7 h6 g7 f7 i7 j7 i6"
draw hex hex.png --width=360 --moves="e4 g6 f5 f7 e7 d8 g4 h4 g5 h5 d7 c8 c7"
draw othello othello.png --width=260 --random_plies=20 --seed=3
draw sum_to_100 sum_to_100.png --width=260 --moves="+1 +10 +7 +4 +5"
draw tictactoe tictactoe.png --width=180 --moves="b2 a3 c3 a1 a2"
draw foq:rows=4,cols=5 foq_rules_start.png --width=240
draw foq:rows=4,cols=5 foq_rules_move.png --width=240 --moves="d4"
draw foq:rows=4,cols=5 foq_rules_end.png --width=240 --moves="c4 e3 a2 c1"
draw foq_single:rows=3,cols=3 foq_rules_single.png --width=180 --moves="b3 a2 c2 c3"
draw evopawness evopawness_start.png --width=360
