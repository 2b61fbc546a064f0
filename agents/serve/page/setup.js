"use strict";
// The dialog of a new game.

let games = [];
const option = (value, words) => Object.assign(document.createElement("option"), { value, textContent: words });

$("new").onclick = async () => {
  try {
    games = await call("GET", "games");
  } catch (error) {
    return toast(error.message);
  }
  $("pick-game").replaceChildren(...games.map((game) => option(game.game, gameWords(game))));
  $("pick-game").value = view.game;
  pickGame();
  $("setup").showModal();
};

/** The title, and the options where two games share it. */
function gameWords(game) {
  const same = games.filter((other) => other.title === game.title).length > 1;
  return same ? `${game.title} (${game.game})` : game.title;
}

function pickGame() {
  const game = games.find((game) => game.game === $("pick-game").value);
  const same = view.game === game.game;
  const others = same ? view.players.filter((name) => name !== "person") : [];
  const opponent = others[0] || (same && view.players.every((name) => name === "person") ? "person" : game.opponents[0]);
  const offered = [...new Set([...game.opponents, opponent])];
  const numbers = offered.flatMap((name) => name.match(UCT)?.[1] || []);
  $("numbers").replaceChildren(...numbers.map((n) => option(n, n)));
  $("pick-number").value = opponent.match(UCT)?.[1] || numbers[0];
  const kinds = new Set(offered.map((name) => (UCT.test(name) ? "uct" : name)));
  $("pick-opponent").replaceChildren(...[...kinds].map((name) => option(name, name === "uct" ? "Tree search with random games" : opponentName(name))));
  $("pick-opponent").value = UCT.test(opponent) ? "uct" : opponent;
  const name = (i) => game.seats[i] + (i === game.begins ? ", who begins" : "");
  const words = (seats) => (seats.length > 1 ? `${seats.map((i) => game.seats[i]).join(" and ")}: ${seats.length} people` : name(seats[0]));
  $("pick-seat").replaceChildren(...groups(game.seats.length).map((seats) => option(seats.join(), words(seats))), option("none", "Nobody: the engine plays all sides"));
  const people = same ? view.players.flatMap((name, i) => (name === "person" ? [i] : [])) : [];
  $("pick-seat").value = same && others.length ? people.join() || "none" : String(game.begins);
  pickOpponent();
  fill($("pick-simulations"), [32, 128, 512, 1024, 4096], view.limits.simulations, (n) => `${n} simulations`);
  fill($("pick-seconds"), [1, 5, 15, 60], view.limits.seconds, (n) => `${n} second${n === 1 ? "" : "s"}`);
  $("keep").hidden = !same;
}

const UCT = /^uct:(\d+)$/;

/** All groups of some but not all of n seats, the small ones first. */
function groups(n) {
  const all = Array.from({ length: 2 ** n - 2 }, (_, i) => [...Array(n).keys()].filter((seat) => (i + 1) >> seat & 1));
  return all.sort((a, b) => a.length - b.length);
}

function fill(select, numbers, now, words) {
  const all = [...new Set([...numbers, now])].sort((a, b) => a - b);
  select.replaceChildren(...all.map((n) => option(String(n), words(n))));
  select.value = String(now);
}

function pickOpponent() {
  const opponent = $("pick-opponent").value;
  $("seat-label").hidden = opponent === "person";
  $("number-label").hidden = $("pick-number").disabled = opponent !== "uct"; // what is out of sight is not checked
}
$("cancel").onclick = () => $("setup").close();
$("keep").onclick = () => $("setup").querySelector("form").reportValidity() && $("setup").close("keep");
$("pick-game").onchange = pickGame;
$("pick-opponent").onchange = pickOpponent;
$("setup").onclose = () => {
  const answer = $("setup").returnValue;
  $("setup").returnValue = "";
  if (answer !== "start" && answer !== "keep") return;
  const game = games.find((game) => game.game === $("pick-game").value);
  const [kind, people] = [$("pick-opponent").value, $("pick-seat").value.split(",")];
  const opponent = kind === "uct" ? `uct:${Number($("pick-number").value)}` : kind;
  const players = game.seats.map((_, i) => (kind === "person" || people.includes(String(i)) ? "person" : opponent));
  const limits = { simulations: Number($("pick-simulations").value), seconds: Number($("pick-seconds").value) };
  if (answer === "keep") command("players", { players, ...limits });
  else {
    analysing = false;
    open({ game: game.game, players, ...limits });
  }
};
