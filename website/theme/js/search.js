// A page that is read from a folder may neither start a worker from a file nor fetch the index of the search.
// There, the worker of the search is made of a text, which a script has (website/offline_search.py).
if (location.protocol === "file:") {
  const BrowsersWorker = window.Worker;
  window.Worker = class {
    constructor() {
      this.waiting = [];
      window.startSearch = (text) => {
        const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
        this.worker = new BrowsersWorker(address);
        this.worker.onmessage = (event) => this.onmessage(event);
        this.waiting.forEach((message) => this.worker.postMessage(message));
      };
      const script = document.createElement("script");
      script.src = base_url + "/search/offline.js";
      document.head.append(script);
    }

    postMessage(message) {
      if (this.worker) {
        this.worker.postMessage(message);
      } else {
        this.waiting.push(message);
      }
    }
  };
}

// Results are there at each key; the theme's form would load the page again at Enter, and lose them.
document.addEventListener("submit", (event) => {
  if (event.target.querySelector("#mkdocs-search-query")) {
    event.preventDefault();
  }
});
