// What the search of mkdocs lacks: it works in a folder, and what is typed or sent early is not lost.
const BrowsersWorker = window.Worker;
const query = () => document.getElementById("mkdocs-search-query");

window.Worker = class {
  constructor(address) {
    this.waiting = [];
    if (location.protocol === "file:") {
      // A page of a folder may neither start a worker from a file nor fetch the index of the search.
      // There, the worker is made of a text, which a script has (website/offline_search.py).
      window.startSearch = (text) => this.start(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
      const script = document.createElement("script");
      script.src = base_url + "/search/offline.js";
      document.head.append(script);
    } else {
      this.start(address);
    }
  }

  start(address) {
    this.worker = new BrowsersWorker(address);
    this.worker.onmessage = (event) => {
      this.onmessage(event);
      if (event.data.allowSearch && query().value) {
        query().dispatchEvent(new Event("keyup")); // typed while the index was made
      }
    };
    this.waiting.forEach((message) => this.worker.postMessage(message));
  }

  postMessage(message) {
    if (this.worker) {
      this.worker.postMessage(message);
    } else {
      this.waiting.push(message);
    }
  }
};

// Results are there at each key; the theme's form would load the page again at Enter, and lose them.
document.addEventListener("submit", (event) => {
  if (event.target.contains(query())) {
    event.preventDefault();
  }
});
