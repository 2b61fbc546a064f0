"use strict";
// The moves so far, walking through them, other lines, and what the moves cost.

let aim = null; // the position that is asked for, while it is on its way

/** The moves in rows, a round in each: one column for every player, from the first mover on. */
function drawMoves() {
  const first = view.history[0]?.player || 0;
  const column = (player) => (player - first + view.seats.length) % view.seats.length;
  const rows = [];
  let latest = Infinity;
  view.history.forEach((move, ply) => {
    if (column(move.player) <= latest) {
      const row = document.createElement("li");
      row.append(Object.assign(document.createElement("small"), { textContent: `${rows.length + 1}.` }));
      rows.push(row);
    }
    latest = column(move.player);
    const button = Object.assign(document.createElement("button"), {
      type: "button",
      textContent: move.words,
      title: `Move ${ply + 1}: ${seat(move.player)} played ${move.action}. Look at the position after it`,
      onclick: () => lookAt(ply + 1),
    });
    button.style.gridColumn = latest + 2;
    rows.at(-1).append(button);
  });
  $("moves").style.setProperty("--seats", view.seats.length);
  $("moves").replaceChildren(...rows);
  drawLines();
  markMove();
}

const moveButtons = () => [...$("moves").querySelectorAll("button")];

/** Marks the move that led to what the board shows, and brings it into sight. */
function markMove() {
  moveButtons().forEach((button, ply) => {
    const now = ply === pictured().ply - 1;
    button.classList.toggle("now", now);
    if (!now) return button.removeAttribute("aria-current");
    button.setAttribute("aria-current", "step");
    const [box, list] = [button.getBoundingClientRect(), $("moves").getBoundingClientRect()];
    if (box.top < list.top || box.bottom > list.bottom) $("moves").scrollTop += box.top - list.top - list.height / 2;
  });
  if (!pictured().ply) $("moves").scrollTop = 0;
}

/** Lines that were left for another move, to come back to. */
function drawLines() {
  const lines = view.lines || [];
  $("other-lines").hidden = !lines.length;
  $("other-lines").replaceChildren("Other lines", ...lines.map((line, index) => Object.assign(document.createElement("button"), {
    type: "button",
    title: "Go on in this line; the present one is kept",
    textContent: `${line.from + 1}. ${line.words.slice(0, 6).join(" ")}${line.words.length > 6 ? " …" : ""}`,
    onclick: () => command("line", { index }),
  })));
}

/** Shows the position after so many moves; a move made there begins another line. The last one is the present. */
async function lookAt(ply) {
  const before = pictured();
  aim = ply;
  let there = null;
  if (ply !== view.ply) {
    try {
      there = await call("GET", `sessions/${view.id}/past?version=${view.version}&ply=${ply}`);
    } catch (error) {
      aim = null;
      toast(error.message);
      if (error.status === 409) return refresh(true);
      if (error.status === 404) return again();
      return;
    }
    if (aim !== ply) return; // another position is wanted by now
  }
  aim = null;
  if (!svg()) return;
  leave();
  past = there;
  const earlier = ply === before.ply + 1 ? contents() : null;
  drawBoard();
  if (earlier) animate(earlier);
  markMove();
  follow();
  drawTurn();
  drawAnalysis();
  sayTurn();
}

function walk(steps) {
  const ply = Math.min(view.ply, Math.max(0, (aim ?? pictured().ply) + steps));
  if (ply !== (aim ?? pictured().ply)) lookAt(ply);
}

function drawReview() {
  const working = view.thinking?.kind === "review" ? view.thinking : null;
  $("review-words").hidden = !view.review;
  if (!changes("review", [view.review, working?.progress]) || !view.review) return;
  const buttons = moveButtons();
  for (const button of buttons) button.classList.remove("blunder", "mistake", "inaccuracy");
  for (const move of view.review) if (move.mark) buttons[move.ply]?.classList.add(move.mark);
  const marked = view.review.filter((move) => move.mark);
  const part = view.review.length < view.ply ? `Stopped after ${view.review.length} of ${view.ply} moves. ` : "";
  const now = working ? `Move ${working.done} of ${working.total}. ` : part;
  const none = working || marked.length || !view.review.length ? "" : "No move lost a tenth of the point or more.";
  const list = document.createElement("ul");
  list.replaceChildren(...marked.map((move) => {
    const item = document.createElement("li");
    const button = Object.assign(document.createElement("button"), {
      type: "button",
      title: "Look at the position before it",
      textContent: `${move.ply + 1}. ${seat(view.history[move.ply].player)} ${view.history[move.ply].words}: ${move.mark}, ${Math.round(move.drop * 100)}% lost; ${move.best} was better`,
      onclick: () => lookAt(move.ply),
    });
    item.append(button);
    return item;
  }));
  const kept = $("review-words").scrollTop;
  $("review-words").replaceChildren(now + none, ...(marked.length ? [list] : []));
  $("review-words").scrollTop = kept;
}
