// A list of any length of which only the rows in sight are elements.
"use strict";

class VirtualList {
  // fill(row element, index): puts a row's content in. pick(index): a row was clicked.
  constructor(element, count, height, fill, pick) {
    Object.assign(this, { element, count, height, fill, pick, rows: [], chosen: -1 });
    this.inner = document.createElement("div");
    this.inner.className = "inner";
    this.inner.style.height = count * height + "px";
    element.replaceChildren(this.inner);
    element.addEventListener("scroll", () => this.draw(), { passive: true });
    this.inner.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (row) this.pick(+row.dataset.index);
    });
    new ResizeObserver(() => this.draw()).observe(element);
  }

  choose(index) {
    const { element, height } = this;
    this.chosen = index;
    const top = index * height, sight = element.clientHeight;
    const now = element.scrollTop;
    if (top < now || top + height > now + sight) element.scrollTop = Math.max(0, top - sight / 2);
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.element.scrollTop / this.height) - 2);
    const wanted = Math.min(this.count - first, Math.ceil(this.element.clientHeight / this.height) + 5);
    while (this.rows.length < wanted) {
      const row = document.createElement("div");
      row.className = "row";
      this.inner.append(row);
      this.rows.push(row);
    }
    this.rows.forEach((row, i) => {
      row.hidden = i >= wanted;
      if (row.hidden) return;
      const index = first + i;
      row.style.transform = `translateY(${index * this.height}px)`;
      row.classList.toggle("chosen", index === this.chosen);
      if (row.dataset.index !== String(index)) {
        row.dataset.index = index;
        this.fill(row, index);
      }
    });
  }
}
