// Links between views open in place, as one step of the browser's history; and the address of the
// view that is shown becomes whole, which is none. Streamlit itself would make it one.
(() => {
  const whole = new URL(document.currentScript.dataset.address, location.href);
  if (whole.pathname === location.pathname) history.replaceState(history.state, "", whole);
  if (window.linksOpenInPlace) return;
  window.linksOpenInPlace = true;
  document.addEventListener("click", (event) => {
    const href = event.target.closest("a.hw-link")?.getAttribute("href");
    const { metaKey, ctrlKey, shiftKey, altKey } = event; // the reader wants it elsewhere
    if (!href || href.includes("://") || metaKey || ctrlKey || shiftKey || altKey) return;
    event.preventDefault();
    history.pushState({}, "", href);
    dispatchEvent(new PopStateEvent("popstate")); // what Streamlit hears when a reader goes back
  });
})();
