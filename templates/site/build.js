"use strict";

// Sharpens a page that works without it: the wheel zooms, the middle stays in view, a tap tells what a bar is.

const view = document.querySelector(".scroll");
const zooms = [...document.querySelectorAll("input[name=zoom]")];

function margin() {
  return view.querySelector(".number").offsetWidth; // what is left of the bars keeps its width
}

function keep(point, x) {
  view.scrollLeft = margin() + point * (view.scrollWidth - margin()) - x;
}

function pointAt(x) {
  return (view.scrollLeft + x - margin()) / (view.scrollWidth - margin());
}

function zoomAt(step, clientX) {
  const x = clientX - view.getBoundingClientRect().left;
  const point = pointAt(x);
  const next = zooms[zooms.findIndex((zoom) => zoom.checked) + step];
  if (!next) return;
  next.checked = true;
  keep(point, x);
}

function followZoom() {
  let middle = 0;
  let turned = 0;
  view.addEventListener("scroll", () => { middle = pointAt(view.clientWidth / 2); });
  middle = pointAt(view.clientWidth / 2);
  for (const zoom of zooms) zoom.addEventListener("change", () => keep(middle, view.clientWidth / 2));
  view.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    turned += event.deltaY;
    if (Math.abs(turned) < 60) return;
    zoomAt(turned < 0 ? 1 : -1, event.clientX);
    turned = 0;
  }, { passive: false });
  view.addEventListener("dblclick", (event) => zoomAt(event.shiftKey ? -1 : 1, event.clientX));
}

function tellBars() {
  const detail = document.querySelector("#detail");
  for (const kind of ["pointerover", "click"]) {
    view.addEventListener(kind, (event) => {
      const title = event.target.closest(".bar")?.querySelector("title");
      if (title) detail.textContent = title.textContent;
    });
  }
}

if (view) {
  followZoom();
  tellBars();
}
