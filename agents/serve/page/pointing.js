"use strict";
// Pointing at cells, by mouse, touch or keys, and the preview of a move.

/** Points at a cell: goes on with a move, makes it where it is complete, or begins anew with another piece. */
function point(name, byTouch = false) {
  if (!view || !legalWays().length || busy) return;
  remark("");
  if (!nextCells().has(name)) {
    const cells = [...path, name];
    const other = path[0] !== name && legalWays().some((way) => way.cells[0] === name);
    path = [];
    preview(null);
    if (!other) {
      if (cells[0] !== name || cells.length === 1) why(cells);
      return light();
    }
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

/** Says why no legal move begins with these cells. */
async function why(cells) {
  const { id, version } = view;
  const query = new URLSearchParams([["version", version], ["ply", pictured().ply], ...cells.map((name) => ["cell", name])]);
  try {
    const { reason } = await call("GET", `sessions/${id}/why?${query}`);
    if (view?.id === id && view.version === version && !path.length) remark(reason);
  } catch (error) {
    if (error.status !== 409) toast(error.message); // else the game has gone on, which answers the question
  }
}

/** A few words at the board for a few seconds. */
function remark(words) {
  $("why").textContent = words;
  clearTimeout(remark.timer);
  remark.timer = setTimeout(() => ($("why").textContent = ""), 4000);
}

/** Whether a move is made by a button, as pointing at its one cell does not say what it does. */
const asks = (way) => way.cells.length < 2 && way.label !== way.action;

function play(way) {
  if (busy) return;
  path = [];
  preview(null);
  if (past && view.history[past.ply].action === way.action) return lookAt(past.ply + 1);
  busy = true; // one move at a time
  const made = past ? command("branch", { ply: past.ply, action: way.action }) : command("move", { action: way.action });
  made.finally(() => (busy = false));
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
    const query = new URLSearchParams({ version, action: way.action, ply: pictured().ply });
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
$("board").addEventListener("mousedown", (event) => {
  event.preventDefault(); // the mouse leaves no focus behind: arrow keys walk through the game then
  document.activeElement.blur();
});
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
let rest = ""; // where the mouse was released, until it moves: a board drawn anew under it stays as it is
const spot = (event) => `${event.clientX} ${event.clientY}`;
function look(event) {
  if (event.pointerType === "touch" || event.buttons || !view || spot(event) === rest) return; // a pressed cell stays
  const cell = cellAt(event.target);
  preview(cell ? wayTo(cell.dataset.cell) : null);
  tell(cell);
}
$("board").addEventListener("pointerover", look);
$("board").addEventListener("pointerup", (event) => {
  rest = spot(event);
});
$("board").addEventListener("pointermove", (event) => {
  if (!rest || spot(event) === rest) return;
  rest = "";
  look(event);
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

$("table").addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const cell = document.activeElement.dataset?.cell;
  const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (way) {
    event.preventDefault(); // at the edge of the board, too, it is no step through the game
    const next = neighbour(cell, way);
    if (next) {
      svg().querySelectorAll('[tabindex="0"]').forEach((x) => x.setAttribute("tabindex", "-1"));
      next.setAttribute("tabindex", "0");
      next.focus();
    }
  } else if ((event.key === "Enter" || event.key === " ") && cell) {
    event.preventDefault();
    point(cellAt(document.activeElement).dataset.cell);
    if (path.length) neighbour(cell, [0, 0])?.focus();
  }
});
// Wherever the focus is: the mouse leaves none on the board.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !path.length || document.querySelector("dialog[open]")) return;
  path = [];
  preview(null);
  light();
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
