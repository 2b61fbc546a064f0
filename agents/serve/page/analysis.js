"use strict";
// The analysis of the position, and the course of the chances.

const budget = () => ({ simulations: Math.min(4096, Math.max(800, 4 * view.limits.simulations)), seconds: 20 });

// What the numbers mean, where they stand.
const EXPLAINED = {
  value: "Chance: the share of the point that the player to move can expect after this move, as far as it was searched. A draw is half a point.",
  visits: "Visits: how often the search tried the move. It tries what looks good more often; a pale chance comes from few visits and says little.",
  prior: "Prior: how likely the network finds the move at first sight, before any search.",
  owners: "Owners: whose each point will be at the end, as the network expects after the best moves. The larger the square, the surer.",
};
for (const part of document.querySelectorAll("#overlay [data-show], #lines [data-show]")) part.title = EXPLAINED[part.dataset.show];

/** What the board shows of the analysis: owners only where the network knows them. */
const chosenOverlay = () => (overlay === "owners" && !known()?.report?.owners ? "value" : overlay);

const looked = () => view.failure || analysing.version === view.version;

function analyse() {
  analysing = { version: view.version };
  command("analyse", budget());
}

/** Whether what the board shows is closed to an analysis in this game: an earlier position, or one that was given up. */
const elsewhere = () => !!past || view.resigned !== null;

/** What is known of the position on the board, as the server said it; null where nothing is. */
const known = () => (elsewhere() ? (study?.ply === pictured().ply ? study.view : null) : view);

/** The report on the position on the board; nothing without one, or where no analysis is wanted. */
const analysed = () => (analysing ? known()?.report : null);

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
      : `${seat(there.to_move)}: ${report.proven ? `proven ${report.proven}` : percent(report.value)}, after ${now}${report.simulations} simulations.${scoreWords(report)}`;
    $("overlay").querySelector("[data-show=owners]").hidden = !report?.owners;
    for (const button of $("overlay").children) button.setAttribute("aria-pressed", String(button.dataset.show === chosenOverlay()));
    $("overlay-words").textContent = EXPLAINED[chosenOverlay()];
    const moves = report ? report.moves.slice(0, 12) : [];
    const labels = new Map((there?.legal || []).map((way) => [way.action, way.label]));
    $("lines").tBodies[0].replaceChildren(...moves.map((move, i) => {
      const row = document.createElement("tr");
      row.classList.toggle("few", move.few);
      const cells = [labels.get(move.action) || move.action, move.proven || (move.visits ? percent(move.value) : "–"), short(move.visits), `${Math.round(move.prior * 100)}%`];
      row.replaceChildren(...cells.map((words) => Object.assign(document.createElement("td"), { textContent: words })));
      if (i < 5 && move.line.length > 1) {
        row.cells[0].append(Object.assign(document.createElement("span"), { className: "line", textContent: move.line.slice(1, 9).join(" ") }));
      }
      return row;
    }));
  }
  if (svg() && !shown) drawMarks(), markChoices();
  drawGraph();
}

/** The expected score at the end, of a game that is won by points. */
function scoreWords({ score }) {
  if (score === undefined) return "";
  return ` Expected: ${score ? `${seat(score > 0 ? 0 : 1)} by ${Math.abs(score).toFixed(1)}` : "an even score"}.`;
}

function unknownWords(there) {
  if (there?.failure) return there.failure;
  if (there?.thinking) return "Getting ready…";
  return view.over && !elsewhere() ? "The game is over. Choose an earlier move, and it is analysed." : "Nothing is known of this position yet.";
}

/** Whether a part of the page is to show something else than it does. */
function changes(part, content) {
  const text = JSON.stringify(content);
  const other = drawn[part] !== text;
  drawn[part] = text;
  return other;
}

/**
 * The expected score of each player over the game. With two, the first one's share of the height is below the edge in
 * their colour, the other one's above. A click goes to the move under it.
 */
function drawGraph() {
  const plies = view.values.flatMap((values, ply) => (values ? [ply] : []));
  $("graph").hidden = plies.length < 2;
  if (plies.length < 2 || !changes("graph", [view.values, view.review, pictured().ply])) return;
  const [width, height, last] = [280, 80, Math.max(1, view.values.length - 1)];
  const across = (ply) => (ply / last) * width;
  const up = (part) => (1 - part) * height;
  const at = (ply, player) => [across(ply), up(share(view.values[ply][player]))];
  const line = (player) => plies.map((ply) => at(ply, player).map((x) => x.toFixed(1)).join(",")).join(" ");
  const area = (player, edge) => `${line(player)} ${across(plies.at(-1))},${edge} ${across(plies[0])},${edge}`;
  const picture = document.createElementNS(SVG, "svg");
  const add = (kind, attributes, words = "") => {
    const node = document.createElementNS(SVG, kind);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.textContent = words;
    picture.append(node);
  };
  picture.setAttribute("viewBox", `-44 -8 ${width + 52} ${height + 28}`);
  picture.setAttribute("role", "img");
  const two = view.seats.length === 2;
  const players = two ? [0] : view.seats.map((_, player) => player);
  if (two) {
    add("polygon", { points: area(0, height), fill: colour(0) });
    add("polygon", { points: area(0, 0), fill: colour(1) });
    add("polyline", { class: "edge", points: line(0) });
  }
  for (const part of [0, 1 / view.seats.length, 1]) {
    add("line", { class: "grid", x1: 0, x2: width, y1: up(part), y2: up(part) });
    add("text", { class: "axis", x: -6, y: up(part) + 4, "text-anchor": "end" }, `${Math.round(part * 100)}%`);
  }
  for (const player of two ? [] : players) {
    add("polyline", { class: "case", points: line(player) });
    add("polyline", { class: "chance", points: line(player), stroke: colour(player) });
  }
  for (const ply of new Set([0, last >> 1, last])) {
    add("text", { class: "axis", x: across(ply), y: height + 17, "text-anchor": ply === last ? "end" : "middle" }, ply || "move 0");
  }
  const seen = across(Math.min(last, pictured().ply));
  add("line", { class: "seen", x1: seen, x2: seen, y1: -4, y2: height + 4 });
  for (const player of players) {
    const spot = (name, ply) => add("circle", { class: name, cx: at(ply, player)[0], cy: at(ply, player)[1], r: 4 });
    for (const move of view.review || []) {
      if (move.mark && view.values[move.ply + 1] && (two || view.history[move.ply].player === player)) spot("bad", move.ply + 1);
    }
    if (view.values[pictured().ply]) spot("here", pictured().ply);
  }
  const words = `Chances of ${listed(view.seats)}, move by move`;
  picture.setAttribute("aria-label", `${words}: ${plies.map((ply) => percent(view.values[ply][0])).join(", ")}`);
  picture.onclick = (event) => {
    const x = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse()).x;
    lookAt(Math.max(0, Math.min(view.ply, Math.round((x / width) * last))));
  };
  $("curve").replaceChildren(picture);
  $("curve-words").textContent = words;
}
