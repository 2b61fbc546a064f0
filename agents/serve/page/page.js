"use strict";
// The buttons, and the beginning.

const BUTTONS = document.querySelectorAll("nav button:not(#theme, #keys), aside button");
for (const button of BUTTONS) button.disabled = true; // until there is a game, see `enable`
let ordered = Promise.resolve(); // one order after the other: each is meant for the position that the last one led to
for (const word of ["undo", "redo", "hint", "review", "resume"]) {
  const order = () => $(word).disabled || $(word).hidden || command(word);
  $(word).onclick = () => (ordered = ordered.then(order, order));
}
$("stop").onclick = () => {
  if (elsewhere() && known()?.thinking) call("POST", `sessions/${known().id}/stop`, {}).catch((error) => toast(error.message));
  else command("stop");
};
$("present").onclick = () => lookAt(view.ply);
$("resign").onclick = async () => (await asked("Resign this game?", "Resign")) && command("resign");
$("first").onclick = () => lookAt(0);
$("back").onclick = () => walk(-1);
$("next").onclick = () => walk(1);
$("last").onclick = () => lookAt(view.ply);
/** The same game from its start, with these players. */
const anew = (players) => open({ game: view.game, start: view.save.start, players, ...view.limits });
$("rematch").onclick = () => anew(view.players);
$("swap").onclick = () => anew([view.players.at(-1), ...view.players.slice(0, -1)]);
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
    drawAnalysis();
    drawMarks();
    drawChoices();
  };
}

// Keys

const KEYS = {
  u: ["undo", "take a move back"],
  r: ["redo", "make it again"],
  h: ["hint", "a hint"],
  a: ["analyse", "analysis on and off"],
  f: ["flip", "turn the board"],
  "?": ["keys", "this list"],
  ArrowLeft: ["back", "one move back"],
  ArrowRight: ["next", "one move on"],
  Home: ["first", "first position"],
  End: ["last", "last position"],
};
const KEY_NAMES = { ArrowLeft: "←", ArrowRight: "→" };
const BOARD_KEYS = [["Tab", "to the board; then the arrows go from cell to cell"], ["Enter", "choose a cell"], ["Escape", "choose anew"]];
const keyName = (key) => KEY_NAMES[key] || (key.length > 1 ? key : key.toUpperCase());
/** Whether a key does something. Those of one character can be turned off, as speech input may type them (WCAG 2.1.4). */
const works = (key) => key in KEYS && (key.length > 1 || $("single-keys").checked);
function showKeys() {
  for (const [key, [id]] of Object.entries(KEYS)) {
    works(key) ? $(id).setAttribute("aria-keyshortcuts", key) : $(id).removeAttribute("aria-keyshortcuts");
    $(id).title = works(key) ? `Key ${keyName(key)}` : "";
  }
}
const keyRows = [...Object.entries(KEYS).map(([key, [, words]]) => [keyName(key), words]), ...BOARD_KEYS];
$("key-list").replaceChildren(...keyRows.flatMap(([key, words]) => [
  Object.assign(document.createElement("dt"), { textContent: key }),
  Object.assign(document.createElement("dd"), { textContent: words }),
]));
document.addEventListener("keydown", (event) => {
  const key = event.key.length > 1 ? event.key : event.key.toLowerCase();
  if (event.ctrlKey || event.metaKey || event.altKey || !works(key) || event.defaultPrevented) return;
  if (document.querySelector("dialog[open]") || event.target.matches("input, select, textarea")) return;
  event.preventDefault();
  const button = $(KEYS[key][0]);
  if (!button.disabled) button.click();
});
$("keys").onclick = () => $("settings").showModal();
$("moving").checked = !machine.getItem("still");
$("moving").onchange = () => machine.setItem("still", $("moving").checked ? "" : "1");
$("single-keys").checked = !machine.getItem("no-single-keys");
$("single-keys").onchange = () => {
  machine.setItem("no-single-keys", $("single-keys").checked ? "" : "1");
  showKeys();
};
showKeys();

// Colours

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
// Beginning

const LINK = "#play=";

/** The game that a link holds; null if it is damaged. What a mail program took for a part of the link is ignored. */
function gameOfLink(text) {
  try {
    const plain = text.match(/^[\w-]*/)[0].replaceAll("-", "+").replaceAll("_", "/");
    const held = JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(plain), (c) => c.charCodeAt(0))));
    return held.actions || held.start ? reduced(held) : null;
  } catch {
    return null;
  }
}

async function begin() {
  theme(machine.getItem("theme") in THEMES ? machine.getItem("theme") : "");
  if (location.hash.startsWith(LINK)) {
    const text = location.hash.slice(LINK.length);
    history.replaceState(null, "", location.pathname);
    const linked = gameOfLink(text);
    if (!linked) toast("This link holds no game: perhaps it was cut off when it was copied.");
    else if (await open(linked, "The link was not opened: ")) return;
  }
  const id = tab.getItem(ownKey("id"));
  if (id) {
    try {
      return take(await call("GET", `sessions/${id}`));
    } catch {
      if (await again(), view) return;
    }
  }
  await open({});
}
window.addEventListener("hashchange", () => location.hash.startsWith(LINK) && begin());
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && view && !view.thinking && refresh());
begin();
