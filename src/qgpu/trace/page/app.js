// The page: parts put together, one chosen token, keys and search.
"use strict";

class App {
  constructor(data) {
    const $ = (id) => document.getElementById(id);
    Colour.theme();
    this.model = new TraceModel(data);
    this.words = new Words(this.model);
    this.token = 0;
    const choose = (token) => this.choose(token), redraw = () => this.redraw();
    this.overview = new Overview($("overview"), this.model, choose);
    this.timeline = new Timeline($("timeline"), this.model, this.words, choose, redraw);
    this.list = new VirtualList($("tokens"), this.model.length, 20, (row, i) => this.#row(row, i), choose);
    this.lanes = new Lanes($("lanes"), this.model, this.words);
    this.registers = new Registers($("registers"), $("registerheat"), this.model, this.words);
    this.memory = new Memory($("memory"), this.model, this.words);
    this.arrays = new Arrays($("arrays"), this.model, this.words);
    this.source = new Source($("source"), $("block"), $("blockname"), this.model, this.words);
    this.source.pick = (row) => this.#toLine(row);
    this.layers = new Layers($("layers"), $("layersnote"), this.model);
    this.layers.ready.then(redraw);
    this.#title();
    this.#listen();
    this.choose(0);
  }

  choose(token) {
    this.token = Math.max(0, Math.min(token, this.model.length - 1));
    this.timeline.reveal(this.token);
    this.redraw();
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.waiting = false;
    const { token, model } = this;
    if (!model.length) return;
    const state = model.at(token);
    this.overview.draw(token, this.timeline.view);
    this.timeline.draw(token);
    this.list.choose(token);
    for (const part of [this.lanes, this.registers, this.memory, this.arrays, this.source]) part.draw(state);
    this.layers.draw(token);
    const say = (id, text) => (document.getElementById(id).textContent = text);
    say("position", `${token.toLocaleString("en")} of ${(model.length - 1).toLocaleString("en")}`);
    say("now", this.words.here(token));
    say("where", state.exec < 0 ? "" : `CTA ${coordinates(state.cta, model.data.grid)} · warp ${state.quad >> 3} · quad ${state.quad}`);
  }

  // The next token whose text or meaning holds what is searched for; a number is a position.
  search(text, direction) {
    const { model } = this, wanted = text.trim().toLowerCase();
    if (!wanted) return false;
    if (/^[\d,]+$/.test(wanted)) {
      this.choose(+wanted.replaceAll(",", ""));
      return true;
    }
    for (let i = 1; i <= model.length; i++) {
      const token = (this.token + direction * i + model.length) % model.length;
      const line = `${this.words.token(model.data.tokens[token])} ${this.words.meaning(token)}`.toLowerCase();
      if (line.includes(wanted)) {
        this.choose(token);
        return true;
      }
    }
    return false;
  }

  // Move by one EXEC, barrier, ... : the next step for which `wanted` holds.
  step(direction, wanted) {
    const { model } = this, here = model.stepOf[this.token];
    const from = direction < 0 && this.token > model.steps.at[here] ? here + 1 : here;
    const found = model.find(from, direction, wanted);
    if (found >= 0) this.choose(model.steps.at[found]);
  }

  theme(name) {
    const now = name ?? (Colour.dark ? "light" : "dark");
    document.documentElement.dataset.theme = now;
    Colour.theme();
    this.redraw();
  }

  #toLine(row) {
    const { model, source } = this;
    this.step(1, (s) => model.kind[s] === "EXEC" && source.row(model.spot(model.steps.block[s])) === row);
  }

  #row(row, index) {
    const { model, words } = this;
    const kind = model.kind[model.stepOf[index]], own = index === model.steps.at[model.stepOf[index]];
    row.classList.toggle("data", !own);
    row.classList.toggle("fault", kind === "FAULT");
    const mark = make("span", "mark");
    const exec = model.execOf(model.stepOf[index]);
    if (exec >= 0) mark.style.background = Colour.block(model.steps.block[exec], own && kind === "EXEC" ? 1 : 0.3);
    row.replaceChildren(mark, make("span", "number", index), make("code", "", words.token(model.data.tokens[index])), make("span", "meaning", words.meaning(index)));
  }

  #title() {
    const { data, length } = this.model;
    const say = (id, text) => (document.getElementById(id).textContent = text);
    const size = (s) => s.slice(0, s[2] > 1 ? 3 : s[1] > 1 ? 2 : 1).join(" × ");
    document.title = `${data.kernel} · qgpu trace`;
    say("kernel", data.kernel);
    say("launch", `${data.file ? data.file + " · " : ""}grid ${size(data.grid)} · CTA ${size(data.cta)} · ${length.toLocaleString("en")} tokens`);
    const ended = document.getElementById("ended");
    ended.textContent = data.ended;
    ended.classList.add(data.ended.toLowerCase());
    ended.title = data.message || "the launch is complete";
    const message = document.getElementById("message");
    message.textContent = data.message;
    message.hidden = !data.message;
  }

  #listen() {
    const exec = (s) => this.model.kind[s] === "EXEC";
    const quad = () => this.model.steps.quad[Math.max(0, this.model.execOf(this.model.stepOf[this.token]))];
    const same = () => ((here) => (s) => exec(s) && this.model.steps.quad[s] === here)(quad());
    const kind = (...names) => (s) => names.includes(this.model.kind[s]);
    const search = document.getElementById("search");
    const look = (direction) => search.classList.toggle("none", !this.search(search.value, direction) && search.value !== "");
    const keys = {
      ArrowRight: () => this.choose(this.token + 1),
      ArrowLeft: () => this.choose(this.token - 1),
      ArrowDown: () => this.step(1, exec),
      ArrowUp: () => this.step(-1, exec),
      "]": () => this.step(1, same()),
      "[": () => this.step(-1, same()),
      b: () => this.step(1, kind("BAR", "CTA")),
      B: () => this.step(-1, kind("BAR", "CTA")),
      m: () => this.step(1, kind("MEM")),
      M: () => this.step(-1, kind("MEM")),
      f: () => this.step(1, kind("FAULT")),
      PageDown: () => this.choose(this.token + 100),
      PageUp: () => this.choose(this.token - 100),
      Home: () => this.choose(0),
      End: () => this.choose(this.model.length - 1),
      n: () => look(1),
      N: () => look(-1),
      "+": () => this.timeline.zoom(0.7, this.token),
      "-": () => this.timeline.zoom(1.4, this.token),
      "/": () => (search.focus(), search.select()),
      t: () => this.theme(),
      "?": () => (document.getElementById("help").hidden ^= true),
    };
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target === search) {
        if (event.key === "Enter") look(event.shiftKey ? -1 : 1);
        if (event.key === "Escape" || event.key === "Enter") search.blur();
        return;
      }
      if (event.key === "Escape") document.getElementById("help").hidden = true;
      const act = keys[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
    search.addEventListener("input", () => search.classList.remove("none"));
    for (const button of document.querySelectorAll("button[data-key]")) {
      button.addEventListener("click", () => keys[button.dataset.key]());
    }
    new ResizeObserver(() => this.redraw()).observe(document.body);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      Colour.theme();
      this.redraw();
    });
  }
}

window.qgpu = { app: new App(JSON.parse(document.getElementById("data").textContent)) };
