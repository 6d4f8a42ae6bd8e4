"""Opens a page of `tilepilot show` in headless Chromium and says what it sees, as JSON. Standard library only.

usage: look_at_page.py CHROMIUM PAGE [FOLDER]    FOLDER: screenshots go there
"""

import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "kernelbench"))
from look_at_page import CONTRASTS, Browser, complaints, screenshot  # noqa: E402

# Texts in cells have papers of their own, of the same colours in both schemes.
CONTRASTS_OUTSIDE_CELLS = CONTRASTS.replace('if (!parent.getClientRects().length) continue;',
                                            'if (!parent.getClientRects().length || parent.matches(".tp-c")) continue;')

WIDTH = """
(() => ({ page: document.documentElement.scrollWidth,
  wide: [...document.querySelectorAll("body *")].filter((node) => node.getBoundingClientRect().right > innerWidth + 1 &&
    !node.closest(".scroll")).slice(0, 5).map((node) => node.tagName + "." + node.className) }))()
"""

# The keys of a reader who has no mouse: to a drawing, along its shapes, to the line of one.
KEYS = """
(() => {
  const figure = document.querySelector("figure"), svg = figure.querySelector("svg"), told = figure.querySelector(".told");
  const press = (key) => svg.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  svg.focus();
  const texts = [told.textContent];
  press("ArrowRight"); texts.push(told.textContent);
  for (let i = 0; i < 40; ++i) press("ArrowRight");
  texts.push(told.textContent);
  press("Enter");
  return { focused: document.activeElement === svg, texts, hot: document.querySelectorAll("svg .hot").length };
})()
"""

# Opens a line of the program that became something, then all that is folded.
LINES = """
(() => {
  const line = [...document.querySelectorAll("details.line")].find((each) => document.querySelector(`svg [data-line="${each.dataset.n}"]`));
  line.open = true;
  line.dispatchEvent(new Event("toggle"));
  const hot = document.querySelectorAll("svg .hot").length, others = document.querySelectorAll(`svg [data-line="${line.dataset.n}"]`).length;
  for (const details of document.querySelectorAll("details")) details.open = true;
  return { hot, others, lines: document.querySelectorAll("details.line").length };
})()
"""


def main():
    program, page = sys.argv[1], "file://" + os.path.abspath(sys.argv[2])
    folder = sys.argv[3] if len(sys.argv) > 3 else None
    seen = {"views": []}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        browser.open_tab()
        for domain in ("Page", "Runtime", "Log", "Network"):
            browser.call(domain + ".enable")
        for width in (400, 1600):
            for scheme in ("light", "dark"):
                browser.call("Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=1,
                             mobile=False)
                browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
                browser.call("Page.navigate", url=page)
                browser.wait_for(f"location.href === {json.dumps(page)} && document.readyState === 'complete'")
                view = {"width": width, "scheme": scheme, "folded": browser.evaluate(WIDTH),
                        "drawings": browser.evaluate("document.querySelectorAll('figure svg').length"),
                        "keys": browser.evaluate(KEYS)}
                if folder:
                    screenshot(browser, width, f"{folder}/{width}-{scheme}.png")
                view["lines"] = browser.evaluate(LINES)
                view["open"] = browser.evaluate(WIDTH)
                view["contrast"] = browser.evaluate(CONTRASTS_OUTSIDE_CELLS)
                seen["views"].append(view)
        seen["errors"], requests = complaints(browser.events)
        seen["requests"] = [url for url in requests if url != page]
        browser.end()
    json.dump(seen, sys.stdout)


main()
