#!/usr/bin/env python3
"""browse.py CHROMIUM PAGE: opens PAGE in a browser at several widths, light and dark, and looks for what a reader would trip over.

The browser is driven through a pipe (--remote-debugging-pipe): no port, no library.
  --shots DIR      keeps a picture of each
  --axe FILE       runs axe.min.js, too: a serious or critical finding fails
  --screens N      fails where the page, as it opens at 1280 x 800, is longer than N screens
  --flame          the page is the one of run --profile, not a report
  --probe          only looks at texts: the page is neither
Prints each fault, then how many there are; the exit code is 1 then."""
import base64
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

WIDTHS = (400, 800, 1280)

# Texts that lie over one another, letters below 10 px, what sticks out of the page; each by its first words.
PROBE = r"""(() => {
  const faults = [], boxes = []
  const name = n => JSON.stringify(n.textContent.trim().slice(0, 40))
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node; node = walker.nextNode();) {
    const e = node.parentElement
    if (!node.textContent.trim() || e.closest('script,style,title') || !e.checkVisibility({visibilityProperty: true})) continue
    const range = document.createRange()
    range.selectNodeContents(node)
    const svg = e.closest('svg'), scale = svg && svg.viewBox.baseVal.width ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1
    const px = parseFloat(getComputedStyle(e).fontSize) * scale
    if (px < 9.95) faults.push(`letters of ${px.toFixed(1)} px: ${name(node)}`)
    for (const r of range.getClientRects()) {
      if (r.width < 1) continue
      const held = e.closest('.scroll,figure')
      if (!held && (r.right > document.documentElement.clientWidth + 1 || r.left < -1)) faults.push(`beyond the page: ${name(node)}`)
      const less = svg ? r.height * 0.2 : r.height * 0.25
      boxes.push({l: r.left + 1, r: r.right - 1, t: r.top + less, b: r.bottom - less, node, held})
    }
  }
  boxes.sort((a, b) => a.t - b.t)
  for (let i = 0; i < boxes.length; i++)
    for (let k = i + 1; k < boxes.length && boxes[k].t < boxes[i].b; k++) {
      const a = boxes[i], b = boxes[k]
      if (a.node != b.node && a.held == b.held && a.l < b.r && b.l < a.r) faults.push(`one over the other: ${name(a.node)} and ${name(b.node)}`)
    }
  for (const figure of document.querySelectorAll('figure'))
    if ([...figure.querySelectorAll(':scope > svg')].filter(s => s.checkVisibility()).length != 1) faults.push(`a figure without one drawing: ${name(figure)}`)
  if (document.documentElement.scrollWidth > innerWidth + 1) faults.push(`the page is ${document.documentElement.scrollWidth} px wide`)
  return faults
})()"""

# What the script of the page does: a mark is named, an arrow goes on, a series is hidden, a table is filtered and sorted.
USE = r"""(() => {
  const faults = [], want = (good, what) => { if (!good) faults.push(what) }
  const svg = document.querySelector('#front figure > svg'), marks = [...svg.querySelectorAll('.m')]
  marks[0].focus()
  const tip = document.querySelector('#tip'), first = marks[0].dataset.t
  want(!tip.hidden && first && tip.textContent == first, 'a mark in focus shows no title')
  marks[0].dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}))
  want(document.activeElement == marks[1] && tip.textContent == marks[1].dataset.t, 'an arrow does not go to the next mark')
  marks[1].blur()
  want(tip.hidden, 'a title stays')
  marks[2].dispatchEvent(new PointerEvent('pointerdown', {bubbles: true, pointerType: 'touch'}))
  want(!tip.hidden && tip.textContent == marks[2].dataset.t, 'a touched mark shows no title')
  document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))
  const item = document.querySelector('#front .legend [data-k]')
  const series = () => svg.querySelector('.' + item.dataset.k).getClientRects().length > 0
  item.click()
  want(!series(), 'a series cannot be hidden')
  item.click()
  want(series(), 'a series cannot be shown again')
  const input = document.querySelector('#table input'), rows = [...document.querySelector('#table tbody').rows]
  const word = rows[0].cells[0].textContent
  input.value = word
  input.oninput()
  want(rows.filter(r => r.checkVisibility()).every(r => r.cells[0].textContent.includes(word)) && rows.some(r => r.hidden), 'a table is not filtered')
  input.value = ''
  input.oninput()
  want(rows.every(r => r.checkVisibility()), 'a filter stays')
  const head = [...document.querySelectorAll('#table th button')].find(b => b.textContent.startsWith('T_total'))
  head.click()
  const values = [...document.querySelector('#table tbody').rows].map(r => parseFloat(r.cells[head.parentNode.cellIndex].textContent))
  want(values.every((v, i) => !i || values[i - 1] <= v), 'a table is not sorted')
  const sets = [...document.querySelectorAll('header .tools button')]
  if (sets.length) {
    sets[0].click()
    want(!document.querySelector('[data-set="0"]').checkVisibility() && document.querySelector('[data-set="1"]').checkVisibility(), 'a data set cannot be hidden')
    sets[0].click()
  }
  return faults
})()"""

# The page of a report is short: findings and a plot each; links, clicks and prints show the rest.
FOLD = r"""(() => {
  const faults = [], want = (good, what) => { if (!good) faults.push(what) }
  const roofs = document.querySelector('#scaling > details'), figure = roofs.querySelector('figure')
  const warnings = document.querySelector('#warnings')?.getBoundingClientRect().top ?? Infinity
  want(document.querySelector('#findings ul').getBoundingClientRect().top < warnings, 'warnings come before findings')
  want(!roofs.open && !figure.checkVisibility(), 'nothing is folded')
  dispatchEvent(new Event('beforeprint'))
  want(!document.querySelector('details:not([open])'), 'a print hides something')
  dispatchEvent(new Event('afterprint'))
  want(!roofs.open, 'a part stays open after a print')
  document.querySelector('nav a[href="#scaling"]').click()
  return new Promise(done => setTimeout(() => {
    want(figure.checkVisibility(), 'a link does not open the folded section that it leads to')
    roofs.open = false
    done(faults)
  }, 100))
})()"""
UNFOLD = "for (const e of document.querySelectorAll('details')) e.open = true"

# What the flame chart's script does: boxes have names, keys and clicks zoom and come back, touch names a box, kinds are hidden, the table is filtered.
FLAME = r"""(() => {
  const faults = [], want = (good, what) => { if (!good) faults.push(what) }
  const svg = document.querySelector('svg.flame'), boxes = () => [...svg.querySelectorAll('g[data-t]')], tip = document.querySelector('#tip')
  const said = document.querySelector('#flame [role=status]'), total = JSON.parse(document.querySelector('#data').textContent).total
  const button = name => [...document.querySelectorAll('#flame .tools button')].find(b => b.textContent == name)
  const key = k => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: k, bubbles: true}))
  const named = name => boxes().find(g => g.dataset.t.startsWith(name + '\n'))
  want(boxes().length > 20, 'the chart has no boxes')
  want(boxes().every(g => g.getAttribute('aria-label') && g.getAttribute('role')), 'a box has no name')
  want(boxes().filter(g => g.tabIndex == 0).length == 1, 'the chart is not one stop of the Tab key')
  want(boxes().every(g => { const t = g.querySelector('text'); return !t || t.getComputedTextLength() <= g.querySelector('rect').getBoundingClientRect().width }), 'a label is wider than its box')
  want(said.textContent.includes('the whole request') && button('Back').disabled && button('Whole request').disabled, 'the whole request is not shown first')
  const first = boxes()[0]
  first.focus()
  want(!tip.hidden && tip.textContent == first.dataset.t && /starts at .*, takes /.test(tip.textContent), 'a box in focus shows no title')
  key('ArrowRight')
  want(document.activeElement != first && tip.textContent == document.activeElement.dataset.t, 'an arrow does not go to the next box')
  named('vit').focus()
  key('Enter')
  want(said.textContent.startsWith('Shown: vit,') && document.activeElement.dataset.t.startsWith('vit\n'), 'Enter does not zoom to a stage')
  key('ArrowDown')
  want(document.activeElement.dataset.t.startsWith('vit \u203a pass 1\n'), 'an arrow down does not go to a pass')
  key('Enter')
  key('ArrowDown')
  want(/^vit \u203a pass 1 \u203a block \d+\n/.test(document.activeElement.dataset.t), 'an arrow down does not go to a block')
  document.activeElement.dispatchEvent(new MouseEvent('click', {bubbles: true}))
  want(/^Shown: vit \u203a pass 1 \u203a block \d+,/.test(said.textContent), 'a click does not zoom to a block')
  const operation = boxes().find(g => /FLOP\/s/.test(g.dataset.t) && /shape/.test(g.dataset.t) && / B\/s|B,|B\n|[kMG]B/.test(g.dataset.t))
  want(operation, 'an operation says no shape, FLOP or bytes')
  operation?.dispatchEvent(new PointerEvent('pointerdown', {bubbles: true, pointerType: 'touch'}))
  want(operation && !tip.hidden && tip.textContent == operation.dataset.t, 'a touched box shows no title')
  button('Back').click()
  want(said.textContent.startsWith('Shown: vit \u203a pass 1,'), 'Back does not go back')
  button('Zoom out').click()
  button('Later').click()
  button('Zoom in').click()
  want(boxes().length > 3, 'moving shows nothing')
  button('decode').click()
  want(said.textContent.startsWith('Shown: decode,') && named('decode'), 'a button does not go to its stage')
  const shownFrom = () => JSON.stringify(said.textContent.match(/[\d.]+ [mn\u00b5]s to/))
  const before = shownFrom()
  document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'a', bubbles: true}))
  want(shownFrom() != before, 'A does not move')
  document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'd', bubbles: true}))
  want(shownFrom() == before, 'D does not move back')
  boxes()[0].focus()
  key('Backspace')
  key('0')
  want(said.textContent.includes('the whole request'), '0 does not show the whole request')
  const widths = row => boxes().filter(g => g.querySelector('rect').getAttribute('y') == row).map(g => +g.querySelector('rect').getAttribute('width'))
  const select = document.querySelector('#flame .tools select'), top = boxes()[0].querySelector('rect').getAttribute('y')
  key('2')
  want(button('Left Heavy').ariaCurrent == 'true' && select.hidden, '2 does not show Left Heavy')
  want(widths(top).every((w, i, all) => !i || w <= all[i - 1] + 1) && widths(top).length > 3, 'Left Heavy does not begin with the longest stage')
  want(/ \u203a block\n\d+ calls, .* together, .* each\n/.test(boxes().map(g => g.dataset.t).join('\n\n')), 'Left Heavy does not merge blocks')
  button('prefill').click()
  want(said.textContent.startsWith('Shown: prefill,'), 'a button does not go to its stage in Left Heavy')
  key('3')
  want(button('Sandwich').ariaCurrent == 'true' && !select.hidden && document.querySelector('#flame .tools select option').value, '3 does not show the Sandwich')
  select.value = [...select.options].find(o => /^gemm/.test(o.value)).value
  select.onchange()
  const mine = boxes().find(g => g.dataset.t.startsWith(select.value + '\n')), y = g => +g.querySelector('rect').getAttribute('y')
  want(mine && boxes().every(g => y(g) <= y(mine)), 'the name chosen is not below all its callers')
  want(boxes().some(g => /^\S+ \u2039 block/.test(g.dataset.t)) && /calls, /.test(mine.dataset.t), 'a caller is missing')
  const under = boxes().filter(g => y(g) == y(mine) - 26).reduce((sum, g) => sum + +g.querySelector('rect').getAttribute('width'), 0)
  want(Math.abs(under - mine.querySelector('rect').getAttribute('width')) < 12, 'the callers do not share the time of the name')
  select.value = 'vit'
  select.onchange()
  want(boxes().filter(g => /^vit \u203a /.test(g.dataset.t)).length > 2, 'a stage has no callees')
  button('Time Order').click()
  want(said.textContent.includes('the whole request') && select.hidden, 'Time Order does not come back')
  const item = document.querySelector('#flame .legend [data-k=s1]'), shown = () => boxes().some(g => g.matches('.s1') && g.getClientRects().length)
  want(shown(), 'there is no attention')
  item.click()
  want(!shown(), 'a kind cannot be hidden')
  button('vit').click()
  want(!shown(), 'a hidden kind comes back')
  item.click()
  button('Whole request').click()
  want(shown(), 'a kind cannot be shown again')
  const input = document.querySelector('#table input'), rows = [...document.querySelector('#table tbody').rows]
  input.value = 'gemm router'
  input.oninput()
  want(rows.some(r => !r.hidden) && rows.filter(r => !r.hidden).every(r => /gemm/.test(r.textContent) && /router/.test(r.textContent)), 'the table is not filtered')
  input.value = ''
  input.oninput()
  for (const [head, isText] of [['self, ms', false], ['operation', true]]) {
    const b = [...document.querySelectorAll('#table th button')].find(b => b.textContent == head), i = b.parentNode.cellIndex
    b.click()
    const values = [...document.querySelector('#table tbody').rows].map(r => isText ? r.cells[i].textContent : parseFloat(r.cells[i].textContent))
    want(values.every((v, k) => !k || (isText ? values[k - 1].localeCompare(v) <= 0 : values[k - 1] <= v)), 'the table is not sorted by ' + head)
  }
  return faults
})()"""


class Browser:
    def __init__(self, program, profile):
        command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-lcd-text", "--remote-debugging-pipe",
                   f"--user-data-dir={profile}", "--no-first-run", "about:blank"]
        theirs_in, self.out = os.pipe()
        self.inward, theirs_out = os.pipe()

        def hand_over():  # the browser reads 3 and writes 4
            a, b = os.dup(theirs_in), os.dup(theirs_out)
            a, b = (os.dup(fd) if fd in (3, 4) else fd for fd in (a, b))
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(command, close_fds=False, preexec_fn=hand_over, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.buffer, self.count, self.session, self.waiting = b"", 0, None, []

    def read(self):
        while b"\0" not in self.buffer:
            got = os.read(self.inward, 1 << 20)
            if not got:
                raise SystemExit("browse.py: the browser has ended")
            self.buffer += got
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        while True:
            answer = self.read()
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise SystemExit(f"browse.py: {method}: {answer['error']['message']}")
                return answer["result"]
            self.waiting.append(answer.get("method"))

    def open(self, url):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.waiting.clear()
        self.call("Page.navigate", url=url)
        while "Page.loadEventFired" not in self.waiting:
            self.waiting.append(self.read().get("method"))

    def look(self, width, height, scheme):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        if self.session:  # what follows the page's width is drawn in the next frames
            self.value("new Promise(done => setTimeout(done, 60))")

    def value(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise SystemExit("browse.py: " + json.dumps(answer["exceptionDetails"])[:600])
        return answer["result"].get("value")

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=False)["data"]
        Path(path).write_bytes(base64.b64decode(data))

    def close(self):
        self.process.terminate()
        self.process.wait()


AXE = """axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.filter(v => ['serious', 'critical'].includes(v.impact))
    .map(v => `axe: ${v.impact}: ${v.id}: ${v.help} (${v.nodes.length}): ${v.nodes[0].html.slice(0, 160)}`))"""


def check(browser, shots, axe, use, screens):
    faults = []
    browser.look(1280, 800, "light")
    height = browser.value("document.documentElement.scrollHeight")
    if screens and not height <= screens * 800:
        faults.append(f"{height / 800:.1f} screens of 1280 x 800, more than {screens}")
    faults += browser.value(FOLD) if use == USE else []
    browser.value(UNFOLD)
    for width in WIDTHS:
        for scheme in ("light", "dark"):
            browser.look(width, 900, scheme)
            height = browser.value("document.documentElement.scrollHeight")
            found = [f"{f}" for f in browser.value(PROBE)]
            if shots:
                browser.look(width, min(height, 16000), scheme)
                browser.picture(f"{shots}/{width}-{scheme}.png")
                browser.look(width, 900, scheme)
            if axe:
                browser.value(axe + ";0")
                found += browser.value(AXE)
            faults += [f"{width} px, {scheme}: {f}" for f in found]
    return faults + (browser.value(use) if use else [])


def main():
    arguments, options = sys.argv[1:], {}
    while len(arguments) > 2:
        count = {"--probe": 0, "--flame": 0}.get(arguments[2], 1)
        options[arguments[2]] = arguments[3:3 + count]
        del arguments[2:3 + count]
    program, page = arguments
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            browser.open(Path(page).resolve().as_uri())
            axe = Path(options["--axe"][0]).read_text() if "--axe" in options else None
            screens = int(options.get("--screens", ["0"])[0])
            faults = check(browser, options.get("--shots", [None])[0], axe, None if "--probe" in options else FLAME if "--flame" in options else USE, screens)
        finally:
            browser.close()
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"{len(faults)} faults")
    return 1 if faults else 0


sys.exit(main())
