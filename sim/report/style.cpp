#include "sim/report/style.h"

namespace ballast::sim {

const char* const style_sheet = R"(
:root { color-scheme: light dark;
  --ink: #1b1f24; --faint: #5b6470; --paper: #ffffff; --line: #dfe3e8; --panel: #f6f8fa;
  --good: #00664f; --bad: #a83e00; --unsure: #5b6470;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #b5558a; --c4: #8a6d00; --c5: #3a9bd0;
  --h0: #08306b; --h1: #08519c; --h2: #3182bd; --h3: #7fb5db; --h4: #c2dcee; --h5: #ececec;
  --h6: #fdd9b0; --h7: #fdae6b; --h8: #e6660d; --h9: #8c2d04; }
@media (prefers-color-scheme: dark) { :root {
  --ink: #e6e9ed; --faint: #9aa4b0; --paper: #14171b; --line: #31373f; --panel: #1c2026;
  --good: #2fc9a0; --bad: #ff9a56; --unsure: #9aa4b0;
  --c0: #4aa8e0; --c1: #ff8a3d; --c2: #2fc9a0; --c3: #e79ac4; --c4: #e0c04a; --c5: #9ad4f5;
  --h0: #9fd0ff; --h1: #6baed6; --h2: #4292c6; --h3: #2c6ea3; --h4: #244866; --h5: #33363b;
  --h6: #6b4423; --h7: #a85b1c; --h8: #f08a35; --h9: #ffc78f; } }
@media print { :root { color-scheme: light;
  --ink: #000000; --faint: #444444; --paper: #ffffff; --line: #cccccc; --panel: #ffffff;
  --good: #00664f; --bad: #a83e00; --unsure: #444444;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #b5558a; --c4: #8a6d00; --c5: #3a9bd0;
  --h0: #08306b; --h1: #08519c; --h2: #3182bd; --h3: #7fb5db; --h4: #c2dcee; --h5: #ececec;
  --h6: #fdd9b0; --h7: #fdae6b; --h8: #e6660d; --h9: #8c2d04; }
  body { max-width: none; padding: 0; print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
body { margin: 0 auto; max-width: 1200px; padding: 1.5rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2rem 0 0.5rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.5rem 0 0.5rem; overflow-wrap: anywhere; }
h4 { font-size: 0.95rem; margin: 1rem 0 0.3rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.9rem; }
th, td { padding: 0.25rem 0.75rem; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
thead th { color: var(--faint); font-weight: 600; }
tbody th { font-weight: 400; }
.number { text-align: right; white-space: nowrap; }
code, pre { font-family: ui-monospace, monospace; font-size: 0.85rem; overflow-x: auto; }
.badge { font-size: 0.8rem; font-weight: 600; padding: 0.1rem 0.5rem; border-radius: 0.3rem;
  border: 1px solid var(--unsure); color: var(--unsure); vertical-align: middle; white-space: nowrap; }
.pass, .healthy { border-color: var(--good); color: var(--good); }
.fail, .failed, .collapsed { border-color: var(--bad); color: var(--bad); }
.note, .missing { color: var(--faint); font-size: 0.85rem; }
.missing { font-style: italic; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 500px), 1fr));
  gap: 1rem; align-items: start; }
figure { margin: 0; padding: 0.75rem; background: var(--panel); border-radius: 0.4rem;
  break-inside: avoid; }
figure svg { width: 100%; height: auto; display: block; font-variant-numeric: tabular-nums; }
figcaption { font-size: 0.9rem; margin-bottom: 0.4rem; overflow-wrap: anywhere; }
.key { display: inline-block; margin-right: 0.9rem; font-size: 0.85rem; color: var(--faint); }
figure svg.swatch, svg.swatch { display: inline-block; width: 22px; height: 8px; margin-right: 0.3rem; }
svg.square { display: inline-block; width: 0.8em; height: 0.8em; margin-right: 0.3rem;
  outline: 1px solid var(--line); vertical-align: -0.08em; }
.tick { font: 11px system-ui, sans-serif; fill: var(--faint); }
.grid { stroke: var(--line); stroke-width: 1; }
.reference { stroke: var(--faint); stroke-width: 1.5; stroke-dasharray: 2 3; fill: none; }
.series { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
.dashed { stroke-dasharray: 6 3; }
.c0 { stroke: var(--c0); } .c1 { stroke: var(--c1); } .c2 { stroke: var(--c2); }
.c3 { stroke: var(--c3); } .c4 { stroke: var(--c4); } .c5 { stroke: var(--c5); }
.series circle { fill: var(--panel); stroke-dasharray: none; }
.h0 { fill: var(--h0); } .h1 { fill: var(--h1); } .h2 { fill: var(--h2); } .h3 { fill: var(--h3); }
.h4 { fill: var(--h4); } .h5 { fill: var(--h5); } .h6 { fill: var(--h6); } .h7 { fill: var(--h7); }
.h8 { fill: var(--h8); } .h9 { fill: var(--h9); }
)";

}  // namespace ballast::sim
