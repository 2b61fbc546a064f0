"use strict";
// Whose turn it is, and what is known of the position.

/** The head of the card and the words under it. */
function turnWords(thinking) {
  const moves = thinking?.kind === "move";
  if (past) {
    const head = past.ply ? `After move ${past.ply}` : "The beginning";
    if (past.better) return [head, `${seat(past.to_move)} had better moved ${past.better}.`];
    return [head, `${past.status}. ${past.legal.length ? "A move made here begins another line." : ""}`];
  }
  if (view.over) return [resultWords(), reasonWords()];
  if (view.failure) return ["That did not work", view.failure];
  if (view.paused) return pausedWords();
  if (moves || !person(view.to_move)) {
    if (thinking?.compiling) return ["Getting ready", "The engine is being compiled, once. This takes seconds, for large games minutes."];
    return [`${seat(view.to_move)} is thinking`, opponentName(view.players[view.to_move])];
  }
  if (view.hint) return [yours(), `Hint: ${view.legal.find((way) => way.action === view.hint)?.label || view.hint}.`];
  const cells = view.legal.some((way) => way.cells.length);
  const several = view.legal.some((way) => way.cells.length > 1);
  const what = several ? "a highlighted piece, then where it goes" : cells ? "a highlighted place" : "a button below the board";
  return [yours(), `${alone() ? `You are ${seat(view.to_move)}: choose` : "Choose"} ${what}.`];
}

const DOING = { move: "Thinking", hint: "Looking for a hint", analysis: "Analysing", review: "Reviewing the game" };

function drawTurn() {
  const thinking = thoughts();
  const moves = thinking?.kind === "move";
  document.title = view.title;
  $("title").textContent = view.title;
  $("rules").textContent = view.rules;
  $("guide").hidden = !view.lesson;
  [$("turn-title").textContent, $("turn-words").textContent] = turnWords(thinking);
  $("thinking").hidden = !thinking;
  if (thinking) {
    if (thinking.compiling) $("progress").removeAttribute("value");
    else $("progress").value = thinking.progress;
    $("stop").textContent = moves ? "Move now" : "Stop";
    $("progress").setAttribute("aria-label", DOING[thinking.kind]);
  }
  $("present").hidden = !past;
  $("resume").hidden = !view.paused || !!past;
  $("rematch").hidden = $("swap").hidden = !view.over || !!past || !!thinking;
  // What these do is done to the present position, so that it must be in sight.
  $("undo").disabled = !!past || !view.undo;
  $("redo").disabled = !!past || !view.redo;
  $("hint").disabled = !!past || !mine() || !!moves;
  $("resign").disabled = !!past || view.over || !view.players.includes("person");
  $("review").disabled = !view.ply || !!view.thinking;
  const at = pictured().ply;
  $("first").disabled = $("back").disabled = at === 0;
  $("next").disabled = $("last").disabled = at === view.ply;
  drawChances();
}

/** What is being thought about what the board shows, or about the whole game. */
function thoughts() {
  return (elsewhere() && known()?.thinking) || (past && view.thinking?.kind !== "review" ? null : view.thinking);
}

function drawChances() {
  const values = past ? known()?.values.at(-1) || view.values[past.ply] : view.values.at(-1) || view.values.at(-2);
  $("chances").classList.toggle("unknown", !values || (view.over && !past));
  if (!values) return;
  const scores = values.map(share);
  const sum = scores.reduce((a, b) => a + b, 0) || 1;
  $("chance-bar").replaceChildren(...scores.map((score, player) => {
    const part = document.createElement("i");
    part.style.flexGrow = Math.max(0.001, score / sum);
    part.style.flexBasis = "0";
    part.style.background = colour(player);
    return part;
  }));
  $("chance-words").textContent = "Chances: " + percentages(scores).map((x, i) => `${seat(i)} ${x}`).join(", ");
}
