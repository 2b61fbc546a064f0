"use strict";
// Tree search of any game, after agents/search: Gumbel search with a network (Danihelka et al. 2022), UCB1 with random
// playouts without one. Leaves are evaluated in batches; edges on the way to a leaf that waits count as visited.
//
// A game is {players, cheap, init, functions, network}; see program.py for the functions. A state is an array of leaves.

const STEP = 32, VISIT_OFFSET = 50, EXPLORATION = Math.SQRT1_2, UNVISITED = 1e3;

const max = (xs) => xs.reduce((a, b) => Math.max(a, b), -Infinity);
const sum = (xs) => xs.reduce((a, b) => a + b, 0);

function argmax(xs, allowed) {
  let best = -1;
  for (let i = 0; i < xs.length; i++) if ((!allowed || allowed[i]) && (best < 0 || xs[i] > xs[best])) best = i;
  return Math.max(best, 0);
}

function softmax(xs, allowed) {
  const top = max(xs.filter((_, i) => allowed[i])), e = xs.map((x, i) => (allowed[i] ? Math.exp(x - top) : 0));
  const total = sum(e);
  return e.map((x) => x / total);
}

// States and nodes

const list = (x) => (Array.isArray(x) ? x : [x]);
const kept = (leaf) => (typeof leaf === "object" ? leaf.slice() : Number(leaf));
const after = (game, state, action) => list(game.functions.move(...state, action)).map(kept);

function look(game, state) {
  const [over, player, rewards, mask] = game.functions.facts(...state);
  return {over: Boolean(over), player: Number(player), rewards: Array.from(rewards), mask};
}

const legalIn = (mask) => Array.from(mask.keys()).filter((a) => mask[a]);

/** A position in the tree. `over` is also true where the result is known; `low` and `high` are bounds of its edges. */
function newNode(game, state) {
  const {over, player, rewards, mask} = look(game, state);
  const actions = over ? [] : legalIn(mask), proofs = game.players === 2;
  const node = {state, mover: player, over, raw: rewards, values: rewards, visits: 0, waiting: 0, actions,
    logits: null, children: new Array(actions.length).fill(null), low: null, high: null};
  if (!proofs) return node;
  node.low = actions.map(() => -1);
  node.high = actions.map(() => 1);
  if (!over) {
    const known = game.functions.known ? Number(game.functions.known(...state)) : NaN;
    const wins = game.cheap && actions.some((a) => game.functions.wins(...state, a));
    const result = wins ? 1 : known;
    if (!Number.isNaN(result)) {
      node.over = true;
      node.raw = node.values = player === 0 ? [result, -result] : [-result, result];
    }
  }
  return node;
}

// Evaluation: logits of the legal actions, values of all players

function evaluate(game, nodes) {
  const {network, functions} = game;
  if (!network) return nodes.forEach((node) => playOut(game, node));
  const size = network.rows * network.columns * network.planes;
  if (!network.input) network.input = new Float32Array(network.batch * size);
  nodes.forEach((node, i) => network.input.set(functions.observe(...node.state), i * size));
  const [logits, values] = functions.network(network.input), width = logits.length / network.batch;
  const seats = values.length / network.batch;
  nodes.forEach((node, i) => {
    const value = seats === 1 ? values[i] : values.subarray(i * seats, (i + 1) * seats);
    learn(game, node, logits.slice(i * width, (i + 1) * width), value);
  });
}

function learn(game, node, logits, value) {
  const [absolute, byPlayer] = game.functions.translate(node.mover, logits, value);
  node.logits = node.actions.map((a) => absolute[a]);
  if (!node.over) node.raw = node.values = Array.from(byPlayer);
}

/** The root is worth a batch of its own: it is seen through all symmetries. */
function evaluateRoot(game, node) {
  const {functions} = game;
  if (!game.network) return playOut(game, node);
  learn(game, node, ...functions.average(...functions.network(functions.turned(...node.state))));
}

function playOut(game, node) {
  node.logits = node.actions.map(() => Math.random());
  let {state} = node, at = look(game, state);
  while (!at.over) {
    const legal = legalIn(at.mask);
    state = after(game, state, legal[Math.floor(Math.random() * legal.length)]);
    at = look(game, state);
  }
  if (!node.over) node.raw = node.values = at.rewards;
}

// Edges of a node as numbers

function edgesOf(node, refuted = true, player = node.mover) {
  const {low, high} = node, waiting = node.children.map((c) => (c ? c.waiting : 0));
  const edges = {logits: node.logits, raw: node.raw[player], waiting, allowed: node.actions.map(() => true),
    visits: node.children.map((c) => (c ? c.visits : 0)), q: node.children.map((c) => (c && c.visits ? c.values[player] : 0))};
  if (low && refuted) {
    const least = max(low), open = high.map((x) => x > least);
    if (open.some(Boolean)) edges.allowed = open;
    if (player === node.mover) edges.q = edges.q.map((x, i) => Math.min(Math.max(x, low[i]), high[i]));
  }
  return edges;
}

/** The edges to choose from after a search: without those proven worse than others. */
function finalEdges(node, player) {
  const edges = edgesOf(node, true, player), {low, high} = node;
  if (!low) return edges;
  const least = max(low), done = least === max(high) && least > -1;
  edges.allowed = edges.allowed.map((open, i) => (least > -1 && low[i] === least) || (open && !done));
  return edges;
}

function completedQ({visits, q, logits, raw, allowed}) {
  const counted = visits.map((n, i) => n > 0 && allowed[i]), prior = softmax(logits, allowed);
  const total = sum(visits.filter((_, i) => counted[i])), seen = prior.map((p, i) => (counted[i] ? Math.max(p, 1e-38) : 0));
  const mean = sum(seen.map((p, i) => p * q[i])) / (total > 0 ? sum(seen) : 1);
  const mixed = (raw + total * mean) / (total + 1);
  return {values: q.map((x, i) => (counted[i] ? x : mixed)), mixed};
}

function scaledValues(game, edges) {
  const {values, mixed} = completedQ(edges), {scale, rescale} = game.network;
  const refuted = edges.q.filter((_, i) => edges.visits[i] > 0 && !edges.allowed[i]); // they still set the range
  const low = Math.min(mixed, ...values, ...refuted), range = Math.max(Math.max(mixed, ...values) - low, 1e-8);
  const weight = (VISIT_OFFSET + Math.max(0, ...edges.visits)) * scale;
  return values.map((x) => weight * (rescale ? (x - low) / range : x));
}

const busy = (edges) => edges.visits.map((n, i) => n + edges.waiting[i]);

// Selection

function selectInner(game, node) {
  const edges = edgesOf(node), n = busy(edges);
  if (!game.network) return selectUcb(edges, n);
  const scaled = scaledValues(game, edges), improved = softmax(edges.logits.map((x, i) => x + scaled[i]), edges.allowed);
  const total = sum(n);
  return argmax(improved.map((p, i) => p - n[i] / (1 + total)), edges.allowed);
}

function selectUcb({logits, visits, q, allowed}, n) {
  const total = Math.log(Math.max(sum(n), 1) + 1);
  const score = n.map((k, i) => (k === 0 ? UNVISITED + logits[i]
    : (q[i] * visits[i] - (k - visits[i])) / k + 2 * EXPLORATION * Math.sqrt(2 * total / k)));
  return argmax(score, allowed);
}

/** Visits that an edge needs for simulation i to visit it, if `considered` edges are (sequential halving). */
function halving(considered, simulations) {
  if (considered <= 1) return Array.from({length: simulations}, (_, i) => i);
  const rounds = Math.ceil(Math.log2(considered)), wanted = [];
  for (let left = considered, visits = 0; wanted.length < simulations; left = Math.max(2, left >> 1)) {
    for (let i = Math.max(1, Math.floor(simulations / (rounds * left))); i > 0; i--, visits++) {
      for (let j = 0; j < left; j++) wanted.push(visits);
    }
  }
  return wanted.slice(0, simulations);
}

function gumbelScore(game, edges) {
  const scaled = scaledValues(game, edges), top = max(edges.logits.filter((_, i) => edges.allowed[i]));
  return edges.logits.map((x, i) => x - top + scaled[i]);
}

function selectRoot(game, node, before, simulations) {
  if (!game.network) return selectInner(game, node);
  const edges = edgesOf(node), n = busy(edges).map((k, i) => k - before[i]), {allowed} = edges;
  const table = halving(Math.min(game.network.considered, allowed.filter(Boolean).length), simulations);
  const made = sum(n.filter((_, i) => allowed[i])); // visits of what proofs have dropped are no part of the schedule
  const wanted = table[Math.min(made, simulations - 1)], due = n.map((k, i) => allowed[i] && k === wanted);
  return argmax(gumbelScore(game, edges), due.some(Boolean) ? due : allowed);
}

// One tree, kept from move to move

class Tree {
  constructor(game, state) {
    this.game = game;
    this.state = state;
    this.root = null;
    this.batch = game.network ? game.network.batch : 1;
  }

  get simulations() {
    return this.root ? this.root.visits - 1 : 0;
  }

  /** Moves the root along an action; what was searched behind it stays. */
  advance(action, state) {
    const child = this.root && this.root.children[this.root.actions.indexOf(action)];
    this.root = child && child.logits ? child : null;
    this.state = state;
  }

  plant() {
    const {game} = this;
    this.root = newNode(game, this.state);
    evaluateRoot(game, this.root);
    this.root.visits = 1;
  }

  /** The root's immediate wins need no visit. */
  markWins() {
    const {root, game} = this;
    if (!root.low || !game.functions.wins) return;
    root.actions.forEach((a, i) => { if (game.functions.wins(...root.state, a)) root.low[i] = 1; });
  }

  /** `simulations` simulations, a batch of leaves between two yields. */
  * step(simulations = STEP) {
    if (!this.root) this.plant();
    this.markWins();
    const {root} = this, before = root.children.map((c) => (c ? c.visits : 0));
    for (let done = 0; done < simulations;) {
      const paths = [];
      while (paths.length < Math.min(this.batch, simulations - done)) {
        const path = this.descend(before, simulations);
        if (!path) break; // its leaf waits already
        paths.push(path);
      }
      const fresh = paths.map((path) => path.at(-1)).filter((node) => !node.over);
      if (fresh.length) evaluate(this.game, fresh);
      for (const path of paths) this.backUp(path);
      done += paths.length;
      yield;
    }
  }

  descend(before, simulations) {
    let node = this.root, edge = selectRoot(this.game, node, before, simulations);
    const path = [node];
    for (;;) {
      let child = node.children[edge];
      if (!child) child = node.children[edge] = newNode(this.game, after(this.game, node.state, node.actions[edge]));
      else if (!child.over && !child.visits) return null;
      path.push(child);
      if (child.over || !child.visits) break;
      node = child;
      edge = selectInner(this.game, node);
    }
    for (const each of path) each.waiting++;
    return path;
  }

  backUp(path) {
    const leaf = path.at(-1), values = leaf.raw;
    for (const node of path) {
      node.waiting--;
      node.values = node.visits ? node.values.map((x, p) => (x * node.visits + values[p]) / (node.visits + 1)) : values;
      node.visits++;
    }
    if (leaf.over && leaf.low) this.prove(path, Math.round(values[0]));
  }

  /** Bounds go up as far as they change; between nodes they are the first player's. */
  prove(path, result) {
    let [lower, upper] = [result, result];
    for (let i = path.length - 2; i >= 0; i--) {
      const node = path[i], k = node.children.indexOf(path[i + 1]), first = node.mover === 0;
      const bounds = () => [max(node.low), max(node.high)], was = bounds();
      node.low[k] = first ? lower : -upper;
      node.high[k] = first ? upper : -lower;
      const now = bounds();
      if (now[0] === was[0] && now[1] === was[1]) return;
      [lower, upper] = first ? now : [-now[1], -now[0]];
    }
  }

  policy() {
    const edges = finalEdges(this.root), total = sum(edges.visits);
    if (!this.game.network) return edges.visits.map((n) => (total ? n / total : 1 / edges.visits.length));
    const scaled = scaledValues(this.game, edges);
    return softmax(edges.logits.map((x, i) => x + scaled[i]), edges.allowed);
  }

  /** Searched value of the root for a player: the mean of the completed values under the improved policy. */
  value(player, policy) {
    const {low, high, mover} = this.root, {values} = completedQ(finalEdges(this.root, player));
    const mean = sum(values.map((x, i) => x * policy[i]));
    return low && player === mover ? Math.min(Math.max(mean, max(low)), max(high)) : mean;
  }

  /** What agents/players/analysis.py calls a report, with action codes. */
  report() {
    const {root, game} = this, {low, high, mover} = root, policy = this.policy(), edges = edgesOf(root, false);
    const bounded = (i) => (low ? Math.min(Math.max(edges.q[i], low[i]), high[i]) : edges.q[i]);
    const prior = game.network ? softmax(edges.logits, edges.allowed) : edges.q.map((_, __, all) => 1 / all.length);
    const enough = game.few * max(edges.visits), few = (i) => edges.visits[i] < enough && !(low && low[i] === high[i]);
    const order = root.actions.map((_, i) => i).sort((a, b) => (low ? (high[a] === -1) - (high[b] === -1) : 0)
      || few(a) - few(b) || policy[b] - policy[a] || edges.visits[b] - edges.visits[a] || edges.q[b] - edges.q[a]);
    const first = preferProven(root, order[0]);
    if (first !== order[0]) order.unshift(...order.splice(order.indexOf(first), 1));
    const word = (a, b) => (a === b ? {"-1": "loss", 0: "draw", 1: "win"}[a] : null), places = 1e4;
    const round = (x) => Math.round(x * places) / places, own = this.value(mover, policy);
    const values = root.values.map((_, p) => (p === mover ? own : root.low ? -own : this.value(p, policy)));
    return {value: round(own), values: values.map(round), simulations: this.simulations,
      proven: low ? word(max(low), max(high)) : null,
      moves: order.map((i) => ({action: root.actions[i], visits: edges.visits[i], value: round(bounded(i)),
        few: few(i),
        prior: round(prior[i]), proven: low ? word(low[i], high[i]) : null, line: this.line(i)}))};
  }

  line(edge) {
    let node = this.root;
    const found = [];
    for (;;) {
      found.push(node.actions[edge]);
      node = node.children[edge];
      if (!node || !node.children.some((c) => c && c.visits)) return found;
      edge = preferProven(node, argmax(node.children.map((c) => (c ? c.visits : 0))));
    }
  }
}

/** A proven win or draw replaces the chosen edge if nothing better is possible, or if the chosen one is worth less. */
function preferProven(node, chosen) {
  const {low, high} = node;
  if (!low) return chosen;
  const least = max(low), edges = edgesOf(node, false);
  const worth = Math.min(Math.max(edges.q[chosen], low[chosen]), high[chosen]);
  if (least === -1 || !(least === max(high) || worth < least)) return chosen;
  return argmax(edges.visits, low.map((x) => x === least));
}
