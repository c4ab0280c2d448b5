// Fails if two packages or apps export one name: each name should mean one thing in the whole
// product. It reads declarations (`export function …`), so what a package passes on (`export { … }
// from`) counts once.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** Names that may be declared twice, with the reason. */
const ALLOWED = new Map([
  ['StoredItem', 'the client adds to the type of the contract'],
  ['RefusedItem', 'the users of the client know it by this name'],
])

const DECLARED =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:const|let|function\*?|class|interface|type) (\w+)/gm
const NO_PRODUCT = /\.(test|test-support|program)\.ts$/

const files = execFileSync('git', ['ls-files', 'apps/*.ts', 'packages/*.ts'], { encoding: 'utf8' })
  .trim()
  .split('\n')
const homes = new Map()
for (const file of files.filter((name) => !NO_PRODUCT.test(name))) {
  const home = file.split('/').slice(0, 2).join('/')
  for (const [, name] of readFileSync(file, 'utf8').matchAll(DECLARED)) {
    const places = homes.get(name) ?? homes.set(name, new Map()).get(name)
    places.set(home, file)
  }
}
const repeated = [...homes].filter(([name, places]) => places.size > 1 && !ALLOWED.has(name))
const unused = [...ALLOWED.keys()].filter((name) => (homes.get(name)?.size ?? 0) < 2)
for (const [name, places] of repeated) console.error(`${name}: ${[...places.values()].join(', ')}`)
for (const name of unused) console.error(`${name} is allowed, but only one package has it`)
if (homes.size === 0) throw new Error('no exported name was found')
if (repeated.length + unused.length > 0) process.exitCode = 1
else
  console.log(
    `${homes.size} exported names, none in two packages but ${[...ALLOWED.keys()].join(', ')}`,
  )
