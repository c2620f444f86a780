// The address of the view that is shown becomes whole, which is no step of the browser's history,
// and a link opens in place, as one step. Streamlit itself would make it one and two.
(() => {
  const { address, goal } = document.currentScript.dataset;
  const open = (href) => {
    history.pushState({}, "", href);
    dispatchEvent(new PopStateEvent("popstate")); // what Streamlit hears when a reader goes back
  };
  const whole = new URL(address ?? "", location.href);
  if (goal) open(goal);
  else if (whole.pathname === location.pathname) history.replaceState(history.state, "", whole);
  if (window.linksOpenInPlace) return;
  window.linksOpenInPlace = true;
  document.addEventListener("click", (event) => {
    const href = event.target.closest("a.hw-link")?.getAttribute("href");
    const { metaKey, ctrlKey, shiftKey, altKey } = event; // the reader wants it elsewhere
    if (!href || href.includes("://") || metaKey || ctrlKey || shiftKey || altKey) return;
    event.preventDefault();
    open(href);
    // Streamlit does so too, but not always when the next view is there at once.
    document.querySelector("[data-testid=stMain]")?.scrollTo(0, 0);
  });
})();
