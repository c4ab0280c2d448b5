// Refreshes the parts of a page that change, while somebody can see it. Everything works without this script.

const EVERY_MS = 5_000
let timer

/** A part in use stays as it is: the focus, a selection, or an open list would be lost. */
function isInUse(part) {
  const selection = document.getSelection()
  const isSelected = selection?.isCollapsed === false && part.contains(selection.anchorNode)
  // A focused table does not count as in use: its only state is its scroll position, which `refresh` restores.
  const focused = document.activeElement
  return isSelected || (part.contains(focused) && focused?.getAttribute('role') !== 'region')
}

async function refresh() {
  const parts = [...document.querySelectorAll('[data-refresh]')]
  if (parts.length === 0) return
  const signal = AbortSignal.timeout(4 * EVERY_MS)
  const response = await fetch(location.href, { redirect: 'manual', signal }).catch(() => undefined)
  // 401: the session has ended. 404: the import or the group of failures is gone. The page says so once it is reloaded.
  if (response?.status === 401 || response?.status === 404) return location.reload()
  // The page that says that Redis is away has the status 503: it is shown, too.
  const text = response?.ok || response?.status === 503 ? await response.text().catch(() => undefined) : undefined
  document.getElementById('stale').hidden = text !== undefined
  if (text !== undefined) {
    const page = new DOMParser().parseFromString(text, 'text/html')
    for (const part of parts) {
      const fresh = page.getElementById(part.id)
      // The part is missing if Redis went away or came back meanwhile: the answer is then another page.
      if (fresh === null) return location.reload()
      if (isInUse(part) || fresh.innerHTML === part.innerHTML) continue
      const left = part.querySelector('.table')?.scrollLeft ?? 0
      part.replaceWith(fresh)
      fresh.querySelector('.table')?.scrollTo({ left })
    }
  }
  start()
}

function start() {
  clearTimeout(timer)
  if (!document.hidden) timer = setTimeout(refresh, EVERY_MS)
}

document.addEventListener('visibilitychange', () => (document.hidden ? clearTimeout(timer) : refresh()))
start()
