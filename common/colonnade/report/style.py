"""The page's style sheet: light and dark, wide and narrow, screen and paper."""

CSS = """
:root { color-scheme: light dark;
  --paper: #ffffff; --page: #f4f5f7; --ink: #1c2330; --muted: #5b6576; --line: #dde1e7;
  --accent: #2b62b5; --good: #1d7a4f; --bad: #b3261e; --bad-soft: #fdecea; --soft: #eef3fb; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #171b22; --page: #0e1116; --ink: #e4e8ee; --muted: #9aa5b4; --line: #2d3440;
  --accent: #86b2f5; --good: #63c795; --bad: #ff8f85; --bad-soft: #3a1917; --soft: #1c2635; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 24px 20px 48px; }
header h1 { font-size: 26px; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 0 0 4px; }
h3 { font-size: 14px; margin: 22px 0 6px; }
p { margin: 6px 0 10px; max-width: 76ch; }
section, header { background: var(--paper); border: 1px solid var(--line); border-radius: 10px;
  padding: 20px 22px; margin-bottom: 16px; }
code { font: 12.5px/1.4 ui-monospace, "Liberation Mono", monospace; overflow-wrap: anywhere; }
bdi { overflow-wrap: anywhere; }
.muted, figcaption, .note { color: var(--muted); font-size: 13px; }
.badge { display: inline-block; padding: 1px 9px; border-radius: 99px; font-size: 13px;
  font-weight: 600; border: 1px solid currentColor; margin-left: 8px; vertical-align: 3px; }
.finished { color: var(--good); } .failed, .cancelled { color: var(--bad); }
.running, .proposed { color: var(--accent); }
.alarm { background: var(--bad-soft); color: var(--bad); border: 2px solid var(--bad);
  border-radius: 10px; padding: 12px 18px; margin-bottom: 16px; }
.alarm strong { font-size: 20px; letter-spacing: .04em; }
.promise { background: var(--soft); border-left: 4px solid var(--accent); padding: 12px 16px;
  margin: 14px 0; max-width: none; font-size: 16px; }
.failure { background: var(--bad-soft); border-left: 4px solid var(--bad); padding: 10px 16px;
  margin: 14px 0; max-width: none; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 10px;
  margin: 14px 0 4px; padding: 0; list-style: none; }
.tiles li { border: 1px solid var(--line); border-radius: 8px; padding: 9px 12px; }
.tiles b { display: block; font-size: 19px; line-height: 1.3; font-variant-numeric: tabular-nums; }
.tiles span { color: var(--muted); font-size: 12.5px; display: block; line-height: 1.35; }
.scroll { overflow-x: auto; margin: 8px 0 4px; }
table { border-collapse: collapse; font-size: 13.5px; min-width: 50%; }
th, td { padding: 5px 12px 5px 0; text-align: left; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { color: var(--muted); font-weight: 600; font-size: 12.5px; vertical-align: bottom; }
td bdi { display: inline-block; min-width: min-content; max-width: 38ch; }
td.text { min-width: 11ch; } th.figure { min-width: 8ch; }
th.figure, td.figure { text-align: right; font-variant-numeric: tabular-nums; }
td.figure { white-space: nowrap; }
tr.total td { font-weight: 600; }
details { margin: 10px 0 2px; }
summary { cursor: pointer; color: var(--accent); font-size: 13.5px; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 430px), 1fr));
  gap: 18px 28px; margin: 14px 0; align-items: start; }
figure { margin: 0; min-width: 0; }
figure svg { width: 100%; height: auto; display: block; max-width: 560px; }
figure h3 { margin: 0 0 4px; }
@media (max-width: 560px) { main { padding: 10px 8px 32px; } section, header { padding: 14px; }
  header h1 { font-size: 21px; } .tiles { grid-template-columns: 1fr 1fr; } }
@media print {
  :root { --paper: #fff; --page: #fff; --ink: #000; --muted: #444; --line: #bbb; --accent: #234;
    --good: #151; --bad: #a11; --bad-soft: #fff; --soft: #fff; color-scheme: light; }
  body { font-size: 10.5pt; } main { max-width: none; padding: 0; }
  section, header { border: 0; padding: 0; margin-bottom: 14pt; }
  figure, tr, .tiles, .promise, .alarm { break-inside: avoid; } h2, h3 { break-after: avoid; }
  .plots { grid-template-columns: 1fr 1fr; } .scroll { overflow: visible; }
  td bdi { max-width: none; } * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
