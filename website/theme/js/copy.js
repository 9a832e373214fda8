// A block can be copied: all of it, or the commands alone where their output is shown, too.
const COPIED = ["bash", "sh", "console", "toml", "yaml"].map((name) => `[role=main] pre > .language-${name}`);
document.querySelectorAll(COPIED).forEach((code) => {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const typed = code.textContent.split("\n").filter((line) => line.startsWith("$ "));
    const commands = typed.map((line) => `${line.slice(2)}\n`).join("");
    await navigator.clipboard.writeText(commands || code.textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  code.parentElement.append(button);
});

// What scrolls by itself can be scrolled by keys.
document.querySelectorAll("[role=main] :is(pre > code, table)").forEach((each) => {
  if (each.scrollWidth > each.clientWidth) {
    each.tabIndex = 0;
  }
});
