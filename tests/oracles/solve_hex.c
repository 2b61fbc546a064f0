/* Which moves win in positions of Hex: cc -O2 -o solve_hex solve_hex.c -lm && echo '4 5' | ./solve_hex 5
 *
 * Each line of the input lists the cells played so far, Red first; there is no swap. The answer lists the cells that win
 * for the player to move. Red joins top and bottom, Blue left and right.
 *
 * Depth-first search with must-play regions (Hayward and van Rijswijck, "Hex and combinatorics", 2006): a proof that the
 * opponent wins after some move needs only the cells of its carrier, so all moves outside that carrier lose as well. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t u64;
#define EACH(cell, set) for (u64 rest_ = (set); rest_ && ((cell) = __builtin_ctzll(rest_), 1); rest_ &= rest_ - 1)
#define BIT(cell) (1ull << (cell))
enum { TABLE = 1 << 23, MOST = 64 };

typedef struct { u64 mover, other, carrier; int red, wins; } Entry;

static int size, cells, bridges[MOST], bridge_to[MOST][6];
static u64 all, touching[MOST], bridge_over[MOST][6], edge[2][2]; /* edges by player, 1 is Red */
static Entry *table;

static int two_free(u64 feet, u64 empty) { return __builtin_popcountll(feet) == 2 && (feet & empty) == feet; }

/* Extends a chain of stones and bridges to the second edge. Bridges need two empty cells each, no cell twice; the
 * cells of those in use are `used`, and all of a finished chain become *carrier. */
static int extend(u64 stones, u64 empty, int red, u64 group, u64 *seen, u64 used, u64 *carrier) {
  int i;
  for (u64 front = group; front;) {
    u64 next = 0;
    EACH(i, front) next |= touching[i];
    front = next & stones & ~group;
    group |= front;
  }
  *seen |= group;
  if (group & edge[red][1]) return *carrier = used, 1;
  EACH(i, group) {
    u64 feet = touching[i] & edge[red][1];
    if (two_free(feet, empty & ~used)) return *carrier = used | feet, 1;
  }
  EACH(i, group)
    for (int k = 0; k < bridges[i]; k++) {
      u64 to = BIT(bridge_to[i][k]), over = bridge_over[i][k];
      if ((to & stones & ~*seen) && two_free(over, empty & ~used) &&
          extend(stones, empty, red, to, seen, used | over, carrier))
        return 1;
    }
  return 0;
}

/* Whether a player's stones hold from edge to edge although the opponent moves. */
static int joined(u64 stones, u64 other, int red, u64 *carrier) {
  u64 empty = all & ~stones & ~other, seen = 0;
  int i;
  EACH(i, stones & edge[red][0])
    if (!(seen & BIT(i)) && extend(stones, empty, red, BIT(i), &seen, 0, carrier)) return 1;
  EACH(i, stones & ~edge[red][0]) {
    u64 feet = touching[i] & edge[red][0];
    if (!(seen & BIT(i)) && two_free(feet, empty) && extend(stones, empty, red, BIT(i), &seen, feet, carrier)) return 1;
  }
  return 0;
}

/* The board as an electric circuit: a player's own stones conduct well, empty cells poorly, those of the opponent not at
 * all, and bridges at half strength. Adds the current from edge to edge through each cell; it only orders moves. */
static void add_currents(u64 own, u64 other, int red, double *flow) {
  static double matrix[MOST][MOST + 1], voltage[MOST], of[MOST][MOST], ends[MOST][2];
  u64 on = all & ~other, empty = on & ~own;
  memset(matrix, 0, sizeof matrix), memset(of, 0, sizeof of), memset(ends, 0, sizeof ends);
  for (int i = 0; i < cells; i++) {
    double resistance = own & BIT(i) ? 0.05 : 1;
    int j;
    matrix[i][i] = 1e-9;
    if (!(on & BIT(i))) continue;
    EACH(j, on & ~BIT(i)) {
      u64 over = touching[i] & touching[j];
      double share = touching[i] & BIT(j) ? 1 : two_free(over, empty) ? 0.5 : 0;
      of[i][j] = share / (resistance + (own & BIT(j) ? 0.05 : 1));
      matrix[i][i] += of[i][j], matrix[i][j] = -of[i][j];
    }
    for (int e = 0; e < 2; e++) {
      ends[i][e] = (edge[red][e] & BIT(i) ? 1 : two_free(touching[i] & edge[red][e], empty) ? 0.5 : 0) / resistance;
      matrix[i][i] += ends[i][e];
    }
    matrix[i][cells] = ends[i][0]; /* the first edge has voltage 1, the second 0 */
  }
  for (int i = 0; i < cells; i++)
    for (int j = i + 1; j < cells; j++) {
      double factor = matrix[j][i] / matrix[i][i];
      if (factor != 0)
        for (int k = i; k <= cells; k++) matrix[j][k] -= factor * matrix[i][k];
    }
  for (int i = cells - 1; i >= 0; i--) {
    voltage[i] = matrix[i][cells];
    for (int k = i + 1; k < cells; k++) voltage[i] -= matrix[i][k] * voltage[k];
    voltage[i] /= matrix[i][i];
  }
  for (int i = 0; i < cells; i++) {
    for (int j = 0; j < cells; j++) flow[i] += of[i][j] * fabs(voltage[i] - voltage[j]);
    flow[i] += ends[i][0] * (1 - voltage[i]) + ends[i][1] * voltage[i];
  }
}

/* Whether the mover wins; *carrier gets the empty cells that the winner's proof needs. */
static int wins(u64 mover, u64 other, int red, u64 *carrier) {
  u64 hash = mover * 0x9E3779B97F4A7C15ull ^ other * 0xC2B2AE3D27D4EB4Full;
  Entry *entry = &table[(hash ^ hash >> 29) * 0xBF58476D1CE4E5B9ull >> 41];
  if (entry->mover == mover && entry->other == other && entry->red == red)
    return *carrier = entry->carrier, entry->wins;
  if (joined(other, mover, !red, carrier)) return 0;
  u64 must = all & ~mover & ~other, proof = 0, used = 0;
  double flow[MOST] = {0};
  int won = 0, i;
  EACH(i, must)
    if (joined(mover | BIT(i), other, red, &used)) return *carrier = used | BIT(i), 1;
  u64 threats = must;
  EACH(i, threats)
    if (joined(other | BIT(i), mover, !red, &used)) must &= used | BIT(i), proof |= used | BIT(i);
  add_currents(mover, other, red, flow), add_currents(other, mover, !red, flow);
  while (must && !won) {
    int best = __builtin_ctzll(must);
    EACH(i, must)
      if (flow[i] > flow[best]) best = i;
    won = !wins(other, mover | BIT(best), !red, &used);
    if (won) proof = BIT(best) | used;
    else proof |= used, must &= used;
  }
  *entry = (Entry){mover, other, proof, red, won};
  return *carrier = proof, won;
}

static void make_board(void) {
  static const int step[6][2] = {{0, -1}, {0, 1}, {-1, 0}, {1, 0}, {-1, 1}, {1, -1}};
  cells = size * size, all = ~0ull >> (64 - cells);
  for (int i = 0; i < cells; i++) {
    int row = i / size, col = i % size;
    for (int k = 0; k < 6; k++) {
      int r = row + step[k][0], c = col + step[k][1];
      if (r >= 0 && r < size && c >= 0 && c < size) touching[i] |= BIT(r * size + c);
    }
    if (row == 0) edge[1][0] |= BIT(i);
    if (row == size - 1) edge[1][1] |= BIT(i);
    if (col == 0) edge[0][0] |= BIT(i);
    if (col == size - 1) edge[0][1] |= BIT(i);
  }
  for (int i = 0; i < cells; i++)
    for (int j = 0; j < cells; j++) {
      u64 over = touching[i] & touching[j];
      if (i != j && !(touching[i] & BIT(j)) && __builtin_popcountll(over) == 2)
        bridge_to[i][bridges[i]] = j, bridge_over[i][bridges[i]++] = over;
    }
}

int main(int count, char **words) {
  size = count == 2 ? atoi(words[1]) : 0;
  if (size < 2 || size > 7) return fprintf(stderr, "expected a size from 2 to 7\n"), 2;
  table = calloc(TABLE, sizeof *table);
  make_board();
  for (char line[1024]; fgets(line, sizeof line, stdin);) {
    u64 stones[2] = {0, 0}, unused;
    int red = 1, i;
    for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n"), red = !red) stones[red] |= BIT(atoi(word));
    EACH(i, all & ~stones[0] & ~stones[1]) {
      u64 after = stones[red] | BIT(i);
      if (joined(after, stones[!red], red, &unused) || !wins(stones[!red], after, !red, &unused)) printf("%d ", i);
    }
    printf("\n"), fflush(stdout);
  }
}
