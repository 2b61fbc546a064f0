"use strict";
// The buttons, and the beginning.

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
