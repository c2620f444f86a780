// The live page: what Python tells the component `sheet.py`, and what the reader does to it.

const sheetsByParent = new WeakMap();
let plotly;

document.head.appendChild(document.createElement("style")).textContent = STYLE;

function load(address) {
  plotly ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = address;
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => {
      plotly = undefined; // the next figure tries again
      script.remove();
      reject(new Error(`${address} did not load`));
    };
    document.head.append(script);
  });
  return plotly;
}

/** Open another view: one step of the history, and what Streamlit does when a reader goes back. */
function go(href) {
  history.pushState({}, "", href);
  dispatchEvent(new PopStateEvent("popstate"));
}

/** Complete the address of the view that is shown, unless the reader has left it already. */
function complete(address) {
  const whole = new URL(address, location.href);
  if (whole.pathname === location.pathname) history.replaceState(history.state, "", whole);
}

export default function show({ data, parentElement }) {
  if (!sheetsByParent.has(parentElement)) {
    const root = parentElement.appendChild(document.createElement("div"));
    root.className = "hw-sheet";
    const ground = document.querySelector(".stApp");
    const loadPlotly = () => load(data.plotly);
    sheetsByParent.set(parentElement, new Sheet(root, { ground, loadPlotly, go }));
  }
  if (data.soon) load(data.plotly).catch(() => {}); // who draws with it says what went wrong
  if (data.address) complete(data.address);
  const sheet = sheetsByParent.get(parentElement);
  sheet.write(data.html);
  return () => sheet.end();
}
