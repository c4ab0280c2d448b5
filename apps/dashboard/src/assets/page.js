// Refreshes the parts of a page that change, shows moments in the browser's zone and the values of
// a point of a chart, copies ids, and moves the focus to the search field. Without this script,
// pages show the same facts, and their forms work.

/**
 * A page refreshes itself at this interval, so that people see an incident soon. If its answers are
 * slow, it refreshes less often.
 */
const EVERY_MS = { least: 2_000, most: 3_000 }
const ANSWER_MS = 20_000
let tookMs = 0
/** The parts of the page as the server sent them, with which the next answer is compared. */
const sources = new WeakMap()
let timer
let updatedAt = Date.now()

/**
 * Returns whether a part is in use. It is then not replaced, because its focus, its selection or
 * its chosen jobs would be lost.
 */
function isInUse(part) {
  const selection = document.getSelection()
  const isSelected = selection?.isCollapsed === false && part.contains(selection.anchorNode)
  // A focused table does not count as in use, because `replace` restores its focus and its scroll
  // position.
  const focused = document.activeElement
  const isChosen = [...part.querySelectorAll('input')].some(
    (one) => one.checked || one.value !== one.defaultValue,
  )
  return (
    isSelected || isChosen || (part.contains(focused) && focused?.getAttribute('role') !== 'region')
  )
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
  // After a form has revealed texts, the address ends with the act. Without it, it is the page's.
  const address = location.href.replace(/#.*/, '').replace(/\/reveal(?=\?|$)/, '')
  const response = await fetch(address, { redirect: 'manual', signal }).catch(() => undefined)
  // The session has ended: the reloaded page is the login.
  if (response?.status === 401) return location.replace(address)
  // A page that refuses something is shown as well, and 503, which says that Redis is unavailable.
  const isPage = response?.status < 500 || response?.status === 503
  const text = isPage ? await response.text().catch(() => undefined) : undefined
  tookMs = performance.now() - began
  document.getElementById('stale').hidden = text !== undefined
  if (text !== undefined) {
    const page = new DOMParser().parseFromString(text, 'text/html')
    for (const part of parts) {
      const fresh = page.getElementById(part.id)
      // The answer is another page, which lacks the part: Redis has become unavailable or available
      // again, or the import or the group of failures no longer exists.
      if (fresh === null) return location.replace(address)
      if (!isInUse(part) && sources.get(part) !== fresh.innerHTML) replace(part, fresh)
    }
    updatedAt = Date.now()
  }
  start()
}

function start() {
  clearTimeout(timer)
  if (!document.hidden)
    timer = setTimeout(refresh, Math.min(Math.max(EVERY_MS.least, 9 * tookMs), EVERY_MS.most))
}

const zoned = new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'medium' })
/** Includes the name of the zone, because an hour comes twice when clocks are set back. */
const exact = new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'long' })
const onAxis = new Intl.DateTimeFormat('sv-SE', { timeStyle: 'short' })
const dayOnAxis = new Intl.DateTimeFormat('en-GB', { month: 'short', day: 'numeric' })

/**
 * Adds what only a browser can show: moments in its zone (with UTC on hover), and the buttons that
 * copy.
 */
function localise(part) {
  sources.set(part, part.innerHTML)
  for (const time of part.querySelectorAll('time')) {
    const [utc, local] = [
      time.dateTime.replace('T', ' ').slice(0, 19),
      zoned.format(new Date(time.dateTime)),
    ]
    const isAge = time.classList.contains('age')
    time.title = isAge ? `${local} (${utc} UTC)` : `${utc} UTC`
    if (!isAge) time.textContent = local
  }
  for (const tick of part.querySelectorAll('[data-at]')) {
    const at = new Date(tick.dataset.at)
    tick.textContent = (onAxis.format(at) === '00:00' ? dayOnAxis : onAxis).format(at)
  }
  for (const title of part.querySelectorAll('.plot title'))
    title.textContent = title.textContent.replace(/^\S+Z/, (at) => exact.format(new Date(at)))
  for (const zone of part.querySelectorAll('.zone'))
    zone.textContent = zoned.resolvedOptions().timeZone
  // Browsers allow pages to copy only if they were loaded by https or from this machine.
  if (navigator.clipboard)
    for (const button of part.querySelectorAll('.copy')) button.hidden = false
}

const CHART = '.plot [role=group]'
const pointsOf = (svg) => [...svg.querySelectorAll('a')]

/** Shows the values of a point of a chart, and marks the point's time in all charts. */
function showPoint(svg, index) {
  const points = pointsOf(svg)
  const at = Math.min(Math.max(index, 0), points.length - 1)
  svg.dataset.point = String(at)
  svg.closest('figure').querySelector('output').textContent =
    points[at].querySelector('title').textContent
  const x = (at / Math.max(points.length - 1, 1)) * svg.viewBox.baseVal.width
  for (const pointer of document.querySelectorAll('.pointer'))
    pointer.setAttribute('d', `M${x} 0V100`)
}

for (const type of ['pointermove', 'click'])
  document.addEventListener(type, (event) => {
    const [svg, point] = [event.target.closest?.(CHART), event.target.closest?.('a')]
    if (!svg || !point) return
    const index = pointsOf(svg).indexOf(point)
    // The first touch of a point shows its values, the second touch leads to its jobs.
    if (event.pointerType === 'touch' && svg.dataset.point !== String(index)) event.preventDefault()
    showPoint(svg, index)
  })

document.addEventListener('click', async ({ target }) => {
  if (!target.matches('.copy')) return
  await navigator.clipboard.writeText(target.dataset.copy)
  target.textContent = 'Copied'
  setTimeout(() => (target.textContent = 'Copy'), 2_000)
})

/**
 * Shows the number of selected jobs. Without this script, the buttons still work, and the server
 * says if nothing is selected.
 */
function showSelection() {
  const bar = document.querySelector('.selection')
  if (bar === null) return
  const boxes = [...document.querySelectorAll('.jobs input')]
  const selected = boxes.filter(({ checked }) => checked).length
  bar.querySelector('output').textContent = `${selected} selected`
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
  if (event.target.matches(CHART)) {
    const points = pointsOf(event.target)
    const { point = points.length } = event.target.dataset
    if (step !== undefined) return showPoint(event.target, Number(point) + step)
    if (event.key === 'Enter')
      return location.assign((points[point] ?? points.at(-1)).getAttribute('href'))
  }
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return
  if (event.target.matches('input, select')) return
  event.preventDefault()
  document.getElementById('q')?.focus()
})

function showAge() {
  const updated = document.getElementById('updated')
  if (updated === null) return
  const seconds = Math.round((Date.now() - updatedAt) / 1_000)
  updated.textContent = seconds < 2 ? 'now' : `${seconds} s ago`
}

document.addEventListener('visibilitychange', () =>
  document.hidden ? clearTimeout(timer) : refresh(),
)
// On a small screen, the navigation is a row that scrolls.
document.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
for (const part of document.querySelectorAll('[data-refresh]')) localise(part)
localise(document.body)
// If a person comes back to a page, the browser has restored its check boxes.
addEventListener('pageshow', showSelection)
setInterval(showAge, 1_000)
start()
