// What a page does in the browser with the HTML of a document: it draws the figures and copies
// commands. The live page and the saved one share this; each says where plotly comes from.

// A figure is drawn once, and at first where somebody looks: what is only half in sight comes right
// after, the rest when the page has been left alone for a while, comes into sight or is printed.
const IN_SIGHT = 0.5;
const REST_MS = 1000;
const BETWEEN_MS = 10;

const sheets = new Set();
const figures = new Map();
let timer;
let rests = false;

const sight = new IntersectionObserver(
  (entries) => {
    for (const { target, intersectionRatio } of entries)
      figures.get(target)?.seen(intersectionRatio);
  },
  { threshold: [0, IN_SIGHT] },
);
const sizes = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) figures.get(target)?.resized(contentRect.width);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
  sheets.forEach((sheet) => sheet.check()),
);
addEventListener("beforeprint", () => figures.forEach((figure) => figure.draw()));

/** Draw, one after the other, the figures that wait; what is partly in sight does not wait long. */
function drawRest() {
  clearTimeout(timer);
  const waiting = [...figures.values()].filter((figure) => figure.isWaiting);
  if (waiting.length === 0) return;
  const next = waiting.reduce((best, figure) => (figure.ratio > best.ratio ? figure : best));
  timer = setTimeout(
    async () => {
      rests = next.ratio === 0;
      if (await next.draw()) drawRest();
    },
    rests || next.ratio > 0 ? BETWEEN_MS : REST_MS,
  );
}

/** A figure, in an element that is moved when the page around it is written anew. */
class Figure {
  /** How much of it is in sight. */
  ratio = 0;
  #host = document.createElement("div");
  #sheet;
  #place;
  #text;
  #width = 0;
  #drawn = {};

  constructor(sheet) {
    this.#sheet = sheet;
    figures.set(this.#host, this);
    sight.observe(this.#host);
    sizes.observe(this.#host);
  }

  /** Stand in a place and show what it holds. */
  show(place) {
    this.#place = place;
    this.#text = place.querySelector("script").textContent;
    this.#host.style.minHeight = `${place.dataset.height}px`;
    place.append(this.#host);
    this.check();
  }

  seen(ratio) {
    this.ratio = ratio;
    this.check();
  }

  resized(width) {
    this.#width = width;
    this.check();
  }

  /** Whether what is drawn is not what should be; without room nothing should. */
  get isWaiting() {
    return this.#width > 0 && differs(this.#wanted(), this.#drawn);
  }

  check() {
    const waits = this.#width === 0 || this.isWaiting;
    this.#place.dataset.waits = waits;
    if (waits && this.ratio >= IN_SIGHT) this.draw();
    else if (waits) drawRest();
  }

  /** Draw it, or say why it cannot be; then whoever looks at it next tries again. */
  async draw() {
    try {
      const plotly = await this.#sheet.loadPlotly();
      if (this.isWaiting) await this.#drawWith(plotly);
      return true;
    } catch (error) {
      globalThis.Plotly?.purge(this.#host);
      this.#drawn = {};
      this.#host.textContent = `This figure could not be drawn: ${error.message}.`;
      return false;
    }
  }

  #wanted() {
    const isFull = document.fullscreenElement === this.#host;
    const height = isFull ? innerHeight : Number(this.#place.dataset.height);
    return { ...this.#sheet.look, text: this.#text, width: this.#width, height };
  }

  async #drawWith(plotly) {
    const wanted = this.#wanted();
    const { width, height } = wanted;
    const isFirst = !this.#drawn.text;
    const isNew = differs({ ...this.#drawn, width, height }, wanted);
    this.#drawn = wanted;
    if (isFirst) this.#host.replaceChildren(); // what an earlier try said
    if (isFirst || isNew) {
      const { data, layout } = JSON.parse(wanted.text);
      await plotly.react(this.#host, data, themed(layout, wanted), this.#configuration(plotly));
    } else await plotly.relayout(this.#host, { width, height }); // what was zoomed into stays
    if (isFirst) this.#host.on("plotly_click", ({ points }) => this.#clicked(points[0]));
    this.check();
  }

  #configuration({ Icons }) {
    const click = () =>
      document.fullscreenElement ? document.exitFullscreen() : this.#host.requestFullscreen();
    return {
      displaylogo: false,
      showSendToCloud: false, // nothing leaves the page
      plotlyServerURL: "",
      // A frame drawn with the zoom button, and two clicks, do the same; nothing is selected.
      modeBarButtonsToRemove: ["zoomIn2d", "zoomOut2d", "autoScale2d", "select2d", "lasso2d"],
      modeBarButtonsToAdd: [{ name: "Full screen", icon: Icons.autoscale, click }],
      toImageButtonOptions: { format: "png", filename: this.#place.dataset.name, scale: 2 },
    };
  }

  #clicked(point) {
    const { runs } = this.#place.dataset;
    if (runs && point?.customdata) this.#sheet.go(runs + encodeURIComponent(point.customdata.at(-1)));
  }

  end() {
    sight.unobserve(this.#host);
    sizes.unobserve(this.#host);
    figures.delete(this.#host);
    globalThis.Plotly?.purge(this.#host);
    this.#host.remove();
  }
}

function differs(one, other) {
  return Object.keys(one).some((key) => one[key] !== other[key]);
}

/** Give a layout the page's colours and type, which an image of it then has, too. */
function themed(layout, { color, fontFamily, backgroundColor, width, height }) {
  const font = { ...layout.font, color, family: fontFamily };
  const ground = { paper_bgcolor: backgroundColor, plot_bgcolor: backgroundColor };
  return { ...layout, ...ground, font, width, height, clickmode: "event" };
}

/** A part of a page. */
class Sheet {
  #root;
  #ground;
  #html;
  #shown = new Map();

  /**
   * @param root The element that holds it.
   * @param ground The element whose colour lies behind it.
   * @param loadPlotly Gives plotly, when a figure is to be drawn.
   * @param go Opens another view of the dashboard.
   */
  constructor(root, { ground, loadPlotly, go }) {
    this.#root = root;
    this.#ground = ground;
    this.loadPlotly = loadPlotly;
    this.go = go;
    root.addEventListener("click", (event) => this.#clicked(event));
    sheets.add(this);
    this.#see();
  }

  /** Write it, anew only if it says something else; what the reader unfolded stays so. */
  write(html) {
    if (html === this.#html) return this.check();
    this.#see();
    const folded = () => [...this.#root.querySelectorAll("details")];
    const open = folded().map((details) => details.open);
    this.#root.innerHTML = html;
    folded().forEach((details, nth) => (details.open = open[nth] ?? false));
    this.#html = html;
    this.enliven();
  }

  /** Draw the figures of what is written; those that were there are changed in place. */
  enliven() {
    rests = false;
    const left = this.#shown;
    this.#shown = new Map();
    const times = {};
    for (const place of this.#root.querySelectorAll(".hw-plot")) {
      const { name } = place.dataset;
      times[name] = (times[name] ?? 0) + 1;
      const key = `${name} ${times[name]}`;
      this.#shown.set(key, left.get(key) ?? new Figure(this));
      left.delete(key);
      this.#shown.get(key).show(place);
    }
    left.forEach((figure) => figure.end());
  }

  /** Draw anew what should look otherwise, as after a change of colours. */
  check() {
    this.#see();
    this.#shown.forEach((figure) => figure.check());
  }

  #see() {
    const { color, fontFamily } = getComputedStyle(this.#root);
    this.look = { color, fontFamily, backgroundColor: getComputedStyle(this.#ground).backgroundColor };
  }

  #clicked(event) {
    const button = event.target.closest(".hw-copy");
    if (button) copy(button);
    const href = event.target.closest("a.hw-link")?.getAttribute("href");
    const { metaKey, ctrlKey, shiftKey, altKey } = event; // the reader wants it elsewhere
    if (!href || href.includes("://") || metaKey || ctrlKey || shiftKey || altKey) return;
    event.preventDefault();
    this.go(href);
  }

  end() {
    this.#shown.forEach((figure) => figure.end());
    this.#shown.clear();
    sheets.delete(this);
  }
}

async function copy(button) {
  const code = button.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {
    getSelection().selectAllChildren(code); // without https there is no clipboard
    document.execCommand("copy");
  }
  button.textContent = "Copied";
}
