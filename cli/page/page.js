/* page.js: the script of all pages: titles by pointer, finger and keyboard; series and data sets that can be hidden;
 * tables that can be sorted, filtered and copied. Without it the page still shows all its contents. */
'use strict'
const all = (query, from = document) => [...from.querySelectorAll(query)]
const make = (tag, text, parent) => {
  const e = document.createElement(tag)
  e.textContent = text
  parent.append(e)
  return e
}
const press = (e, on) => e.setAttribute('aria-pressed', on)
const isPressed = e => e.getAttribute('aria-pressed') == 'true'

/* Titles of marks. Arrow keys go from mark to mark. */
const tip = make('div', '', document.body)
tip.id = 'tip'
tip.hidden = true
tip.setAttribute('aria-hidden', 'true')
const show = e => {
  tip.hidden = !e
  if (!e) return
  tip.textContent = e.dataset.t
  const at = e.getBoundingClientRect(), own = tip.getBoundingClientRect()
  const left = Math.min(at.left + at.width / 2 - own.width / 2, document.documentElement.clientWidth - own.width - 4)
  tip.style.left = Math.max(4, left) + 'px'
  const below = Math.min(at.bottom + 8, innerHeight - own.height - 4)
  tip.style.top = (at.top < own.height + 10 ? below : at.top - own.height - 8) + 'px'
}
for (const svg of all('figure > svg[viewBox]')) {
  const marks = all('.m,.q', svg)
  svg.parentNode.tabIndex = 0
  if (marks.length) svg.setAttribute('role', 'group')
  marks.forEach((m, i) => {
    const title = m.querySelector('title')
    m.dataset.t = title.textContent
    m.setAttribute('role', 'img')
    m.setAttribute('aria-label', title.textContent)
    m.setAttribute('tabindex', i ? -1 : 0)
    title.remove()
  })
  svg.onkeydown = e => {
    const shown = marks.filter(m => m.getClientRects().length)
    const i = shown.indexOf(document.activeElement), last = shown.length - 1
    const to = {ArrowRight: i + 1, ArrowDown: i + 1, ArrowLeft: i - 1, ArrowUp: i - 1, Home: 0, End: last}[e.key]
    if (to === undefined || i < 0) return
    e.preventDefault()
    shown[Math.min(Math.max(to, 0), last)].focus()
  }
}
const marked = e => e.target.closest?.('[data-t]')
for (const type of ['pointerover', 'pointerdown', 'focusin']) document.addEventListener(type, e => show(marked(e)))
document.addEventListener('focusout', () => show(null))
document.addEventListener('scroll', () => show(document.activeElement.dataset?.t ? document.activeElement : null),
  {passive: true})
document.addEventListener('keydown', e => { if (e.key == 'Escape') show(null) })

/* Folded parts: a link opens its target section, and a print shows all. */
const unfold = hash => { for (const e of all(':target > details')) if ('#' + e.parentNode.id == hash) e.open = true }
for (const link of all('a[href^="#"]')) link.onclick = () => setTimeout(() => unfold(link.hash))
unfold(location.hash)
let folded = []
addEventListener('beforeprint', () => {
  folded = all('details:not([open])')
  for (const e of folded) e.open = true
})
addEventListener('afterprint', () => { for (const e of folded) e.open = false })

/* A legend's item hides its series. */
for (const item of all('.legend [data-k]')) {
  const figure = item.closest('figure'), twins = all(`.legend [data-k=${item.dataset.k}]`, figure)
  const flip = () => {
    const on = !isPressed(item)
    for (const twin of twins) press(twin, on)
    for (const e of all(`:scope > svg .${item.dataset.k}`, figure)) e.classList.toggle('off', !on)
  }
  item.setAttribute('role', 'button')
  item.setAttribute('tabindex', 0)
  press(item, true)
  item.onclick = flip
  item.onkeydown = e => { if (e.key == ' ' || e.key == 'Enter') { e.preventDefault(); flip() } }
}

/* A button for each data set hides it. */
const sets = [...new Set(all('[data-set]').map(e => e.dataset.set))]
if (sets.length > 1) {
  const tools = make('p', 'Data sets: ', document.querySelector('header'))
  tools.className = 'tools'
  for (const set of sets) {
    const own = all(`[data-set="${set}"]`), button = make('button', own[0].querySelector('h3').textContent, tools)
    press(button, true)
    button.onclick = () => {
      press(button, !isPressed(button))
      for (const e of own) e.classList.toggle('off', !isPressed(button))
    }
  }
}

/* Tables are filtered by the words in their text columns, copied as shown, and sorted: numbers by value, cells without
 * a number last, texts (class x) alphabetically. */
const copy = async text => {
  try { await navigator.clipboard.writeText(text) } catch {
    const box = make('textarea', text, document.body)
    box.select()
    document.execCommand('copy')
    box.remove()
  }
}
for (const scroll of all('.scroll')) {
  const table = scroll.querySelector('table'), tools = document.createElement('p')
  tools.className = 'tools'
  scroll.before(tools)
  if (table.matches('.sort')) {
    const input = make('input', '', make('label', 'Filter ', tools))
    input.type = 'search'
    input.oninput = () => {
      const words = input.value.toLowerCase().split(/\s+/)
      for (const r of table.tBodies[0].rows) {
        const text = all('th,.x', r).map(c => c.textContent).join(' ').toLowerCase()
        r.hidden = !words.every(w => text.includes(w))
      }
    }
  }
  const button = make('button', 'Copy as CSV', tools)
  const said = make('span', '', tools)
  said.setAttribute('role', 'status')
  button.onclick = async () => {
    const rows = [...table.rows].filter(r => r.getClientRects().length)
    const plain = text => (/^[=+@-]/.test(text) && isNaN(text) ? "'" + text : text) // not a formula in a spreadsheet
    const quoted = cell => '"' + plain(cell.textContent.trim()).replaceAll('"', '""') + '"'
    await copy(rows.map(r => [...r.cells].map(quoted).join(',')).join('\n') + '\n')
    said.textContent = ` ${rows.length - 1} rows copied`
  }
}
for (const b of all('table.sort button')) b.onclick = () => {
  const h = b.parentNode, body = h.closest('table').tBodies[0], i = h.cellIndex
  const way = h.getAttribute('aria-sort') == 'ascending' ? -1 : 1
  const isText = h.matches('.x')
  const value = r => isText ? r.cells[i].textContent : parseFloat(r.cells[i].dataset.v ?? r.cells[i].textContent)
  for (const other of h.parentNode.cells) other.removeAttribute('aria-sort')
  h.setAttribute('aria-sort', way > 0 ? 'ascending' : 'descending')
  const rows = [...body.rows].map(r => [value(r), r])
  rows.sort((x, y) => isText ? way * x[0].localeCompare(y[0]) : isNaN(x[0]) - isNaN(y[0]) || way * (x[0] - y[0]) || 0)
  body.append(...rows.map(x => x[1]))
}
