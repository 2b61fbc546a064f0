"use strict";
// What the page knows of the game, and its calls of the server. The page knows no game: the server sends a picture whose
// cells have names, and for every legal move the cells to point at in turn and the words on its button
// (agents/serve/web/server.py, envs/pictures.py).

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
/** The key of what is remembered for this page alone: pages without a server share an origin, and each has its game. */
const ownKey = (name) => `${location.pathname} ${name}`;

/** Forgets what was pointed at on the position that the board shows. */
function leave() {
  wanted++;
  path = [];
  shown = null;
  told = "";
  touched = "";
  remark("");
  previews.clear();
}

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
  const { players, save, limits } = view || JSON.parse(tab.getItem(ownKey("game")) || "{}");
  await open(save ? { ...reduced(save), players, ...limits } : {});
}

/** Opens a game; if it is refused, says so after the words `refused`. */
async function open(request, refused = "") {
  let news;
  try {
    news = await call("POST", "sessions", request);
  } catch (error) {
    toast(refused + error.message);
    if (!view) [$("turn-title").textContent, $("turn-words").textContent] = ["There is no game", error.message];
    return false;
  }
  const old = view && view.id;
  view = null;
  take(news);
  if (old) call("DELETE", `sessions/${old}`).catch(() => {});
  return true;
}

const reduced = ({ format, game, start, actions, resigned }) => ({ format, game, start, actions, resigned });

/** Lets the page be used, which needs a game; `drawTurn` disables again what makes no sense in this one. */
function enable() {
  $("table").inert = false;
  for (const button of BUTTONS) button.disabled = false;
}

/** Takes in an answer; draws the board anew only where the position is another one. */
function take(news) {
  const fresh = news.svg !== undefined;
  const before = view;
  // An answer may be late: of a game that was left meanwhile, or of a position before this one.
  if (view && (news.id !== view.id || news.version < view.version || (!fresh && news.version > view.version))) return;
  if (!view) enable();
  const earlier = fresh && before?.id === news.id && before.ply < news.ply && !past ? contents() : null;
  view = fresh ? { ...news } : { ...view, ...news };
  if (fresh) {
    leave();
    past = null;
    study = null;
    drawn = {};
    drawBoard();
    if (earlier) animate(earlier);
    drawMoves();
    tab.setItem(ownKey("id"), view.id);
    tab.setItem(ownKey("game"), JSON.stringify({ players: view.players, limits: view.limits, save: view.save }));
    announce(before);
  }
  drawTurn();
  const found = (what) => view[what] && view[what] !== before?.[what];
  if (!fresh && !past && (found("hint") || found("failure"))) sayTurn();
  drawAnalysis();
  drawReview();
  clearTimeout(polling);
  if (view.thinking) polling = setTimeout(refresh, POLL);
  else follow();
}
