"""A plain program of the rules of Go: a board is a tuple of 1 black, -1 white, 0 empty."""

from __future__ import annotations


def around(point: int, size: int) -> list[int]:
    row, col = divmod(point, size)
    sides = [(row - 1, col), (row + 1, col), (row, col - 1), (row, col + 1)]
    return [r * size + c for r, c in sides if 0 <= r < size and 0 <= c < size]


class PlainGo:
    """One game; `superko` forbids all earlier boards, else only the one before the opponent's last play."""

    def __init__(self, size: int, superko: bool):
        self.size, self.superko = size, superko
        self.near = [around(p, size) for p in range(size * size)]
        self.turn, self.passes = 1, 0
        self.boards = [(0,) * (size * size)]  # the boards of the game, the present one last
        self.moves: list[int] = []

    @property
    def board(self) -> tuple[int, ...]:
        return self.boards[-1]

    def region(self, board, point: int) -> tuple[list[int], set[int]]:
        """Points of one kind joined to `point`, and what lies beside them."""
        inside, beside = [point], set()
        for p in inside:
            for q in self.near[p]:
                if board[q] != board[point]:
                    beside.add(q)
                elif q not in inside:
                    inside.append(q)
        return inside, beside

    def liberties(self, board, point: int) -> set[int]:
        return {q for q in self.region(board, point)[1] if board[q] == 0}

    def after(self, point: int) -> tuple[int, ...] | None:
        """The board after a play; None if the point is taken or the play is suicide."""
        if self.board[point]:
            return None
        board = list(self.board)
        board[point] = self.turn
        for q in self.near[point]:
            if board[q] == -self.turn and not self.liberties(board, q):
                for dead in self.region(board, q)[0]:
                    board[dead] = 0
        return tuple(board) if self.liberties(board, point) else None

    def repeats(self, board) -> bool:
        if self.superko:
            return board in self.boards
        was_play = bool(self.moves) and self.moves[-1] != self.size**2
        return was_play and board == self.boards[-2]

    def over(self) -> bool:
        return self.passes == 2 or len(self.moves) == 2 * self.size**2

    def legal(self) -> list[int]:
        if self.over():
            return []
        boards = ((p, self.after(p)) for p in range(self.size**2))
        return [p for p, board in boards if board and not self.repeats(board)] + [self.size**2]

    def play(self, move: int):
        is_pass = move == self.size**2
        board = self.board if is_pass else self.after(move)
        assert board is not None
        self.boards.append(board)
        self.passes = self.passes + 1 if is_pass else 0
        self.moves.append(move)
        self.turn = -self.turn

    def owners(self) -> list[int]:
        """0 Black, 1 White, 2 nobody."""
        owners = [{1: 0, -1: 1, 0: 2}[stone] for stone in self.board]
        for p in range(self.size**2):
            if self.board[p] == 0:
                colours = {self.board[q] for q in self.region(self.board, p)[1]}
                if len(colours) == 1:
                    owners[p] = 0 if colours == {1} else 1
        return owners

    def area(self) -> list[int]:
        return [self.owners().count(player) for player in range(2)]


def sending_two(size: int) -> tuple[int, ...]:
    """Black sends two stones into the corner, White takes them with one, Black takes that one back by the last move.

    . X . X .        after six moves, and again after nine; as two stones were taken, the point is no ko
    O O X . .
    . . . . .
    . O . . .
    """
    moves = [(1, 2), (1, 1), (0, 3), (1, 0), (0, 1), (3, 1), (0, 0), (0, 2), (0, 1)]
    return tuple(row * size + col for row, col in moves)
