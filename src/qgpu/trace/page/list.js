// A list of any length of which only the rows in sight are elements.
//
// Browsers bound the height of an element. A list that would be higher is given the highest height, and its scroll bar
// then moves by more than a row: the place on the bar says which row stands first.
"use strict";

class VirtualList {
  static HIGHEST = 8_000_000;

  // fill(row element, index): puts a row's content in. pick(index): a row was clicked.
  constructor(element, count, height, fill, pick) {
    Object.assign(this, { element, count, height, fill, pick, rows: [], chosen: -1 });
    this.whole = Math.min(count * height, VirtualList.HIGHEST);
    this.inner = document.createElement("div");
    this.inner.className = "inner";
    this.inner.style.height = this.whole + "px";
    element.replaceChildren(this.inner);
    element.addEventListener("scroll", () => this.draw(), { passive: true });
    this.inner.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (row) this.pick(+row.dataset.index);
    });
    new ResizeObserver(() => this.draw()).observe(element);
  }

  // Pixels that the list would be scrolled by if it had its full height.
  get top() {
    const { element, count, height, whole } = this, sight = element.clientHeight;
    return whole > sight ? (element.scrollTop / (whole - sight)) * (count * height - sight) : 0;
  }
  set top(pixels) {
    const { element, count, height, whole } = this, sight = element.clientHeight;
    const most = count * height - sight;
    element.scrollTop = most > 0 ? (Math.max(0, Math.min(pixels, most)) / most) * (whole - sight) : 0;
  }

  choose(index) {
    const { element, height, top } = this, sight = element.clientHeight;
    this.chosen = index;
    if (index * height < top || (index + 1) * height > top + sight) this.top = index * height - sight / 2;
    this.draw();
  }

  draw() {
    const { element, height, count, top } = this, sight = element.clientHeight;
    const first = Math.max(0, Math.floor(top / height) - 2);
    const wanted = Math.max(0, Math.min(count - first, Math.ceil(sight / height) + 5));
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
      row.style.transform = `translateY(${element.scrollTop + index * height - top}px)`;
      row.classList.toggle("chosen", index === this.chosen);
      if (row.dataset.index !== String(index)) {
        row.dataset.index = index;
        this.fill(row, index);
      }
    });
  }
}
