// A table that is too wide for the page scrolls by itself. It gets the focus, so that keys scroll it, too.
document.querySelectorAll("article table").forEach((table) => {
  if (table.scrollWidth > table.clientWidth) {
    table.tabIndex = 0;
  }
});
