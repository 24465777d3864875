// The strip: a column a day, time of day downwards, a cell a window; above, each day's worst. Trouble is drawn larger.
const box = document.getElementById("strip");
const WORST = "fbdrcLoeRC.";
const TROUBLE = "fbdr";
const MINUTE = 60_000;
const TOP = 12;
const LEFT = 44; // times of day
const BOTTOM = 20; // months

const colour = (letter) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--s-${letter === "." ? "none" : letter}`).trim();
const write = (moment) => new Date(moment).toISOString().slice(0, 16) + "Z";

class Strip {
  constructor(answer) {
    this.canvas = box.querySelector("canvas");
    this.say = document.getElementById("where");
    this.states = answer.states;
    this.perDay = (24 * 60) / answer.minutes;
    const whole = (length, step) => Array.from({ length }, (_, number) => number * step);
    // Only windows of a zone have these: days of other lengths.
    this.zone = answer.zone ?? "UTC";
    this.firsts = [...(answer.days ?? whole(Math.ceil(this.states.length / this.perDay), this.perDay)), this.states.length];
    const runs = answer.runs ?? [[Date.parse(answer.from), this.states.length]];
    this.starts = runs.flatMap(([first, number]) => whole(number, answer.minutes * MINUTE).map((by) => first + by));
    this.starts.push(Date.parse(answer.to));
    this.first = Date.parse(answer.day ?? answer.from.slice(0, 10));
    this.days = this.firsts.length - 1;
    this.slots = Math.max(...this.firsts.slice(1).map((end, day) => end - this.firsts[day]));
    this.words = new Map([...document.querySelectorAll("[data-letter]")].map((each) => [each.dataset.letter, each.lastElementChild.textContent]));
    this.at = Math.max(0, this.findTrouble(-1, 1) ?? this.states.search(/[^.]/));
    this.anchor = null;
  }

  moment(slot) {
    return this.starts[slot];
  }

  findDay(slot) {
    const next = this.firsts.findIndex((first) => first > slot);
    return next === -1 ? this.days - 1 : next - 1;
  }

  date(day) {
    return new Date(this.first + day * 24 * 60 * MINUTE);
  }

  findTrouble(from, step) {
    for (let slot = from + step; slot >= 0 && slot < this.states.length; slot += step) {
      const begins = slot - step < 0 || this.states[slot - step] !== this.states[slot];
      if (TROUBLE.includes(this.states[slot]) && begins) return slot;
    }
    return null;
  }

  draw() {
    const wide = Math.max(this.canvas.parentElement.clientWidth, 760);
    const high = TOP + 4 + Math.min(288, Math.max(36, this.slots * 12)) + BOTTOM;
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = wide * scale;
    this.canvas.height = high * scale;
    this.canvas.style.width = `${wide}px`;
    this.canvas.style.height = `${high}px`;
    this.cell = { wide: (wide - LEFT) / this.days, high: (high - TOP - 4 - BOTTOM) / this.slots };
    const paint = this.canvas.getContext("2d");
    paint.scale(scale, scale);
    const colours = new Map([...WORST].map((letter) => [letter, colour(letter)]));
    paint.fillStyle = colours.get(".");
    paint.fillRect(LEFT, 0, wide - LEFT, high - BOTTOM);
    this.label(paint, high);
    const trouble = [];
    for (let day = 0; day < this.days; day += 1) {
      const column = this.states.slice(this.firsts[day], this.firsts[day + 1]);
      for (let slot = 0, next; slot < column.length; slot = next) {
        next = slot + 1;
        while (next < column.length && column[next] === column[slot]) next += 1;
        if (TROUBLE.includes(column[slot])) trouble.push([day, slot, next, column[slot]]);
        else if (column[slot] !== ".") this.fill(paint, colours.get(column[slot]), day, slot, next);
      }
      const worst = [...WORST].find((letter) => column.includes(letter)) ?? ".";
      paint.fillStyle = colours.get(worst);
      paint.fillRect(LEFT + day * this.cell.wide, 0, Math.max(this.cell.wide, TROUBLE.includes(worst) ? 4 : 0), TOP);
    }
    for (const [day, slot, next, letter] of trouble) this.fill(paint, colours.get(letter), day, slot, next, 9, 4);
    this.outline(paint);
  }

  // Months below, with a line where each begins, and times of day at the left.
  label(paint, high) {
    const style = getComputedStyle(document.documentElement);
    paint.font = "12px system-ui, sans-serif";
    for (let day = 0; day < this.days; day += 1) {
      const date = this.date(day);
      if (date.getUTCDate() !== 1) continue;
      const x = LEFT + day * this.cell.wide;
      paint.fillStyle = style.getPropertyValue("--line");
      paint.fillRect(x, 0, 1, high);
      paint.fillStyle = style.getPropertyValue("--quiet");
      paint.fillText(date.toLocaleString("en", { month: "short", timeZone: "UTC" }), x + 4, high - 5);
    }
    for (const hour of this.slots < 4 ? [0] : [0, 6, 12, 18])
      paint.fillText(`${String(hour).padStart(2, "0")}:00`, 4, TOP + 14 + (hour / 24) * this.perDay * this.cell.high);
  }

  fill(paint, style, day, slot, next, leastWide = 0, leastHigh = 0) {
    const wide = Math.max(this.cell.wide, leastWide);
    const high = Math.max((next - slot) * this.cell.high, leastHigh);
    paint.fillStyle = style;
    paint.fillRect(LEFT + day * this.cell.wide - (wide - this.cell.wide) / 2, TOP + 4 + slot * this.cell.high, wide, high);
  }

  outline(paint) {
    const style = getComputedStyle(document.documentElement);
    paint.strokeStyle = style.getPropertyValue("--focus");
    paint.lineWidth = 2;
    const [first, last] = this.selected();
    for (let day = this.findDay(first); day <= this.findDay(last - 1); day += 1) {
      const from = Math.max(first, this.firsts[day]) - this.firsts[day];
      const to = Math.min(last, this.firsts[day + 1]) - this.firsts[day];
      const high = Math.max((to - from) * this.cell.high, 6);
      paint.strokeRect(LEFT + day * this.cell.wide - 2, TOP + 3 + from * this.cell.high, Math.max(this.cell.wide + 4, 9), high + 2);
    }
  }

  selected() {
    const other = this.anchor ?? this.at;
    return [Math.min(this.at, other), Math.max(this.at, other) + 1];
  }

  move(slot, extend) {
    this.anchor = extend ? (this.anchor ?? this.at) : null;
    this.at = Math.min(Math.max(slot, 0), this.states.length - 1);
    this.draw();
    this.tell();
  }

  tell() {
    const [first, last] = this.selected();
    const word = this.words.get(this.states[this.at]);
    this.say.textContent =
      last - first > 1
        ? `${write(this.moment(first))} to ${write(this.moment(last))}: ${last - first} windows selected. Press r to plan their repair.`
        : `${write(this.moment(this.at))} (${this.describe(this.at)}): ${word}.`;
  }

  describe(slot) {
    const at = new Date(this.moment(slot));
    const there = this.zone === "UTC" ? "" : `${at.toLocaleString([], { timeZone: this.zone })} ${this.zone}, `;
    return `${there}${at.toLocaleString()} here`;
  }

  openDay() {
    location.assign(`${box.dataset.pipeline}?day=${this.date(this.findDay(this.at)).toISOString().slice(0, 10)}`);
  }

  repair() {
    const [first, last] = this.selected();
    const bounds = new URLSearchParams({ from: write(this.moment(first)), to: write(this.moment(last)) });
    location.assign(`${box.dataset.pipeline}/range?${bounds}`);
  }

  locate(event) {
    const day = Math.min(Math.max(Math.floor((event.offsetX - LEFT) / this.cell.wide), 0), this.days - 1);
    const slot = Math.min(Math.max(Math.floor((event.offsetY - TOP - 4) / this.cell.high), 0), this.slots - 1);
    return Math.min(this.firsts[day] + slot, Math.max(this.firsts[day], this.firsts[day + 1] - 1));
  }

  neighbour(step) {
    const day = this.findDay(this.at);
    let other = day + step;
    while (this.firsts[other] === this.firsts[other + 1] && other > 0 && other < this.days) other += step; // a skipped day
    if (other < 0 || other >= this.days) return this.at;
    return Math.min(this.firsts[other] + this.at - this.firsts[day], this.firsts[other + 1] - 1);
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = {
      ArrowLeft: () => this.neighbour(-1),
      ArrowRight: () => this.neighbour(1),
      ArrowUp: () => this.at - 1,
      ArrowDown: () => this.at + 1,
    };
    const trouble = { n: 1, p: -1 };
    if (event.key in moves) this.move(moves[event.key](), event.shiftKey);
    else if (event.key in trouble) this.move(this.findTrouble(this.at, trouble[event.key]) ?? this.at, false);
    else if (event.key === "Enter") this.openDay();
    else if (event.key === "r") this.repair();
    else if (event.key === "g") document.getElementById("goto").focus();
    else if (event.key === "?") document.getElementById("help").showModal();
    else return;
    event.preventDefault();
  }

  listen() {
    let pressed = null;
    this.canvas.addEventListener("keydown", (event) => this.press(event));
    this.canvas.addEventListener("pointerdown", (event) => {
      pressed = this.locate(event);
      this.anchor = null;
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (pressed === null || this.locate(event) === pressed) return;
      this.at = pressed;
      this.anchor = pressed;
      this.move(this.locate(event), true);
    });
    this.canvas.addEventListener("pointerup", (event) => {
      const clicked = pressed !== null && this.locate(event) === pressed && this.anchor === null;
      if (clicked) {
        this.at = pressed;
        this.openDay();
      }
      pressed = null;
    });
    document.addEventListener("themechange", () => this.draw());
    addEventListener("resize", () => this.draw());
  }
}

const load = async () => {
  const say = document.getElementById("where");
  try {
    const response = await fetch(box.dataset.address);
    const answer = await response.json();
    if (!response.ok) throw new Error(response.status === 401 ? "Log in again, then load the page." : answer.detail);
    const strip = new Strip(answer);
    strip.draw();
    strip.listen();
    strip.tell();
    box.dataset.drawn = String(Math.round(performance.now()));
  } catch (error) {
    say.textContent = `The strip did not load: ${error.message}`;
    say.classList.add("bad");
  }
};

if (box) load();
