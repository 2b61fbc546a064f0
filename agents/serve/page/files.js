"use strict";
// Files and links.

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
