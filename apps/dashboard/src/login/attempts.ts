// Bounds how often one address may try to log in. Keys and links can't be guessed; the bound spares Redis and MongoDB.

const WINDOW_MS = 60_000
const TRIES = 10
/** Beyond it, a new address waits for the next window. */
const MAX_ADDRESSES = 10_000

/** Makes a function that counts a try, and returns whether the address may try. */
export function createAttempts(now = () => performance.now()): (address: string) => boolean {
  const tries = new Map<string, number>()
  let since = now()
  return (address) => {
    if (now() - since >= WINDOW_MS) {
      tries.clear()
      since = now()
    }
    const made = tries.get(address) ?? 0
    if (made >= TRIES || (made === 0 && tries.size >= MAX_ADDRESSES)) return false
    tries.set(address, made + 1)
    return true
  }
}
