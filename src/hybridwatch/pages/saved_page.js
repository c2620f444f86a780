// What a saved page does: it draws its figures in the page's colours, copies commands, and tells
// the reader's own time.

const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => draw(target)));
const places = document.querySelectorAll(".hw-plot");
for (const place of places) {
  place.style.minHeight = `${place.dataset.height}px`;
  sizes.observe(place);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => places.forEach(draw));

/** Draw a figure, unless it is there already as it should be; without room nothing should. */
function draw(place) {
  const isFull = document.fullscreenElement === place;
  const { color, fontFamily, backgroundColor } = getComputedStyle(document.body);
  const height = isFull ? innerHeight : Number(place.dataset.height);
  const wanted = [place.clientWidth, height, backgroundColor].join();
  if (place.clientWidth === 0 || place.dataset.drawn === wanted) return;
  const isFirst = !place.dataset.drawn;
  place.dataset.drawn = wanted;
  const host = isFirst ? place.appendChild(document.createElement("div")) : place.lastChild;
  const { data, layout } = JSON.parse(place.querySelector("script").textContent);
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

/** Open the run of a point, where the page knows its dashboard. */
function open(place, point) {
  const { runs } = place.dataset;
  if (runs && point?.customdata) location.assign(runs + encodeURIComponent(point.customdata.at(-1)));
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
