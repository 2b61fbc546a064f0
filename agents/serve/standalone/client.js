"use strict";
// Sends a page's calls to the worker in place of a server, see `call` in game.js.

{
  const source = document.getElementById("worker").textContent;
  const worker = new Worker(URL.createObjectURL(new Blob([source], {type: "text/javascript"})));
  const waiting = new Map();
  const needed = "The page needs WebAssembly with SIMD: Chrome 91, Firefox 89, Safari 16.4, or newer.";
  let count = 0, failure = "";
  const answer = (id, status, said) => {
    waiting.get(id)?.({ok: status < 400, status, json: async () => said});
    waiting.delete(id);
  };
  worker.onmessage = ({data: {id, status, said}}) => answer(id, status, said);
  // After an error a worker says nothing more: it has not begun, or its search stands still.
  worker.onerror = ({message}) => {
    failure = `The game stopped. ${needed} Reloading it may help. (${message})`;
    for (const id of waiting.keys()) answer(id, 500, {error: failure});
  };
  window.answeredHere = (method, where, content) => new Promise((resolve) => {
    waiting.set(++count, resolve);
    if (failure) answer(count, 500, {error: failure});
    else worker.postMessage({id: count, method, where, content});
  });
}
