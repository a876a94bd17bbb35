// The timelines: the whole launch on one strip, and a window of it with a track a quad, a line a lane.
"use strict";

class Overview {
  constructor(element, model, choose) {
    this.canvas = new Canvas(element);
    this.model = model;
    const pick = (event) => {
      const box = element.getBoundingClientRect();
      choose(Math.floor(((event.clientX - box.left) / box.width) * model.length));
    };
    element.addEventListener("pointerdown", (event) => {
      element.setPointerCapture(event.pointerId);
      pick(event);
    });
    element.addEventListener("pointermove", (event) => event.buttons && pick(event));
  }

  // The strip itself is drawn once a size and theme, and kept.
  draw(token, view) {
    const [width, height] = this.canvas.begin();
    const key = [width, height, Colour.dark, window.devicePixelRatio].join();
    if (this.key !== key) {
      this.key = key;
      this.#strip(width, height);
      this.picture = document.createElement("canvas");
      this.picture.width = this.canvas.element.width;
      this.picture.height = this.canvas.element.height;
      this.picture.getContext("2d").drawImage(this.canvas.element, 0, 0);
    } else this.canvas.context.drawImage(this.picture, 0, 0, width, height);
    const scale = width / this.model.length;
    this.canvas.box(Colour.faint, view.from * scale, 0, Math.max(2, (view.to - view.from) * scale), height);
    this.canvas.frame(Colour.quiet, view.from * scale + 0.5, 0.5, Math.max(2, (view.to - view.from) * scale) - 1, height - 1);
    this.canvas.box(Colour.accent, token * scale - 0.5, 0, 2, height);
  }

  #strip(width, height) {
    const { model, canvas } = this;
    const rows = new Map(model.usedQuads.map((quad, i) => [quad, i]));
    const tall = height / rows.size, scale = width / model.length;
    const drawn = new Float64Array(rows.size);
    for (const segment of model.segments) {
      // whole pixels: the first block of a pixel has it, so that short ones do not pale
      const row = rows.get(segment.quad), x = Math.max(Math.floor(segment.from * scale), drawn[row]);
      const right = Math.max(Math.floor(segment.to * scale), Math.floor(segment.from * scale) + 1);
      if (right <= x) continue;
      canvas.box(Colour.block(segment.block), x, row * tall, right - x, Math.max(1, tall - 0.4));
      drawn[row] = right;
    }
    for (const s of model.marks) {
      if (model.kind[s] === "FAULT") canvas.box(Colour.fault, model.steps.at[s] * scale - 2, 0, 3, height);
      if (model.kind[s] === "CTA") canvas.box(Colour.ink, model.steps.at[s] * scale, 0, 1, height);
    }
  }
}

class Timeline {
  static GUTTER = 40;
  static TOP = 14;

  constructor(element, model, words, choose, redraw) {
    Object.assign(this, { model, words, choose, redraw });
    this.canvas = new Canvas(element);
    const wide = Math.max(element.clientWidth - Timeline.GUTTER, 200);
    this.view = { from: 0, to: Math.min(model.length, Math.max(40, Math.round(wide / 5))) };
    this.rows = new Map(model.usedQuads.map((quad, i) => [quad, i]));
    const pitch = (lane) => 4 * lane + Math.max(2, lane - 2), room = Math.max(200, 0.27 * innerHeight);
    this.lane = [7, 6, 5, 4, 3, 2].find((lane) => this.rows.size * pitch(lane) <= room) ?? 1;
    this.pitch = pitch(this.lane);
    this.height = Timeline.TOP + this.rows.size * this.pitch + 8;
    this.#listen(element);
    Tip.on(element, (x, y) => this.#tip(x, y));
  }

  // Tokens per pixel, and where a token lies.
  scale() {
    return (this.canvas.element.clientWidth - Timeline.GUTTER) / (this.view.to - this.view.from);
  }
  x(token) {
    return Timeline.GUTTER + (token - this.view.from) * this.scale();
  }
  tokenAt(x) {
    return Math.floor(this.view.from + (x - Timeline.GUTTER) / this.scale());
  }

  // Bring a token into sight.
  reveal(token) {
    const { view, model } = this, wide = view.to - view.from;
    if (token >= view.from + 0.02 * wide && token <= view.to - 0.04 * wide) return;
    this.moveTo(token - 0.3 * wide);
    if (token >= model.length - 1) this.moveTo(model.length - wide);
  }
  moveTo(from) {
    const wide = this.view.to - this.view.from;
    this.view.from = Math.max(0, Math.min(from, this.model.length - wide));
    this.view.to = this.view.from + wide;
  }
  zoom(factor, about = (this.view.from + this.view.to) / 2) {
    const { view, model } = this;
    const wide = Math.max(20, Math.min(model.length, (view.to - view.from) * factor));
    const share = (about - view.from) / (view.to - view.from);
    view.to = view.from + wide;
    this.moveTo(about - share * wide);
    this.redraw();
  }

  draw(token) {
    const { model, canvas, view, lane, pitch } = this;
    const [width, height] = canvas.begin(this.height);
    const { TOP, GUTTER } = Timeline;
    this.#ruler(width);
    const scale = this.scale();
    const drawn = new Map();
    const shown = model.usedQuads;
    canvas.context.save();
    canvas.context.beginPath();
    canvas.context.rect(GUTTER, 0, width - GUTTER, height);
    canvas.context.clip();
    for (let i = this.#firstSegment(); i < model.segments.length && model.segments[i].from < view.to; i++) {
      const segment = model.segments[i];
      const x = this.x(segment.from), right = this.x(segment.to);
      if (right - (drawn.get(segment.quad) ?? -1) < 0.25) continue;
      drawn.set(segment.quad, right);
      const y = TOP + this.rows.get(segment.quad) * pitch;
      const wide = Math.max(0.6, right - x - (scale > 4 ? 1 : 0));
      canvas.box(Colour.block(segment.block, 0.16), x, y, wide, 4 * lane);
      const whole = segment.lanes === model.data.exist[segment.quad];
      if (whole && segment.lanes === 15) canvas.box(Colour.block(segment.block), x, y, wide, 4 * lane - (lane > 3 ? 1 : 0));
      else for (let i = 0; i < 4; i++) {
        if ((segment.lanes >> i) & 1) canvas.box(Colour.block(segment.block), x, y + i * lane, wide, lane - (lane > 3 ? 1 : 0));
      }
      if (wide > 22 && lane >= 4 && segment.lanes === 15) {
        canvas.text("b" + segment.block, x + 4, y + 2 * lane, Colour.dark ? "#0c0e12" : "#ffffff");
      }
    }
    this.#marks(height);
    const x = this.x(token);
    canvas.box(Colour.faint, x, 0, Math.max(scale, 1), height);
    canvas.box(Colour.accent, x - 0.5, 0, 1.5, height);
    canvas.context.restore();
    for (const quad of shown) {
      if (pitch < 12 && quad % 4) continue;
      canvas.text("q" + quad, GUTTER - 8, TOP + this.rows.get(quad) * pitch + 2 * lane, Colour.quiet, "right");
    }
  }

  #ruler(width) {
    const { view, canvas, model } = this;
    const wanted = (view.to - view.from) / Math.max(2, width / 110);
    const power = 10 ** Math.floor(Math.log10(Math.max(wanted, 1)));
    const tick = Math.max(1, [1, 2, 5, 10].find((n) => n * power >= wanted) * power);
    for (let t = Math.ceil(view.from / tick) * tick; t < view.to && t < model.length; t += tick) {
      canvas.box(Colour.line, this.x(t), Timeline.TOP - 3, 1, this.height);
      canvas.text(t.toLocaleString("en"), this.x(t) + 3, 6, Colour.quiet);
    }
  }

  #marks(height) {
    const { model, view, canvas, pitch, lane } = this;
    for (let i = lowerBound(model.marks, (s) => model.steps.at[s] >= view.from); i < model.marks.length; i++) {
      const s = model.marks[i], at = model.steps.at[s];
      if (at >= view.to) break;
      const x = this.x(at), kind = model.kind[s];
      if (kind === "MEM") {
        const y = Timeline.TOP + this.rows.get(model.steps.quad[s]) * pitch + 4 * lane;
        canvas.box(Colour.ink, x, y - 1, Math.max(1.5, Math.min(4, this.scale() - 1)), 2);
        continue;
      }
      const colour = kind === "FAULT" ? Colour.fault : Colour.ink;
      canvas.box(colour, x, Timeline.TOP - 2, kind === "BAR" ? 1 : 2, height);
      const left = x > canvas.element.clientWidth - 44;  // no room to the right of the line
      if (this.scale() > 1 || kind !== "BAR") canvas.text(kind, left ? x - 4 : x + 4, height - 4, colour, left ? "right" : "left");
    }
  }

  #firstSegment() {
    return lowerBound(this.model.segments, (segment) => segment.to > this.view.from);
  }

  #tip(x, y) {
    const token = this.tokenAt(x);
    if (x < Timeline.GUTTER || token < 0 || token >= this.model.length) return "";
    const state = this.model.execOf(this.model.stepOf[token]);
    if (state < 0) return `token ${token.toLocaleString("en")}`;
    const { block, quad, lanes } = this.model.steps;
    return `token ${token.toLocaleString("en")}: ${this.words.token(this.model.data.tokens[token])}\n` +
      `b${block[state]}  ${this.words.place(block[state])}\nq${quad[state]} ${this.words.mask(lanes[state])}  ` +
      this.words.threads(quad[state], lanes[state]);
  }

  #listen(element) {
    let grip = null;
    element.addEventListener("pointerdown", (event) => {
      element.setPointerCapture(event.pointerId);
      grip = { x: event.clientX, from: this.view.from, moved: false };
    });
    element.addEventListener("pointermove", (event) => {
      if (!grip || !event.buttons) return;
      grip.moved ||= Math.abs(event.clientX - grip.x) > 3;
      if (!grip.moved) return;
      Tip.hide();
      this.moveTo(grip.from - (event.clientX - grip.x) / this.scale());
      this.redraw();
    });
    element.addEventListener("pointerup", (event) => {
      const token = this.tokenAt(event.clientX - element.getBoundingClientRect().left);
      if (grip && !grip.moved) this.choose(Math.max(0, Math.min(token, this.model.length - 1)));
      grip = null;
    });
    element.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        this.moveTo(this.view.from + (event.deltaX || event.deltaY) / this.scale());
        this.redraw();
      } else this.zoom(Math.exp(event.deltaY * 0.0015), this.tokenAt(event.clientX - element.getBoundingClientRect().left));
    }, { passive: false });
  }
}

// The first index of a list from which on `holds` is true.
function lowerBound(list, holds) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(list[middle])) high = middle;
    else low = middle + 1;
  }
  return low;
}
