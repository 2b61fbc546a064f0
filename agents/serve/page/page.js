// The page of a game. It knows no game: the server sends a picture whose cells have names, and for every legal move the
// cells to point at in turn and the words on its button (agents/serve/web/server.py, envs/pictures.py).
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const POLL = 150; // milliseconds between two looks at what is being thought
const $ = (id) => document.getElementById(id);

let view = null; // what the server said last
let path = []; // cells pointed at so far
let shown = null; // the move that is shown before it is made
let past = null; // an earlier position that is looked at in place of the present one
let study = null; // what is thought of a position that cannot be analysed in this game, see `examine`
let told = ""; // the cell whose words are shown
let touched = ""; // the cell that the next tap confirms
let wanted = 0; // the preview that is waited for
let analysing = false;
let overlay = "value";
let flipped = false;
let polling = 0;
let busy = false; // a move is on its way
let drawn = {}; // what graph and review show: drawn anew with every answer, they would take no click
const previews = new Map();

/** What the browser remembers for this page; nothing inside another site's page that may not store anything. */
function remembered(kind) {
  try {
    return window[kind];
  } catch {
    return { getItem: () => null, setItem: () => {} };
  }
}
const [tab, machine] = [remembered("sessionStorage"), remembered("localStorage")];

// Talking with the server

async function call(method, where, content) {
  const options = { method, headers: content === undefined ? {} : { "Content-Type": "application/json" } };
  if (content !== undefined) options.body = JSON.stringify(content);
  let reply, said;
  try {
    // A page without a server answers its calls itself (agents/serve/standalone/client.js).
    reply = await (window.answeredHere ? window.answeredHere(method, where, content) : fetch("api/" + where, options));
    said = await reply.json();
  } catch {
    throw new Error("The server does not answer. Is play.py still running?");
  }
  if (!reply.ok) throw Object.assign(new Error(said.error || "That did not work."), { status: reply.status });
  return said;
}

async function command(word, more = {}) {
  if (!view) return;
  const { id } = view;
  let news;
  try {
    news = await call("POST", `sessions/${id}/${word}`, { version: view.version, ...more });
  } catch (error) {
    if (view?.id !== id) return;
    toast(error.message);
    if (error.status === 409) await refresh(true);
    if (error.status === 404) await again();
    return;
  }
  take(news);
}

async function refresh(whole = false) {
  const { id } = view;
  const version = whole ? "" : `?version=${view.version}`;
  let news;
  try {
    news = await call("GET", `sessions/${id}${version}`);
  } catch (error) {
    if (view?.id !== id) return;
    if (error.status === 404) return again();
    toast(error.message);
    polling = setTimeout(refresh, 3000);
    return;
  }
  take(news);
}

/** The same game on a server that no longer knows it. */
async function again() {
  const { players, save, limits } = view || JSON.parse(tab.getItem("game") || "{}");
  await open(save ? { ...reduced(save), players, ...limits } : {});
}

async function open(request) {
  let news;
  try {
    news = await call("POST", "sessions", request);
  } catch (error) {
    toast(error.message);
    return false;
  }
  const old = view && view.id;
  view = null;
  take(news);
  if (old) call("DELETE", `sessions/${old}`).catch(() => {});
  return true;
}

const reduced = ({ game, start, actions, resigned }) => ({ game, start, actions, resigned });

/** Takes in an answer; draws the board anew only where the position is another one. */
function take(news) {
  const fresh = news.svg !== undefined;
  const before = view;
  // An answer may be late: of a game that was left meanwhile, or of a position before this one.
  if (view && (news.id !== view.id || news.version < view.version || (!fresh && news.version > view.version))) return;
  view = fresh ? { ...news } : { ...view, ...news };
  if (fresh) {
    path = [];
    shown = null;
    past = null;
    study = null;
    told = "";
    touched = "";
    drawn = {};
    previews.clear();
    drawBoard();
    drawMoves();
    tab.setItem("id", view.id);
    tab.setItem("game", JSON.stringify({ players: view.players, limits: view.limits, save: view.save }));
    announce(before);
  }
  drawTurn();
  drawAnalysis();
  drawReview();
  clearTimeout(polling);
  if (view.thinking) polling = setTimeout(refresh, POLL);
  else follow();
}

// Words

const seat = (player) => view.seats[player];
const person = (player) => view.players[player] === "person";
const mine = () => !view.over && person(view.to_move);
/** The expected share of the point, 0 to 1, that a value stands for: the winner of n has 1, each other -1 / (n - 1). */
const share = (value) => Math.min(1, Math.max(0, (value * (view.seats.length - 1) + 1) / view.seats.length));
const percent = (value) => `${Math.round(share(value) * 100)}%`;
const legalWays = () => (mine() && !past ? view.legal : []);
const pictured = () => past || view;
const coarse = matchMedia("(pointer: coarse)"); // a finger, and most likely no keyboard

function opponentName(name) {
  if (name === "person") return "Another person";
  if (name === "random") return "Random moves";
  if (name === "greedy") return "Greedy, looks one move ahead";
  const proofs = name.match(/^prove:(\d+),(.*)$/);
  if (proofs) return `Proofs of ${Number(proofs[1]).toLocaleString("en")} positions, else: ${opponentName(proofs[2])}`;
  const [kind, number] = name.split(":");
  if (kind === "uct") return `Tree search with ${number} random games`;
  if (kind === "minimax") return `Minimax, ${number} moves deep`;
  return `Network ${name.split("/").slice(-2).join("/")}`;
}

function announce(before) {
  const last = view.history.at(-1);
  const words = [];
  if (last && before && before.ply < view.ply) words.push(`${seat(last.player)} played ${last.words}.`);
  words.push(view.over ? resultWords() : person(view.to_move) ? `${yours()}.` : `${seat(view.to_move)} is thinking.`);
  $("say").textContent = words.join(" ");
}

const alone = () => view.players.filter((name) => name === "person").length === 1;
const yours = () => (alone() ? "Your move" : `${seat(view.to_move)} to move`);

function resultWords() {
  const best = Math.max(...view.result);
  const winners = view.result.flatMap((x, i) => (x === best ? [i] : []));
  if (best <= 0) return "A draw";
  if (alone() && winners.length === 1 && person(winners[0])) return "You win";
  return `${winners.map(seat).join(" and ")} win${winners.length === 1 ? "s" : ""}`;
}

/** A message for a few seconds. Inside an open dialog: all else is inert, and under its backdrop. */
function toast(words) {
  (document.querySelector("dialog[open]") || document.body).append($("toast"));
  $("toast").textContent = words;
  $("toast").hidden = false;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => ($("toast").hidden = true), 5000);
}

// The board

const svg = () => $("board").querySelector("svg");
const cellOf = (name) => svg().querySelector(`[data-cell="${CSS.escape(name)}"]`);
const starts = (way, cells) => cells.every((cell, i) => way.cells[i] === cell);
const candidates = () => legalWays().filter((way) => starts(way, path));
const nextCells = () => new Set(candidates().map((way) => way.cells[path.length]).filter(Boolean));

function drawBoard() {
  const board = $("board");
  const focused = board.contains(document.activeElement) ? document.activeElement.dataset.cell || "" : null;
  board.innerHTML = pictured().svg;
  const picture = svg();
  picture.removeAttribute("width");
  picture.removeAttribute("height");
  picture.setAttribute("role", "group");
  picture.setAttribute("aria-label", `${view.title}. ${pictured().status}`);
  picture.querySelector("title")?.remove(); // else it would be the tooltip of the whole board
  for (const cell of picture.querySelectorAll("[data-cell]")) {
    cell.classList.toggle("leaf", !cell.querySelector("[data-cell]"));
  }
  for (const text of picture.querySelectorAll("text")) text.classList.toggle("free", !text.closest("[data-cell]"));
  const sizes = [...picture.querySelectorAll(".leaf")].map((cell) => shapeOf(cell).getBBox().width).sort((a, b) => a - b);
  picture.style.fontSize = `${sizes[sizes.length >> 1] || 16}px`;
  picture.dataset.size = sizes[sizes.length >> 1] || 16;
  const [, , width, height] = (picture.getAttribute("viewBox") || "0 0 1 1").split(/\s+/).map(Number);
  picture.style.maxWidth = `calc((100dvh - 10.75rem) * ${width / height})`;
  const marks = document.createElementNS(SVG, "g");
  marks.setAttribute("class", "marks");
  marks.setAttribute("aria-hidden", "true");
  picture.append(marks);
  $("flip").hidden = !sizes.length;
  board.classList.toggle("flipped", flipped && sizes.length > 0);
  light();
  if (focused === null) return;
  // Who plays with the keyboard stays on the board.
  const kept = focused ? cellOf(focused) : null;
  const next = kept?.hasAttribute("tabindex") ? kept : picture.querySelector('[tabindex="0"]');
  (next || board).focus({ preventScroll: true });
}

const shapeOf = (cell) => [...cell.children].find((x) => x.tagName !== "title" && !x.dataset.cell) || cell;

/** Where the origin of an element's units is, in units of the picture. */
function placeOf(element) {
  const at = svg().querySelector(".marks").getCTM().inverse().multiply(element.parentElement.getCTM());
  return [at.e, at.f];
}

/** The box of a shape in units of the picture. */
function boxOf(shape) {
  const [x, y] = placeOf(shape);
  const box = shape.getBBox();
  return { x: box.x + x, y: box.y + y, width: box.width, height: box.height };
}

/** Marks what can be pointed at now, and everything else that the board says beyond the picture. */
function light() {
  const picture = svg();
  const here = document.activeElement?.dataset?.cell;
  const lit = nextCells();
  const again = path.length ? new Set(legalWays().map((way) => way.cells[0])) : new Set();
  for (const cell of picture.querySelectorAll("[data-cell]")) {
    const name = cell.dataset.cell;
    const open = lit.has(name) || again.has(name);
    cell.classList.toggle("lit", lit.has(name));
    if (open || (holds(cell) && !cell.parentElement.closest("[role=button]"))) {
      cell.setAttribute("role", open ? "button" : "img");
      cell.setAttribute("aria-label", cellWords(cell) + (path.includes(name) ? ", chosen" : lit.has(name) ? ", can be chosen" : ""));
      cell.setAttribute("tabindex", "-1");
    } else {
      for (const attribute of ["role", "aria-label", "tabindex"]) cell.removeAttribute(attribute);
    }
  }
  const kept = here && picture.querySelector(`[data-cell="${CSS.escape(here)}"][tabindex]`);
  const first = picture.querySelector("[data-cell][role=button]") || picture.querySelector("[data-cell][tabindex]");
  (kept || first)?.setAttribute("tabindex", "0");
  drawMarks(lit);
  drawChoices();
  sayWhatToDo();
}

/** Whether something stands on a cell, beyond its own shape: then it can be asked what that is. */
const holds = (cell) => cell.matches(".leaf") && cell.querySelectorAll(":scope > :not(title, .legal)").length > 1;

function cellWords(cell) {
  return cell.querySelector(":scope > title")?.textContent || cell.dataset.cell;
}

function drawMarks(lit = nextCells()) {
  const marks = svg().querySelector(".marks");
  marks.replaceChildren();
  marks.classList.toggle("many", lit.size > 60);
  const outline = (name, kind) => {
    const cell = cellOf(name);
    if (!cell) return;
    const shape = shapeOf(cell).cloneNode(false);
    for (const attribute of ["class", "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "opacity"]) shape.removeAttribute(attribute);
    shape.setAttribute("class", kind);
    const group = document.createElementNS(SVG, "g");
    group.setAttribute("transform", `translate(${placeOf(shapeOf(cell))})`);
    group.append(shape);
    marks.append(group);
  };
  const { last } = pictured();
  if (!shown && last) {
    const target = last.cells.at(-1);
    for (const name of last.changed) if (name !== target) outline(name, "last");
    if (target && !cellOf(target)?.querySelector("[data-cell]")) outline(target, "last-to");
  }
  const hinted = legalWays().find((way) => way.action === view.hint);
  if (hinted && !shown) hinted.cells.forEach((name) => outline(name, "advice"));
  past?.advice.forEach((name) => outline(name, "advice"));
  path.forEach((name) => outline(name, "chosen"));
  if (shown) shown.changed.forEach((name) => outline(name, "will"));
  if (analysing && known()?.report && !shown) drawNumbers(marks);
  else {
    const corner = flipped ? [0.14, 0.86] : [0.86, 0.14]; // top right as it is seen
    for (const name of lit) {
      const cell = cellOf(name);
      if (!cell || cell.querySelector(".legal") || shown?.changed.some((one) => cellOf(one) && cell.contains(cellOf(one)))) continue;
      const box = boxOf(shapeOf(cell));
      const dot = document.createElementNS(SVG, "circle");
      dot.setAttribute("class", "dot");
      // On a cell that holds something the dot is in the corner.
      const held = cell.children.length > 2;
      dot.setAttribute("cx", box.x + box.width * (held ? corner[0] : 0.5));
      dot.setAttribute("cy", box.y + box.height * (held ? corner[1] : 0.5));
      dot.setAttribute("r", svg().dataset.size * (held ? 0.08 : lit.size > 60 ? 0.06 : 0.11));
      marks.append(dot);
    }
  }
  const focused = document.activeElement;
  if (focused?.dataset?.cell && focused.matches(":focus-visible")) outline(focused.dataset.cell, "focus");
}

/** Value, visits or prior of every move on its cell; of a piece that of its best move. */
function drawNumbers(marks) {
  const { report, legal } = known();
  const moves = new Map(report.moves.map((move) => [move.action, move]));
  const best = new Map();
  for (const way of elsewhere() ? legal : candidates()) {
    const name = way.cells[path.length];
    const move = moves.get(way.action);
    if (!name || !move) continue;
    if (!best.has(name) || move.visits > best.get(name).visits) best.set(name, move);
  }
  const total = Math.max(1, ...report.moves.map((move) => move.visits));
  for (const [name, move] of best) {
    const cell = cellOf(name);
    if (!cell) continue;
    const inside = cell.querySelector(".legal") || shapeOf(cell);
    const box = boxOf(inside);
    const [x, y, size] = [box.x + box.width / 2, box.y + box.height / 2, Number(svg().dataset.size)];
    const unknown = overlay === "value" && !move.visits && !move.proven;
    const part = overlay === "value" ? share(move.value) : overlay === "visits" ? move.visits / total : move.prior;
    const words = unknown ? "–" : overlay === "visits" ? short(move.visits) : String(Math.round(part * 100));
    const plate = document.createElementNS(SVG, "circle");
    plate.setAttribute("class", move === report.moves[0] ? "plate best" : "plate");
    plate.setAttribute("cx", x);
    plate.setAttribute("cy", y);
    plate.setAttribute("r", size * 0.34);
    plate.setAttribute("fill", unknown ? "#e9e7e1" : shade(overlay === "value" ? part : Math.sqrt(part) * 0.5 + 0.5));
    const number = document.createElementNS(SVG, "text");
    number.setAttribute("class", "number free");
    number.setAttribute("x", x);
    number.setAttribute("y", y + size * 0.105);
    number.setAttribute("font-size", size * (words.length > 3 ? 0.22 : 0.3));
    number.textContent = words;
    marks.append(plate, number);
  }
}

const short = (n) => (n < 1000 ? String(n) : `${(n / 1000).toFixed(1)}k`);

/** From bad to good: rose, sand, green; all light enough for dark writing. */
function shade(part) {
  const stops = [[240, 160, 150], [246, 226, 170], [150, 214, 168]];
  const at = Math.min(1, Math.max(0, part)) * 2;
  const [a, b] = at < 1 ? [stops[0], stops[1]] : [stops[1], stops[2]];
  const mixed = a.map((x, i) => Math.round(x + (b[i] - x) * (at % 1 || (at >= 2 ? 1 : 0))));
  return `rgb(${mixed.join(",")})`;
}

/** Buttons for moves without cells, and for several with the same. */
function drawChoices() {
  const ways = candidates().filter((way) => way.cells.length === path.length);
  const choices = $("choices");
  const focused = [...choices.children].indexOf(document.activeElement);
  choices.hidden = !ways.length;
  const moves = new Map((analysing && view.report ? view.report.moves : []).map((move) => [move.action, move]));
  choices.replaceChildren(...ways.map((way) => {
    const button = document.createElement("button");
    button.type = "button";
    const [, words, more] = way.label.match(/^(.*?)(?: \((.*)\))?$/);
    button.textContent = words;
    if (more) button.append(Object.assign(document.createElement("small"), { className: "more", textContent: more }));
    button.dataset.action = way.action;
    const move = moves.get(way.action);
    if (move) {
      const small = document.createElement("small");
      small.textContent = { value: move.visits ? percent(move.value) : "–", visits: `${move.visits}×`, prior: `${Math.round(move.prior * 100)}%` }[overlay];
      button.append(small);
    }
    if (way.action === view.hint) button.setAttribute("aria-description", "hint"), button.classList.add("main");
    button.onclick = () => play(way);
    button.onpointerenter = button.onfocus = () => preview(way);
    button.onpointerleave = button.onblur = () => preview(null);
    return button;
  }));
  if (focused >= 0) (choices.children[focused] || choices.firstElementChild || $("board")).focus();
}

function sayWhatToDo() {
  const words = $("about-cell");
  if (shown) {
    // A piece that goes somewhere may do more there than stand: what is said is what will be there.
    const count = shown.changed.length === 1 ? "1 cell changes" : `${shown.changed.length} cells change`;
    const outcome = shown.cells.length > 1 ? `. Then ${cellWords(cellOf(shown.cells.at(-1)))}` : touched ? "" : `: ${count}`;
    words.textContent = (touched ? "Tap again to play " : "") + shown.label + outcome;
  } else if (path.length) {
    const next = nextCells().size ? "Choose a lit square" : "Choose what it does";
    words.textContent = `${cellWords(cellOf(path.at(-1)))}. ${next}${coarse.matches ? "" : ", or Escape"}.`;
  } else words.textContent = told && cellOf(told) ? cellWords(cellOf(told)) : "";
}

/** Points at a cell: goes on with a move, makes it where it is complete, or begins anew with another piece. */
function point(name, byTouch = false) {
  if (!view || !mine() || busy) return;
  if (!nextCells().has(name)) {
    const other = path[0] !== name && legalWays().some((way) => way.cells[0] === name);
    path = [];
    preview(null);
    if (!other) return light();
  }
  path = [...path, name];
  const ways = candidates();
  const complete = ways.filter((way) => way.cells.length === path.length);
  if (ways.length === 1 && complete.length === 1 && !asks(ways[0])) {
    path = path.slice(0, -1);
    if (byTouch && touched !== name) {
      touched = name;
      return preview(ways[0]);
    }
    return play(ways[0]);
  }
  touched = "";
  light();
  $("about-cell").scrollIntoView({ block: "nearest" });
}

/** Whether a move is made by a button, as pointing at its one cell does not say what it does. */
const asks = (way) => way.cells.length < 2 && way.label !== way.action;

function play(way) {
  if (busy) return;
  path = [];
  preview(null);
  busy = true; // one move at a time
  command("move", { action: way.action }).finally(() => (busy = false));
}

/** The move that a cell would complete. */
function wayTo(name) {
  if (!nextCells().has(name)) return null;
  const ways = candidates().filter((way) => way.cells[path.length] === name);
  return ways.length === 1 && ways[0].cells.length === path.length + 1 ? ways[0] : null;
}

/** Shows what a move would change before it is made; null shows the board as it is. */
async function preview(way) {
  const mark = ++wanted;
  if (!way) {
    touched = "";
    if (shown) restore();
    return;
  }
  const { id, version } = view;
  if (!previews.has(way.action)) {
    await new Promise((done) => setTimeout(done, 50));
    if (mark !== wanted) return;
    const query = new URLSearchParams({ version, action: way.action });
    previews.set(way.action, call("GET", `sessions/${id}/preview?${query}`));
  }
  let after;
  try {
    after = await previews.get(way.action);
  } catch {
    previews.delete(way.action); // the game has gone on; the move itself will say so
    return;
  }
  if (mark !== wanted || !view || view.version !== version) return;
  if (shown) restore(false);
  const other = new DOMParser().parseFromString(after.svg, "image/svg+xml");
  shown = { label: way.label, cells: way.cells, changed: after.changed, kept: new Map() };
  for (const name of after.changed) {
    const [cell, then] = [cellOf(name), other.querySelector(`[data-cell="${CSS.escape(name)}"]`)];
    if (!cell || !then) continue;
    for (const mark of then.querySelectorAll(".legal")) mark.remove();
    shown.kept.set(name, [...cell.childNodes]);
    cell.replaceChildren(...[...then.childNodes].map((x) => document.importNode(x, true)));
    cell.classList.add("ghost");
  }
  drawMarks();
  sayWhatToDo();
}

function restore(draw = true) {
  for (const [name, nodes] of shown.kept) {
    const cell = cellOf(name);
    if (!cell) continue;
    cell.replaceChildren(...nodes);
    cell.classList.remove("ghost");
  }
  shown = null;
  if (draw) {
    drawMarks();
    sayWhatToDo();
  }
}

/** The innermost cell around an element that can be pointed at, or else the innermost cell. */
function cellAt(element) {
  const lit = nextCells();
  let cell = element.closest?.("[data-cell]");
  const inner = cell;
  while (cell && !lit.has(cell.dataset.cell)) cell = cell.parentElement?.closest("[data-cell]");
  return cell || inner;
}

let pointer = "mouse";
$("board").addEventListener("pointerdown", (event) => {
  pointer = event.pointerType;
  wanted++; // a preview that came now would take the pressed cell away, and with it the click
});
$("board").addEventListener("click", (event) => {
  const cell = cellAt(event.target);
  if (!cell) return;
  tell(cell);
  point(cell.dataset.cell, pointer === "touch" && event.detail > 0);
});
$("board").addEventListener("pointerover", (event) => {
  if (event.pointerType === "touch" || !view) return;
  const cell = cellAt(event.target);
  preview(cell ? wayTo(cell.dataset.cell) : null);
  tell(cell);
});
$("board").addEventListener("pointerleave", (event) => {
  if (event.pointerType !== "touch") preview(null), tell(null);
});
$("board").addEventListener("focusin", (event) => {
  const name = event.target.dataset?.cell;
  if (!name || !event.target.matches(":focus-visible")) return;
  drawMarks();
  preview(wayTo(name));
  tell(event.target);
});
$("board").addEventListener("focusout", () => drawMarks());

/** Says what is in a cell, where there is nothing more urgent to say. */
function tell(cell) {
  told = cell?.dataset.cell || "";
  sayWhatToDo();
}

const KEYS = { u: "undo", r: "redo", h: "hint", f: "flip", a: "analyse" };
for (const [key, id] of Object.entries(KEYS)) {
  $(id).setAttribute("aria-keyshortcuts", key);
  $(id).title = `Key ${key.toUpperCase()}`;
}
document.addEventListener("keydown", (event) => {
  const key = event.key.toLowerCase();
  if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[key]) return;
  if (document.querySelector("dialog[open]") || event.target.matches("input, select, textarea")) return;
  event.preventDefault();
  const button = $(KEYS[key]);
  if (!button.disabled) button.click();
});
$("table").addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const cell = document.activeElement.dataset?.cell;
  const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (way) {
    const next = neighbour(cell, way);
    if (next) {
      event.preventDefault();
      svg().querySelectorAll('[tabindex="0"]').forEach((x) => x.setAttribute("tabindex", "-1"));
      next.setAttribute("tabindex", "0");
      next.focus();
    }
  } else if ((event.key === "Enter" || event.key === " ") && cell) {
    event.preventDefault();
    point(cellAt(document.activeElement).dataset.cell);
    if (path.length) neighbour(cell, [0, 0])?.focus();
  } else if (event.key === "Escape" && path.length) {
    path = [];
    preview(null);
    light();
  }
});

/** The nearest cell that can be pointed at, or in a direction that has something to say; as the board is seen. */
function neighbour(name, [dx, dy]) {
  const open = [...svg().querySelectorAll(dx || dy ? "[data-cell][tabindex]" : ".lit")];
  if (!name || !cellOf(name)) return open[0];
  const middle = (cell) => {
    const box = cell.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
  };
  const [x, y] = middle(cellOf(name));
  let best = null;
  let least = Infinity;
  for (const cell of open) {
    const [u, v] = middle(cell);
    const [along, across] = [(u - x) * dx + (v - y) * dy, Math.abs((u - x) * dy) + Math.abs((v - y) * dx)];
    const far = dx || dy ? along + 2.5 * across : Math.hypot(u - x, v - y);
    if (((dx || dy) && along < 2) || cell.dataset.cell === name) continue;
    if (far < least) [best, least] = [cell, far];
  }
  return best;
}

// Whose turn it is, and what is known of the position

function drawTurn() {
  const thinking = thoughts();
  const moves = thinking && thinking.kind === "move";
  document.title = view.title;
  $("title").textContent = view.title;
  $("rules").textContent = view.rules;
  let [head, words] = ["", ""];
  if (view.over) {
    head = resultWords();
    words = view.resigned !== null ? `${seat(view.resigned)} resigned.` : view.status !== head ? view.status : `After ${view.ply} moves.`;
  } else if (view.failure) {
    head = "That did not work";
    words = view.failure;
  } else if (view.paused) {
    head = `${seat(view.to_move)} to move`;
    words = "The engine waits for you.";
  } else if (moves || !person(view.to_move)) {
    head = thinking?.compiling ? "Getting ready" : `${seat(view.to_move)} is thinking`;
    words = thinking?.compiling ? "The engine is being compiled, once, which takes a few seconds." : opponentName(view.players[view.to_move]);
  } else {
    const cells = view.legal.some((way) => way.cells.length);
    const several = view.legal.some((way) => way.cells.length > 1);
    head = yours();
    words = `${alone() ? `You are ${seat(view.to_move)}: choose` : "Choose"} ${several ? "a lit piece, then where it goes" : cells ? "a lit square" : "a button below the board"}.`;
    if (view.hint) words = `Hint: ${view.legal.find((way) => way.action === view.hint)?.label || view.hint}.`;
  }
  if (past) {
    head = past.ply ? `After move ${past.ply}` : "The beginning";
    words = past.better ? `${seat(past.to_move)} had better moved ${past.better}.` : past.status;
  }
  $("turn-title").textContent = head;
  $("turn-words").textContent = words;
  $("present").hidden = !past;
  $("thinking").hidden = !thinking;
  if (thinking) {
    if (thinking.compiling) $("progress").removeAttribute("value");
    else $("progress").value = thinking.progress;
    $("stop").textContent = moves ? "Move now" : "Stop";
    $("progress").setAttribute("aria-label", { move: "Thinking", hint: "Looking for a hint", analysis: "Analysing", review: "Reviewing the game" }[thinking.kind]);
  }
  $("resume").hidden = !view.paused || !!past;
  // What these do is done to the present position, so that it must be in sight.
  $("undo").disabled = !!past || !view.undo;
  $("redo").disabled = !!past || !view.redo;
  $("hint").disabled = !!past || !mine() || !!moves;
  $("resign").disabled = !!past || view.over || !view.players.includes("person");
  $("review").disabled = !view.ply || !!view.thinking;
  drawChances();
}

/** What is being thought about what the board shows, or about the whole game. */
function thoughts() {
  return (elsewhere() && known()?.thinking) || (past && view.thinking?.kind !== "review" ? null : view.thinking);
}

function drawChances() {
  const values = past ? known()?.values.at(-1) || view.values[past.ply] : view.values.at(-1) || view.values.at(-2);
  $("chances").hidden = !values || (view.over && !past);
  if ($("chances").hidden) return;
  const scores = values.map(share);
  const sum = scores.reduce((a, b) => a + b, 0) || 1;
  $("chance-bar").replaceChildren(...scores.map((score, player) => {
    const part = document.createElement("i");
    part.style.flexGrow = Math.max(0.001, score / sum);
    part.style.flexBasis = "0";
    if (alone() ? person(player) : player === 0) part.className = "mine";
    return part;
  }));
  $("chance-words").textContent = "Chances: " + values.map((x, i) => `${seat(i)} ${percent(x)}`).join(", ");
}

// Analysis

const budget = () => ({ simulations: Math.min(4096, Math.max(800, 4 * view.limits.simulations)), seconds: 20 });
const looked = () => view.failure || analysing.version === view.version;

function analyse() {
  analysing = { version: view.version };
  command("analyse", budget());
}

/** Whether what the board shows is closed to an analysis in this game: an earlier position, or one that was given up. */
const elsewhere = () => !!past || view.resigned !== null;

/** What is known of the position on the board, as the server said it; null where nothing is. */
const known = () => (elsewhere() ? (study?.ply === pictured().ply ? study.view : null) : view);

/** Analyses what the board shows, where that is wanted and has not been done. */
function follow() {
  if (!analysing) study = null;
  else if (elsewhere()) study?.ply === pictured().ply || examine(pictured().ply);
  else if (mine() && !view.thinking && !looked()) analyse();
}

/** Analyses the position after so many moves in a game of its own on the server, which ends when this does. */
async function examine(ply) {
  const own = (study = { ply, view: null });
  let id = "";
  try {
    const { game, start, actions } = view.save;
    const players = view.players.map(() => "person");
    let news = await call("POST", "sessions", { game, start, actions: actions.slice(0, ply), players, ...view.limits });
    id = news.id;
    own.view = news;
    if (study === own) news = await call("POST", `sessions/${id}/analyse`, { version: news.version, ...budget() });
    for (;;) {
      own.view = { ...own.view, ...news };
      if (study !== own) break;
      drawTurn();
      drawAnalysis();
      if (!news.thinking) break;
      await new Promise((done) => setTimeout(done, POLL));
      news = await call("GET", `sessions/${id}?version=${news.version}`);
    }
  } catch (error) {
    if (study === own) toast(error.message);
  }
  if (id) call("DELETE", `sessions/${id}`).catch(() => {});
}

function drawAnalysis() {
  $("analyse").setAttribute("aria-pressed", String(!!analysing));
  $("analysis").hidden = !analysing;
  if (analysing) {
    const there = known();
    const report = there?.report;
    const now = there?.thinking?.kind === "analysis" ? "so far " : "";
    $("verdict").textContent = !report
      ? unknownWords(there)
      : `${seat(there.to_move)}: ${report.proven ? `proven ${report.proven}` : percent(report.value)}, after ${now}${report.simulations} simulations.`;
    const moves = report ? report.moves.slice(0, 12) : [];
    const labels = new Map((there?.legal || []).map((way) => [way.action, way.label]));
    $("lines").tBodies[0].replaceChildren(...moves.map((move, i) => {
      const row = document.createElement("tr");
      const cells = [labels.get(move.action) || move.action, move.proven || (move.visits ? percent(move.value) : "–"), short(move.visits), `${Math.round(move.prior * 100)}%`];
      row.replaceChildren(...cells.map((words) => Object.assign(document.createElement("td"), { textContent: words })));
      if (i < 5 && move.line.length > 1) {
        row.cells[0].append(Object.assign(document.createElement("span"), { className: "line", textContent: move.line.slice(1, 9).join(" ") }));
      }
      return row;
    }));
  }
  if (svg() && !shown) drawMarks(), drawChoicesNumbers();
  drawGraph();
}

function unknownWords(there) {
  if (there?.failure) return there.failure;
  if (there?.thinking?.compiling) return "Getting ready…";
  return view.over && !elsewhere() ? "The game is over. Choose an earlier move, and it is analysed." : "Nothing is known of this position yet.";
}

function drawChoicesNumbers() {
  if (!$("choices").hidden && !$("choices").contains(document.activeElement)) drawChoices();
}

/** Whether a part of the page is to show something else than it does. */
function changes(part, content) {
  const text = JSON.stringify(content);
  const other = drawn[part] !== text;
  drawn[part] = text;
  return other;
}

/** The expected score of each player over the game; of two, of the first. A click goes to the move under it. */
function drawGraph() {
  const plies = view.values.flatMap((values, ply) => (values ? [ply] : []));
  $("graph").hidden = plies.length < 2;
  if (plies.length < 2 || !changes("graph", [view.values, view.review, pictured().ply])) return;
  const [width, height, last] = [280, 80, Math.max(1, view.values.length - 1)];
  const across = (ply) => (ply / last) * width;
  const up = (part) => (1 - part) * height;
  const picture = document.createElementNS(SVG, "svg");
  const add = (kind, attributes, words = "") => {
    const node = document.createElementNS(SVG, kind);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.textContent = words;
    picture.append(node);
  };
  picture.setAttribute("viewBox", `-44 -8 ${width + 52} ${height + 28}`);
  picture.setAttribute("role", "img");
  for (const part of [0, 1 / view.seats.length, 1]) {
    add("line", { class: "grid", x1: 0, x2: width, y1: up(part), y2: up(part) });
    add("text", { class: "axis", x: -6, y: up(part) + 4, "text-anchor": "end" }, `${Math.round(part * 100)}%`);
  }
  for (const ply of new Set([0, last >> 1, last])) {
    add("text", { class: "axis", x: across(ply), y: height + 17, "text-anchor": ply === last ? "end" : "middle" }, ply || "move 0");
  }
  const seen = across(Math.min(last, pictured().ply));
  add("line", { class: "seen", x1: seen, x2: seen, y1: -4, y2: height + 4 });
  const players = view.seats.length === 2 ? [0] : view.seats.map((_, i) => i);
  for (const player of players) {
    const at = (ply) => [across(ply), up(share(view.values[ply][player]))];
    const points = plies.map((ply) => at(ply).map((x) => x.toFixed(1)).join(",")).join(" ");
    add("polyline", { class: player ? "other" : "first", points, "stroke-dasharray": ["", "7 4", "2 4", "9 3 2 3"][player] || "" });
    for (const move of view.review || []) {
      if (!move.mark || (players.length > 1 && view.history[move.ply].player !== player)) continue;
      const [cx, cy] = at(move.ply + 1);
      add("circle", { class: "bad", cx, cy, r: 4 });
    }
    if (!view.values[pictured().ply]) continue;
    const [cx, cy] = at(pictured().ply);
    add("circle", { class: "here", cx, cy, r: 4 });
  }
  const words = players.length === 1 ? `Chances of ${seat(0)}, move by move` : `Chances, move by move: ${view.seats.join(", ")}`;
  picture.setAttribute("aria-label", `${words}: ${plies.map((ply) => percent(view.values[ply][0])).join(", ")}`);
  picture.onclick = (event) => {
    const x = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse()).x;
    lookAt(Math.max(0, Math.min(view.ply, Math.round((x / width) * last))));
  };
  $("curve").replaceChildren(picture);
  $("curve-words").textContent = words;
}

// The moves so far, and what they cost

function drawMoves() {
  $("moves").replaceChildren(...view.history.map((move, ply) => {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.append(Object.assign(document.createElement("small"), { textContent: `${ply + 1}` }), Object.assign(document.createElement("b"), { textContent: move.words }));
    button.title = `${seat(move.player)} played ${move.action}: look at the position after it`;
    button.onclick = () => lookAt(ply + 1);
    item.append(button);
    return item;
  }));
  $("moves").scrollTop = 1e6;
  markMove();
}

/** Marks the move that led to what the board shows. */
function markMove() {
  [...$("moves").children].forEach((item, ply) => item.classList.toggle("now", ply === pictured().ply - 1));
}

/** Shows the position after so many moves, on which nothing can be played; the last one is the present. */
async function lookAt(ply) {
  if (ply === view.ply) past = null;
  else {
    try {
      const there = await call("GET", `sessions/${view.id}/past?version=${view.version}&ply=${ply}`);
      if (!svg()) return;
      past = there;
    } catch (error) {
      return toast(error.message);
    }
  }
  path = [];
  shown = null;
  told = "";
  drawBoard();
  markMove();
  follow();
  drawTurn();
  drawAnalysis();
  $("say").textContent = `${$("turn-title").textContent}. ${$("turn-words").textContent}`;
}

function drawReview() {
  const words = $("review-words");
  words.hidden = !view.review;
  if (!changes("review", view.review) || !view.review) return;
  const marked = view.review.filter((move) => move.mark);
  for (const move of view.review) $("moves").children[move.ply]?.classList.toggle(move.mark || "fine", true);
  words.textContent = marked.length ? "" : "No move lost a tenth of the point or more.";
  if (!marked.length) return;
  const list = document.createElement("ul");
  list.replaceChildren(...marked.map((move) => {
    const item = document.createElement("li");
    const button = Object.assign(document.createElement("button"), {
      type: "button",
      title: "Look at the position before it",
      textContent: `${move.ply + 1}. ${seat(view.history[move.ply].player)} ${view.history[move.ply].words}: ${move.mark}, ${Math.round(move.drop * 100)} % lost; ${move.best} was better`,
      onclick: () => lookAt(move.ply),
    });
    item.append(button);
    return item;
  }));
  words.append(list);
}

// Buttons

for (const word of ["undo", "redo", "hint", "resign", "review", "resume"]) $(word).onclick = () => command(word);
$("stop").onclick = () => {
  if (elsewhere() && known()?.thinking) call("POST", `sessions/${known().id}/stop`, {}).catch((error) => toast(error.message));
  else command("stop");
};
$("present").onclick = () => lookAt(view.ply);
$("resign").onclick = () => confirm("Resign this game?") && command("resign");
$("flip").onclick = () => {
  flipped = !flipped;
  $("flip").setAttribute("aria-pressed", String(flipped));
  $("board").classList.toggle("flipped", flipped);
  drawMarks();
};
$("analyse").onclick = () => {
  if (analysing) {
    analysing = false;
    if (view.thinking?.kind === "analysis") command("stop");
    follow();
    drawTurn();
    drawAnalysis();
    light();
  } else {
    analysing = { version: -1 };
    if (mine() && !past && view.thinking?.kind !== "move") analyse();
    else follow();
    drawAnalysis();
  }
};
for (const button of $("overlay").children) {
  button.onclick = () => {
    overlay = button.dataset.show;
    for (const other of $("overlay").children) other.setAttribute("aria-pressed", String(other === button));
    drawMarks();
    drawChoices();
  };
}

const THEMES = { "": "Colours: as the system", light: "Colours: light", dark: "Colours: dark" };
function theme(name) {
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
  $("theme").setAttribute("aria-label", THEMES[name]);
  $("theme").title = THEMES[name];
  machine.setItem("theme", name);
}
$("theme").onclick = () => {
  const names = Object.keys(THEMES);
  theme(names[(names.indexOf(document.documentElement.dataset.theme || "") + 1) % names.length]);
};

// A new game

let games = [];
const option = (value, words) => Object.assign(document.createElement("option"), { value, textContent: words });

$("new").onclick = async () => {
  try {
    games = await call("GET", "games");
  } catch (error) {
    return toast(error.message);
  }
  $("pick-game").replaceChildren(...games.map((game) => option(game.game, gameWords(game))));
  $("pick-game").value = view.game;
  pickGame();
  $("setup").showModal();
};

/** The title, and the options where two games share it. */
function gameWords(game) {
  const same = games.filter((other) => other.title === game.title).length > 1;
  return same ? `${game.title} (${game.game})` : game.title;
}

function pickGame() {
  const game = games.find((game) => game.game === $("pick-game").value);
  const same = view.game === game.game;
  const others = same ? view.players.filter((name) => name !== "person") : [];
  const opponent = others[0] || (same && view.players.every((name) => name === "person") ? "person" : game.opponents[0]);
  const offered = [...new Set([...game.opponents, opponent])];
  const numbers = offered.flatMap((name) => name.match(UCT)?.[1] || []);
  $("numbers").replaceChildren(...numbers.map((n) => option(n, n)));
  $("pick-number").value = opponent.match(UCT)?.[1] || numbers[0];
  const kinds = new Set(offered.map((name) => (UCT.test(name) ? "uct" : name)));
  $("pick-opponent").replaceChildren(...[...kinds].map((name) => option(name, name === "uct" ? "Tree search with random games" : opponentName(name))));
  $("pick-opponent").value = UCT.test(opponent) ? "uct" : opponent;
  const name = (i) => game.seats[i] + (i === game.begins ? ", who begins" : "");
  const words = (seats) => (seats.length > 1 ? `${seats.map((i) => game.seats[i]).join(" and ")}: ${seats.length} people` : name(seats[0]));
  $("pick-seat").replaceChildren(...groups(game.seats.length).map((seats) => option(seats.join(), words(seats))), option("none", "Nobody: the engine plays all sides"));
  const people = same ? view.players.flatMap((name, i) => (name === "person" ? [i] : [])) : [];
  $("pick-seat").value = same && others.length ? people.join() || "none" : String(game.begins);
  pickOpponent();
  fill($("pick-simulations"), [32, 128, 512, 1024, 4096], view.limits.simulations, (n) => `${n} simulations`);
  fill($("pick-seconds"), [1, 5, 15, 60], view.limits.seconds, (n) => `${n} second${n === 1 ? "" : "s"}`);
  $("keep").hidden = !same;
}

const UCT = /^uct:(\d+)$/;

/** All groups of some but not all of n seats, the small ones first. */
function groups(n) {
  const all = Array.from({ length: 2 ** n - 2 }, (_, i) => [...Array(n).keys()].filter((seat) => (i + 1) >> seat & 1));
  return all.sort((a, b) => a.length - b.length);
}

function fill(select, numbers, now, words) {
  const all = [...new Set([...numbers, now])].sort((a, b) => a - b);
  select.replaceChildren(...all.map((n) => option(String(n), words(n))));
  select.value = String(now);
}

function pickOpponent() {
  const opponent = $("pick-opponent").value;
  $("seat-label").hidden = opponent === "person";
  $("number-label").hidden = $("pick-number").disabled = opponent !== "uct"; // what is out of sight is not checked
}
$("cancel").onclick = () => $("setup").close();
$("keep").onclick = () => $("setup").querySelector("form").reportValidity() && $("setup").close("keep");
$("pick-game").onchange = pickGame;
$("pick-opponent").onchange = pickOpponent;
$("setup").onclose = () => {
  const answer = $("setup").returnValue;
  $("setup").returnValue = "";
  if (answer !== "start" && answer !== "keep") return;
  const game = games.find((game) => game.game === $("pick-game").value);
  const [kind, people] = [$("pick-opponent").value, $("pick-seat").value.split(",")];
  const opponent = kind === "uct" ? `uct:${Number($("pick-number").value)}` : kind;
  const players = game.seats.map((_, i) => (kind === "person" || people.includes(String(i)) ? "person" : opponent));
  const limits = { simulations: Number($("pick-simulations").value), seconds: Number($("pick-seconds").value) };
  if (answer === "keep") command("players", { players, ...limits });
  else {
    analysing = false;
    open({ game: game.game, players, ...limits });
  }
};

// Files and links

$("files").onclick = () => {
  const text = JSON.stringify(reduced(view.save));
  const bytes = new TextEncoder().encode(text);
  $("link").value = `${location.origin}${location.pathname}#play=${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
  $("share").showModal();
};

function download(content, name) {
  const address = URL.createObjectURL(new Blob([JSON.stringify(content, null, 1)], { type: "application/json" }));
  Object.assign(document.createElement("a"), { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
const fileName = (kind) => `${view.game.split(":")[0].split("/").at(-1)}-${kind}-${view.ply}.json`;
$("save-game").onclick = () => download(reduced(view.save), fileName("game"));
$("save-position").onclick = () => download({ game: view.game, start: view.save.position }, fileName("position"));
$("load").onchange = async () => {
  const [file] = $("load").files;
  $("load").value = "";
  if (!file) return;
  let saved;
  try {
    saved = JSON.parse(await file.text());
  } catch {
    return toast("This file holds no JSON.");
  }
  if (!saved || typeof saved !== "object" || Array.isArray(saved)) return toast("This file holds no game and no position.");
  if (await open(toRequest(saved))) $("share").close();
};

/** A saved game, or the bare record of a position of this one. */
function toRequest(saved) {
  const known = saved && typeof saved === "object" && (saved.actions || saved.start);
  const request = known ? reduced({ game: view?.game, ...saved }) : { game: view?.game, start: saved };
  return request.game === view?.game && view ? { ...request, players: view.players, ...view.limits } : request;
}

$("copy").onclick = async () => {
  $("link").select();
  try {
    await navigator.clipboard.writeText($("link").value);
    toast("The link is copied.");
  } catch {
    toast("Copy the link that is selected.");
  }
};

// Beginning

async function begin() {
  theme(machine.getItem("theme") in THEMES ? machine.getItem("theme") : "");
  const link = location.hash.match(/^#play=([\w-]+)$/);
  if (link) {
    history.replaceState(null, "", location.pathname);
    try {
      const bytes = Uint8Array.from(atob(link[1].replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
      if (await open(reduced(JSON.parse(new TextDecoder().decode(bytes))))) return;
    } catch {
      toast("This link holds no game.");
    }
  }
  const id = tab.getItem("id");
  if (id) {
    try {
      return take(await call("GET", `sessions/${id}`));
    } catch {
      if (await again(), view) return;
    }
  }
  await open({});
}
window.addEventListener("hashchange", () => location.hash.startsWith("#play=") && begin());
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && view && !view.thinking && refresh());
begin();
