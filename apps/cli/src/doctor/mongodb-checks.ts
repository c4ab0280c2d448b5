// Checks MongoDB: its version, its members, its indexes and shard keys, and whether a majority
// commits.
import { indexesFor, isUnauthorized } from '@sluice/store'
import { type Document, MongoServerError } from 'mongodb'
import { check, note, readClock, type ServerCheck } from './check.ts'

export interface MongodbDeps {
  /** The name of Sluice's database. */
  database: string
  /** Sends a command that changes nothing. */
  ask: (database: string, command: Document) => Promise<Document>
  /** Makes a small write with majority write concern, as workers do. */
  probe: () => Promise<void>
  listSources: 'on' | 'off'
}

const OLDEST = 4.4
const MEMBERS = 3
const COLLECTION_ABSENT = 26
const SHARD_KEYS = { sources: { _id: 1 }, quotes: { sourceId: 1 }, writers: { _id: 'hashed' } }

type ChecksOf = (reply: Document) => ServerCheck[]

const shell = (script: string) => `mongosh "$MONGODB_URL" --eval '${script}'`

const lostKeys = (database: string): ServerCheck => ({
  state: 'FAULT',
  text: 'keys: none, although threads are stored, so the collection `keys` is lost',
  fix: `mongorestore --nsInclude=${database}.keys BACKUP  # or new ones: sluice keys create`,
})

/**
 * Checks MongoDB and reads its clock (in ms ahead of this machine).
 * @throws the driver's error if MongoDB can't be reached.
 */
export async function checkMongodb({ database, probe, ...deps }: MongodbDeps) {
  const checks: ServerCheck[] = []
  /**
   * Asks, and adds what `checksOf` makes of the reply. If the server refuses the command, adds a
   * note. If the collection is absent, adds nothing.
   */
  async function ask(
    what: string,
    of: string,
    command: Document,
    checksOf: ChecksOf,
  ): Promise<void> {
    try {
      checks.push(...checksOf(await deps.ask(of, command)))
    } catch (error) {
      if (!(error instanceof MongoServerError)) throw error
      if (error.code !== COLLECTION_ABSENT)
        checks.push(note(`${what} can’t be asked: ${error.message}`))
    }
  }
  const askIndexes = (collection: string, indexes: Readonly<Record<string, string>>) =>
    ask(`the indexes of ${collection}`, database, { listIndexes: collection }, ({ cursor }) =>
      Object.entries(indexes).map(([name, field]) => {
        const isThere = cursor.firstBatch.some(
          ({ key, partialFilterExpression, hidden }: Document) => {
            return (
              Object.keys(key)[0] === field &&
              key[field] === 1 &&
              !partialFilterExpression &&
              !hidden
            )
          },
        )
        const create = `db.${collection}.createIndex({ "${field}": 1 }, { name: "${name}" })`
        return check(
          isThere,
          `index of ${collection} by ${field}${isThere ? '' : ': missing'}`,
          shell(create),
        )
      }),
    )

  await ask('the version', 'admin', { buildInfo: 1 }, ({ version }) => {
    const upgrade = 'sudo apt-get install -y mongodb-org  # on each member'
    if (typeof version !== 'string') return [note('version: MongoDB does not say it')]
    return [
      check(
        Number.parseFloat(version) >= OLDEST,
        `version: ${version} (at least ${OLDEST})`,
        upgrade,
      ),
    ]
  })
  let hello: Document = {}
  const aheadMs = await readClock(async () => {
    hello = await deps.ask('admin', { hello: 1 })
    // Most servers return the time as a date, some as a 64-bit number of ms.
    return Number(hello.localTime)
  })
  const { msg, setName, hosts = [] } = hello
  let isSharded = msg === 'isdbgrid'
  // Gateways of engines that do not shard also call themselves routers. A real router knows at
  // least one shard.
  if (isSharded)
    await ask('the shards', 'config', { find: 'shards', limit: 1 }, ({ cursor }) => {
      isSharded = cursor.firstBatch.length > 0
      return []
    })
  const members = `replica set: ${setName ?? 'none'}, members: ${hosts.length} (in production at least ${MEMBERS})`
  if (!isSharded && hosts.length < MEMBERS)
    checks.push(note(members, setName && shell('rs.add("HOST:27017")')))
  else if (!isSharded) checks.push({ state: 'ok', text: members })
  const fault: unknown = await probe().catch((error) => error)
  const grant = 'db.grantRolesToUser("USER", ["sluiceOperator"])'
  const repair = isUnauthorized(fault)
    ? `${shell(grant)}  # as administrator: docs/operate/mongodb.md#rights-in-mongodb`
    : shell('rs.status().members.map(m => [m.name, m.stateStr])')
  checks.push(check(!fault, `a majority commits: ${fault ?? 'yes'}`, repair))
  const listsSources = deps.listSources === 'on'
  const wanted = await indexesFor((command) => deps.ask(database, command), { listsSources })
  for (const [collection, indexes] of Object.entries(wanted)) await askIndexes(collection, indexes)
  let hasKeys = true
  const first = { limit: 1, projection: { _id: 1 } }
  await ask('the keys', database, { find: 'keys', ...first }, ({ cursor }) => {
    hasKeys = cursor.firstBatch.length > 0
    return []
  })
  // A new deployment has no keys and no sources. If it has sources, its keys were lost.
  if (!hasKeys)
    await ask('the sources', database, { find: 'sources', ...first }, ({ cursor }) =>
      cursor.firstBatch.map(() => lostKeys(database)),
    )
  if (!isSharded) return { checks, aheadMs }
  const filter = {
    _id: { $regex: `^${database}\\.` },
    dropped: { $ne: true },
    unsplittable: { $ne: true },
  }
  await ask('the shard keys', 'config', { find: 'collections', filter }, ({ cursor }) =>
    Object.entries(SHARD_KEYS).map(([collection, wanted]) => {
      const name = `${database}.${collection}`
      const key = JSON.stringify(wanted)
      const found = JSON.stringify(cursor.firstBatch.find(({ _id }: Document) => _id === name)?.key)
      const reshard = `db.adminCommand({ reshardCollection: "${name}", key: ${key} })`
      const shard = found
        ? reshard
        : `db.${collection}.createIndex(${key}); sh.shardCollection("${name}", ${key})`
      return check(
        found === key,
        `shard key of ${collection}: ${found ?? 'none'}, should be ${key}`,
        shell(shard),
      )
    }),
  )
  return { checks, aheadMs }
}
