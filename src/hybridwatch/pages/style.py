"""How blocks look, on the live page and on the static one.

Colours are our own only where they mean something; ground and type are the page's. Loud is what a
person must act on: solid pills. Everything else is drawn in outline, and its line differs, too.
What is quiet has a soft colour, not ``opacity``: a browser composes each such element by itself.
"""

from typing import Final

STYLE: Final = """
:root { --hw-soft: color-mix(in srgb, currentColor 72%, transparent); }
.hw-title { font-size: 1.75rem; font-weight: 650; letter-spacing: -0.015em; line-height: 1.2;
  margin: 0 0 0.15rem; padding: 0; overflow-wrap: anywhere; }
.hw-lead { color: var(--hw-soft); margin: 0 0 0.6rem; overflow-wrap: anywhere; }
.hw-h { font-weight: 600; letter-spacing: -0.01em; line-height: 1.25; margin: 1.4rem 0 0.45rem;
  padding: 0; overflow-wrap: anywhere; }
h2.hw-h { font-size: 1.25rem; } h3.hw-h { font-size: 1.05rem; } h4.hw-h { font-size: 1rem; }
.hw-p { margin: 0.25rem 0 0.6rem; max-width: 75ch; white-space: pre-line; overflow-wrap: anywhere; }
.hw-quiet { color: var(--hw-soft); font-size: 0.85rem; overflow-wrap: anywhere; }
.hw-unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap; }
.hw-link { color: inherit; text-decoration: underline; text-underline-offset: 0.2em;
  text-decoration-color: rgba(128,128,128,0.6); }
a.hw-link:hover, a.hw-link:focus-visible { text-decoration-color: currentColor; }
:is(a, summary, pre, .hw-copy):focus-visible {
  outline: 2px solid #4c8dff; outline-offset: 2px; border-radius: 2px; }

.hw-scroll { overflow-x: auto; position: relative; }
.hw-scroll::-webkit-scrollbar { height: 0.5rem; }
.hw-scroll::-webkit-scrollbar-thumb, .hw-scroll:hover::-webkit-scrollbar-thumb {
  background: rgba(128,128,128,0.55); border-radius: 0.25rem; }
/* A table that goes on to the right fades there until it is scrolled to its end. */
@supports (animation-timeline: scroll()) {
  .hw-scroll { animation: hw-goes-on linear; animation-timeline: scroll(self inline); }
}
@keyframes hw-goes-on { 0%, 99% {
  mask-image: linear-gradient(to left, rgba(0,0,0,0.15), #000 3.5rem); } }
.hw { border-collapse: collapse; width: 100%; font-size: 0.875rem; line-height: 1.4; }
.hw-caption { text-align: left; caption-side: top; color: var(--hw-soft); padding: 0.2rem 0; }
.hw th { text-align: left; font-weight: 500; color: var(--hw-soft); padding: 0.3rem 1rem 0.3rem 0;
  border: 0; border-bottom: 1px solid rgba(128,128,128,0.45); white-space: nowrap;
  vertical-align: bottom; }
.hw td { padding: 0.45rem 1rem 0.45rem 0; border: 0;
  border-bottom: 1px solid rgba(128,128,128,0.18); vertical-align: top; }
.hw tbody tr:last-child td { border-bottom: 0; }
.hw tbody tr:hover td { background: rgba(128,128,128,0.07); }
.hw th:first-child, .hw td:first-child { padding-left: 0.6rem; }
.hw tr.hw-chosen td { background: rgba(128,128,128,0.12); }
.hw tr.hw-chosen td:first-child { box-shadow: inset 3px 0 0 currentColor; }
.hw .hw-number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.hw .hw-wide { min-width: 15rem; width: 40%; }
.hw td:not(.hw-number, .hw-whole) > div { white-space: pre-line; }
.hw-under { color: var(--hw-soft); font-size: 0.8rem; }
.hw .hw-whole { white-space: nowrap; }
.hw .hw-under:not(.hw-whole) { white-space: normal; }
.hw-spark { width: 4.5rem; height: auto; max-width: none; vertical-align: middle;
  margin-left: 0.5rem; display: inline-block; }
.hw time[title], .hw [title] { cursor: help; }

.hw-pill { display: inline-block; padding: 0.05rem 0.6rem; border-radius: 1rem; font-size: 0.8rem;
  font-weight: 600; line-height: 1.5; white-space: nowrap; border: 1.5px solid transparent; }
.hw-p > .hw-pill:first-child { margin-right: 0.35rem; }
.hw-regression { background: #b3261e; color: #fff; }
.hw-broken { background: #b3261e; color: #fff; border: 1.5px dashed #fff; }
.hw-failed { background: #7a2e6f; color: #fff; }
.hw-missing { background: #7a2e6f; color: #fff; border: 1.5px dashed #fff; }
.hw-improvement { border-color: #3b7ddd; }
.hw-equivalent { border-color: #14917d; }
.hw-inconclusive { border: 1.5px dashed #b07a10; }
.hw-not-comparable { border: 1.5px dotted #7c8794; }

.hw-notice { border: 1px solid rgba(128,128,128,0.35); border-radius: 0.5rem;
  padding: 0.6rem 0.9rem; margin: 0.5rem 0 0.8rem; overflow-wrap: anywhere; }
.hw-loud { border-color: #c2410c; border-left: 4px solid #c2410c; }
.hw-line { margin-top: 0.2rem; font-size: 0.9rem; white-space: pre-line; }
dl.hw-facts { display: grid;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 13rem), 1fr));
  gap: 0.6rem 1.4rem; margin: 0.4rem 0 0.9rem; padding: 0; }
.hw-facts dt { color: var(--hw-soft); font-size: 0.8rem; font-weight: 400; }
.hw-facts dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.hw-columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 11rem), 1fr));
  gap: 0.6rem 1.4rem; }
.hw-figures { grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }
.hw-columns > div { min-width: 0; }
pre.hw-code { background: rgba(128,128,128,0.11); border-radius: 0.4rem; padding: 0.5rem 0.7rem;
  margin: 0.15rem 0 0.6rem; font-size: 0.8rem; line-height: 1.45; white-space: pre-wrap;
  overflow-wrap: anywhere; max-height: 22rem; overflow-y: auto;
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
pre.hw-code code { font: inherit; background: none; padding: 0; color: inherit;
  white-space: inherit; }
.hw-command { position: relative; }
.hw-command pre { user-select: all; padding-right: 4.5rem; }
.hw-copy { position: absolute; right: 0.3rem; bottom: 0.9rem; border: 0; border-radius: 0.3rem;
  padding: 0.15rem 0.5rem; font: inherit; font-size: 0.75rem; color: var(--hw-soft);
  background: transparent; cursor: pointer; }
.hw-copy:hover { background: rgba(128,128,128,0.18); }
.hw-fold { border-top: 1px solid rgba(128,128,128,0.25); padding: 0.45rem 0; }
.hw-fold > summary { cursor: pointer; font-weight: 500; }
.hw-figure { margin: 0.4rem 0 1rem; }
.hw-file { font-size: 0.8rem; color: var(--hw-soft); text-decoration: none; }
.hw-quiet .hw-file { color: inherit; font-size: inherit; } /* soft of soft is too faint */
.hw-file::before { content: "\\2193\\00a0"; }
.hw-file:hover { text-decoration: underline; }

@media (max-width: 640px) {
  .hw thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px;
    overflow: hidden; }
  .hw, .hw tbody, .hw td { display: block; width: auto; min-width: 0; }
  .hw tbody tr { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr));
    column-gap: 0.6rem; padding: 0.55rem 0; border-bottom: 1px solid rgba(128,128,128,0.3); }
  .hw td, .hw td:first-child { display: flex; flex-wrap: wrap; justify-content: space-between;
    column-gap: 0.5rem; border: 0; padding: 0.12rem 0.4rem; }
  .hw td:nth-child(-n+2), .hw td.hw-wide { grid-column: 1 / -1; width: auto; }
  .hw td:nth-child(n+3)::before { content: attr(data-label); color: var(--hw-soft); flex: none; }
  .hw .hw-number, .hw .hw-wide { white-space: normal; min-width: 0; }
  .hw td:nth-child(n+3):not(.hw-wide) > div { text-align: right; margin-left: auto; }
  .hw td.hw-wide::before { display: none; }
  .hw td > div { min-width: 0; overflow-wrap: anywhere; }
  .hw .hw-spark { margin-left: 0; width: 4rem; }
  .hw td .hw-pill { font-size: 0.75rem; padding: 0.05rem 0.4rem; }
}
"""
