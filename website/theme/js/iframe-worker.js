"use strict";
// A browser starts no worker for a page of a folder, so the theme's search runs in a hidden frame there. The theme asks
// for a class of this name; without this file, the plugin `offline` has each page fetch one from elsewhere.
if (location.protocol === "file:") {
  const load = (page, src) =>
    new Promise((loaded, failed) => {
      const script = page.createElement("script");
      script.src = src;
      script.onload = loaded;
      script.onerror = () => failed(new Error(`cannot load ${src}`));
      page.body.append(script);
    });

  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.document.open(); // or Firefox puts an empty page in its place later
      inside.document.write("<!doctype html><title>search</title><body></body>");
      inside.document.close();
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = async (...urls) => {
        for (const each of urls) await load(inside.document, each);
      };
      this.ready = load(inside.document, url);
      this.ready.catch((error) => this.dispatchEvent(new ErrorEvent("error", { error, message: error.message })));
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
