"""Opens a report's page in headless Chromium and says what it sees, as JSON. Standard library only.

usage: look_at_page.py CHROMIUM PAGE [FOLDER]    FOLDER: screenshots go there
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import time

WIDTHS = (400, 1400)
SCHEMES = ("light", "dark")

# For each text that is shown: the ratio of luminances of it and of what is behind it, as WCAG 2 defines it.
CONTRASTS = """
(() => {
  const channel = (x) => (x /= 255) <= 0.04045 ? x / 12.92 : Math.pow((x + 0.055) / 1.055, 2.4);
  const parse = (text) => { const n = text.match(/[\\d.]+/g).map(Number); return n.length > 3 ? n : [...n, 1]; };
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat([1]);
  const behind = (node) => {
    const colors = [];
    for (; node; node = node.parentElement) {
      const color = parse(getComputedStyle(node).backgroundColor);
      if (color[3] > 0) colors.push(color);
      if (color[3] === 1) break;
    }
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    let color = dark ? [18, 18, 18, 1] : [255, 255, 255, 1];
    for (const next of colors.reverse()) color = over(next, color);
    return color;
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const parent = node.parentElement;
    if (!node.textContent.trim() || ["SCRIPT", "STYLE", "NOSCRIPT", "TITLE"].includes(parent.tagName.toUpperCase())) continue;
    if (!parent.getClientRects().length) continue;
    const style = getComputedStyle(parent), svg = parent instanceof SVGElement;
    const ink = over(parse(svg ? style.fill : style.color), behind(parent)), paper = behind(parent);
    const [a, b] = [light(ink), light(paper)].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), node.textContent.trim().slice(0, 60)]);
  }
  found.sort((x, y) => x[0] - y[0]);
  return { least: found[0][0], where: found[0][1], texts: found.length };
})()
"""

SORTED = """
((name) => {
  const table = document.getElementById("problems");
  const heads = [...table.querySelectorAll("th")], place = heads.findIndex((head) => head.textContent === name);
  const read = () => [...table.querySelectorAll("tr.row")].map((row) => row.children[place].textContent);
  heads[place].querySelector("button").click();
  const once = read();
  heads[place].querySelector("button").click();
  const twice = read();
  heads[place].querySelector("button").click();
  return { place, once, twice };
})
"""

# Opens every problem, and what is folded inside.
UNFOLD = """
(() => {
  for (const row of document.querySelectorAll("#problems tr.row")) row.click();
  for (const row of document.querySelectorAll("#problems tr.row")) if (!row.nextElementSibling?.matches(".page")) row.click();
  for (const details of document.querySelectorAll("details")) details.open = true;
  return { pages: document.querySelectorAll("tr.page").length, programs: document.querySelectorAll("tr.page pre").length };
})()
"""

# Whole elements that stand out of the window although nothing around them scrolls.
WIDTH = """
(() => ({ page: document.documentElement.scrollWidth, window: innerWidth,
  wide: [...document.querySelectorAll("body *")].filter((node) => node.getBoundingClientRect().right > innerWidth + 1 &&
    !(node.closest(".scroll, pre, svg") && !node.matches(".inside, .inside > *"))).slice(0, 5).map((node) => node.tagName + "." + node.className) }))()
"""


class Browser:
    """Speaks the DevTools protocol through two pipes, messages end with a null byte."""

    def __init__(self, program, profile):
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()

        def become_3_and_4():
            os.dup2(commands, 13)
            os.dup2(answers, 14)
            os.dup2(13, 3)
            os.dup2(14, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--no-first-run", "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
             f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=become_3_and_4, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self.pending, self.number, self.events, self.session = b"", 0, [], None

    def message(self):
        while b"\0" not in self.pending:
            more = os.read(self.answers, 1 << 20)
            if not more:
                sys.exit("the browser has ended")
            self.pending += more
        text, self.pending = self.pending.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.commands, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open_tab(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            sys.exit(f"{expression[:60]}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, expression):
        for _ in range(600):
            if self.evaluate(expression):
                return
            time.sleep(0.1)
        sys.exit(f"never true: {expression}")

    def end(self):
        self.session = None
        self.call("Browser.close")
        self.process.wait(30)


def screenshot(browser, width, file, top=0):
    height = min(browser.evaluate("document.documentElement.scrollHeight") - top, 3000)  # a larger one is refused
    data = browser.call("Page.captureScreenshot", captureBeyondViewport=True,
                        clip={"x": 0, "y": top, "width": width, "height": height, "scale": 1})["data"]
    with open(file, "wb") as out:
        out.write(base64.b64decode(data))


def complaints(events):
    """Errors that the page made, and what it asked the network for."""
    errors, requests = [], []
    for event in events:
        kind, about = event.get("method"), event.get("params", {})
        if kind == "Runtime.exceptionThrown":
            errors.append(about["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif kind == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            errors.append(str(about["args"]))
        elif kind == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            errors.append(about["entry"]["text"])
        elif kind == "Network.requestWillBeSent":
            requests.append(about["request"]["url"])
    return errors, requests


def main():
    program, page = sys.argv[1], "file://" + os.path.abspath(sys.argv[2])
    folder = sys.argv[3] if len(sys.argv) > 3 else None
    seen = {"views": []}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        browser.open_tab()
        for domain in ("Page", "Runtime", "Log", "Network"):
            browser.call(domain + ".enable")
        for width in WIDTHS:
            for scheme in SCHEMES:
                browser.call("Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=1,
                             mobile=False)
                browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
                browser.call("Page.navigate", url=page)
                browser.wait_for(f"location.href === {json.dumps(page)} && document.querySelectorAll('#problems tr.row').length > 0")
                view = {"width": width, "scheme": scheme, "rows": browser.evaluate(
                    "document.querySelectorAll('#problems tr.row').length")}
                if folder:
                    screenshot(browser, width, f"{folder}/{width}-{scheme}.png")
                view["folded"] = browser.evaluate(WIDTH)
                view["sorted"] = browser.evaluate(f"({SORTED})('speed-up')")
                view["unfolded"] = browser.evaluate(UNFOLD)
                view["open"] = browser.evaluate(WIDTH)
                view["contrast"] = browser.evaluate(CONTRASTS)
                if folder:
                    top = browser.evaluate("document.querySelector('tr.page').getBoundingClientRect().top + scrollY - 80")
                    screenshot(browser, width, f"{folder}/{width}-{scheme}-open.png", top)
                seen["views"].append(view)
        seen["errors"], requests = complaints(browser.events)
        seen["requests"] = [url for url in requests if url != page]
        seen["loads"] = requests.count(page)
        browser.end()
    json.dump(seen, sys.stdout)


if __name__ == "__main__":
    main()
