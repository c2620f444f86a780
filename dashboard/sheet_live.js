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

export default function show({ data, parentElement, setTriggerValue }) {
  if (!sheetsByParent.has(parentElement)) {
    const root = parentElement.appendChild(document.createElement("div"));
    root.className = "hw-sheet";
    const ground = document.querySelector(".stApp");
    const go = (href) => setTriggerValue("go", href);
    const loadPlotly = () => load(data.plotly);
    sheetsByParent.set(parentElement, new Sheet(root, { ground, loadPlotly, go }));
  }
  if (data.soon) load(data.plotly).catch(() => {}); // who draws with it says what went wrong
  const sheet = sheetsByParent.get(parentElement);
  sheet.write(data.html);
  return () => sheet.end();
}
