// Refreshes the parts of a page that change, shows moments in the zone of the browser and the values of a point of a
// chart, copies ids, and moves the focus to the search. Without this script, pages show the same facts, and their forms
// work.

/** A page refreshes itself at this interval, so that an incident is seen soon. A slow page does so less often. */
const EVERY_MS = { least: 2_000, most: 5_000 }
const ANSWER_MS = 20_000
let tookMs = 0
/** The parts as the server sent them: the next answer is compared with them. */
const sources = new WeakMap()
let timer
let updatedAt = Date.now()

/** A part in use stays as it is: the focus, a selection, or chosen jobs would be lost. */
function isInUse(part) {
  const selection = document.getSelection()
  const isSelected = selection?.isCollapsed === false && part.contains(selection.anchorNode)
  // A focused table does not count as in use: `replace` restores its focus and its scroll position.
  const focused = document.activeElement
  const isChosen = part.querySelector('input:checked') !== null
  return isSelected || isChosen || (part.contains(focused) && focused?.getAttribute('role') !== 'region')
}

function replace(part, fresh) {
  const tables = [...part.querySelectorAll('.table')]
  const focused = tables.indexOf(document.activeElement)
  part.replaceWith(fresh)
  fresh.querySelectorAll('.table').forEach((table, at) => {
    table.scrollTo({ left: tables[at]?.scrollLeft ?? 0 })
    if (at === focused) table.focus({ preventScroll: true })
  })
  localise(fresh)
  const opened = [...part.querySelectorAll('details')].map(({ open }) => open)
  fresh.querySelectorAll('details').forEach((one, at) => {
    one.open = opened[at] ?? one.open
  })
}

async function refresh() {
  const parts = [...document.querySelectorAll('[data-refresh]')]
  if (parts.length === 0) return
  const signal = AbortSignal.timeout(ANSWER_MS)
  const began = performance.now()
  // Only a form leads to these addresses. Without the act, they are those of the page.
  const address = location.href.replace(/#.*/, '').replace(/\/(reveal|change)(?=\?|$)/, '')
  const response = await fetch(address, { redirect: 'manual', signal }).catch(() => undefined)
  // 401: the session has ended. 404: the import or the group of failures is gone. The page says so once it is reloaded.
  if (response?.status === 401 || response?.status === 404) return location.replace(address)
  // The page that says that Redis is away has the status 503: it is shown, too.
  const text = response?.ok || response?.status === 503 ? await response.text().catch(() => undefined) : undefined
  tookMs = performance.now() - began
  document.getElementById('stale').hidden = text !== undefined
  if (text !== undefined) {
    const page = new DOMParser().parseFromString(text, 'text/html')
    for (const part of parts) {
      const fresh = page.getElementById(part.id)
      // The part is missing if Redis went away or came back meanwhile: the answer is then another page.
      if (fresh === null) return location.replace(address)
      if (!isInUse(part) && sources.get(part) !== fresh.innerHTML) replace(part, fresh)
    }
    updatedAt = Date.now()
  }
  start()
}

function start() {
  clearTimeout(timer)
  if (!document.hidden) timer = setTimeout(refresh, Math.min(Math.max(EVERY_MS.least, 9 * tookMs), EVERY_MS.most))
}

const zoned = new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'medium' })

/** Shows what only a browser knows: moments in its zone (UTC on hover), and the buttons that copy. */
function localise(part) {
  sources.set(part, part.innerHTML)
  for (const time of part.querySelectorAll('time')) {
    const [utc, local] = [time.dateTime.replace('T', ' ').slice(0, 19), zoned.format(new Date(time.dateTime))]
    const isAge = time.classList.contains('age')
    time.title = isAge ? `${local} (${utc} UTC)` : `${utc} UTC`
    if (!isAge) time.textContent = local
  }
  // Browsers copy only from pages that came by https or from this machine.
  if (navigator.clipboard) for (const button of part.querySelectorAll('.copy')) button.hidden = false
}

/** Shows the values of one point of a chart. */
function showPoint(svg, at) {
  const texts = JSON.parse(svg.dataset.values)
  const index = Math.min(Math.max(Math.round(at), 0), texts.length - 1)
  const [when, ...values] = texts[index].split(' ')
  svg.dataset.point = String(index)
  svg.parentElement.querySelector('output').textContent = `${zoned.format(new Date(when))} ${values.join(' ')}`
  const x = (index / Math.max(texts.length - 1, 1)) * svg.viewBox.baseVal.width
  svg.querySelector('.pointer').setAttribute('d', `M${x} 18V132`)
}

document.addEventListener('pointermove', ({ target, clientX }) => {
  const svg = target.closest?.('svg[data-values]')
  if (!svg) return
  const { left, width } = svg.getBoundingClientRect()
  showPoint(svg, ((clientX - left) / width) * (JSON.parse(svg.dataset.values).length - 1))
})

document.addEventListener('click', async ({ target }) => {
  if (!target.matches('.copy')) return
  await navigator.clipboard.writeText(target.dataset.copy)
  target.textContent = 'Copied'
  setTimeout(() => (target.textContent = 'Copy'), 2_000)
})

/** Counts the selected jobs. Without this script, the buttons work, and the server says if nothing is selected. */
function showSelection() {
  const bar = document.querySelector('.selection')
  if (bar === null) return
  const boxes = [...document.querySelectorAll('.jobs input')]
  const selected = boxes.filter(({ checked }) => checked).length
  bar.querySelector('output').textContent = selected === 0 ? 'Nothing is selected' : `${selected} selected`
  for (const button of bar.querySelectorAll('button')) button.disabled = selected === 0
  const all = bar.querySelector('.all input')
  all.parentElement.hidden = false
  all.checked = selected > 0 && selected === boxes.length
  all.indeterminate = selected > 0 && selected < boxes.length
}

document.addEventListener('change', ({ target }) => {
  if (target.matches('.all input'))
    for (const box of document.querySelectorAll('.jobs input')) box.checked = target.checked
  showSelection()
})

document.addEventListener('keydown', (event) => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
  if (step !== undefined && event.target.matches('svg[data-values]')) {
    const last = JSON.parse(event.target.dataset.values).length - 1
    return showPoint(event.target, Number(event.target.dataset.point ?? last + 1) + step)
  }
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return
  if (event.target.matches('input, select')) return
  event.preventDefault()
  const search = document.querySelector('input[type=search]')
  if (search === null) location.assign('/')
  else search.focus()
})

function showAge() {
  const updated = document.getElementById('updated')
  if (updated === null) return
  const seconds = Math.round((Date.now() - updatedAt) / 1_000)
  updated.textContent = seconds < 2 ? 'now' : `${seconds} s ago`
}

document.addEventListener('visibilitychange', () => (document.hidden ? clearTimeout(timer) : refresh()))
// On a phone, the navigation is a row that scrolls.
document.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
for (const part of document.querySelectorAll('[data-refresh]')) localise(part)
localise(document.body)
// The browser has restored the boxes of a page to which one comes back.
addEventListener('pageshow', showSelection)
setInterval(showAge, 1_000)
start()
