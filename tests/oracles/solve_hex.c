/* Which moves win in positions of Hex: cc -O2 -o solve_hex solve_hex.c && echo '4 5' | ./solve_hex 5
 *
 * Each line of the input lists the cells played so far, Red first; there is no swap. The answer lists the cells that win
 * for the player to move. Red joins top and bottom, Blue left and right.
 *
 * Depth-first search with must-play regions (Hayward and van Rijswijck, "Hex and combinatorics", 2006): a proof that the
 * opponent wins after some move needs only the cells of its carrier, so all moves outside that carrier lose as well. */
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

static u64 around(u64 from, u64 empty) {
  u64 next = 0;
  int i;
  EACH(i, from) {
    next |= touching[i];
    for (int k = 0; k < bridges[i]; k++)
      if (two_free(bridge_over[i][k], empty)) next |= BIT(bridge_to[i][k]);
  }
  return next;
}

/* Stones that a player still needs from edge to edge if bridges cost nothing, times 64, less the number of cells where
 * the shortest ways end. It only orders moves. */
static int needed(u64 own, u64 other, int red) {
  u64 empty = all & ~own & ~other, left = own | empty, now = edge[red][0], goal = edge[red][1];
  for (int i = 0; i < cells; i++) {
    if (two_free(touching[i] & edge[red][0], empty)) now |= BIT(i);
    if (two_free(touching[i] & edge[red][1], empty)) goal |= BIT(i);
  }
  now &= left;
  for (int k = 0; now; k++) {
    u64 level = 0, grow = now & own;
    while (grow) {
      level |= grow;
      u64 next = around(grow, empty) & left & ~level;
      now |= next;
      grow = next & own;
    }
    now &= ~level;
    if (level & goal) return 64 * k - __builtin_popcountll(level & goal);
    left &= ~(level | now);
    if (now & goal) return 64 * (k + 1) - __builtin_popcountll(now & goal);
    now = around(now, empty) & left;
  }
  return 64 * MOST;
}

/* Whether the mover wins; *carrier gets the empty cells that the winner's proof needs. */
static int wins(u64 mover, u64 other, int red, u64 *carrier) {
  u64 hash = mover * 0x9E3779B97F4A7C15ull ^ other * 0xC2B2AE3D27D4EB4Full;
  Entry *entry = &table[(hash ^ hash >> 29) * 0xBF58476D1CE4E5B9ull >> 41];
  if (entry->mover == mover && entry->other == other && entry->red == red)
    return *carrier = entry->carrier, entry->wins;
  if (joined(other, mover, !red, carrier)) return 0;
  u64 must = all & ~mover & ~other, proof = 0, used = 0;
  int cost[MOST], won = 0, i;
  EACH(i, must)
    if (joined(mover | BIT(i), other, red, &used)) return *carrier = used | BIT(i), 1;
  u64 threats = must;
  EACH(i, threats)
    if (joined(other | BIT(i), mover, !red, &used)) must &= used | BIT(i), proof |= used | BIT(i);
  EACH(i, must) cost[i] = needed(mover | BIT(i), other, red) - needed(other, mover | BIT(i), !red);
  while (must && !won) {
    int best = __builtin_ctzll(must);
    EACH(i, must)
      if (cost[i] < cost[best]) best = i;
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
