"use strict";
// Names, colours, chances and results in words.

const seat = (player) => view.seats[player];
const person = (player) => view.players[player] === "person";
const mine = () => !view.over && person(view.to_move);
/** The expected share of the point, 0 to 1, that a value stands for: the winner of n has 1, each other -1 / (n - 1). */
const share = (value) => Math.min(1, Math.max(0, (value * (view.seats.length - 1) + 1) / view.seats.length));
const percent = (value) => `${Math.round(share(value) * 100)}%`;
/** Shares of a whole as percentages that add up to 100: what is left after rounding down goes to the largest rests. */
function percentages(shares) {
  const sum = shares.reduce((a, b) => a + b, 0) || 1;
  const exact = shares.map((x) => (100 * x) / sum);
  const whole = exact.map(Math.floor);
  const left = 100 - whole.reduce((a, b) => a + b, 0);
  const byRest = [...exact.keys()].sort((a, b) => exact[b] - whole[b] - (exact[a] - whole[a]));
  for (const i of byRest.slice(0, left)) whole[i] += 1;
  return whole.map((x) => `${x}%`);
}
/** Names as in a sentence: "White, Red and Blue". */
const listed = (names) => new Intl.ListFormat("en-GB").format(names);
/** The position that the board shows. Only the present one can have a hint. */
const pictured = () => past || view;
/** The moves that may be made on the position that the board shows; at an earlier one they begin another line. */
const legalWays = () => (past ? past.legal : mine() ? view.legal : []);
const coarse = matchMedia("(pointer: coarse)"); // a finger, and most likely no keyboard

/** A player's colour in bar and graph: that of the seat's name, if it is one. */
const SEAT_COLOURS = { White: "#ffffff", Black: "#24282d", Red: "#d0463b", Yellow: "#f0c341", Gold: "#e0a526", Blue: "#2f68ad", X: "#24282d", O: "#b9322b" };
const OTHER_COLOURS = ["#1f7a55", "#d98a3d", "#7a55b5", "#4a9ec4"];
const colour = (player) => SEAT_COLOURS[seat(player)] || OTHER_COLOURS[player % OTHER_COLOURS.length];

function opponentName(name) {
  if (name === "person") return "Another person";
  if (name === "random") return "Random moves";
  if (name === "greedy") return "Greedy, looks one move ahead";
  const proofs = name.match(/^prove:(\d+),(.*)$/);
  if (proofs) return `Proofs of ${Number(proofs[1]).toLocaleString("en")} positions, else: ${opponentName(proofs[2])}`;
  const [kind, number] = name.split(":");
  if (kind === "uct") return `Tree search with ${number} random games`;
  if (kind === "minimax") return `Minimax, ${number} moves deep`;
  const [folder, simulations] = name.split("@");
  return `Network ${folder.split("/").slice(-2).join("/")}${simulations ? `, ${simulations} simulations` : ""}`;
}

function announce(before) {
  const last = view.history.at(-1);
  const words = [];
  if (last && before && before.ply < view.ply) words.push(`${seat(last.player)} played ${last.words}.`);
  words.push(view.over ? `${resultWords()}. ${reasonWords()}` : view.paused ? pausedWords().join(". ") : person(view.to_move) ? `${yours()}.` : `${seat(view.to_move)} is thinking.`);
  $("say").textContent = words.join(" ");
}

/** Says what the card of the turn shows to those who do not see it. */
function sayTurn() {
  $("say").textContent = `${$("turn-title").textContent}. ${$("turn-words").textContent}`;
}

const pausedWords = () => [`${seat(view.to_move)} to move`, "The engine waits for you."];

const alone = () => view.players.filter((name) => name === "person").length === 1;
const yours = () => (alone() ? "Your move" : `${seat(view.to_move)} to move`);

/** The players who have won; nobody in a draw. */
function winners() {
  const best = Math.max(...view.result);
  return view.result.flatMap((x, i) => (best > 0 && x === best ? [i] : []));
}

const winnerWords = () => `${listed(winners().map(seat))} win${winners().length === 1 ? "s" : ""}`;

/** What the end of the game means for the person. */
function resultWords() {
  if (!winners().length) return "A draw";
  if (!alone()) return winnerWords();
  return winners().some(person) ? "You win" : "You lose";
}

/** Who has won, when and why. */
function reasonWords() {
  const why = view.resigned !== null ? `${seat(view.resigned)} resigned` : view.reason || view.status;
  const who = winners().length ? winnerWords() : "The game ended";
  const when = `${who} after ${view.ply} move${view.ply === 1 ? "" : "s"}.`;
  return !why || why === who ? when : `${when} ${why[0].toUpperCase()}${why.slice(1)}.`;
}

/** A message for a few seconds. Inside an open dialog: all else is inert, and under its backdrop. */
function toast(words) {
  (document.querySelector("dialog[open]") || document.body).append($("toast"));
  $("toast").textContent = words;
  $("toast").hidden = false;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => ($("toast").hidden = true), 4000 + 40 * words.length);
}

/** Whether the person agrees, by a dialog of the page. */
function asked(question, agree) {
  $("question").textContent = question;
  $("agree").textContent = agree;
  $("asking").returnValue = "";
  $("asking").showModal();
  return new Promise((answer) => ($("asking").onclose = () => answer($("asking").returnValue === "yes")));
}
