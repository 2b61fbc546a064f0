"use strict";
// The moves so far, and what they cost.

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
