#!/usr/bin/env python3
"""Checks the live page of `smbscope serve` in a headless Chromium: views, filters, links, back and forward, the keyboard,
light, dark and phone width; that nothing is requested from elsewhere, that the page's policy is kept, and that names with
markup do not run.

    tests/browser/serve.py [--chromium PROGRAM] [--shots DIR] [--markup] URL

`--markup`: the names at URL have markup. Prints each failure; exits with 1 after one."""

import argparse
import pathlib
import sys
import tempfile
import time
import urllib.parse

from check import Browser

READY_S = 60


class Page(Browser):
    """A browser that notes what the policy forbids."""

    def __init__(self, program, profile):
        super().__init__(program, profile)
        self.forbidden = []
        self.ask("Log.enable")

    def event(self, message):
        super().event(message)
        if message.get("method") == "Log.entryAdded":
            entry = message["params"]["entry"]
            if entry["source"] == "security" or "Content Security Policy" in entry["text"]:
                self.forbidden.append(entry["text"])

    def ready(self):
        """Waits until the page shows what its address asks for."""
        end = time.monotonic() + READY_S
        while self.run('return document.body.dataset.state !== "ready" && document.getElementById("error").hidden'):
            if time.monotonic() > end:
                raise SystemExit(f"the page is not ready: {self.run('return document.body.innerText')[:500]}")
            time.sleep(0.05)
        return self

    def does(self, script):
        """Runs a script that changes the page, and waits."""
        self.run(f'document.body.dataset.state = "busy"; {script}')
        return self.ready()

    def at(self, words):
        return self.does(f"if (location.hash === {'#' + words!r}) smbscope.show(); else location.hash = {'#' + words!r}")

    def chips(self):
        return self.run('return [...document.querySelectorAll("#chips .chip")].map((one) => one.textContent)')

    def hash(self):
        return urllib.parse.parse_qs(self.run("return location.hash")[1:])

    def key(self, name):
        code = {"Enter": 13, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9}[name]
        text = {"text": "\r"} if name == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            extra = text if kind == "keyDown" else {}
            self.ask("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, **extra)


def number(text):
    return int(text.replace(",", ""))


def overview(page, check):
    check(page.run('return document.querySelectorAll(".verdict h1").length') == 1, "a verdict")
    check(page.run('return document.querySelectorAll(".panel").length') == 8, "eight panels")
    bars = page.run('return document.querySelectorAll(".bars button").length')
    check(bars >= 8, f"{bars} bars")
    # A bar filters; back and forward.
    page.does('[...document.querySelectorAll(".panel")][1].querySelector(".bars button").click()')
    check(len(page.chips()) == 1 and page.chips()[0].startswith("Request: "), f"a chip: {page.chips()}")
    check("f.command" in page.hash(), "the filter is in the address")
    address = page.run("return location.href")
    page.does("history.back()")
    check(page.chips() == [], "back")
    page.does("history.forward()")
    check(len(page.chips()) == 1, "forward")
    # The same address shows the same, and a chip goes away.
    page.open("about:blank", 1300)
    page.open(address, 1300)
    page.ready()
    check(len(page.chips()) == 1, "a link has the filter")
    page.does('document.querySelector("#chips .chip").click()')
    check(page.chips() == [], "a chip is removed")


def findings(page, check):
    page.at("view=overview")
    cards = page.run('return document.querySelectorAll("details.finding").length')
    check(cards > 0, "findings")
    check(page.run('return document.querySelectorAll(".finding .leads").length') == cards, "each finding leads on")
    page.does('[...document.querySelectorAll(".finding .leads button")].find((one) => one.textContent.startsWith("Example")).click()')
    check(page.hash()["view"] == ["operations"], "a finding leads to operations")
    check("f.operation" in page.hash(), "examples are operations")
    page.does('document.querySelector(".grid-box tbody th button").click()')
    detail = page.run('return document.querySelector("[aria-label=Operation]").innerText')
    check("tcp.port ==" in detail and "Frames" in detail, f"frames and filter: {detail[:300]}")
    check(page.run('return document.querySelectorAll(".life .line > i.this").length') >= 1, "it is on its connection's line")


def pivot(page, check):
    page.at("view=pivot&rows=command&columns=share&show=n,p95&by=n")
    rows = page.run('return document.querySelectorAll(".grid-box tbody tr:not(.space)").length')
    check(rows > 3, f"{rows} rows")
    sql = page.run('return document.querySelector(".sql code").textContent')
    check("GROUPING SETS" in sql, "the SQL is shown")
    # The number of a cell is the number of its operations.
    found = page.run('return document.querySelector(".grid-box tbody tr:not(.total):not(.space) td.go").textContent')
    page.does('document.querySelector(".grid-box tbody tr:not(.total):not(.space) td.go").click()')
    status = page.run('return document.getElementById("status").textContent')
    check(number(status.split(" ")[0]) == number(found), f"{found} is {status}")
    check(len(page.chips()) == 1, f"{page.chips()}")
    page.does("history.back()")
    # By keyboard: to the right, then to its operations.
    page.run('document.querySelector(".grid-box tbody tr:not(.total):not(.space) td.go").focus()')
    page.key("ArrowRight")
    check(page.run("return document.activeElement.cellIndex") == 2, "an arrow moves")
    page.run('document.body.dataset.state = "busy"')
    page.key("Enter")
    page.ready()
    check(page.hash()["view"] == ["operations"], "Enter opens a cell")
    page.does("history.back()")
    # Another dimension, another order.
    page.does("""
      const add = document.querySelector('[aria-label="Add a dimension of rows"]');
      add.value = "client";
      add.dispatchEvent(new Event("change"));
    """)
    check(page.hash()["rows"] == ["command,client"], f"{page.hash()}")
    page.does('[...document.querySelectorAll(".grid-box thead tr:last-child button")].at(2).click()')
    check(page.run('return document.querySelectorAll("[aria-sort]").length') == 1, "a heading sorts")
    links = page.run('return [...document.querySelectorAll("a[download]")].map((one) => one.href)')
    check(len(links) == 3, "three formats")
    text = page.ask(
        "Runtime.evaluate", expression=f"fetch({links[0]!r}).then((answer) => answer.text())", awaitPromise=True
    )["result"]["value"]
    check(text.startswith("command,client,"), text[:80])


def times(page, check):
    page.at("view=time")
    check(page.run('return document.querySelectorAll("canvas").length') >= 5, "five charts")
    drawn = page.run("""
      const canvas = document.querySelector("canvas");
      const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
      return pixels.some((value) => value > 0);
    """)
    check(drawn, "a chart is drawn")
    box = page.run("""
      scrollTo(0, 0);
      const box = document.querySelector(".u-over").getBoundingClientRect();
      return [box.left, box.top, box.width, box.height];
    """)
    left, top, width, height = box
    y = top + height / 2
    page.run('document.body.dataset.state = "busy"')
    page.ask("Input.dispatchMouseEvent", type="mouseMoved", x=left + width * 0.3, y=y)
    page.ask("Input.dispatchMouseEvent", type="mousePressed", x=left + width * 0.3, y=y, button="left", clickCount=1)
    page.ask("Input.dispatchMouseEvent", type="mouseMoved", x=left + width * 0.6, y=y, button="left")
    page.ask("Input.dispatchMouseEvent", type="mouseReleased", x=left + width * 0.6, y=y, button="left", clickCount=1)
    page.ready()
    check({"from", "to"} <= page.hash().keys(), f"a drag zooms: {page.hash()}")
    check(len(page.chips()) == 1, "and filters")
    page.does('[...document.querySelectorAll(".controls button")].find((one) => one.textContent === "All").click()')
    check(page.chips() == [], "all again")


VIEWS = {
    "overview": "view=overview",
    "pivot": "view=pivot",
    "time": "view=time",
    "operations": "view=operations",
}

NAMELESS = """
  const named = (one) => one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.[0]?.textContent.trim();
  return [...document.querySelectorAll("button, a, input, select, [role=region]")].filter((one) => !named(one)).map((one) => one.outerHTML.slice(0, 120));
"""


def looks(page, check, url, shots):
    for name, words in VIEWS.items():
        for width, dark in ((1300, False), (1300, True), (390, False)):
            page.open("about:blank", width)
            page.open(f"{url}#{words}", width, dark=dark)
            page.ready()
            wide = page.run("return document.documentElement.scrollWidth - innerWidth")
            check(wide <= 0, f"{name} at {width} is {wide} too wide")
            check(page.run(NAMELESS) == [], f"{name}: {page.run(NAMELESS)}")
            if shots:
                page.view(shots / f"{name}-{width}{'-dark' if dark else ''}.png")


def markup(page, check, url):
    for words in [*VIEWS.values(), "view=pivot&rows=path,user&columns=client&show=n&by=n"]:
        page.open("about:blank", 1300)
        page.open(f"{url}#{words}", 1300)
        page.ready()
        check(page.run("return window.hacked === undefined"), f"{words}: markup ran")
        check(page.run('return document.querySelectorAll("#view img, #view b > script, #chips img").length') == 0, f"{words}: an element of a name")
    check("<img" in page.run('return document.getElementById("view").textContent'), "names are shown as they are")
    page.does('document.querySelector(".grid-box tbody tr:not(.total):not(.space) th button").click()')
    check("<img" in page.chips()[0], f"{page.chips()}")
    check(page.run("return window.hacked === undefined"), "a chip ran")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chromium", default="chromium")
    parser.add_argument("--shots", type=pathlib.Path)
    parser.add_argument("--markup", action="store_true")
    parser.add_argument("url")
    args = parser.parse_args()
    failures = []

    def check(holds, what):
        if not holds:
            failures.append(what)

    with tempfile.TemporaryDirectory() as profile:
        page = Page(args.chromium, profile)
        try:
            page.open(args.url, 1300)
            page.ready()
            if args.markup:
                markup(page, check, args.url)
            else:
                for part in (overview, findings, pivot, times):
                    part(page, check)
                looks(page, check, args.url, args.shots)
            check(page.run('return document.getElementById("error").hidden'), "an error is shown")
        finally:
            page.close()
        own = urllib.parse.urlsplit(args.url).netloc
        others = [url for url in page.requests if urllib.parse.urlsplit(url).netloc not in (own, "")]
        check(not others, f"requests to others: {others[:3]}")
        check(not page.errors, f"exceptions: {page.errors[:3]}")
        check(not page.forbidden, f"the policy forbade: {page.forbidden[:3]}")
    print(f"{len(page.requests)} requests, {len(failures)} failures")
    for failure in failures:
        print(f"failed: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
