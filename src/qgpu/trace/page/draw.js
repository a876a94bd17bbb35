// Colours and canvases: what every drawn part of the page shares.
"use strict";

const Colour = {
  // CSS variables of the theme, read once a theme.
  theme() {
    const style = getComputedStyle(document.documentElement);
    const get = (name) => style.getPropertyValue(name).trim();
    Colour.dark = get("--dark") === "1";
    for (const name of ["ink", "quiet", "line", "panel", "accent", "fault", "faint"]) Colour[name] = get("--" + name);
    Colour.blocks = new Map();
  },
  // Neighbouring blocks get hues far apart.
  block(block, alpha = 1) {
    const key = block + "/" + alpha;
    let found = Colour.blocks.get(key);
    if (!found) {
      const hue = (block * 137.508 + 250) % 360;
      const light = (Colour.dark ? 0.68 : 0.66) + 0.07 * ((block % 3) - 1);
      found = `oklch(${light} 0.115 ${hue} / ${alpha})`;
      Colour.blocks.set(key, found);
    }
    return found;
  },
  // A word as heat: hue by sign, strength by its logarithm; nothing for zero.
  heat(word) {
    const value = word | 0;
    if (value === 0) return null;
    const strength = 0.16 + 0.84 * (Math.log2(Math.abs(value) + 1) / 31);
    return `oklch(${Colour.dark ? 0.72 : 0.64} 0.14 ${value < 0 ? 250 : 50} / ${strength.toFixed(3)})`;
  },
};

class Canvas {
  constructor(element) {
    this.element = element;
    this.context = element.getContext("2d");
  }
  // Clear, at the size that the element has on the screen; gives [width, height] in CSS pixels.
  begin(height = this.element.clientHeight) {
    const width = this.element.clientWidth, scale = window.devicePixelRatio || 1;
    if (this.element.width !== Math.round(width * scale) || this.element.height !== Math.round(height * scale)) {
      this.element.width = Math.round(width * scale);
      this.element.height = Math.round(height * scale);
      this.element.style.height = height + "px";
    }
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    this.context.clearRect(0, 0, width, height);
    this.context.font = "10px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
    return [width, height];
  }
  box(colour, x, y, width, height) {
    this.context.fillStyle = colour;
    this.context.fillRect(x, y, width, height);
  }
  frame(colour, x, y, width, height, line = 1) {
    this.context.strokeStyle = colour;
    this.context.lineWidth = line;
    this.context.strokeRect(x, y, width, height);
  }
  text(text, x, y, colour, align = "left") {
    this.context.fillStyle = colour;
    this.context.textAlign = align;
    this.context.textBaseline = "middle";
    this.context.fillText(text, x, y);
  }
}

const Tip = {
  show(event, text) {
    const tip = document.getElementById("tip");
    tip.textContent = text;
    tip.hidden = !text;
    if (!text) return;
    const x = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
    const y = event.clientY + 18 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18;
    tip.style.transform = `translate(${Math.max(4, x)}px, ${y}px)`;
  },
  hide() {
    document.getElementById("tip").hidden = true;
  },
  // Ask `text(x, y)` (CSS pixels in the element) while the pointer is over it.
  on(element, text) {
    element.addEventListener("pointermove", (event) => {
      const box = element.getBoundingClientRect();
      Tip.show(event, text(event.clientX - box.left, event.clientY - box.top) || "");
    });
    element.addEventListener("pointerleave", Tip.hide);
  },
};
