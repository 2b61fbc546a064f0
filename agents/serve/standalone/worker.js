// The worker of a page without a server: answers its calls, and thinks between them.

const server = new Server(about, program(newMemory, (memory) => fastMatmul(kernel, memory)));
const turn = new MessageChannel(); // a message to oneself lets calls in, without the pauses of timers
let running = false;

turn.port1.onmessage = () => {
  running = server.work();
  if (running) turn.port2.postMessage(null);
};

onmessage = ({data: {id, method, where, content}}) => {
  postMessage({id, ...server.reply(method, where, content)});
  if (running) return;
  running = true;
  turn.port2.postMessage(null);
};
