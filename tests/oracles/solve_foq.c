/* Exact results in Flight of Queen with one queen or two: cc -O3 -march=native -o solve_foq solve_foq.c
 *
 *   solve_foq 1 BUDGET < positions        one queen on 8 x 8: which moves win
 *   solve_foq 2 BUDGET < positions        two queens on 8 x 9
 *   solve_foq 1 BUDGET SAMPLE < positions    positions met on the way, for `--proof_file` of train.py
 *
 * A position is a line with the ripped squares as a hexadecimal number, the mover's queen, and the other one (0 if there
 * is one queen). The answer is a line with the winning moves as a hexadecimal number, or "?" where BUDGET visits of the
 * search do not decide some move. With SAMPLE the answer is up to SAMPLE positions of each power of two of the visits
 * that they took: a line with the position, its result for the mover, these visits, and the winning moves, or "-" where
 * they are not all known. `-DTABLE_BITS=26` gives the search 3 GB, for positions with nearly all squares free.
 *
 * Depth-first proof-number search (Nagai 2002) with weak proof numbers (Ueda et al. 2008). Squares that no walk of a
 * king reaches do not count. Two queens that no such walk joins are settled by their longest walks where these are
 * found at once. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned __int128 Set;
typedef struct { Set ripped; int mine, other; } Position;
typedef struct { Set key, ripped; uint32_t prove, refute, visits; int8_t mine, other; uint16_t root; } Entry;

#define BIT(square) ((Set)1 << (square))
enum { MOST = 72, MOVES = 40, CLASSES = 32, WAYS = 4 };
static const uint32_t NEVER = 1u << 28;
#ifndef TABLE_BITS
#define TABLE_BITS 21
#endif
static const uint64_t TABLE = 1ull << TABLE_BITS; /* entries of 48 bytes */

static int queens, rows, cols, squares;
static int8_t line[MOST][8][10]; /* squares in each direction, then -1 */
static Set all, left_edge, right_edge;
static Entry *table;
static uint16_t root; /* number of the position asked about: older entries are free */
static uint64_t visits, most_visits, seed = 88172645463325252ull;

static int count(Set x) { return __builtin_popcountll((uint64_t)x) + __builtin_popcountll((uint64_t)(x >> 64)); }
static int first(Set x) {
  return (uint64_t)x ? __builtin_ctzll((uint64_t)x) : 64 + __builtin_ctzll((uint64_t)(x >> 64));
}
static uint64_t chance(void) { return seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17; }

/* Squares */

static void lay_out(void) {
  rows = 8, cols = queens == 1 ? 8 : 9, squares = rows * cols;
  memset(line, -1, sizeof line);
  for (int s = 0; s < squares; s++) {
    all |= BIT(s);
    if (s % cols == 0) left_edge |= BIT(s);
    if (s % cols == cols - 1) right_edge |= BIT(s);
    for (int d = 0; d < 9; d++) {
      int down = d / 3 - 1, right = d % 3 - 1, r = s / cols + down, c = s % cols + right;
      if (d == 4) continue;
      for (int n = 0; r >= 0 && r < rows && c >= 0 && c < cols; r += down, c += right)
        line[s][d - (d > 4)][n++] = r * cols + c;
    }
  }
}

static Set beside(Set x) { /* with x itself */
  Set wide = x | ((x & ~right_edge) << 1) | ((x & ~left_edge) >> 1);
  return (wide | wide << cols | wide >> cols) & all;
}

static Set region(int queen, Set free) { /* squares that walks of a king reach */
  Set x = beside(BIT(queen)) & free, next;
  while ((next = beside(x) & free) != x) x = next;
  return x;
}

static Set reach(Set ripped, int queen) {
  Set found = 0;
  for (int d = 0; d < 8; d++)
    for (int8_t *s = line[queen][d]; *s >= 0 && !(ripped >> *s & 1); s++) found |= BIT(*s);
  return found;
}

/* Rules */

static Set moves(Position p) { return reach(p.ripped, p.mine) & (queens == 1 ? all : ~reach(p.ripped, p.other)); }

static Position after(Position p, int target) {
  for (int d = 0; d < 8; d++) {
    Set path = 0;
    for (int8_t *s = line[p.mine][d]; *s >= 0; s++) {
      path |= BIT(*s);
      if (*s == target) return (Position){p.ripped | path, queens == 1 ? target : p.other, queens == 1 ? 0 : target};
    }
  }
  abort();
}

static Position reduced(Position p) {
  Set free = all & ~p.ripped, reached = region(p.mine, free);
  if (queens == 2) reached |= region(p.other, free);
  return (Position){all & ~reached, p.mine, p.other};
}

/* The longest walk of a king, or a shorter one if it is not found in `tries` steps; stops at `wanted`. */
static int walk(int king, Set free, int wanted, int *tries) {
  Set next = beside(BIT(king)) & free;
  int to[8], ways[8], n = 0, best = 0;
  if (!next || --*tries < 0) return 0;
  for (; next; next &= next - 1) { /* those with the fewest ways on come first */
    int s = first(next), w = count(beside(BIT(s)) & free), i = n++;
    for (; i && ways[i - 1] > w; i--) to[i] = to[i - 1], ways[i] = ways[i - 1];
    to[i] = s, ways[i] = w;
  }
  for (int i = 0; i < n && best < wanted && *tries >= 0; i++) {
    int length = 1 + walk(to[i], free & ~BIT(to[i]), wanted - 1, tries);
    if (length > best) best = length;
  }
  return best;
}

/* 1 if the mover of a position with queens apart wins, -1 if he loses, 0 if this does not tell. */
static int by_walks(Position p) {
  Set free = all & ~p.ripped, mine = region(p.mine, free), others = region(p.other, free);
  int longest[2], most[2] = {count(mine), count(others)};
  if (mine & others) return 0;
  for (int i = 0; i < 2; i++) {
    int tries = 400;
    longest[i] = walk(i ? p.other : p.mine, i ? others : mine, most[i], &tries);
    if (tries >= 0) most[i] = longest[i];
  }
  return longest[0] > most[1] ? 1 : most[0] <= longest[1] ? -1 : 0;
}

/* Search */

static Entry *bucket(Position p) {
  uint64_t x = (uint64_t)p.ripped * 0x9E3779B97F4A7C15ull ^ ((uint64_t)(p.ripped >> 64) + p.mine * 131 + p.other + 7);
  for (int i = 0; i < 2; i++) x = (x ^ x >> 32) * 0xD6E8FEB86659FD93ull;
  return table + ((x ^ x >> 32) & (TABLE - WAYS));
}

static int holds(Entry *e, Position p) {
  return e->root == root && e->key == p.ripped && e->mine == p.mine && e->other == p.other;
}

static Entry *find(Position reduced) {
  Entry *e = bucket(reduced);
  for (int i = 0; i < WAYS; i++, e++)
    if (holds(e, reduced)) return e;
  return NULL;
}

static void store(Position reduced, Set ripped, uint32_t prove, uint32_t refute, uint32_t work) {
  Entry *e = bucket(reduced), *place = e;
  for (int i = 0; i < WAYS; i++, e++) {
    if (holds(e, reduced)) {
      e->prove = prove, e->refute = refute, e->visits += work;
      return;
    }
    if (place->root == root && (e->root != root || e->visits < place->visits)) place = e;
  }
  *place = (Entry){reduced.ripped, ripped, prove, refute, work, reduced.mine, reduced.other, root};
}

/* The numbers of a reduced position: from the table, or those of a new one. */
static void look(Position p, Set ripped, uint32_t *prove, uint32_t *refute) {
  Entry *e = find(p);
  if (e) {
    *prove = e->prove, *refute = e->refute;
    return;
  }
  int n = count(moves(p)), wins = n ? (queens == 2 ? by_walks(p) : 0) : (queens == 1 ? 1 : -1);
  *prove = wins > 0 ? 0 : wins < 0 ? NEVER : 1;
  *refute = wins > 0 ? NEVER : wins < 0 ? 0 : (uint32_t)n;
  store(p, ripped, *prove, *refute, 1);
}

/* Searches below a position until one of its numbers reaches its limit. */
static void search(Position p, Position own, uint32_t most_prove, uint32_t most_refute, uint32_t *prove,
                   uint32_t *refute) {
  Position child[MOVES], small[MOVES];
  uint32_t wins[MOVES], loses[MOVES]; /* numbers of the children, for their movers */
  uint64_t before = visits++;
  int n = 0;
  for (Set m = moves(p); m; m &= m - 1, n++) {
    child[n] = after(p, first(m)), small[n] = reduced(child[n]);
    look(small[n], child[n].ripped, &wins[n], &loses[n]);
  }
  for (;;) {
    uint32_t least = NEVER, second = NEVER, hardest = 0;
    int best = 0, open = 0;
    for (int i = 0; i < n; i++) {
      if (loses[i] < least) second = least, least = loses[i], best = i;
      else if (loses[i] < second) second = loses[i];
      if (wins[i]) open++, hardest = wins[i] > hardest ? wins[i] : hardest;
    }
    *prove = open ? least : NEVER;
    *refute = !open ? 0 : !least || hardest >= NEVER ? NEVER : hardest + open - 1;
    if (!*refute) *prove = NEVER;
    if (!*prove || !*refute || *prove >= most_prove || *refute >= most_refute || visits >= most_visits) break;
    uint32_t more = second >= NEVER ? NEVER : second + second / 4 + 1;
    search(child[best], small[best], most_refute >= NEVER ? NEVER : most_refute - open + 1,
           more < most_prove ? more : most_prove, &wins[best], &loses[best]);
    for (int i = 0; i < n; i++) { /* others may have been met on the way, or have left the table */
      Entry *e = i != best && wins[i] && loses[i] ? find(small[i]) : NULL;
      if (e) wins[i] = e->prove, loses[i] = e->refute;
    }
  }
  store(own, p.ripped, *prove, *refute, visits - before);
}

/* 1 if the mover wins, -1 if he loses, 0 if `budget` visits do not tell. */
static int decide(Position p, uint64_t budget) {
  Position small = reduced(p);
  uint32_t prove, refute;
  look(small, p.ripped, &prove, &refute);
  visits = 0, most_visits = budget;
  if (prove && refute) search(p, small, NEVER, NEVER, &prove, &refute);
  return !prove ? 1 : !refute ? -1 : 0;
}

/* Whether `budget` visits each decide all moves; those that win go to *winning. */
static int decide_moves(Position p, uint64_t budget, Set *winning) {
  *winning = 0;
  for (Set m = moves(p); m; m &= m - 1) {
    int reply = decide(after(p, first(m)), budget);
    if (!reply) return 0;
    if (reply < 0) *winning |= BIT(first(m));
  }
  return 1;
}

/* Input and output */

static void print_set(Set x) { printf("%02llx%016llx", (unsigned long long)(x >> 64), (unsigned long long)x); }

static void print_row(Position p, int result, uint32_t work, uint64_t budget, double share) {
  Set winning = 0;
  int known = result < 0 || (chance() % 1000000 < share * 1000000 && decide_moves(p, budget, &winning));
  print_set(p.ripped);
  printf(" %d %d %d %u ", p.mine, p.other, result, work);
  if (known) print_set(winning);
  else printf("-");
  printf("\n");
}

static void sample(Position p, uint64_t budget, int wanted) {
  static Entry *chosen;
  int met[CLASSES] = {0}, result = decide(p, budget);
  uint32_t work = visits;
  if (!chosen) chosen = malloc(sizeof(Entry) * CLASSES * wanted);
  for (Entry *e = table; e < table + TABLE; e++) {
    if (e->root != root || (e->prove && e->refute) || !moves((Position){e->ripped, e->mine, e->other})) continue;
    int class = 31 - __builtin_clz(e->visits | 1), quota = class < 2 ? wanted / 8 : class < 5 ? wanted / 4 : wanted;
    int place = met[class]++ < quota ? met[class] - 1 : (int)(chance() % met[class]);
    if (place < quota) chosen[class * wanted + place] = *e;
  }
  for (int class = 0; class < CLASSES; class++) {
    int quota = class < 2 ? wanted / 8 : class < 5 ? wanted / 4 : wanted;
    for (int i = 0; i < quota && i < met[class]; i++) {
      Entry *e = chosen + class * wanted + i; /* all moves of a hard position would take too long */
      print_row((Position){e->ripped, e->mine, e->other}, e->prove ? -1 : 1, e->visits, 8ull * e->visits + 500,
                e->visits < 300 ? 1 : 300.0 / e->visits);
    }
  }
  if (result) print_row(p, result, work, 300000, 0.25);
}

int main(int argc, char **argv) {
  char text[40];
  Position p;
  if (argc < 3 || !strchr("12", *argv[1])) return fprintf(stderr, "usage: solve_foq QUEENS BUDGET [SAMPLE]\n"), 2;
  queens = atoi(argv[1]);
  lay_out();
  table = calloc(TABLE, sizeof(Entry));
  while (scanf("%39s %d %d", text, &p.mine, &p.other) == 3) {
    Set winning;
    p.ripped = 0;
    for (char *c = text; *c; c++) p.ripped = p.ripped << 4 | (*c <= '9' ? *c - '0' : *c - 'a' + 10);
    if (!++root) memset(table, 0, TABLE * sizeof(Entry)), root = 1;
    if (argc > 3) {
      sample(p, atoll(argv[2]), atoi(argv[3]));
    } else {
      if (decide_moves(p, atoll(argv[2]), &winning)) print_set(winning);
      else printf("?");
      printf("\n");
    }
    fflush(stdout);
  }
}
