"use strict";
// Whose turn it is, and what is known of the position.

function drawTurn() {
  const thinking = thoughts();
  const moves = thinking && thinking.kind === "move";
  document.title = view.title;
  $("title").textContent = view.title;
  $("rules").textContent = view.rules;
  let [head, words] = ["", ""];
  if (view.over) {
    head = resultWords();
    words = view.resigned !== null ? `${seat(view.resigned)} resigned.` : view.status !== head ? view.status : `After ${view.ply} moves.`;
  } else if (view.failure) {
    head = "That did not work";
    words = view.failure;
  } else if (view.paused) {
    head = `${seat(view.to_move)} to move`;
    words = "The engine waits for you.";
  } else if (moves || !person(view.to_move)) {
    head = thinking?.compiling ? "Getting ready" : `${seat(view.to_move)} is thinking`;
    words = thinking?.compiling ? "The engine is being compiled, once, which takes a few seconds." : opponentName(view.players[view.to_move]);
  } else {
    const cells = view.legal.some((way) => way.cells.length);
    const several = view.legal.some((way) => way.cells.length > 1);
    head = yours();
    words = `${alone() ? `You are ${seat(view.to_move)}: choose` : "Choose"} ${several ? "a lit piece, then where it goes" : cells ? "a lit square" : "a button below the board"}.`;
    if (view.hint) words = `Hint: ${view.legal.find((way) => way.action === view.hint)?.label || view.hint}.`;
  }
  if (past) {
    head = past.ply ? `After move ${past.ply}` : "The beginning";
    words = past.better ? `${seat(past.to_move)} had better moved ${past.better}.` : past.status;
  }
  $("turn-title").textContent = head;
  $("turn-words").textContent = words;
  $("present").hidden = !past;
  $("thinking").hidden = !thinking;
  if (thinking) {
    if (thinking.compiling) $("progress").removeAttribute("value");
    else $("progress").value = thinking.progress;
    $("stop").textContent = moves ? "Move now" : "Stop";
    $("progress").setAttribute("aria-label", { move: "Thinking", hint: "Looking for a hint", analysis: "Analysing", review: "Reviewing the game" }[thinking.kind]);
  }
  $("resume").hidden = !view.paused || !!past;
  // What these do is done to the present position, so that it must be in sight.
  $("undo").disabled = !!past || !view.undo;
  $("redo").disabled = !!past || !view.redo;
  $("hint").disabled = !!past || !mine() || !!moves;
  $("resign").disabled = !!past || view.over || !view.players.includes("person");
  $("review").disabled = !view.ply || !!view.thinking;
  drawChances();
}

/** What is being thought about what the board shows, or about the whole game. */
function thoughts() {
  return (elsewhere() && known()?.thinking) || (past && view.thinking?.kind !== "review" ? null : view.thinking);
}

function drawChances() {
  const values = past ? known()?.values.at(-1) || view.values[past.ply] : view.values.at(-1) || view.values.at(-2);
  $("chances").hidden = !values || (view.over && !past);
  if ($("chances").hidden) return;
  const scores = values.map(share);
  const sum = scores.reduce((a, b) => a + b, 0) || 1;
  $("chance-bar").replaceChildren(...scores.map((score, player) => {
    const part = document.createElement("i");
    part.style.flexGrow = Math.max(0.001, score / sum);
    part.style.flexBasis = "0";
    if (alone() ? person(player) : player === 0) part.className = "mine";
    return part;
  }));
  $("chance-words").textContent = "Chances: " + values.map((x, i) => `${seat(i)} ${percent(x)}`).join(", ");
}
