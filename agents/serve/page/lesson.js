"use strict";
// How to play: the game's own texts beside pictures of positions.

$("guide").onclick = async () => {
  const { game, title } = view;
  $("lesson-title").textContent = `How to play ${title}`;
  $("lesson-steps").replaceChildren(paragraph("One moment."));
  $("lesson").showModal();
  try {
    const { steps } = await call("GET", `lesson?${new URLSearchParams({ game })}`);
    $("lesson-steps").replaceChildren(...steps.map(stepOf));
  } catch (error) {
    $("lesson").close();
    toast(error.message);
  }
};

const paragraph = (textContent) => Object.assign(document.createElement("p"), { textContent });

/** An image, so that neither its titles nor its names get mixed up with those of the board. */
function stepOf({ text, svg }) {
  const step = Object.assign(document.createElement("section"), { className: "step" });
  if (svg) {
    const alt = new DOMParser().parseFromString(svg, "image/svg+xml").querySelector("title").textContent;
    step.append(Object.assign(new Image(), { src: `data:image/svg+xml,${encodeURIComponent(svg)}`, alt }));
  }
  step.append(paragraph(text));
  return step;
}
