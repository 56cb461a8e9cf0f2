#!/usr/bin/env python3
"""Checks pages of smbscope in a headless Chromium: no table leaves the page at 1300 and at 390 pixels,
nothing is requested from the network, sorting, folding, search, filter and hover work, tables are
complete without scripts, and the printed page is short.

    tests/browser/check.py [--chromium PROGRAM] [--profile DIR] [--shots DIR] PAGE...

Speaks the DevTools protocol over a pipe (--remote-debugging-pipe), with the standard library only.
Prints one line of measurements for each page, and each failure; exits with 1 after a failure."""

import argparse
import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

WIDTHS = (1300, 390)
PDF_PAGES_MAX = 12
SHOT_HEIGHT = 2000


class Browser:
    """A Chromium that is asked over two pipes: its descriptors 3 (reads) and 4 (writes)."""

    def __init__(self, program, profile):
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()

        def descriptors():
            # Above 4 first, so that neither is overwritten.
            one, two = os.dup(to_read), os.dup(from_write)
            os.dup2(one, 3)
            os.dup2(two, 4)
            os.set_inheritable(3, True)
            os.set_inheritable(4, True)

        switches = (
            "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars "
            "--disable-background-networking --disable-component-update --disable-sync "
            "--remote-debugging-pipe"
        ).split()
        self.process = subprocess.Popen(
            [program, *switches, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=descriptors,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(from_write)
        self.output, self.input = to_write, from_read
        self.buffer = b""
        self.number = 0
        self.session = None
        self.requests = []
        self.errors = []
        self.loaded = False
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self.ask(f"{domain}.enable")

    def message(self):
        while b"\0" not in self.buffer:
            part = os.read(self.input, 1 << 20)
            if not part:
                raise SystemExit("the browser ended")
            self.buffer += part
        one, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(one)

    def event(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif method == "Page.loadEventFired":
            self.loaded = True

    def ask(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.output, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise SystemExit(f"{method}: {answer['error']}")
                return answer["result"]
            self.event(answer)

    def run(self, script):
        result = self.ask("Runtime.evaluate", expression=f"(() => {{ {script} }})()", returnByValue=True)
        if "exceptionDetails" in result:
            raise SystemExit(result["exceptionDetails"]["exception"]["description"])
        return result["result"].get("value")

    def open(self, url, width, height=1000, dark=False):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = "dark" if dark else "light"
        self.ask("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.loaded = False
        self.ask("Page.navigate", url=url)
        while not self.loaded:
            self.event(self.message())

    def shot(self, path):
        """The whole page, in pieces that can be looked at: NAME.png becomes NAME-1.png, NAME-2.png ..."""
        width, height = self.run("return [innerWidth, document.documentElement.scrollHeight]")
        for number, top in enumerate(range(0, height, SHOT_HEIGHT), start=1):
            clip = {"x": 0, "y": top, "width": width, "height": min(SHOT_HEIGHT, height - top), "scale": 1}
            image = self.ask("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"]
            path.with_stem(f"{path.stem}-{number}").write_bytes(base64.b64decode(image))

    def view(self, path):
        """What the window shows."""
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=20)


OVERFLOW = """
  document.querySelectorAll("details").forEach((one) => (one.open = true));
  dispatchEvent(new Event("resize"));
  const found = [];
  const page = document.documentElement;
  if (page.scrollWidth > innerWidth) found.push(`the page is ${page.scrollWidth} wide`);
  for (const table of document.querySelectorAll("table")) {
    const name = table.caption.textContent.trim().slice(0, 40);
    const box = table.parentElement.getBoundingClientRect();
    if (box.right > innerWidth + 1) found.push(`the box of ${name} ends at ${box.right}`);
    if (innerWidth > 1000 && table.getBoundingClientRect().right > innerWidth) found.push(`${name} is cut`);
  }
  for (const one of document.querySelectorAll("figure, h1, p, dl, .finding")) {
    if (one.getBoundingClientRect().right > innerWidth + 1) {
      found.push(`${one.tagName} ${one.textContent.trim().slice(0, 40)} leaves the page`);
    }
  }
  return found;
"""

# All headings of all tables, in both directions.
SORT = """
  const found = [];
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      for (const wanted of [0, 1]) {
        head.click();
        const sign = head.getAttribute("aria-sort") === "descending" ? -1 : 1;
        const key = (row) => row.cells[column].dataset.v;
        const keys = [...body.rows].map(key).filter((key) => key !== undefined).map(Number);
        const fits = keys.every((key, place) => place === 0 || sign * (key - keys[place - 1]) >= 0);
        if (!fits) found.push(`${table.caption.textContent.slice(0, 30)}, ${head.textContent}: not sorted`);
      }
    });
  }
  return found;
"""

FOLD = """
  const found = [];
  let folded = 0;
  const shown = (table) => [...table.tBodies[0].rows].filter((row) => !row.hidden).length;
  for (const box of document.querySelectorAll(".table")) {
    const table = box.querySelector("table");
    const all = table.tBodies[0].rows.length;
    const button = box.querySelector("button.count");
    if (shown(table) !== Math.min(all, 10)) found.push(`${shown(table)} of ${all} rows are shown`);
    if (all <= 10) continue;
    folded += 1;
    button.click();
    if (shown(table) !== all) found.push(`${shown(table)} of ${all} rows are unfolded`);
    button.click();
    const search = box.querySelector("input[type=search]");
    const enter = (text) => {
      search.value = text;
      search.dispatchEvent(new Event("input"));
    };
    const last = table.tBodies[0].rows[all - 1];
    const text = (last.cells[0].querySelector("[title]")?.title ?? last.cells[0].textContent).trim();
    enter(text);
    if (last.hidden && shown(table) < 10) found.push(`a search for ${text} does not find it`);
    enter("no such text anywhere");
    if (shown(table) !== 0) found.push("a search without result shows rows");
    enter("");
    const select = box.querySelector("select");
    if (select) {
      select.value = select.options[1].value;
      select.dispatchEvent(new Event("change"));
      const place = Number(table.dataset.filter);
      const others = [...table.tBodies[0].rows].filter((row) => !row.hidden && row.cells[place].textContent !== select.value);
      if (others.length > 0) found.push("the filter shows others");
      select.value = "";
      select.dispatchEvent(new Event("change"));
    }
  }
  return [folded, found];
"""

PLOT = """
  const area = document.querySelector("[data-plot] .area");
  if (!area) return null;
  area.scrollIntoView({ block: "center", behavior: "instant" });
  const box = area.getBoundingClientRect();
  return [box.left + box.width / 2, box.top + box.height / 2];
"""

TIP = """
  const tip = document.querySelector(".tip:not([hidden])");
  return tip ? [...tip.children].map((one) => one.textContent) : [];
"""


def check(browser, page, shots):
    """The failures of one page, and a line about it."""
    url = page.resolve().as_uri()
    failures, measured = [], []
    for width in WIDTHS:
        browser.requests, browser.errors = [], []
        browser.open(url, width)
        if not browser.run("return document.querySelector('h1')?.textContent.trim()"):
            failures.append(f"{width}: there is no headline")
        height = browser.run("return document.documentElement.scrollHeight")
        measured.append(f"{height} px at {width}")
        if shots:
            browser.shot(shots / f"{page.stem}-{width}.png")
        place = browser.run(PLOT)
        if place:
            browser.ask("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1])
            tip = browser.run(TIP)
            if shots and width == WIDTHS[0]:
                browser.view(shots / f"{page.stem}-hover.png")
            if len(tip) < 2 or not any(character.isdigit() for character in tip[1]):
                failures.append(f"{width}: hovering shows {tip}")
        folded, found = browser.run(FOLD)
        failures += [f"{width}: {one}" for one in found + browser.run(SORT) + browser.run(OVERFLOW)]
        failures += [f"{width}: requested {one}" for one in browser.requests if one != url]
        failures += [f"{width}: {one}" for one in browser.errors]
    measured.append(f"{folded} folded tables")
    browser.open(url, 800)
    pdf = base64.b64decode(browser.ask("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])
    pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
    measured.append(f"{pages} printed pages")
    if pages > PDF_PAGES_MAX:
        failures.append(f"{pages} printed pages")
    if shots:
        (shots / f"{page.stem}.pdf").write_bytes(pdf)
        # The width of A4 without its margins.
        browser.open(url, 703)
        browser.ask("Emulation.setEmulatedMedia", media="print")
        browser.shot(shots / f"{page.stem}-print.png")
        browser.open(url, 1300, dark=True)
        browser.shot(shots / f"{page.stem}-dark.png")
    browser.ask("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(url, 1300)
    hidden = browser.run("return [...document.querySelectorAll('tbody tr')].filter((row) => row.hidden).length")
    if hidden:
        failures.append(f"{hidden} rows are hidden without scripts")
    browser.ask("Emulation.setScriptExecutionDisabled", value=False)
    return failures, ", ".join(measured)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    arguments.add_argument("--chromium", default="chromium", help="the browser's program")
    arguments.add_argument("--shots", type=pathlib.Path, help="write screenshots and the printed pages here")
    arguments.add_argument("pages", nargs="+", type=pathlib.Path)
    options = arguments.parse_args()
    if options.shots:
        options.shots.mkdir(parents=True, exist_ok=True)
    profile = tempfile.mkdtemp(prefix="smbscope-browser-")
    browser = Browser(options.chromium, profile)
    failed = False
    try:
        for page in options.pages:
            failures, measured = check(browser, page, options.shots)
            print(f"{page.name}: {measured}")
            for failure in failures:
                failed = True
                print(f"{page.name}: {failure}")
    finally:
        browser.close()
        shutil.rmtree(profile, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
