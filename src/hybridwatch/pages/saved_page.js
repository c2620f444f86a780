// What a saved page does: it draws its figures in the page's colours, copies commands, and tells
// the reader's own time.

const figures = new Map();
const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => draw(target)));
const places = document.querySelectorAll(".hw-plot");
for (const place of places) {
  place.style.minHeight = `${place.dataset.height}px`;
  read(place);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => places.forEach(draw));

async function read(place) {
  const { type, textContent } = place.querySelector("script");
  figures.set(place, type === "text/plain" ? await unpack(textContent) : textContent);
  sizes.observe(place);
}

/** Give a text that the page holds compressed. */
function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed), (each) => each.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

/** Draw a figure, unless it is there already as it should be; without room nothing should. */
function draw(place) {
  const isFull = document.fullscreenElement === place;
  const { color, fontFamily, backgroundColor } = getComputedStyle(document.body);
  const height = isFull ? innerHeight : Number(place.dataset.height);
  const wanted = [place.clientWidth, height, backgroundColor].join();
  if (place.clientWidth === 0 || !figures.has(place) || place.dataset.drawn === wanted) return;
  const isFirst = !place.dataset.drawn;
  place.dataset.drawn = wanted;
  const host = isFirst ? place.appendChild(document.createElement("div")) : place.lastChild;
  const { data, layout } = JSON.parse(figures.get(place));
  const look = { font: { ...layout.font, color, family: fontFamily }, height };
  const ground = { paper_bgcolor: backgroundColor, plot_bgcolor: backgroundColor };
  const size = { width: place.clientWidth, clickmode: "event" };
  Plotly.react(host, data, { ...layout, ...look, ...ground, ...size }, configuration(place));
  if (isFirst) host.on("plotly_click", ({ points }) => open(place, points[0]));
}

function configuration(place) {
  const click = () =>
    document.fullscreenElement ? document.exitFullscreen() : place.requestFullscreen();
  return {
    displaylogo: false,
    showSendToCloud: false, // nothing leaves the page
    plotlyServerURL: "",
    // A frame drawn with the zoom button, and two clicks, do the same; nothing is selected.
    modeBarButtonsToRemove: ["zoomIn2d", "zoomOut2d", "autoScale2d", "select2d", "lasso2d"],
    modeBarButtonsToAdd: [{ name: "Fullscreen", icon: Plotly.Icons.autoscale, click }],
    toImageButtonOptions: { format: "png", filename: place.dataset.name, scale: 2 },
  };
}

/** Open the run of a point, where the page knows its dashboard, or lies next to the run's page. */
function open(place, point) {
  const { runs, suffix = "", gone = "" } = place.dataset;
  const run = point?.customdata?.at(-1);
  if (runs && run && !gone.split(" ").includes(run))
    location.assign(runs + encodeURIComponent(run) + suffix);
}

/** Write what a packed page leaves out: roles, and the names of columns for rows that are cards. */
for (const table of document.querySelectorAll("table.hw:not([role])")) {
  table.setAttribute("role", "table");
  const names = Array.from(table.rows[0].cells, (cell) => cell.textContent);
  for (const part of table.querySelectorAll("thead, tbody")) part.setAttribute("role", "rowgroup");
  for (const row of table.rows) {
    row.setAttribute("role", "row");
    Array.from(row.cells).forEach((cell, at) => {
      cell.setAttribute("role", cell.tagName === "TH" ? "columnheader" : "cell");
      if (cell.tagName === "TD") cell.dataset.label = names[at];
    });
  }
}

for (const file of document.querySelectorAll(".hw-file[data-csv]")) {
  file.addEventListener("click", async (event) => {
    event.preventDefault();
    const csv = new Blob([await unpack(file.dataset.csv)], { type: "text/csv" });
    const href = URL.createObjectURL(csv);
    Object.assign(document.createElement("a"), { href, download: file.download }).click();
  });
}

for (const button of document.querySelectorAll(".hw-copy")) {
  button.addEventListener("click", async () => {
    const code = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      getSelection().selectAllChildren(code); // without https there is no clipboard
      document.execCommand("copy");
    }
    button.textContent = "Copied";
  });
}

for (const time of document.querySelectorAll("time")) {
  const local = new Date(time.dateTime).toLocaleString(undefined, { timeZoneName: "short" });
  time.title = [time.title, local].filter(Boolean).join("\n");
}
