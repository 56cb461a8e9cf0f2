"use strict";
// The frame: which view is shown, the chips of the filter, and rows that are still arriving.
(() => {
  const S = window.smbscope;
  const { make } = S;
  const VIEWS = { overview: S.overview, pivot: S.pivot, time: S.time_view, operations: S.operations };
  const POLL_MS = 1000;

  const chips = () => {
    const box = document.getElementById("chips");
    const { filter } = S.state;
    box.replaceChildren();
    const chip = (text, without) => {
      const button = make("button", { type: "button", className: "chip", textContent: text, ariaLabel: `Remove the filter ${text}` }, box);
      button.addEventListener("click", () => S.goFilter(without));
    };
    const without = (names) => Object.fromEntries(Object.entries(filter).filter(([name]) => !names.includes(name)));
    if (filter.from || filter.to) {
      const from = filter.from ? S.time(filter.from, 3) : "the beginning";
      const to = filter.to ? S.time(filter.to, 3).slice(11) : "the end";
      chip(`${from} – ${to}`, without(["from", "to"]));
    }
    if (filter.slower) chip(`at least ${S.value("duration", Number(filter.slower))}`, without(["slower"]));
    for (const [key, values] of Object.entries(filter.in)) {
      for (const value of values) {
        chip(`${S.dimension(key)?.title || key}: ${S.key(key, value)}`, S.toggled(filter, key, value));
      }
    }
    if (box.childElementCount === 0) {
      box.append("All rows. Click a bar, a name or a number to filter.");
      return;
    }
    const none = make("button", { type: "button", textContent: "Remove all filters" }, box);
    none.addEventListener("click", () => S.goFilter({ in: {} }));
  };

  let shown = 0;
  S.show = async () => {
    shown += 1;
    const number = shown;
    const view = document.getElementById("view");
    document.getElementById("error").hidden = true;
    for (const button of document.querySelectorAll("[data-view]")) {
      if (button.dataset.view === S.state.view) button.setAttribute("aria-current", "page");
      else button.removeAttribute("aria-current");
    }
    chips();
    S.say("…");
    const next = make("div", { className: "next" });
    const scroll = view.dataset.view === S.state.view ? [scrollX, scrollY] : [0, 0];
    view.dataset.view = S.state.view;
    view.replaceChildren(next);
    document.body.dataset.state = "busy";
    try {
      await (VIEWS[S.state.view] || S.overview)(next);
    } catch (error) {
      S.failed(error);
      S.say("");
    }
    if (number !== shown) return;
    scrollTo(...scroll);
    document.body.dataset.state = "ready";
  };

  let paused = false;
  const poll = async () => {
    try {
      const about = await S.ask("about", {}, null);
      const box = document.getElementById("live");
      box.hidden = !about.is_live;
      if (about.data_version !== S.about.data_version && !paused) {
        S.about = about;
        await S.show();
      }
    } catch {
      document.getElementById("live-state").textContent = "The server does not answer";
    }
    setTimeout(poll, POLL_MS);
  };

  const begin = async () => {
    S.about = await S.ask("about", {});
    document.body.dataset.offset = S.about.offset_s;
    document.getElementById("inputs").textContent = S.about.inputs.join(", ");
    document.title = `smbscope: ${S.about.inputs.join(", ")}`;
    for (const button of document.querySelectorAll("[data-view]")) {
      button.addEventListener("click", () => S.go({ view: button.dataset.view }));
    }
    const pause = document.getElementById("pause");
    pause.addEventListener("click", () => {
      paused = !paused;
      pause.textContent = paused ? "Continue" : "Pause";
      pause.setAttribute("aria-pressed", paused);
    });
    await S.show();
    if (S.about.is_live) {
      document.getElementById("live").hidden = false;
      setTimeout(poll, POLL_MS);
    }
  };
  begin().catch(S.failed);
})();
