// The trace as the page holds it: columns of steps, and the machine's registers and memory at any token.
//
// `data` is what page.py writes. A step's effect stands from its last token on. States are kept at checkpoints, so that
// any token is reached by replaying a few steps.
"use strict";

class TraceModel {
  constructor(data) {
    this.data = data;
    this.length = data.tokens.length;
    this.steps = data.steps;
    this.count = this.steps.at.length;
    this.kind = this.steps.kind.map((index) => data.kinds[index].name);
    this.stepOf = new Uint32Array(this.length);
    for (let s = 0; s < this.count; s++) this.stepOf.fill(s, this.steps.at[s], this.end(s));
    this.#segments();
    this.#uses();
    this.interval = Math.max(256, Math.ceil(this.count / 256));
    this.checkpoints = [];
    const state = this.#initial();
    for (let s = 0; s < this.count; s++) {
      if (s % this.interval === 0) this.checkpoints.push(copyState(state));
      this.#apply(state, s);
    }
    this.current = this.#initial();
  }

  end(s) {
    return s + 1 < this.count ? this.steps.at[s + 1] : this.length;
  }

  // Registers [quad][lane][register], memory words, masks by quad, CTA index, the quad and block of the last EXEC, and
  // the port that the step is of, once tokens 0..token have been written. `changed`: the step whose effect the token completes, or -1.
  at(token) {
    const last = this.stepOf[token];
    const done = token === this.end(last) - 1 ? last + 1 : last;
    let state = this.current;
    if (state.next > done || done - state.next > this.interval) {
      state = copyState(this.checkpoints[Math.min(Math.floor(done / this.interval), this.checkpoints.length - 1)]);
    }
    while (state.next < done) this.#apply(state, state.next);
    this.current = state;
    const where = this.execOf(last);
    state.step = last;
    state.changed = done > last ? last : -1;
    state.exec = where;
    state.quad = where < 0 ? 0 : this.steps.quad[where];
    state.block = where < 0 ? 0 : this.steps.block[where];
    state.port = this.portOf(last);
    return state;
  }

  // The port of the block that a step tells of, "" if none.
  portOf(s) {
    if (this.kind[s] === "FAULT") return (this.data.causes[this.steps.what[s]] ?? "").split(" ")[0];
    return this.kind[s] === "MEM" ? "store" : "";
  }

  // The EXEC that a step belongs to; -1 before the first.
  execOf(step) {
    let s = step;
    while (s >= 0 && this.kind[s] !== "EXEC") s--;
    return s;
  }

  // (lane or word index, word) of what a step writes.
  words(step) {
    const { pointer, words } = this.steps;
    const found = [];
    for (let i = pointer[step]; i < pointer[step + 1]; i += 2) found.push([words[i], words[i + 1]]);
    return found;
  }

  // The next step from `step` on in a direction for which `wanted` holds; -1 if there is none.
  find(step, direction, wanted) {
    for (let s = step + direction; s >= 0 && s < this.count; s += direction) if (wanted(s)) return s;
    return -1;
  }

  // Where in the source a block stands, or its "load" or "store": [file, line], "" for the kernel's own file. Blocks
  // of no line of their own count to the one before.
  spot(block, port = "") {
    const { blocks } = this.data;
    for (let b = Math.min(block, blocks.length - 1); b >= 0; b--) {
      const spot = (b === block && blocks[b].spots[port]) || blocks[b].spots[""];
      if (spot[1]) return spot;
    }
    return ["", 0];
  }

  arrayAt(address) {
    return this.data.arrays.find((a) => a.address <= address && address < a.address + a.nbytes);
  }

  #initial() {
    const { quads, lanes, registers, rows } = this.data.sizes;
    const memory = new Uint32Array(2 * rows);
    for (const [row, low, high] of this.data.rows) {
      memory[2 * row] = low;
      memory[2 * row + 1] = high;
    }
    return {
      registers: new Uint32Array(quads * lanes * registers),
      memory,
      masks: Uint8Array.from(this.data.exist),
      cta: [0, 0, 0],
      next: 0,
    };
  }

  #apply(state, s) {
    const { what, quad, lanes } = this.steps;
    const { sizes, exist } = this.data;
    const kind = this.kind[s];
    if (kind === "MASK") state.masks[quad[s]] = lanes[s];
    else if (kind === "MEM") {
      for (const [word, value] of this.words(s)) state.memory[2 * what[s] + word] = value;
    } else if (kind === "CTA") {
      state.cta = this.words(s).map(([, value]) => value);
      state.masks.set(exist);
      state.memory.fill(0, 2 * sizes.sharedRow);
    } else if (kind === "EXEC" || kind === "VAL" || kind === "VALW") {
      for (const [lane, value] of this.words(s)) {
        state.registers[(quad[s] * sizes.lanes + lane) * sizes.registers + what[s]] = value;
      }
    }
    state.next = s + 1;
  }

  // A segment is an EXEC up to the next: what a timeline draws.
  #segments() {
    const execs = [];
    for (let s = 0; s < this.count; s++) if (this.kind[s] === "EXEC") execs.push(s);
    this.execs = execs;
    this.segments = execs.map((s, i) => ({
      step: s,
      from: this.steps.at[s],
      to: i + 1 < execs.length ? this.steps.at[execs[i + 1]] : this.length,
      quad: this.steps.quad[s],
      block: this.steps.block[s],
      lanes: this.steps.lanes[s],
    }));
    this.marks = [];
    for (let s = 0; s < this.count; s++) {
      if (["BAR", "CTA", "FAULT", "HALT"].includes(this.kind[s]) || this.steps.atomic[s]) this.marks.push(s);
    }
  }

  #uses() {
    const quads = new Set(), registers = new Set(), rows = new Set(this.data.rows.map(([row]) => row));
    for (let s = 0; s < this.count; s++) {
      if (this.kind[s] === "EXEC") quads.add(this.steps.quad[s]);
      if (this.kind[s] === "MEM") rows.add(this.steps.what[s]);
      else if (this.steps.pointer[s] < this.steps.pointer[s + 1] && this.kind[s] !== "CTA") registers.add(this.steps.what[s]);
    }
    for (const array of this.data.arrays) {
      for (let row = array.address >> 3; row <= (array.address + Math.max(array.nbytes, 1) - 1) >> 3; row++) rows.add(row);
    }
    const sorted = (set) => [...set].sort((a, b) => a - b);
    this.usedQuads = sorted(quads);
    this.usedRegisters = sorted(registers);
    this.usedRows = sorted(rows);
  }
}

function copyState(state) {
  return {
    registers: state.registers.slice(),
    memory: state.memory.slice(),
    masks: state.masks.slice(),
    cta: [...state.cta],
    next: state.next,
  };
}
