// The panels that show the machine at one token: lanes, registers, memory, arrays, source, layers.
"use strict";

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

// All lanes as dots, four a quad: on where the quad's mask is.
class Lanes {
  constructor(element, model, words) {
    this.quads = new Map();
    for (const quad of model.usedQuads) {
      const group = make("span", "quad");
      group.title = `quad ${quad}, warp ${quad >> 3}: ${words.threads(quad, model.data.exist[quad])}`;
      const dots = [0, 1, 2, 3].map((lane) => make("i", (model.data.exist[quad] >> lane) & 1 ? "" : "none"));
      group.append(...dots);
      element.append(group);
      this.quads.set(quad, { group, dots });
    }
  }
  draw(state) {
    for (const [quad, { group, dots }] of this.quads) {
      group.classList.toggle("running", quad === state.quad);
      dots.forEach((dot, lane) => dot.classList.toggle("on", Boolean((state.masks[quad] >> lane) & 1)));
    }
  }
}

// The running quad's registers as numbers, and every lane's as heat.
class Registers {
  constructor(table, canvas, model, words) {
    Object.assign(this, { table, model, words, canvas: new Canvas(canvas) });
    const head = make("tr");
    head.append(make("th"));
    this.heads = [0, 1, 2, 3].map(() => make("th"));
    head.append(...this.heads);
    this.cells = new Map();
    const rows = model.usedRegisters.map((register) => {
      const row = make("tr");
      const cells = [0, 1, 2, 3].map(() => make("td"));
      row.append(make("th", "", "r" + register), ...cells);
      this.cells.set(register, cells);
      return row;
    });
    table.replaceChildren(head, ...rows);
    Tip.on(canvas, (x, y) => this.#tip(x, y));
  }

  draw(state) {
    const { model, words } = this, { registers, lanes } = model.data.sizes;
    const mask = state.exec < 0 ? 15 : model.steps.lanes[state.exec];
    this.heads.forEach((head, lane) => {
      const exists = (model.data.exist[state.quad] >> lane) & 1;
      head.textContent = exists ? "t " + words.thread(state.quad, lane) : "–";
      head.classList.toggle("off", !((mask >> lane) & 1));
    });
    const changed = state.changed;
    for (const [register, cells] of this.cells) {
      cells.forEach((cell, lane) => {
        const word = state.registers[(state.quad * lanes + lane) * registers + register];
        cell.textContent = String(word | 0);
        cell.title = "0x" + word.toString(16).padStart(8, "0");
        cell.style.background = Colour.heat(word) ?? "";
        cell.classList.toggle("off", !((mask >> lane) & 1));
        cell.classList.toggle("new", changed >= 0 && this.#writes(changed, register, lane));
      });
    }
    this.#heat(state);
  }

  #writes(step, register, lane) {
    const { model } = this;
    return ["EXEC", "VAL", "VALW"].includes(model.kind[step]) && model.steps.what[step] === register &&
      model.words(step).some(([index]) => index === lane);
  }

  #heat(state) {
    const { model, canvas } = this, { registers, lanes } = model.data.sizes;
    const tall = 9;
    const [width] = canvas.begin(Math.max(1, model.usedRegisters.length) * tall + 2);
    this.cell = Math.min(12, (width - 28) / Math.max(1, model.usedQuads.length * 4));
    this.state = state;
    model.usedRegisters.forEach((register, row) => {
      canvas.text("r" + register, 22, row * tall + tall / 2, Colour.quiet, "right");
      model.usedQuads.forEach((quad, column) => {
        for (let lane = 0; lane < 4; lane++) {
          const colour = Colour.heat(state.registers[(quad * lanes + lane) * registers + register]);
          const x = 28 + (4 * column + lane) * this.cell;
          canvas.box(colour ?? Colour.faint, x, row * tall, this.cell - (this.cell > 4 ? 1 : 0), tall - 1);
        }
      });
    });
    const column = model.usedQuads.indexOf(state.quad);
    if (column >= 0 && model.usedRegisters.length) canvas.frame(Colour.accent, 27.5 + 4 * column * this.cell, 0.5, 4 * this.cell, model.usedRegisters.length * tall);
  }

  #tip(x, y) {
    const { model, state } = this, register = model.usedRegisters[Math.floor(y / 9)];
    const index = Math.floor((x - 28) / this.cell), quad = model.usedQuads[index >> 2];
    if (register === undefined || quad === undefined || index < 0) return "";
    const word = state.registers[(quad * 4 + (index & 3)) * model.data.sizes.registers + register];
    return `r${register} of thread ${this.words.thread(quad, index & 3)} (q${quad}, lane ${index & 3})\n${word | 0} = 0x${word.toString(16).padStart(8, "0")}`;
  }
}

// Memory as heat, a cell a word, 32 words a line; only the lines that the launch has to do with.
class Memory {
  static WIDE = 32;

  constructor(canvas, model, words) {
    Object.assign(this, { model, words, canvas: new Canvas(canvas) });
    const rowsALine = Memory.WIDE / 2;
    this.lines = [...new Set(model.usedRows.map((row) => Math.floor(row / rowsALine)))];
    this.cell = 10;
    Tip.on(canvas, (x, y) => this.#tip(x, y));
  }

  #word(x, y) {
    const line = this.lines[Math.floor(y / this.tall)], column = Math.floor((x - 44) / this.cell);
    return line === undefined || column < 0 || column >= Memory.WIDE ? -1 : line * Memory.WIDE + column;
  }

  draw(state) {
    const { canvas, model } = this;
    this.tall = 10;
    this.state = state;
    const [width] = canvas.begin(Math.max(1, this.lines.length) * this.tall + 2);
    this.cell = Math.min(14, (width - 46) / Memory.WIDE);
    this.lines.forEach((line, i) => {
      if (i % 2 === 0 || this.lines[i - 1] !== line - 1) {
        canvas.text("0x" + (line * Memory.WIDE * 4).toString(16).padStart(4, "0"), 38, i * this.tall + 5, Colour.quiet, "right");
      }
      for (let column = 0; column < Memory.WIDE; column++) {
        const word = line * Memory.WIDE + column;
        const colour = Colour.heat(state.memory[word]) ?? (this.#known(word) ? Colour.faint : null);
        if (colour) canvas.box(colour, 44 + column * this.cell, i * this.tall, this.cell - 1, this.tall - 1);
      }
    });
    const { changed } = state;
    if (changed >= 0 && model.kind[changed] === "MEM") {
      const word = 2 * model.steps.what[changed];
      const line = this.lines.indexOf(Math.floor(word / Memory.WIDE));
      canvas.frame(Colour.accent, 43.5 + (word % Memory.WIDE) * this.cell, line * this.tall - 0.5, 2 * this.cell, this.tall, 2);
    }
  }

  #known(word) {
    return Boolean(this.model.arrayAt(4 * word)) || 4 * word >= 8 * this.model.data.sizes.sharedRow;
  }

  #tip(x, y) {
    const word = this.#word(x, y);
    if (word < 0) return "";
    const value = this.state.memory[word];
    return `${this.words.address(4 * word)} at 0x${(4 * word).toString(16).padStart(4, "0")}\n${value | 0} = 0x${value.toString(16).padStart(8, "0")}`;
  }
}

// Arrays by name with their elements; of a long one those around the element that was written last.
class Arrays {
  static SHOWN = 48;

  constructor(element, model, words) {
    Object.assign(this, { model, words });
    this.parts = model.data.arrays.map((array) => {
      const box = make("div", "array"), values = make("div", "values");
      const type = `${array.dtype}${array.shape.map((n) => `[${n}]`).join("")}`;
      const head = make("div", "name", array.name);
      head.append(make("span", "", ` ${type} at 0x${array.address.toString(16).padStart(4, "0")}`));
      const count = Math.min(Arrays.SHOWN, array.shape.reduce((a, b) => a * b, 1));
      const cells = Array.from({ length: count }, () => make("b"));
      values.append(...cells);
      box.append(head, values);
      element.append(box);
      return { array, cells, first: 0, total: array.shape.reduce((a, b) => a * b, 1) };
    });
  }

  draw(state) {
    const { model, words } = this, { changed } = state;
    const row = changed >= 0 && model.kind[changed] === "MEM" ? 8 * model.steps.what[changed] : -1;
    for (const part of this.parts) {
      const { array, cells, total } = part;
      const hit = row >= 0 && row + 8 > array.address && row < array.address + array.nbytes;
      if (hit) {
        const element = Math.max(0, Math.floor((row - array.address) / array.itemsize));
        if (element < part.first || element + 1 >= part.first + cells.length) {
          part.first = Math.max(0, Math.min(total - cells.length, element - (cells.length >> 1)));
        }
      }
      cells.forEach((cell, i) => {
        const index = part.first + i, at = array.address + index * array.itemsize;
        cell.textContent = words.value(array, index, state.memory);
        cell.title = words.element(array, index);
        cell.classList.toggle("new", hit && at + array.itemsize > row && at < row + 8);
      });
    }
  }
}

// The source with the running line marked, and the running block's fields under it.
class Source {
  constructor(list, block, title, model, words) {
    Object.assign(this, { block, title, model, words });
    const { sources, file } = model.data;
    const own = file in sources ? file : Object.keys(sources)[0];
    const others = Object.keys(sources).filter((name) => name !== own);
    this.lines = []; // of all files, the kernel's own first: {number, text}, or {name} where a file begins
    this.first = new Map(); // file -> row of its line 1
    for (const name of own === undefined ? [] : [own, ...others]) {
      if (others.length) this.lines.push({ name });
      this.first.set(name === own ? "" : name, this.lines.length);
      sources[name].split("\n").forEach((text, i) => this.lines.push({ number: i + 1, text }));
    }
    this.runs = new Map();
    for (const segment of model.segments) {
      const row = this.row(model.spot(segment.block));
      this.runs.set(row, (this.runs.get(row) ?? 0) + 1);
    }
    list.classList.toggle("missing", !this.lines.length);
    if (!this.lines.length) list.textContent = "The trace holds no source text.";
    else {
      this.list = new VirtualList(list, this.lines.length, 19, (row, i) => {
        const { name, number, text } = this.lines[i], runs = this.runs.get(i);
        row.classList.toggle("name", name !== undefined);
        const count = make("span", "runs", runs ? runs.toLocaleString("en") : "");
        count.title = runs ? `${runs} EXEC` : "";
        row.replaceChildren(make("span", "number", number ?? ""), count, make("code", "", name ?? text));
      }, (i) => this.pick?.(i));
    }
  }
  // The row of a line of a file, -1 if there is none.
  row([file, line]) {
    return line && this.first.has(file) ? this.first.get(file) + line - 1 : -1;
  }
  draw(state) {
    const text = this.model.data.blocks[state.block]?.text ?? "";
    this.block.textContent = state.exec < 0 ? "" : text;
    this.block.style.borderLeftColor = Colour.block(state.block);
    this.title.textContent = state.exec < 0 ? "" : `block ${state.block}`;
    // last: the block's text decides how high the list is
    this.list?.choose(state.exec < 0 ? -1 : this.row(this.model.spot(state.block, state.port)));
  }
}

// The layers of the model: DeltaNet upwards, MLP downwards, as many dims as each changed for this token.
class Layers {
  constructor(canvas, note, model) {
    Object.assign(this, { note, model, canvas: new Canvas(canvas), counts: null });
    if (!model.data.activity) {
      note.textContent = "Not recorded. qgpu run … --record FILE --activity keeps what every layer did.";
      canvas.hidden = true;
      this.ready = Promise.resolve();
      return;
    }
    this.layers = model.data.activity.layers;
    this.ready = this.#unpack(model.data.activity.counts);
    Tip.on(canvas, (x) => this.#tip(x));
  }
  async #unpack(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    this.counts = new Uint16Array(await new Response(stream).arrayBuffer());
    this.most = this.counts.reduce((a, b) => Math.max(a, b), 1);
  }
  // Dims that the layer's mixer (part 0) or MLP (part 1) changed.
  count(token, layer, part) {
    return this.counts[(token * this.layers + layer) * 2 + part];
  }
  draw(token) {
    if (!this.counts) return;
    this.token = token;
    const { canvas } = this;
    const [width, height] = canvas.begin(96);
    const pitch = width / this.layers, middle = 40;
    let total = 0;
    for (let layer = 0; layer < this.layers; layer++) {
      for (const part of [0, 1]) {
        const count = this.count(token, layer, part);
        total += count;
        const share = Math.log2(count + 1) / Math.log2(this.most + 1), tall = Math.max(1, share * 36);
        const colour = `oklch(${Colour.dark ? 0.74 : 0.62} 0.13 ${part ? 160 : 285} / ${count ? (0.35 + 0.65 * share).toFixed(3) : 0.12})`;
        canvas.box(colour, layer * pitch + 1, part ? middle + 1 : middle - tall, pitch - 2, tall);
      }
      if (pitch > 16 || layer % 4 === 0) canvas.text(String(layer), (layer + 0.5) * pitch, height - 9, Colour.quiet, "center");
    }
    this.note.textContent = `${total.toLocaleString("en")} changes of the residual stream wrote this token`;
  }
  #tip(x) {
    if (!this.counts) return "";
    const layer = Math.floor((x / this.canvas.element.clientWidth) * this.layers);
    if (layer < 0 || layer >= this.layers) return "";
    return `layer ${layer}\nDeltaNet changed ${this.count(this.token, layer, 0)} dims\nMLP changed ${this.count(this.token, layer, 1)} dims`;
  }
}
