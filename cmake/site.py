"""make docs: the search of the site also works from the disk, where browsers let workers read nothing, and its switch of
themes without the style sheets of a highlighter, which it expects."""

import json
import os

# Asks for the index and for lunr.js are answered with what stands here already.
ANSWERS = """self.importScripts = () => {};
self.XMLHttpRequest = class {
    addEventListener(what, done) { this.done = done; }
    open() {}
    send() { this.responseText = self.searchIndex; setTimeout(() => this.done.call(this)); }
};
"""
# What was typed before the index was there is looked for, too.
WHEN_READY = """    worker.addEventListener("message", (e) => {
        const query = document.getElementById("mkdocs-search-query");
        if (e.data.allowSearch && query.value) { setTimeout(() => query.dispatchEvent(new Event("keyup"))); }
    });
"""
LOADER = """if (location.protocol === "file:") {
    document.write('<script src="' + base_url + '/search/worker_inline.js"></' + "script>");
}
"""


def on_post_page(output, **_):
    return output.replace("</head>", '<link id="hljs-light"><link id="hljs-dark"></head>', 1)


def on_post_build(config, **_):
    folder = os.path.join(config["site_dir"], "search")

    def text(name):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            return f.read()

    worker = f"self.searchIndex = {json.dumps(text('search_index.json'))};\n{ANSWERS}{text('lunr.js')}\n{text('worker.js')}"
    with open(os.path.join(folder, "offline.js"), "w", encoding="utf-8") as f:
        f.write(LOADER)
    with open(os.path.join(folder, "worker_inline.js"), "w", encoding="utf-8") as f:
        f.write("const NetworkWorker = window.Worker;\nwindow.Worker = function () {\n"
                "    const worker = new NetworkWorker(URL.createObjectURL(new Blob([source], { type: \"text/javascript\" })));\n"
                f"{WHEN_READY}    return worker;\n}};\n"
                f"const source = {json.dumps(worker)};\n")
