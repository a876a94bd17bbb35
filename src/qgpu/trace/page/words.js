// Tokens, threads and addresses in words, as the command line's listing says them.
"use strict";

class Words {
  constructor(model) {
    this.model = model;
    this.data = model.data;
    this.letters = { block: "b", quad: "q", register: "r", row: "row ", lane: "lane ", part: "part ", half: "half " };
    this.signed = new Map(this.data.arrays.map((a) => [a, !/^(u|bool|bytes)/.test(a.dtype)]));
  }

  token(id) {
    const kind = this.data.kinds.findLast((k) => k.first <= id);
    let rest = id - kind.first;
    const values = [];
    for (const [, size] of [...kind.fields].reverse()) {
      values.unshift(rest % size);
      rest = Math.floor(rest / size);
    }
    if (kind.name === "DATA") return "DATA 0x" + values[0].toString(16).padStart(4, "0");
    if (kind.name === "MASK") {
      const [lanes, leader] = this.data.maskPairs[values[1]];
      return `MASK q${values[0]} ${this.mask(lanes)} leader ${leader}`;
    }
    if (kind.name === "FAULT") return `FAULT ${this.data.causes[values[0]] ?? "cause " + values[0]}, lane ${values[1]}`;
    return [kind.name, ...kind.fields.map(([name], i) => (this.letters[name] ?? name + " ") + values[i])].join(" ");
  }

  // Lane 0 stands first.
  mask(lanes) {
    return [0, 1, 2, 3].map((i) => ((lanes >> i) & 1 ? "●" : "○")).join("");
  }

  thread(quad, lane) {
    const [x, y, z] = this.data.cta;
    const index = 4 * quad + lane;
    return coordinates([index % x, Math.floor(index / x) % y, Math.floor(index / (x * y))], this.data.cta);
  }

  threads(quad, lanes) {
    const found = [0, 1, 2, 3].filter((i) => (lanes >> i) & 1).map((i) => this.thread(quad, i));
    const run = found.length > 2 && found.every((t, i) => !t.includes("(") && +t === +found[0] + i);
    return (found.length === 1 ? "thread " : "threads ") + (run ? `${found[0]}..${found.at(-1)}` : found.join(", "));
  }

  // A byte address as an element of an array, or as what kind of memory it is.
  address(at) {
    const array = this.model.arrayAt(at);
    if (array) return this.element(array, Math.floor((at - array.address) / array.itemsize));
    const shared = this.data.sizes.sharedRow * 8;
    const hex = (n, width) => "0x" + n.toString(16).padStart(width, "0");
    return at >= shared ? `shared[${hex(at - shared, 3)}]` : `memory[${hex(at, 4)}]`;
  }

  element(array, index) {
    const parts = [];
    for (const extent of [...array.shape].reverse()) {
      parts.unshift(`[${index % extent}]`);
      index = Math.floor(index / extent);
    }
    return array.name + parts.join("");
  }

  // The element of an array, as its type reads it out of the memory words.
  value(array, index, memory) {
    const at = array.address + index * array.itemsize;
    const bytes = new DataView(memory.buffer, memory.byteOffset);
    if (array.dtype === "bytes" || ![1, 2, 4, 8].includes(array.itemsize)) {
      return "0x" + [...new Uint8Array(memory.buffer, at, Math.min(array.itemsize, 16))]
        .map((b) => b.toString(16).padStart(2, "0")).join("");
    }
    const kind = this.signed.get(array) ? "Int" : "Uint";
    const bits = 8 * array.itemsize;
    return String(bytes[`get${bits === 64 ? "Big" : ""}${kind}${bits}`](at, true));
  }

  place(block, port = "") {
    const [file, line] = this.model.spot(block, port);
    return line ? `${(file || this.data.file).split(/[\\/]/).at(-1) || "line"}:${line}` : `block ${block}`;
  }

  // The token and where it stands in its group, for those who look at one alone.
  here(token) {
    const { model } = this, s = model.stepOf[token], first = model.steps.at[s];
    const text = this.token(this.data.tokens[token]), meaning = this.meaning(token);
    const group = token > first ? `${token - first} of ${model.end(s) - first - 1} after ${this.token(this.data.tokens[first])}` : "";
    return [text, group, meaning].filter(Boolean).join("   ");
  }

  // What the token says: an EXEC who runs what, other tokens at the last of their group what has changed.
  meaning(token) {
    const { model, data } = this;
    const s = model.stepOf[token];
    const { at, quad, block, lanes, what } = model.steps;
    const kind = model.kind[s];
    const first = token === at[s];
    if (kind === "EXEC" && first) return `${this.place(block[s])}  ${this.threads(quad[s], lanes[s])}`;
    if (token !== model.end(s) - 1) return "";
    const words = model.words(s);
    if (kind === "MASK") return `${this.threads(quad[s], lanes[s])} next`;
    if (kind === "CTA") return `CTA ${coordinates(words.map(([, w]) => w), data.grid)} starts; shared memory is wiped`;
    if (kind === "BAR") return "every thread has arrived at the barrier";
    if (kind === "HALT") return "the launch is complete";
    if (kind === "FAULT") return `at ${this.place(block[s], model.portOf(s))}, thread ${this.thread(quad[s], model.steps.lane[s])}`;
    if (!words.length) return first ? "" : "(unfinished)";
    if (kind === "MEM") {
      const row = what[s];
      const known = words.filter(([i]) => model.arrayAt(8 * row + 4 * i));
      return (known.length ? known : words).map(([i, w]) => `${this.address(8 * row + 4 * i)} = ${w | 0}`).join(", ");
    }
    const numbers = words.map(([, w]) => w | 0);
    return `r${what[s]} = ${(new Set(numbers).size === 1 ? [numbers[0]] : numbers).join(", ")}`;
  }
}

function coordinates(index, size) {
  const used = size[2] > 1 ? 3 : size[1] > 1 ? 2 : 1;
  return used === 1 ? String(index[0]) : `(${index.slice(0, used).join(", ")})`;
}
