"use strict";
// Sends a page's calls to the worker in place of a server, see `call` in game.js.

{
  const source = document.getElementById("worker").textContent;
  const worker = new Worker(URL.createObjectURL(new Blob([source], {type: "text/javascript"})));
  const waiting = new Map();
  let count = 0;
  worker.onmessage = ({data: {id, status, said}}) => {
    waiting.get(id)({ok: status < 400, status, json: async () => said});
    waiting.delete(id);
  };
  window.answeredHere = (method, where, content) => new Promise((resolve) => {
    waiting.set(++count, resolve);
    worker.postMessage({id: count, method, where, content});
  });
}
