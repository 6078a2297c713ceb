"""Firefox, steered by its own WebDriver BiDi over a plain WebSocket: Playwright steers only a Firefox that it has built itself.

Pages have the `evaluate` that Playwright's have, so that what tests of pages share works in front of both.
"""

import json
import os
import re
import shutil
import subprocess
from urllib.parse import urlsplit

import client

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
KEYS = {"Enter": "\ue007", "Tab": "\ue004", "Escape": "\ue00c", "Space": " ", "Shift": "\ue008", "Control": "\ue009", "PageDown": "\ue00f",
        "ArrowDown": "\ue015"}
# It asks nobody anything by itself.
SILENT = {"app.normandy.enabled": False, "app.update.enabled": False, "browser.safebrowsing.downloads.remote.enabled": False,
          "browser.shell.checkDefaultBrowser": False, "datareporting.policy.dataSubmissionEnabled": False,
          "network.captive-portal-service.enabled": False, "network.connectivity-service.enabled": False,
          "network.dns.disablePrefetch": True, "services.settings.server": "data:,", "toolkit.telemetry.enabled": False}


def plain(value):
    """A BiDi remote value as Python's."""
    kind, inside = value["type"], value.get("value")
    if kind == "array":
        return [plain(v) for v in inside]
    if kind == "object":
        return {key: plain(v) for key, v in inside}
    return inside if kind in ("string", "number", "boolean") else None


class Page:
    """One tab. What its console complains of, and which hosts it asks, are kept."""

    def __init__(self, firefox, url, width, height):
        self.firefox, self.complaints, self.asked = firefox, [], set()
        self.context = firefox.do("browsingContext.create", type="tab")["context"]
        firefox.pages[self.context] = self
        firefox.do("browsingContext.setViewport", context=self.context, viewport={"width": width, "height": height})
        firefox.do("browsingContext.navigate", context=self.context, url=url, wait="complete")

    def event(self, method, params):
        if method == "log.entryAdded" and params["level"] in ("error", "warn"):
            self.complaints.append(params["text"])
        elif method == "network.beforeRequestSent":
            self.asked.add(urlsplit(params["request"]["url"]).hostname)

    def evaluate(self, text, given=None):
        """An expression, or a function of `given`; promises are waited for."""
        target = {"context": self.context}
        if re.match(r"(async )?\(\w*\) =>", text):
            text = f"({text})({json.dumps(given)})"
        said = self.firefox.do("script.evaluate", expression=text, target=target, awaitPromise=True)
        if said["type"] != "success":
            raise AssertionError(said["exceptionDetails"]["text"])
        return plain(said["result"])

    def press(self, *keys):
        """One after the other; "Shift+Enter" together."""
        actions = []
        for key in keys:
            chord = [KEYS.get(k, k) for k in (key.split("+") if len(key) > 1 else [key])]
            actions += [{"type": "keyDown", "value": k} for k in chord] + [{"type": "keyUp", "value": k} for k in reversed(chord)]
        self.firefox.do("input.performActions", context=self.context, actions=[{"type": "key", "id": "keys", "actions": actions}])

    def close(self):
        self.firefox.do("browsingContext.close", context=self.context)


class Firefox:
    def __init__(self, folder):
        profile = os.path.join(folder, "profile")
        os.mkdir(profile)
        with open(os.path.join(profile, "user.js"), "w", encoding="utf-8") as f:
            f.writelines(f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in SILENT.items())
        self.log = open(os.path.join(folder, "firefox.log"), "w", encoding="utf-8")
        self.process = subprocess.Popen([FIREFOX, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0"],
                                        env={**os.environ, "HOME": folder}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        port = None
        for line in self.process.stderr:
            port = re.search(r"BiDi listening on ws://[^:]+:(\d+)", line)
            if port:
                break
        if not port:
            raise AssertionError("Firefox does not listen")
        # what else it says must not fill the pipe
        self.drain = subprocess.Popen(["cat"], stdin=self.process.stderr, stdout=self.log)
        self.process.stderr.close()
        self.socket, self.count, self.pages = client.WebSocket(int(port[1]), None, path="/session", protocol=None), 0, {}
        self.do("session.new", capabilities={})
        self.do("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])

    def open(self, url, width, height):
        return Page(self, url, width, height)

    def do(self, method, **params):
        self.count += 1
        self.socket.say(json.dumps({"id": self.count, "method": method, "params": params}))
        while True:
            said = json.loads(self.socket.receive()[1])
            if said["type"] == "event":
                page = self.pages.get(said["params"].get("context") or said["params"].get("source", {}).get("context"))
                if page:
                    page.event(said["method"], said["params"])
            elif said.get("id") == self.count:
                if said["type"] == "error":
                    raise AssertionError(f"{method}: {said['message']}")
                return said["result"]

    def close(self):
        try:
            self.do("browser.close")
            self.process.wait(30)
        except (AssertionError, OSError, client.Closed, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.socket.close()
        self.drain.wait()
        self.log.close()
