"use strict";
// The board: its picture, and the marks on it. It may show an earlier position, so that nothing here asks `view`, the
// present one, about a position: `pictured`, `legalWays` and `analysed` speak of what is on the board.

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
  picture.style.setProperty("--shape", width / height);
  const marks = document.createElementNS(SVG, "g");
  marks.setAttribute("class", "marks");
  marks.setAttribute("aria-hidden", "true");
  picture.append(marks);
  $("flip").hidden = !sizes.length;
  board.classList.toggle("flipped", flipped && sizes.length > 0);
  light();
  if (focused === null) return;
  // The focus of a person who plays with the keyboard stays on the board.
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

/** What every innermost cell says of its contents. */
const contents = () => new Map([...svg().querySelectorAll(".leaf")].map((cell) => [cell.dataset.cell, cellWords(cell).slice(cell.dataset.cell.length)]));

const MOVING = 220; // milliseconds
const still = matchMedia("(prefers-reduced-motion: reduce)");

/** Shows what has changed since the board said `earlier`: a piece slides from where it stood, all else fades in. */
function animate(earlier) {
  if (still.matches || machine.getItem("still")) return;
  const now = contents();
  const changed = [...now.keys()].filter((name) => earlier.has(name) && earlier.get(name) !== now.get(name));
  for (const name of changed) {
    const pieces = [...cellOf(name).children].slice(2); // after its title and ground
    const from = changed.find((other) => other !== name && earlier.get(other) === now.get(name) && now.get(other) !== now.get(name));
    if (!from) {
      for (const piece of pieces) piece.animate([{ opacity: 0 }, {}], MOVING);
      continue;
    }
    const [[x, y], [u, v]] = [placeOf(shapeOf(cellOf(from))), placeOf(shapeOf(cellOf(name)))];
    const side = flipped ? -1 : 1; // a turned piece has turned axes
    const around = cellOf(name).parentElement;
    around.insertBefore(cellOf(name), around.querySelector(":scope > .marks")); // above what it slides over, below the marks
    const start = { transform: `translate(${side * (x - u)}px, ${side * (y - v)}px)`, composite: "add" };
    for (const piece of pieces) piece.animate([start, { transform: "translate(0)", composite: "add" }], { duration: MOVING, easing: "ease-out" });
  }
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
  for (const cell of svg().querySelectorAll(".numbered")) cell.classList.remove("numbered");
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
  const hinted = legalWays().find((way) => way.action === pictured().hint);
  if (hinted && !shown) hinted.cells.forEach((name) => outline(name, "advice"));
  past?.advice.forEach((name) => outline(name, "advice"));
  path.forEach((name) => outline(name, "chosen"));
  if (shown) shown.changed.forEach((name) => outline(name, "will"));
  if (analysed() && !shown) chosenOverlay() === "owners" ? drawOwners(marks) : drawNumbers(marks);
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
  const rank = (move) => report.moves.indexOf(move);
  for (const way of legalWays().length ? candidates() : elsewhere() ? legal : []) {
    const name = way.cells[path.length];
    const move = moves.get(way.action);
    if (!name || !move) continue;
    if (!best.has(name) || rank(move) < rank(best.get(name))) best.set(name, move);
  }
  const total = Math.max(1, ...report.moves.map((move) => move.visits));
  for (const [name, move] of best) {
    const cell = cellOf(name);
    if (!cell) continue;
    cell.classList.add("numbered"); // a pale number stands on no dot
    const inside = cell.querySelector(".legal") || shapeOf(cell);
    const box = boxOf(inside);
    const [x, y, size] = [box.x + box.width / 2, box.y + box.height / 2, Number(svg().dataset.size)];
    const kind = chosenOverlay();
    const unknown = kind === "value" && !move.visits && !move.proven;
    const part = kind === "value" ? share(move.value) : kind === "visits" ? move.visits / total : move.prior;
    const words = unknown ? "–" : kind === "visits" ? short(move.visits) : String(Math.round(part * 100));
    const plate = document.createElementNS(SVG, "circle");
    const few = move.few && kind === "value" ? " few" : "";
    plate.setAttribute("class", (move === report.moves[0] ? "plate best" : "plate") + few);
    plate.setAttribute("cx", x);
    plate.setAttribute("cy", y);
    plate.setAttribute("r", size * 0.34);
    plate.setAttribute("fill", unknown ? "#e9e7e1" : shade(kind === "value" ? part : Math.sqrt(part) * 0.5 + 0.5));
    const number = document.createElementNS(SVG, "text");
    number.setAttribute("class", `number free${few}`);
    number.setAttribute("x", x);
    number.setAttribute("y", y + size * 0.105);
    number.setAttribute("font-size", size * (words.length > 3 ? 0.22 : 0.3));
    number.textContent = words;
    marks.append(plate, number);
  }
}

/** A square on every cell in the colour of its expected owner, the larger the surer. */
function drawOwners(marks) {
  for (const [name, owner] of Object.entries(known().report.owners)) {
    const cell = cellOf(name);
    const side = Number(svg().dataset.size) * 0.5 * Math.sqrt(Math.abs(owner));
    if (!cell || Math.abs(owner) < 0.1) continue; // nobody's, or an even chance
    const box = boxOf(shapeOf(cell));
    const square = document.createElementNS(SVG, "rect");
    const place = { x: box.x + (box.width - side) / 2, y: box.y + (box.height - side) / 2, width: side, height: side };
    for (const [attribute, value] of Object.entries(place)) square.setAttribute(attribute, value);
    square.setAttribute("class", "owner");
    square.setAttribute("fill", colour(owner > 0 ? 0 : 1));
    marks.append(square);
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
  choices.replaceChildren(...ways.map((way) => {
    const button = document.createElement("button");
    button.type = "button";
    const [, words, more] = way.label.match(/^(.*?)(?: \((.*)\))?$/);
    button.textContent = words;
    if (more) button.append(Object.assign(document.createElement("small"), { className: "more", textContent: more }));
    button.dataset.action = way.action;
    button.onclick = () => play(way);
    button.onpointerenter = button.onfocus = () => preview(way);
    button.onpointerleave = button.onblur = () => preview(null);
    return button;
  }));
  markChoices();
  if (focused >= 0) (choices.children[focused] || choices.firstElementChild || $("board")).focus();
}

/** Hint and numbers on the buttons. They stay the same buttons, since a new one under a finger would take no tap. */
function markChoices() {
  const moves = new Map(analysed()?.moves.map((move) => [move.action, move]));
  for (const button of $("choices").children) {
    const { action } = button.dataset;
    const hinted = action === pictured().hint;
    button.classList.toggle("main", hinted);
    hinted ? button.setAttribute("aria-description", "hint") : button.removeAttribute("aria-description");
    writeNumber(button, moves.get(action));
  }
}

function writeNumber(button, move) {
  let small = button.querySelector("small:not(.more)");
  if (!move) return small?.remove();
  if (!small) button.append((small = document.createElement("small")));
  small.classList.toggle("few", move.few);
  small.textContent = { value: move.visits ? percent(move.value) : "–", visits: `${move.visits}×`, prior: `${Math.round(move.prior * 100)}%` }[chosenOverlay()] || "";
}

function sayWhatToDo() {
  const words = $("about-cell");
  if (shown) {
    // A piece that goes somewhere may do more there than stand: what is said is what will be there.
    const count = shown.changed.length === 1 ? "1 cell changes" : `${shown.changed.length} cells change`;
    const outcome = shown.cells.length > 1 ? `. Then ${cellWords(cellOf(shown.cells.at(-1)))}` : touched ? "" : `: ${count}`;
    words.textContent = (touched ? "Tap again to play " : "") + shown.label + outcome;
  } else if (path.length) {
    const next = nextCells().size ? "Choose a highlighted place" : "Choose what it does";
    words.textContent = `${cellWords(cellOf(path.at(-1)))}. ${next}${coarse.matches ? "" : ", or Escape"}.`;
  } else words.textContent = told && cellOf(told) ? cellWords(cellOf(told)) : "";
}
