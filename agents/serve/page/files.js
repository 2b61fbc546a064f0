"use strict";
// Files and links.

$("files").onclick = () => {
  const text = JSON.stringify(reduced(view.save));
  const bytes = new TextEncoder().encode(text);
  $("link").value = `${location.href.split("#")[0]}#play=${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
  $("link-words").textContent = linkWords();
  $("share").showModal();
};

/** What the link shows, and who can open it. */
function linkWords() {
  const file = location.protocol === "file:"; // a page without a server
  const here = file || ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
  const anybody = file
    ? "save the game and send it with this page: they load it there."
    : `save the game and send the file: they load it in a page of their own${view.game.includes(".py") ? ", which needs the file of the game" : ""}.`;
  const who = here
    ? `It opens on this computer only${file ? "" : ", while play.py runs"}. For anybody else, ${anybody}`
    : `It opens for everyone who reaches ${location.host}.`;
  return `${view.title} after ${view.ply} move${view.ply === 1 ? "" : "s"}. ${who}`;
}

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
  const text = await file.text();
  if (/^\s*\(\s*;/.test(text)) return toast(sgfWords(text));
  let saved;
  try {
    saved = JSON.parse(text);
  } catch {
    return toast(`${file.name} is not a game of this page: expected a file that Save the game has written.`);
  }
  if (!saved || typeof saved !== "object" || Array.isArray(saved)) return toast(`${file.name} holds no game and no position.`);
  if (await open(toRequest(saved), `${file.name} was not opened: `)) $("share").close();
};

/** Where a file in SGF, the format of Go programs, can be opened. */
function sgfWords(text) {
  const size = text.match(/SZ\[(\d+)\]/)?.[1] || 19;
  return `This is SGF, which only the terminal reads: python play.py --env=go:size=${size} --ui=text, then load the file.`;
}

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
