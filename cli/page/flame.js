/* flame.js: the flame chart. Boxes are in four rows: stages, passes and decode steps, blocks, operations. There are
 * three views, as in speedscope: by time, Left Heavy and Sandwich. */
{
const data = JSON.parse(document.querySelector('#data').textContent)
const figure = document.querySelector('#flame figure'), svg = figure.querySelector('svg.flame')
const LEVELS = ['stage', 'pass, step', 'block', 'operation'], byTime = LEVELS.map(() => [])
const add = (row, name, begin, end, parent, more) => {
  const node = {row, name, begin, end, parent, children: [], ...more}
  byTime[row].push(node)
  parent?.children.push(node)
  return node
}
const stages = data.stages.map(([name, begin, ns, host]) =>
  add(0, name, begin, begin + ns, null, host ? {kind: 6} : {}))
const groups = data.groups.map(([stage, name, begin, ns, whole]) =>
  add(1, name, begin, begin + ns, stages[stage], {part: !whole}))
for (const [stage, group, block, begin, list] of data.runs) {
  const parent = group < 0 ? stages[stage] : groups[group]
  const holder = block < 0 ? parent : add(2, 'block ' + block, begin, begin, parent)
  let at = begin
  for (let i = 0; i < list.length; i += 3) {
    const call = data.calls[list[i]], from = at + list[i + 1]
    at = from + list[i + 2]
    add(3, data.names[call[0]], from, at, holder, {kind: call[2], call, flops: call[4], bytes: call[5]})
  }
  if (block >= 0) holder.end = at
}
for (const row of byTime) row.sort((x, y) => x.begin - y.begin)

/* Left Heavy and Sandwich: boxes with the same name (block 0 and block 1 count as one) below one box become one, the
 * longest first. An item is a box with the time that counts: its own, or that of the callee whose callers are shown. */
const bare = node => node.name.replace(/ \d+$/, '')
const timed = at => ({at, ns: at.end - at.begin})
const sum = (list, of) => list.reduce((all, x) => all + of(x), 0)
const callees = list => list.flatMap(i => i.at.children.map(timed))
const callers = list => list.flatMap(i => i.at.parent ? [{at: i.at.parent, ns: i.ns}] : [])
const grouped = list => {
  const groups = new Map()
  for (const i of list) {
    const name = bare(i.at)
    if (!groups.has(name)) groups.set(name, [])
    groups.get(name).push(i)
  }
  return [...groups].map(([name, own]) => ({name, own, ns: sum(own, i => i.ns)})).sort((x, y) => y.ns - x.ns)
}
const lay = (levels, list, from, step, next, begin, parent) => {
  for (const {name, own, ns} of grouped(list)) {
    const at = own[0].at, call = step >= 0 && at.call, row = step ? from : at.row /* 0: as in the view by time */
    const node = {row, name, begin, end: begin + ns, parent, kind: at.kind, calls: own.length, up: step < 0,
      part: own.some(i => i.at.part), call: own.every(i => i.at.call == call) && call,
      flops: call && sum(own, i => i.at.flops), bytes: call && sum(own, i => i.at.bytes)}
    levels[row].push(node)
    lay(levels, next(own), from + step, step, next, begin, node)
    begin += ns
  }
}
const leftHeavy = LEVELS.map(() => [])
lay(leftHeavy, stages.map(timed), 0, 0, callees, 0, null)
const functions = grouped(byTime.flat().map(timed))
const sandwich = name => {
  const levels = [...LEVELS, ...LEVELS, ''].map(() => []), own = functions.find(f => f.name == name).own
  lay(levels, own, 4, 1, callees, 0, null)
  const [middle] = levels[4]
  lay(levels, callers(own), 3, -1, callers, 0, middle)
  const used = levels.filter(level => level.length), at = used.indexOf(levels[4])
  used.forEach((level, i) => { for (const node of level) node.row = i })
  return {rows: used, total: middle.end, heads: used.map((_, i) => i < at ? 'caller' : i > at ? 'callee' : 'selected')}
}
const VIEWS = {
  'Time Order': () => ({rows: byTime, total: data.total, heads: LEVELS, title: 'the whole request'}),
  'Left Heavy': () => ({rows: leftHeavy, total: data.total, heads: LEVELS, title: 'the whole request, longest first'}),
  'Sandwich': () => ({...sandwich(chosen.value), title: `${chosen.value}, with callers above and callees below`})}
let {rows, total, heads, title} = VIEWS['Time Order']()

/* The title of a box. */
const round = (x, digits) => +x.toPrecision(digits)
const time = ns =>
  ns >= 1e6 ? round(ns / 1e6, 4) + ' ms' : ns >= 1e3 ? round(ns / 1e3, 3) + ' \u00b5s' : ns ? ns + ' ns' : '0 ms'
const amount = (x, unit) => {
  let i = 0
  for (; x >= 999.5 && i < 5; i++) x /= 1000
  return round(x, 3) + ' ' + ['', 'k', 'M', 'G', 'T', 'P'][i] + unit
}
const percent = share => round(100 * share, 3) + ' %'
const path = node => node ? [...path(node.parent), node.name] : []
const top = node => node.parent ? top(node.parent) : node
const says = box => {
  const n = box.nodes[0], last = box.nodes[box.nodes.length - 1]
  if (box.nodes.length > 1) return [
    `${box.nodes.length} boxes (${heads[n.row]}), ${time(box.ns)} together`,
    path(n).join(' \u203a '), 'to ' + path(last).join(' \u203a '),
    n.calls ? '' : `from ${time(n.begin)} to ${time(last.end)}`, `${percent(box.ns / data.total)} of the request`,
    'a click shows them apart'].filter(line => line).join('\n')
  const ns = n.end - n.begin, stage = top(n), lines = [path(n).join(n.up ? ' \u2039 ' : ' \u203a '), n.calls
    ? `${n.calls} call${n.calls == 1 ? '' : 's'}, ${time(ns)} together, ${time(ns / n.calls)} each`
    : `starts at ${time(n.begin)}, takes ${time(ns)}`]
  lines.push(percent(ns / data.total) + ' of the request'
    + (n.parent ? `, ${percent(ns / (stage.end - stage.begin))} of ${stage.name}` : ''))
  if (n.part) lines.push('its operations are not in this page')
  if (n.call) {
    const [, part, , shape] = n.call
    lines.push('part ' + data.parts[part] + (shape.length ? ', shape ' + shape.join(' \u00d7 ') : ''))
  }
  if (n.flops) lines.push(amount(n.flops, 'FLOP') + (ns ? ', ' + amount(n.flops / ns * 1e9, 'FLOP/s') : ''))
  if (n.bytes) lines.push(amount(n.bytes, 'B') + (ns ? ', ' + amount(n.bytes / ns * 1e9, 'B/s') : ''))
  return lines.join('\n')
}

/* Drawing. Boxes too narrow to distinguish become one, in the colour of the kind that takes most of it. */
const TOP = 26, ROW = 26, LETTER = 6.8
let view = [0, total], past = [], boxes = [], held = null, width = 0, left = 0
const element = (tag, attributes, parent) => {
  const e = document.createElementNS(svg.namespaceURI, tag)
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value)
  parent.append(e)
  return e
}
const write = (x, y, text, parent, more) => element('text', {x, y, ...more}, parent).textContent = text
const place = t => left + (t - view[0]) / (view[1] - view[0]) * (width - left)
const boxesOf = row => {
  const found = []
  let open = null
  for (const n of row) {
    if (n.end <= view[0] || n.begin >= view[1]) continue
    const x = Math.max(place(n.begin), left), end = Math.min(place(n.end), width)
    if (end - x >= 2) {
      open = null
      found.push({nodes: [n], x, end})
    } else if (open && x - open.end < 1 && end - open.x < 8 && open.nodes[0].parent == n.parent) {
      open.nodes.push(n)
      open.end = Math.max(open.end, end)
    } else {
      open = {nodes: [n], x, end: Math.max(end, x + 1)}
      found.push(open)
    }
  }
  for (const box of found) {
    const sums = {}
    box.ns = 0
    for (const n of box.nodes) {
      box.ns += n.end - n.begin
      sums[n.kind] = (sums[n.kind] ?? 0) + n.end - n.begin
    }
    const kinds = Object.keys(sums).filter(k => k != 'undefined')
    box.kind = kinds.length ? kinds.reduce((x, y) => sums[y] > sums[x] ? y : x) : null
  }
  return found
}
const drawAxis = height => {
  const most = Math.max(2, (width - left) / 90), raw = (view[1] - view[0]) / 1e6 / most
  const power = 10 ** Math.floor(Math.log10(raw)), step = power * ([1, 2, 5].find(s => s * power >= raw) ?? 10)
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9))
  let used = -1e9
  for (let i = Math.ceil(view[0] / 1e6 / step - 1e-9); i * step <= view[1] / 1e6 * (1 + 1e-12); i++) {
    const x = place(i * step * 1e6), text = (i * step).toFixed(digits) + (used < 0 ? ' ms' : '')
    const half = text.length * LETTER / 2
    const middle = Math.min(Math.max(x, left + half), width - half)
    element('path', {class: 'g', d: `M${x.toFixed(1)} ${TOP - 8}V${height}`}, svg)
    if (middle - half < used) continue
    write(middle, TOP - 12, text, svg, {'text-anchor': 'middle', class: 'n'})
    used = middle + half + 8
  }
}
const label = (name, px) => {
  const wide = name.match(/[mwMW]/g)?.length ?? 0 /* one and a half times as wide as others */
  const most = Math.floor((px - 7) / LETTER - wide / 2)
  return name.length <= most ? name : most >= 5 ? name.slice(0, most - 1) + '\u2026' : ''
}
const draw = px => {
  const style = getComputedStyle(figure), height = TOP + ROW * rows.length
  const off = new Set(all('.legend [aria-pressed=false]', figure).map(e => e.dataset.k))
  width = Math.floor(px ?? figure.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight))
  left = width >= 620 ? 72 : 0
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`)
  svg.replaceChildren()
  drawAxis(height)
  boxes = []
  for (let r = 0; r < rows.length; r++) {
    const y = TOP + r * ROW
    if (left) write(0, y + 16, heads[r], svg, {class: 'n'})
    for (const box of boxesOf(rows[r])) {
      const n = box.nodes[0], w = box.end - box.x, kind = box.kind == null ? 'n' : 'k s' + box.kind
      const classes = kind + (n.part ? ' part' : '') + (off.has('s' + box.kind) ? ' off' : '')
      const g = element('g', {class: classes, role: 'button', tabindex: -1}, svg)
      const text = box.nodes.length == 1 ? label(n.name, w) : ''
      element('rect', {x: box.x.toFixed(1), y: y + 1, width: Math.max(1, w - (w > 4 ? 1 : 0)).toFixed(1),
        height: ROW - 4, rx: w > 8 ? 2 : 0}, g)
      if (text) write((box.x + 4).toFixed(1), y + 16, text, g, {'aria-hidden': true})
      g.dataset.t = says(box)
      g.setAttribute('aria-label', g.dataset.t.replaceAll('\n', '; '))
      boxes.push(Object.assign(box, {g, row: r}))
    }
  }
  const first = boxes.find(b => b.nodes.includes(held)) ?? boxes[0]
  first?.g.setAttribute('tabindex', 0)
  return first
}

/* Moving: the buttons, their effects, and the line that describes what is shown. */
const loose = () => document.createElement('div')
const views = make('p', 'View: ', loose()), bar = make('p', '', loose()), places = make('p', 'Go to: ', loose())
const said = make('p', '', loose())
views.className = bar.className = places.className = 'tools'
said.className = 'soft'
said.setAttribute('role', 'status')
svg.before(views, bar, places)
svg.after(said)
const tell = () => {
  const [from, to] = view, isWhole = from == 0 && to == total
  const around = n => n.begin <= from && n.end >= to && n.end > n.begin
  const within = rows.slice(0, -1).map(row => row.find(around)).filter(n => n).pop()
  const merged = boxes.filter(b => b.nodes.length > 1).reduce((sum, b) => sum + b.nodes.length, 0)
  const what = isWhole ? title : path(within).join(' \u203a ') || 'a part of the request'
  const span = rows != byTime ? time(to - from)
    : `${time(from)} to ${time(to)}` + (isWhole ? '' : `, ${time(to - from)} long`)
  said.textContent = `Shown: ${what}, ${span}.`
    + (merged ? ` ${merged} boxes are too narrow here and drawn together.` : '')
  const idle = {past: !past.length, zoomed: isWhole}
  for (const b of all('button', bar)) b.disabled = idle[b.dataset.when] ?? false
}
const go = (from, to, keep) => {
  const ns = Math.min(Math.max(to - from, Math.min(1000, total)), total)
  from = Math.min(Math.max(from, 0), total - ns)
  if (!keep && (from != view[0] || from + ns != view[1])) past.push(view)
  view = [from, from + ns]
  const inside = svg.contains(document.activeElement), first = draw()
  show(null)
  if (inside && first) first.g.focus()
  tell()
}
const back = () => { if (past.length) { view = past.pop(); go(...view, true) } }
const whole = () => go(0, total)
const scale = by => {
  const [a, b] = view, half = (b - a) * by / 2, isHeldShown = held && held.begin < b && held.end > a
  const middle = isHeldShown ? (Math.max(a, held.begin) + Math.min(b, held.end)) / 2 : (a + b) / 2
  go(middle - half, middle + half)
}
const move = by => go(view[0] + by * (view[1] - view[0]), view[1] + by * (view[1] - view[0]))
const BUTTONS = [['Whole request', whole, 'zoomed'], ['Back', back, 'past'], ['Zoom in', () => scale(0.5)],
  ['Zoom out', () => scale(2), 'zoomed'], ['Earlier', () => move(-0.5), 'zoomed'], ['Later', () => move(0.5), 'zoomed']]
for (const [text, does, when] of BUTTONS) {
  const button = make('button', text, bar)
  button.onclick = does
  if (when) button.dataset.when = when
}
for (const stage of byTime[0]) make('button', stage.name, places).onclick = () => {
  const box = rows == byTime ? stage : leftHeavy[0].find(n => n.name == bare(stage))
  held = box
  go(box.begin, box.end)
}
const setView = name => {
  const chosenFor = held && functions.find(f => f.name == bare(held))
  if (name == 'Sandwich' && chosenFor) chosen.value = chosenFor.name;
  ({rows, total, heads, title} = VIEWS[name]())
  for (const b of all('button', views)) b.ariaCurrent = b.textContent == name
  chosen.hidden = name != 'Sandwich'
  places.hidden = name == 'Sandwich'
  held = null
  past = []
  go(0, total, true)
}
for (const name of Object.keys(VIEWS)) make('button', name, views).onclick = () => setView(name)
const chosen = make('select', '', views)
chosen.setAttribute('aria-label', 'Name shown in the Sandwich view')
for (const {name, own, ns} of functions) {
  const self = ns - sum(callees(own), i => i.ns)
  make('option', `${name}: total ${time(ns)}, self ${time(self)}, ${own.length} \u00d7`, chosen).value = name
}
chosen.onchange = () => { held = null; setView('Sandwich') }

/* Zooming by a click or Enter, and the keys. */
const enter = box => {
  const n = box.nodes[0], last = box.nodes[box.nodes.length - 1]
  held = n
  if (n.row < rows.length - 1 || box.nodes.length > 1) go(n.begin, last.end)
  const same = boxes.find(b => b.nodes.includes(n))
  if (same) show(same.g)
}
const boxOf = target => boxes.find(b => b.g == target?.closest?.('g'))
svg.onclick = e => { const box = boxOf(e.target); if (box) enter(box) }
const keep = box => {
  for (const b of boxes) b.g.setAttribute('tabindex', b == box ? 0 : -1)
  held = box.nodes[0]
  box.g.focus()
}
const near = (box, row) => {
  const at = box.x + 0.5, inRow = boxes.filter(b => b.row == row && !b.g.matches('.off'))
  const far = b => at < b.x ? b.x - at : at > b.end ? at - b.end : 0
  if (inRow.length) return inRow.reduce((a, b) => far(b) < far(a) ? b : a)
  return row > 0 && row < rows.length - 1 ? near(box, row + (row > box.row ? 1 : -1)) : null
}
svg.onkeydown = e => {
  const box = boxOf(document.activeElement)
  if (!box || e.ctrlKey || e.metaKey || e.altKey) return
  const row = boxes.filter(b => b.row == box.row && !b.g.matches('.off')), i = row.indexOf(box)
  const to = {ArrowRight: row[i + 1], ArrowLeft: row[i - 1], Home: row[0], End: row[row.length - 1],
    ArrowUp: box.row > 0 ? near(box, box.row - 1) : null,
    ArrowDown: box.row < rows.length - 1 ? near(box, box.row + 1) : null}
  const does = {Enter: () => enter(box), ' ': () => enter(box), Backspace: back}[e.key]
  if (e.key in to || does) e.preventDefault()
  if (to[e.key]) keep(to[e.key])
  else if (does) { held = box.nodes[0]; does() }
}
/* These keys work as in speedscope, wherever the focus is. */
const KEYS = {1: () => setView('Time Order'), 2: () => setView('Left Heavy'), 3: () => setView('Sandwich'),
  0: whole, '+': () => scale(0.5), '=': () => scale(0.5), '-': () => scale(2), _: () => scale(2),
  a: () => move(-0.25), d: () => move(0.25)}
addEventListener('keydown', e => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches?.('input,select')) return
  const box = boxOf(document.activeElement)
  if (box) held = box.nodes[0]
  KEYS[e.key.toLowerCase()]?.()
})
svg.addEventListener('focusin', e => { const box = boxOf(e.target); if (box) held = box.nodes[0] })
let drawn = 0
const fit = () => { if (figure.clientWidth != drawn) { drawn = figure.clientWidth; draw(); tell() } }
setView('Time Order')
new ResizeObserver(fit).observe(figure)
addEventListener('beforeprint', () => draw(690))
addEventListener('afterprint', () => draw())
fit()
}
