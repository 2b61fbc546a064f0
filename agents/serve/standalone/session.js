"use strict";
// Games in progress inside a page's worker: the JSON interface of agents/serve/web/server.py without a server.
//
// `about` is what export.py says of the game: names and picture of everything; `engines` maps a player's kind to what
// search.js wants to know. Answers are {status, said}.

const PERSON = "person", SHARE_OF_REVIEW = 0.5, MOST_LINES = 20, MOST_SIMULATIONS = 4096, LEAST_SECONDS = 0.1, MOST_SECONDS = 60;
const DROPS = [[0.4, "blunder"], [0.2, "mistake"], [0.1, "inaccuracy"]]; // in expected score, 0 to 1

class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// Pictures, as envs/pictures.py draws them

const escaped = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
const entry = (palette, code) => (code < 0 ? "" : typeof palette === "string" ? palette.replaceAll("{}", code) : palette[code]);
const said = (layers, codes) => layers.map((layer, i) => entry(layer.words, codes[i])).join("");

function draw(picture, codes, status) {
  let within = {"": ""};
  for (let i = picture.parts.length - 1; i >= 0; i--) {
    const {places, layers} = picture.parts[i], groups = {};
    places.forEach((place, p) => {
      const own = layers.map((_, l) => codes[i + 1][l * places.length + p]);
      const shapes = layers.map((layer, l) => entry(layer.shapes, own[l])).join("");
      const title = [place.name, said(layers, own)].filter(Boolean).join(": ");
      const cell = place.name ? ` data-cell="${escaped(place.name)}"` : "";
      const inner = (place.name && within[place.name]) || "";
      groups[place.inside] = `${groups[place.inside] || ""}<g${cell} transform="translate(${place.x} ${place.y})">`
        + `${place.name ? `<title>${escaped(title)}</title>` : ""}${shapes}${inner}</g>`;
    });
    for (const [name, group] of Object.entries(groups)) within[name] = group + (within[name] || "");
  }
  const {width, height} = picture, title = [picture.title, status].filter(Boolean).join(", ");
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" `
    + `font-family="sans-serif" text-anchor="middle"><title>${escaped(title)}</title>`
    + `<rect class="paper" width="100%" height="100%" fill="${picture.paper}"/>${picture.frame}${within[""]}</svg>`;
}

// Positions

class Position {
  constructor(server, state) {
    this.server = server;
    this.state = state;
    Object.assign(this, look(server.game, state));
    this.legal = this.over ? [] : legalIn(this.mask);
    delete this.mask; // working memory of the last call
    this.codes = list(server.game.functions.picture(...state)).map((x) => x.slice());
  }

  get status() {
    const {status} = this.server.about.picture;
    return said(status, this.codes[0]);
  }

  get svg() {
    return draw(this.server.about.picture, this.codes, this.status);
  }

  /** What every innermost cell says of its contents. */
  get contents() {
    const {parts} = this.server.about.picture, outer = new Set(parts.flatMap(({places}) => places.map((p) => p.inside)));
    return new Map(parts.flatMap(({places, layers}, i) => places.flatMap((place, p) => (!place.name || outer.has(place.name)
      ? [] : [[place.name, said(layers, layers.map((_, l) => this.codes[i + 1][l * places.length + p]))]]))));
  }

  after(action) {
    return new Position(this.server, after(this.server.game, this.state, action));
  }
}

function changed(before, now) {
  const earlier = before.contents;
  return [...now.contents].flatMap(([name, words]) => (earlier.get(name) === words ? [] : [name]));
}

// Games

/** How to enter the legal moves. What tells moves with the same cells apart is said only where there are several. */
function waysOf(actions, legal) {
  const ways = legal.map((a) => actions[a]), count = new Map();
  for (const {cells} of ways) count.set(cells.join(), 1 + (count.get(cells.join()) ?? 0));
  const alone = ({cells}) => cells.length > 1 && count.get(cells.join()) === 1;
  return ways.map((way) => (alone(way) ? {...way, label: way.label.replace(/ \(.*\)$/, "")} : way));
}

class Session {
  constructor(server, players, limits) {
    Object.assign(this, {server, players, limits, id: String(++server.count), version: 0, actions: [], undone: [],
      resigned: null, paused: false, job: null, failure: "", hint: "", reports: new Map(), review: null, lines: [], trees: new Map()});
    this.positions = [new Position(server, server.game.init)];
  }

  get now() { return this.positions.at(-1); }
  get over() { return this.now.over || this.resigned !== null; }
  get personsTurn() { return this.players[this.now.player] === PERSON; }
  name(action) { return this.server.about.actions[action].action; }

  view(version) {
    return version === this.version ? this.news() : {...this.all(), ...this.news()};
  }

  preview(version, action, ply) {
    this.current(version);
    const now = this.at(ply), after = now.after(this.legal(action, now));
    return {action, svg: after.svg, changed: changed(now, after), status: after.status};
  }

  past(version, ply) {
    this.current(version);
    const there = this.at(ply), {actions} = this.server.about;
    const better = (this.review?.moves ?? []).find((move) => move.ply === ply && move.mark)?.best ?? null;
    const advice = better ? actions.find((way) => way.action === better).cells : [];
    return {ply, svg: there.svg, status: there.status, to_move: there.player, legal: waysOf(actions, there.legal),
      last: this.last(ply), better, advice};
  }

  save() {
    const file = {format: this.server.about.format, game: this.server.about.game, actions: this.actions.map((a) => this.name(a))};
    return this.resigned === null ? file : {...file, resigned: this.resigned};
  }

  move(version, action) {
    this.current(version);
    if (this.over) throw new Refused(409, "the game is over");
    if (!this.personsTurn) throw new Refused(409, "it is not your turn");
    this.play(this.legal(action, this.now));
  }

  /** Another move in the position after `ply` moves. The line that is left is kept. */
  branch(version, ply, action) {
    this.current(version);
    const code = this.legal(action, this.at(ply));
    this.follow({actions: [...this.actions.slice(0, ply), code], resigned: null});
    this.changed();
  }

  /** Back to a line that was left; the present one is kept instead. */
  switch(version, index) {
    this.current(version);
    if (!(index in this.lines)) throw new Refused(400, `index: expected the number of a line, below ${this.lines.length}`);
    this.follow(this.lines.splice(index, 1)[0]);
    this.changed(false);
  }

  undo(version) {
    this.current(version);
    if (this.resigned !== null) this.resigned = null;
    else if (!this.actions.length) throw new Refused(409, "there is nothing to take back");
    else {
      do this.stepBack(); while (this.actions.length && this.players.includes(PERSON) && !this.personsTurn);
    }
    this.changed(false);
  }

  redo(version) {
    this.current(version);
    if (!this.undone.length || this.resigned !== null) throw new Refused(409, "there is nothing to make again");
    do this.append(this.undone.pop()); while (this.undone.length && this.players.includes(PERSON) && !this.personsTurn);
    this.changed(false);
  }

  resume(version) {
    this.current(version);
    this.changed();
  }

  resign(version) {
    this.current(version);
    if (this.over) throw new Refused(409, "the game is over");
    const people = this.players.flatMap((name, i) => (name === PERSON ? [i] : []));
    if (!people.length) throw new Refused(409, "nobody plays who could resign");
    this.resigned = people.includes(this.now.player) ? this.now.player : people[0];
    this.changed();
  }

  seat(version, players, limits) {
    this.current(version);
    Object.assign(this, {players, limits});
    this.changed();
  }

  analyse(version, kind, limits) {
    this.current(version);
    this.free();
    if (this.now.over) throw new Refused(409, "the game is over");
    this.think(kind, this.server.analyst, limits);
  }

  lookBack(version) {
    this.current(version);
    this.free();
    if (!this.actions.length) throw new Refused(409, "there is no move to review yet");
    const limits = {simulations: Math.max(1, Math.floor(this.limits.simulations * SHARE_OF_REVIEW)), seconds: this.limits.seconds};
    const plies = this.positions.flatMap((position, i) => (position.over ? [] : [i]));
    this.review = {left: plies, limits, moves: []};
    this.reviewNext();
  }

  reviewNext() {
    const {review} = this, ply = review.left.shift();
    if (ply === undefined) return;
    this.job = this.newJob("review", this.server.analyst, review.limits, ply, () => {
      if (ply > 0) review.moves.push(this.judged(ply - 1));
      if (ply + 1 === this.actions.length && this.now.over) review.moves.push(this.judged(ply));
      this.reviewNext();
    });
  }

  /** What the move after `ply` moves cost. */
  judged(ply) {
    const point = 1 - 1 / this.server.game.players;
    const {player} = this.positions[ply], [best] = this.reports.get(ply).moves, name = this.name(this.actions[ply]);
    const [before, now] = [this.values(ply), this.values(ply + 1)];
    const drop = best.action === name ? 0 : Math.max(0, before[player] - now[player]) * point;
    const mark = (DROPS.find(([least]) => drop >= least) || [0, ""])[1];
    return {ply, action: name, drop: Math.round(drop * 1000) / 1000, mark, best: best.action};
  }

  stop() {
    if (this.job?.kind === "review") this.job = null; // what has been found stays
    else if (this.job) this.job.stopped = true;
  }

  // Internals

  current(version) {
    if (!Number.isInteger(version)) throw new Refused(400, "version: expected the whole number of the position that this is meant for");
    if (version !== this.version) throw new Refused(409, "the game has gone on meanwhile; this page shows an earlier position");
  }

  at(ply) {
    if (!(Number.isInteger(ply) && ply in this.positions)) throw new Refused(400, `ply: expected a whole number from 0 to ${this.actions.length}`);
    return this.positions[ply];
  }

  legal(name, position) {
    const action = position.legal.find((a) => this.name(a) === name);
    if (action === undefined) throw new Refused(400, `action: ${String(name).slice(0, 40)} is not legal here`);
    return action;
  }

  free() {
    if (this.job?.kind === "move") throw new Refused(409, "the other player is thinking");
  }

  append(action) {
    this.positions.push(this.now.after(action));
    this.actions.push(action);
    for (const {tree} of this.trees.values()) tree.advance(action, this.now.state);
  }

  stepBack() {
    this.undone.push(this.actions.pop());
    this.positions.pop();
    this.trees.clear();
    for (const ply of [...this.reports.keys()]) if (ply > this.actions.length) this.reports.delete(ply);
  }

  /** Replaces the moves of the game by those of another line, and keeps the old ones, with all undone moves unless
   *  somebody resigned before them. */
  follow(line) {
    const old = [...this.actions, ...(this.resigned === null ? [...this.undone].reverse() : [])];
    if (old.some((a, i) => line.actions[i] !== a)) this.lines.unshift({actions: old, resigned: this.resigned});
    const shared = this.shared(line);
    while (this.actions.length > shared) this.stepBack();
    for (const action of line.actions.slice(shared)) this.append(action);
    Object.assign(this, {undone: [], resigned: line.resigned});
    this.dropContained();
  }

  /** Lines that the present one contains, or that are kept already, take no place. */
  dropContained() {
    const others = this.lines.filter((line) => line.resigned !== null || this.shared(line) < line.actions.length);
    this.lines = [...new Map(others.map((line) => [JSON.stringify(line), line])).values()].slice(0, MOST_LINES);
  }

  /** Number of moves before the first one in which a line differs from the present one. */
  shared(line) {
    let count = 0;
    while (count < this.actions.length && this.actions[count] === line.actions[count]) count++;
    return count;
  }

  play(action) {
    if (this.undone.at(-1) === action) {
      this.undone.pop();
      this.append(action);
    } else this.follow({actions: [...this.actions, action], resigned: null});
    this.changed();
  }

  changed(goOn = true) {
    this.version++;
    Object.assign(this, {job: null, hint: "", failure: "", review: null});
    this.paused = !goOn && !this.over && !this.personsTurn;
    if (!this.over && !this.personsTurn && !this.paused) this.think("move", this.players[this.now.player], this.limits);
  }

  think(kind, player, limits) {
    this.failure = "";
    this.job = this.newJob(kind, player, limits, this.actions.length, (job) => {
      if (kind === "hint") this.hint = this.name(job.choice);
      if (kind === "move") this.play(job.choice);
    });
  }

  /** A search of the position after `ply` moves. That of the present position goes on in the tree of the last one. */
  newJob(kind, player, limits, ply, done) {
    const {server} = this, [engine, number] = server.engine(player), position = this.positions[ply];
    if (!engine) return {kind, done, simulations: 1, seconds: 1, begun: performance.now(), choice: position.legal[Math.floor(Math.random() * position.legal.length)]};
    let tree = ply === this.actions.length ? this.trees.get(engine)?.tree : null;
    if (!tree) tree = new Tree(engine, position.state);
    if (ply === this.actions.length) this.trees.set(engine, {tree});
    return {kind, done, ply, tree, simulations: (kind === "move" && number) || limits.simulations, seconds: limits.seconds,
      begun: performance.now(), before: tree.simulations, steps: null, stopped: false, choice: -1};
  }

  /** Works on the job for a moment: a batch of leaves. */
  advance() {
    const {job} = this;
    if (!job.tree) return this.finish(job);
    const used = job.tree.simulations - job.before, late = performance.now() - job.begun > 1000 * job.seconds;
    if (!job.steps) {
      if (job.moved && (job.stopped || late || used >= job.simulations)) return this.finish(job);
      const left = Math.max(1, job.simulations - used);
      job.steps = job.tree.step(Math.ceil(left / Math.ceil(left / STEP)));
    }
    if (job.steps.next().done) Object.assign(job, {steps: null, moved: true});
  }

  finish(job) {
    if (job.tree) {
      const found = job.tree.report(), report = this.named(found), known = this.reports.get(job.ply);
      if (!known || report.simulations >= known.simulations) this.reports.set(job.ply, report);
      job.choice = found.moves[0].action; // the best of every list
    }
    this.job = null;
    job.done(job);
  }

  named(report) {
    const name = (a) => this.name(a);
    return {...report, moves: report.moves.map((move) => ({...move, action: name(move.action), line: move.line.map(name)}))};
  }

  values(ply) {
    if (ply === this.actions.length && this.now.over) return this.now.rewards;
    return this.reports.get(ply)?.values ?? null;
  }

  last(ply) {
    if (ply === 0) return null;
    const {action, cells} = this.server.about.actions[this.actions[ply - 1]];
    return {action, cells, changed: changed(this.positions[ply - 1], this.positions[ply])};
  }

  all() {
    const {about} = this.server, {now} = this, n = about.seats.length;
    const resigned = about.seats.map((_, i) => (i === this.resigned ? -1 : 1 / (n - 1)));
    return {game: about.game, title: about.title, rules: about.rules, seats: about.seats, players: this.players,
      limits: this.limits, ply: this.actions.length, to_move: now.player, over: this.over,
      result: this.over ? (this.resigned === null ? now.rewards : resigned) : null, resigned: this.resigned,
      status: now.status, reason: "", lesson: about.lesson.length > 0, svg: now.svg, legal: this.over ? [] : waysOf(about.actions, now.legal),
      history: this.actions.map((a, i) => ({action: this.name(a), words: about.actions[a].words, player: this.positions[i].player})),
      last: this.last(this.actions.length), undo: this.actions.length > 0 || this.resigned !== null,
      lines: this.lines.map((line) => ({from: this.shared(line), words: [
        ...line.actions.slice(this.shared(line)).map((a) => about.actions[a].words),
        ...(line.resigned === null ? [] : [`${about.seats[line.resigned]} resigned`])]})),
      redo: this.undone.length > 0 && this.resigned === null, save: this.save()};
  }

  news() {
    const {job, review} = this, ply = this.actions.length;
    const spent = job && job.tree ? Math.max((job.tree.simulations - job.before) / job.simulations,
      (performance.now() - job.begun) / 1000 / job.seconds) : 0;
    const reviewing = job?.kind === "review", [done, total] = [review?.moves.length, ply];
    const live = job?.tree && job.kind !== "review" && job.tree.simulations > 0 ? this.named(job.tree.report()) : null;
    return {id: this.id, version: this.version, paused: this.paused, failure: this.failure, hint: this.hint,
      thinking: job && {kind: job.kind, progress: reviewing ? done / total : Math.min(1, spent), done, total,
        simulations: job.tree ? job.tree.simulations : 0, compiling: false},
      report: live || this.reports.get(ply) || null, values: this.positions.map((_, i) => this.values(i)),
      review: review ? review.moves : null};
  }
}

class Server {
  constructor(about, functions) {
    this.about = about;
    this.count = 0;
    this.sessions = new Map();
    const init = about.engine.init.map((x) => (Array.isArray(x) ? ARRAYS[x[0]].from(x[1]) : x));
    this.game = {...about.engine, init, functions};
    this.engines = {network: this.game, uct: {...this.game, network: null}};
    this.analyst = about.opponents[0];
  }

  /** What a player searches with, and its number of simulations if it has one; nothing for random moves. */
  engine(player) {
    if (player === "random") return [null, 0];
    const uct = player.match(/^uct:([1-9]\d{0,3})$/);
    return uct ? [this.engines.uct, Number(uct[1])] : [this.engines.network, 0];
  }

  players(request) {
    const {seats, opponents, begins} = this.about;
    const players = request.players ?? seats.map((_, i) => (i === begins ? PERSON : opponents[0]));
    if (!Array.isArray(players) || players.length !== seats.length) throw new Refused(400, `players: expected a list of ${seats.length}`);
    for (const name of players) {
      if (!opponents.includes(name) && !/^uct:[1-9]\d{0,3}$/.test(name)) throw new Refused(400, `player: expected uct:N or one of ${opponents.join(", ")}`);
    }
    return players;
  }

  limits(request) {
    const {limits} = this.about, {simulations, seconds} = {...limits, ...request};
    const [least, most] = [Math.min(LEAST_SECONDS, limits.seconds), Math.max(MOST_SECONDS, limits.seconds)];
    if (!(Number.isInteger(simulations) && simulations >= 1 && simulations <= MOST_SIMULATIONS)) {
      throw new Refused(400, `simulations: expected a whole number from 1 to ${MOST_SIMULATIONS}`);
    }
    if (!(seconds >= least && seconds <= most)) throw new Refused(400, `seconds: expected a number from ${least} to ${most}`);
    return {simulations, seconds};
  }

  create(request) {
    const {format = this.about.format, game = this.about.game, actions = [], start, resigned = null} = request;
    if (format !== this.about.format) throw new Refused(400, `format: expected '${this.about.format}'`);
    if (game !== this.about.game) throw new Refused(400, `${game} is not played here: this page plays ${this.about.game}`);
    if (start) throw new Refused(400, "start: a page without a server loads games from their beginning, not positions");
    if (!Array.isArray(actions)) throw new Refused(400, "actions: expected a list of moves");
    const session = new Session(this, this.players(request), this.limits(request));
    actions.forEach((name, i) => {
      try {
        session.append(session.legal(name, session.now));
      } catch (error) {
        throw new Refused(400, `move ${i + 1}: ${session.now.over ? "the game was over before" : `${name} is not legal there`}`);
      }
    });
    if (resigned !== null && (!Number.isInteger(resigned) || !(resigned in this.about.seats) || session.over)) {
      throw new Refused(400, "resigned: expected the number of a player in a game that is not over");
    }
    session.resigned = resigned;
    this.sessions.set(session.id, session);
    session.changed(!actions.length); // a loaded game pauses, to be looked at first
    return session.view();
  }

  answer(method, where, content = {}) {
    const [path, query] = where.split("?"), [kind, id, word] = path.split("/"), asked = new URLSearchParams(query);
    const number = (name) => (asked.has(name) ? Number(asked.get(name)) : undefined);
    if (kind === "games") {
      const {game, title, seats, opponents, begins, levels} = this.about;
      return [{game, title, seats, opponents, begins, levels, options: []}];
    }
    if (kind === "lesson") return {steps: this.about.lesson};
    if (!id) return this.create(content);
    const session = this.sessions.get(id);
    if (!session) throw new Refused(404, "no such game");
    if (method === "DELETE") return void this.sessions.delete(id);
    if (word === "preview") return session.preview(number("version"), asked.get("action"), number("ply"));
    if (word === "why") return {reason: ""}; // reasons are functions of Python, which do not travel
    if (word === "past") return session.past(number("version"), number("ply"));
    if (!word) return session.view(number("version"));
    const {version} = content;
    const commands = {move: () => session.move(version, content.action), undo: () => session.undo(version),
      branch: () => session.branch(version, content.ply, content.action), line: () => session.switch(version, content.index),
      redo: () => session.redo(version), resume: () => session.resume(version), resign: () => session.resign(version),
      players: () => session.seat(version, this.players(content), this.limits(content)),
      hint: () => session.analyse(version, "hint", session.limits),
      analyse: () => session.analyse(version, "analysis", this.limits(content)),
      review: () => session.lookBack(version), stop: () => session.stop()};
    if (!commands[word]) throw new Refused(404, `unknown command; known: ${Object.keys(commands).join(", ")}`);
    commands[word]();
    return session.view(version);
  }

  reply(method, where, content) {
    try {
      return {status: 200, said: this.answer(method, where, content) ?? {}};
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return {status: error.status, said: {error: error.message}};
    }
  }

  /** One moment of work for every game that thinks; false if none does. */
  work() {
    const thinking = [...this.sessions.values()].filter((session) => session.job);
    for (const session of thinking) session.advance();
    return thinking.length > 0;
  }
}

const ARRAYS = {bool: Uint8Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array,
  int32: Int32Array, uint32: Uint32Array, float32: Float32Array};
