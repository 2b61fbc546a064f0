"use strict";
// The dialog of a new game.

let games = []; // as the server describes them
const option = (value, words) => Object.assign(document.createElement("option"), { value, textContent: words });
const chosen = () => games.find((game) => game.game === $("pick-game").value);

$("new").onclick = async () => {
  try {
    games = await call("GET", "games");
    await describe(view.game);
  } catch (error) {
    return toast(error.message);
  }
  pickGame();
  $("setup").showModal();
};

/** Chooses the game of a spec, perhaps with other options than in the list. */
async function describe(spec) {
  if (!games.some((game) => game.game === spec)) {
    const [game] = await call("GET", `games?${new URLSearchParams({ game: spec })}`);
    const kind = (name) => name.split(":")[0];
    const same = games.filter((other) => kind(other.game) === kind(spec)); // two, where the server plays other options
    const old = same.find((other) => other.game === $("pick-game").value) || same.at(-1);
    games = games.map((other) => (other === old ? game : other));
  }
  $("pick-game").replaceChildren(...games.map((game) => option(game.game, gameWords(game))));
  $("pick-game").value = spec;
}

/** The title, and the options where two games share it. */
function gameWords(game) {
  const same = games.filter((other) => other.title === game.title).length > 1;
  return same ? `${game.title} (${game.game})` : game.title;
}

const OPTION_WORDS = { size: "Board", rows: "Rows", cols: "Columns", komi: "Points for White", players: "Players", swap: "Swap rule" };
const VALUE_WORDS = { size: (value) => `${value} x ${value}`, swap: (value) => (value === "true" ? "Second player may swap" : "No swap") };

/** Selects for the options of the game, such as the size of the board. */
function pickOptions({ game, options }) {
  $("pick-options").replaceChildren(...options.map(({ name, value, choices }) => {
    const label = Object.assign(document.createElement("label"), { textContent: `${OPTION_WORDS[name] || name} ` });
    const select = Object.assign(document.createElement("select"), { id: `pick-${name}` });
    select.replaceChildren(...choices.map((one) => option(one, VALUE_WORDS[name]?.(one) || one)));
    select.value = value;
    select.onchange = async () => {
      try {
        await describe(game.replace(`${name}=${value}`, `${name}=${select.value}`));
        pickGame();
        $(select.id).focus();
      } catch (error) {
        toast(error.message);
      }
    };
    label.append(select);
    return label;
  }));
}

function pickGame() {
  const game = chosen();
  const same = view.game === game.game;
  const others = same ? view.players.filter((name) => name !== "person") : [];
  const opponent = others[0] || (same && view.players.every((name) => name === "person") ? "person" : game.opponents[0]);
  pickOptions(game);
  const graded = game.levels.map((level) => level.player);
  const [numbered, number] = opponent.match(UCT) || [];
  const rest = new Set([...game.opponents, opponent].filter((name) => !graded.includes(name)).map((name) => (UCT.test(name) ? "uct" : name)));
  const group = (label, options) => {
    const node = Object.assign(document.createElement("optgroup"), { label });
    node.append(...options);
    return node;
  };
  $("numbers").replaceChildren(...game.opponents.flatMap((name) => name.match(UCT)?.[1] || []).map((n) => option(n, n)));
  $("pick-number").value = number || 400;
  $("pick-opponent").replaceChildren(
    group("By strength", game.levels.map((level) => option(level.player, `${level.name}: ${opponentName(level.player)}`))),
    group("Others", [...new Set(["uct", ...rest])].map((name) => option(name, name === "uct" ? "Tree search with any number of random games" : opponentName(name)))),
  );
  $("pick-opponent").value = numbered && !graded.includes(opponent) ? "uct" : opponent;
  const name = (i) => game.seats[i] + (i === game.begins ? ", who begins" : "");
  const words = (seats) => (seats.length > 1 ? `${listed(seats.map((i) => game.seats[i]))}: ${seats.length} people` : name(seats[0]));
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
  const network = opponent.includes("/") || chosen().levels.some((level) => level.player.includes("/"));
  const measured = chosen().levels.find((level) => level.player === opponent)?.measured;
  const none = "No network has been trained for this board: opponents play random games to the end.";
  $("strength").textContent = measured ? `Measured: ${measured}` : network ? "" : none;
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
  const game = chosen();
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
