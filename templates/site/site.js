"use strict";

// Sharpens pages that work without it: the address they are served from, buttons to copy, the search.

const root = new URL(document.documentElement.dataset.root || "./", location.href);

function showAddress() {
  if (document.documentElement.dataset.address === "known" || !root.protocol.startsWith("http")) return;
  const address = root.href.replace(/\/$/, "");
  for (const place of document.querySelectorAll(".address")) place.textContent = address;
  for (const note of document.querySelectorAll(".address-note")) note.hidden = true;
}

function addCopyButtons() {
  if (!navigator.clipboard) return;
  for (const block of document.querySelectorAll(".answer pre")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.querySelector("code").innerText);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    block.append(button);
  }
}

function cardOf(kernel, model) {
  const card = model.cloneNode(true);
  card.dataset.backend = Object.keys(kernel.backends).join(" ");
  card.dataset.torch = kernel.torches.join(" ");
  card.dataset.gpu = kernel.gpus.join(" ");
  const link = card.querySelector("a");
  link.href = `kernels/${encodeURIComponent(kernel.name)}/`;
  link.textContent = kernel.name;
  card.querySelector(".summary").textContent = kernel.summary;
  card.querySelector(".facts").textContent =
    `${kernel.version} · torch ${kernel.range} · ${kernel.wheels}, ${kernel.size}` +
    (kernel.released ? ` · released ${kernel.released}` : "");
  const badges = Object.values(kernel.backends).map((title) => {
    const badge = document.createElement("span");
    badge.textContent = title;
    return badge;
  });
  card.querySelector(".badges").replaceChildren(...badges.flatMap((badge) => [badge, " "]));
  return card;
}

function makeSearch(field) {
  const list = document.querySelector(".cards, .rows");
  const first = [...list.children];
  const none = document.querySelector("#none");
  const gpus = new Map([...document.querySelectorAll(".filters input[name=gpu]")]
    .map((input) => [input.value, input.labels[0].textContent]));
  let more = null;

  function wordsOf(card) {
    const runs = (card.dataset.gpu || "").split(" ").map((gpu) => gpus.get(gpu) || "");
    return [card.textContent, ...runs].join(" ").toLowerCase();
  }

  async function rest() {
    const answer = await fetch(new URL(field.dataset.more, root));
    const cards = (await answer.json()).map((kernel) => cardOf(kernel, first[0]));
    list.append(...cards);
  }

  async function look() {
    const asked = field.value.trim().toLowerCase();
    const chosen = document.querySelector(".filters input:checked:not([value=''])");
    if (field.dataset.more && (asked || chosen)) await (more ??= rest());
    const words = field.value.trim().toLowerCase().split(/\s+/);
    for (const card of list.children) {
      const text = wordsOf(card);
      card.hidden = !words.every((word) => text.includes(word));
    }
    const shown = [...list.children].filter((card) => card.getClientRects().length > 0).length;
    none.textContent = shown ? `${shown} shown.` : "No kernel fits.";
  }

  field.closest("[hidden]").hidden = false;
  field.addEventListener("input", look);
  field.form.addEventListener("change", look);
  field.form.addEventListener("submit", (event) => event.preventDefault());
}

showAddress();
addCopyButtons();
const field = document.querySelector("#search");
if (field) makeSearch(field);
