"""A hook of mkdocs: the search works in a site that is read from a folder, which browsers refuse to fetch from.

What the search fetches is written once more, as a script that has the text of its worker: the library, the index and
the plugin's own code, unchanged. Only pages of a folder load it (`theme/js/search.js`).
"""

import json
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig

_INSTEAD_OF_FETCHING = """
self.importScripts = () => {};
self.XMLHttpRequest = class {
  addEventListener(_, loaded) { this.loaded = loaded; }
  open() {}
  send() { this.responseText = INDEX; this.loaded(); }
};
"""


def on_post_build(config: MkDocsConfig) -> None:
    """Write `search/offline.js`; hooks run after the plugins, so what the search fetches is there."""
    folder = Path(config.site_dir) / "search"
    index, library, worker = (
        (folder / name).read_text(encoding="utf-8") for name in ("search_index.json", "lunr.js", "worker.js")
    )
    text = "\n".join((f"const INDEX = {json.dumps(index)};", _INSTEAD_OF_FETCHING, library, worker))
    (folder / "offline.js").write_text(f"startSearch({json.dumps(text)});\n", encoding="utf-8")
