/* page_style.c: what all pages have: their first and last lines, the style sheet, the script. */
#include "page/page_style.h"

#include "page/page.h"
#include "page/page_hash.h"

/* Texts, figures, marks. */
static void style_figures(struct text_buffer *out) {
    text_add_string(
        out,
        "<style>\n"
        ":root{color-scheme:light dark;--bg:#fff;--fg:#1a1c1f;--soft:#5a6068;--line:#dfe2e6;--box:#f5f6f8;"
        "--warn:#fdf3e3;--edge:#c77700}\n"
        "@media(prefers-color-scheme:dark){:root{--bg:#16181c;--fg:#e6e8ea;--soft:#a3abb4;--line:#343a41;"
        "--box:#1f2328;--warn:#33281a;--edge:#e69f00}.s0{--c:#2487cb!important}}\n"
        "*{box-sizing:border-box}.day{white-space:nowrap}"
        "body{margin:0 auto;padding:1.2rem 1.5rem 4rem;max-width:1180px;background:var(--bg);color:var(--fg);"
        "font:15px/1.5 system-ui,sans-serif}\n"
        "h1{font-size:1.6rem;margin:.2rem 0}"
        "h2{font-size:1.15rem;margin:2.2rem 0 .6rem;padding-top:.4rem;border-top:1px solid var(--line)}"
        "h3{font-size:1rem;margin:1.4rem 0 .4rem}p{margin:.4rem 0}a{color:inherit}\n"
        "nav{display:flex;flex-wrap:wrap;gap:.2rem 1rem;color:var(--soft);font-size:.9rem;margin:.4rem 0 0}"
        ".soft{color:var(--soft)}\n"
        "#warnings{background:var(--warn);border-left:4px solid var(--edge);padding:.1rem 1rem .5rem;margin:1rem 0}"
        "#warnings h3{margin:.5rem 0 .2rem}ul{margin:.2rem 0;padding-left:1.2rem;overflow-wrap:anywhere}\n"
        "h1{overflow-wrap:anywhere}dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1.2rem;margin:0}"
        "@media(min-width:900px){dl{grid-template-columns:max-content 1fr max-content 1fr}}dt{color:var(--soft)}"
        "dd{margin:0;overflow-wrap:anywhere}\n");
    text_add_string(
        out,
        ".grid .wide{grid-column:1/-1}"
        ".grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr));gap:1rem}"
        "figure{margin:0;padding:.8rem;background:var(--box);border-radius:6px;break-inside:avoid;min-width:0;"
        "container-type:inline-size}"
        "figcaption{font-weight:600;font-size:.9rem;margin-bottom:.3rem}\n"
        "figcaption span{display:block;font-weight:400;font-size:.8rem;color:var(--soft)}\n"
        "svg{display:block;width:100%;height:auto;overflow:visible;font:11px system-ui,sans-serif;fill:var(--fg)}\n"
        ".w700,.w320{display:none}@container(max-width:909.9px){.w1000{display:none}}"
        "@container(min-width:640px) and (max-width:909.9px){.w700{display:block}}"
        "@container(max-width:639.9px){.wide .w320{display:block}}"
        "@container(max-width:473.9px){.w520{display:none}.w320{display:block}}\n"
        ".large figure{overflow-x:auto}.large .w1000{display:block!important;min-width:940px}"
        ".large .w520{display:block!important;min-width:490px}.large .w700,.large .w320{display:none!important}\n"
        ".off,[hidden]{display:none!important}.legend [data-k]{cursor:pointer}[aria-pressed=false]{opacity:.45;"
        "text-decoration:line-through}\n"
        "#tip{position:fixed;z-index:1;max-width:min(92vw,26rem);padding:.35rem .6rem;border-radius:4px;"
        "background:var(--fg);color:var(--bg);font-size:.8rem;line-height:1.35;white-space:pre-line;"
        "overflow-wrap:anywhere;pointer-events:none}\n"
        ".tools{display:flex;flex-wrap:wrap;gap:.4rem .8rem;align-items:center;font-size:.85rem;margin:.4rem 0}"
        ".tools button,.tools input{font:inherit;color:inherit;background:var(--box);border:1px solid var(--soft);"
        "border-radius:4px;padding:.15rem .6rem}.tools button{font-weight:400}\n"
        ".legend{display:flex;flex-wrap:wrap;gap:.1rem .9rem;font-size:.82rem;margin:.2rem 0 .5rem}"
        ".legend span{display:inline-flex;align-items:center;gap:.35rem}"
        ".legend svg{width:14px;height:12px;flex:none}\n"
        ".s0{--c:#0072b2}.s1{--c:#d55e00}.s2{--c:#009e73}.s3{--c:#e69f00}.s4{--c:#cc79a7}.s5{--c:#56b4e9}"
        ".s6{--c:#8c8c8c}.s7{--c:#f0e442}.s8{--c:var(--fg)}\n"
        ".m{fill:var(--c);stroke:var(--fg);stroke-width:.6;stroke-opacity:.55}"
        ".l{stroke:var(--c);stroke-width:1.8;fill:none}.w{stroke:var(--c);stroke-width:1.2;opacity:.8;fill:none}"
        ".b{fill:var(--c);stroke:var(--box);stroke-width:.5}.a{fill:var(--c)}.h{fill:transparent}"
        ".h:hover{fill:var(--fg);fill-opacity:.18}.g{stroke:var(--line);stroke-width:1}"
        ".t{stroke:var(--soft);stroke-width:.7;opacity:.35}"
        ".r{stroke:var(--soft);stroke-width:1.4;stroke-dasharray:5 4;fill:none}"
        ".d{stroke:var(--c);stroke-width:2.2;stroke-linecap:round;opacity:.55}.n{fill:var(--soft)}"
        ".o{paint-order:stroke;stroke:var(--box);stroke-width:3px;stroke-linejoin:round}.many .m{stroke-width:.25}"
        ".many .m:hover,.m:hover{stroke-width:2.5;stroke-opacity:1}\n");
}
/* Tables, small screens, prints. */
static void style_tables(struct text_buffer *out) {
    text_add_string(
        out,
        ".scroll{overflow-x:auto}"
        "table{border-collapse:collapse;font-size:.76rem;font-variant-numeric:tabular-nums;width:100%}"
        "td,th{padding:.2rem .32rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}"
        "tbody th{text-align:left;font-weight:500}"
        "thead th{white-space:normal;vertical-align:bottom;background:var(--box)}"
        "thead th:first-child{text-align:left}tbody tr:hover{background:var(--box)}small{color:var(--soft)}\n"
        "button{all:unset;cursor:pointer;font-weight:600}"
        ":focus-visible{outline:2px solid var(--edge)}"
        "th[aria-sort=ascending] button::after{content:' \\25B2'}"
        "th[aria-sort=descending] button::after{content:' \\25BC'}\n"
        "@media(max-width:600px){body{padding:.8rem .8rem 3rem}figure{padding:.6rem}dl{grid-template-columns:1fr}"
        "dd{margin-bottom:.4rem}}\n"
        "@media print{:root{color-scheme:light;--bg:#fff;--fg:#000;--soft:#444;--line:#ccc;--box:#fff;--warn:#fff;"
        "--edge:#000}body{max-width:none;padding:0;font-size:10pt}nav,.tools,#tip{display:none}"
        ".scroll{overflow:visible}"
        "table{font-size:6.5pt}td,th{padding:1pt 2pt}thead{display:table-header-group;break-inside:avoid}"
        "tfoot{display:table-row-group}tr,p,li{break-inside:avoid}h2,h3,h2~p,h3~p{break-after:avoid}"
        ".grid{grid-template-columns:1fr 1fr;gap:.4rem}figure{padding:.3rem}.grid .w320{max-width:280px!important}"
        ".w700{max-width:560px!important}h2{margin-top:1.4rem}"
        "*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}\n"
        "</style>\n");
}

void page_style(struct text_buffer *out) {
    style_figures(out);
    style_tables(out);
}

/* ---- the script */
static const char SCRIPT_WORDS[] =
    "'use strict'\n"
    "const all = (query, from = document) => [...from.querySelectorAll(query)]\n"
    "const make = (tag, text, parent) => { const e = document.createElement(tag); e.textContent = text; "
    "parent.append(e); return e }\n"
    "const press = (e, on) => e.setAttribute('aria-pressed', on)\n"
    "const isPressed = e => e.getAttribute('aria-pressed') == 'true'\n";

/* Titles of marks: a drawing that has none takes those of the drawing before, which has the same marks. Arrows go from
 * mark to mark. */
static const char SCRIPT_TITLES[] =
    "const tip = make('div', '', document.body)\n"
    "tip.id = 'tip'\n"
    "tip.hidden = true\n"
    "tip.setAttribute('aria-hidden', 'true')\n"
    "const show = e => {\n"
    "  tip.hidden = !e\n"
    "  if (!e) return\n"
    "  tip.textContent = e.dataset.t\n"
    "  const at = e.getBoundingClientRect(), own = tip.getBoundingClientRect()\n"
    "  const left = Math.min(at.left + at.width / 2 - own.width / 2, "
    "document.documentElement.clientWidth - own.width - 4)\n"
    "  tip.style.left = Math.max(4, left) + 'px'\n"
    "  tip.style.top = (at.top < own.height + 10 ? Math.min(at.bottom + 8, innerHeight - own.height - 4) "
    ": at.top - own.height - 8) + 'px'\n"
    "}\n"
    "let titles = []\n"
    "for (const figure of all('figure')) {\n"
    "  if (document.body.matches('.large')) figure.tabIndex = 0\n"
    "  for (const svg of all(':scope > svg', figure)) {\n"
    "    const marks = all('.m,.q,.h', svg)\n"
    "    const own = marks.map(m => { const t = m.querySelector('title'), text = t?.textContent; t?.remove(); "
    "return text })\n"
    "    if (own.some(t => t)) titles = own\n"
    "    if (marks.length) svg.setAttribute('role', 'group')\n"
    "    marks.forEach((m, i) => {\n"
    "      m.dataset.t = titles[i]\n"
    "      m.setAttribute('role', 'img')\n"
    "      m.setAttribute('aria-label', titles[i])\n"
    "      m.setAttribute('tabindex', i ? -1 : 0)\n"
    "    })\n"
    "    svg.onkeydown = e => {\n"
    "      const shown = marks.filter(m => m.getClientRects().length), i = "
    "shown.indexOf(document.activeElement), last = shown.length - 1\n"
    "      const to = {ArrowRight: i + 1, ArrowDown: i + 1, ArrowLeft: i - 1, ArrowUp: i - 1, Home: 0, "
    "End: last}[e.key]\n"
    "      if (to === undefined || i < 0) return\n"
    "      e.preventDefault()\n"
    "      shown[Math.min(Math.max(to, 0), last)].focus()\n"
    "    }\n"
    "  }\n"
    "}\n"
    "const marked = e => e.target.closest?.('[data-t]')\n"
    "for (const type of ['pointerover', 'pointerdown', 'focusin']) document.addEventListener(type, e => "
    "show(marked(e)))\n"
    "document.addEventListener('focusout', () => show(null))\n"
    "document.addEventListener('scroll', () => show(document.activeElement.dataset?.t ? "
    "document.activeElement : null), {passive: true})\n"
    "document.addEventListener('keydown', e => { if (e.key == 'Escape') show(null) })\n";

/* A legend's item hides its series. */
static const char SCRIPT_SERIES[] =
    "for (const item of all('.legend [data-k]')) {\n"
    "  const figure = item.closest('figure'), twins = all(`.legend [data-k=${item.dataset.k}]`, figure)\n"
    "  const flip = () => {\n"
    "    const on = !isPressed(item)\n"
    "    for (const twin of twins) press(twin, on)\n"
    "    for (const e of all(`:scope > svg .${item.dataset.k}`, figure)) e.classList.toggle('off', !on)\n"
    "  }\n"
    "  item.setAttribute('role', 'button')\n"
    "  item.setAttribute('tabindex', 0)\n"
    "  press(item, true)\n"
    "  item.onclick = flip\n"
    "  item.onkeydown = e => { if (e.key == ' ' || e.key == 'Enter') { e.preventDefault(); flip() } }\n"
    "}\n";

/* A button for each data set hides it. */
static const char SCRIPT_SETS[] =
    "const sets = [...new Set(all('[data-set]').map(e => e.dataset.set))]\n"
    "if (sets.length > 1) {\n"
    "  const tools = make('p', 'Data sets: ', document.querySelector('header'))\n"
    "  tools.className = 'tools'\n"
    "  for (const set of sets) {\n"
    "    const own = all(`[data-set=\"${set}\"]`), button = make('button', "
    "own[0].querySelector('h3').textContent, tools)\n"
    "    press(button, true)\n"
    "    button.onclick = () => {\n"
    "      press(button, !isPressed(button))\n"
    "      for (const e of own) e.classList.toggle('off', !isPressed(button))\n"
    "    }\n"
    "  }\n"
    "}\n";

/* Tables are filtered by the words of their columns of texts, copied as shown, and sorted: numbers by value, cells
 * without a number last, texts (class x) by their letters. */
static const char SCRIPT_TABLES[] =
    "const copy = async text => {\n"
    "  try { await navigator.clipboard.writeText(text) } catch {\n"
    "    const box = make('textarea', text, document.body)\n"
    "    box.select()\n"
    "    document.execCommand('copy')\n"
    "    box.remove()\n"
    "  }\n"
    "}\n"
    "for (const scroll of all('.scroll')) {\n"
    "  const table = scroll.querySelector('table'), tools = document.createElement('p')\n"
    "  tools.className = 'tools'\n"
    "  scroll.before(tools)\n"
    "  if (table.matches('.sort')) {\n"
    "    const input = make('input', '', make('label', 'Filter ', tools))\n"
    "    input.type = 'search'\n"
    "    input.oninput = () => {\n"
    "      const words = input.value.toLowerCase().split(/\\s+/)\n"
    "      for (const r of table.tBodies[0].rows) {\n"
    "        const text = all('th,.x', r).map(c => c.textContent).join(' ').toLowerCase()\n"
    "        r.hidden = !words.every(w => text.includes(w))\n"
    "      }\n"
    "    }\n"
    "  }\n"
    "  const button = make('button', 'Copy as CSV', tools)\n"
    "  const said = make('span', '', tools)\n"
    "  said.setAttribute('role', 'status')\n"
    "  button.onclick = async () => {\n"
    "    const rows = [...table.rows].filter(r => r.getClientRects().length)\n"
    "    await copy(rows.map(r => [...r.cells].map(c => '\"' + c.textContent.trim().replaceAll('\"', '\"\"') "
    "+ '\"').join(',')).join('\\n') + '\\n')\n"
    "    said.textContent = ` ${rows.length - 1} rows copied`\n"
    "  }\n"
    "}\n"
    "for (const b of all('table.sort button')) b.onclick = () => {\n"
    "  const h = b.parentNode, body = h.closest('table').tBodies[0], i = h.cellIndex\n"
    "  const way = h.getAttribute('aria-sort') == 'ascending' ? -1 : 1\n"
    "  const isText = h.matches('.x')\n"
    "  const value = r => isText ? r.cells[i].textContent : parseFloat(r.cells[i].dataset.v ?? "
    "r.cells[i].textContent)\n"
    "  for (const other of h.parentNode.cells) other.removeAttribute('aria-sort')\n"
    "  h.setAttribute('aria-sort', way > 0 ? 'ascending' : 'descending')\n"
    "  const rows = [...body.rows].map(r => [value(r), r])\n"
    "  rows.sort((x, y) => isText ? way * x[0].localeCompare(y[0]) : isNaN(x[0]) - isNaN(y[0]) || way * (x[0] - "
    "y[0]) || 0)\n"
    "  body.append(...rows.map(x => x[1]))\n"
    "}\n";

void page_script(struct text_buffer *out) {
    text_add_string(out, SCRIPT_WORDS);
    text_add_string(out, SCRIPT_TITLES);
    text_add_string(out, SCRIPT_SERIES);
    text_add_string(out, SCRIPT_SETS);
    text_add_string(out, SCRIPT_TABLES);
}
void page_begin(struct text_buffer *out, const struct text_buffer *script) {
    char hash[PAGE_HASH_BYTES];
    page_hash(script->data, script->bytes, hash);
    page_add(out,
             "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
             "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
             "<meta name=\"referrer\" content=\"no-referrer\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
             "style-src 'unsafe-inline'; script-src 'sha256-%s'\">\n",
             hash);
}
void page_end(struct text_buffer *out, const struct text_buffer *script) {
    text_add_string(out, "<script>");
    text_add(out, script->data, script->bytes);
    text_add_string(out, "</script>\n</body></html>\n");
}
