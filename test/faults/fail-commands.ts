import { MongoClient } from 'mongodb'

/**
 * How MongoDB fails commands: it refuses them, or executes them and reports that no majority
 * confirmed.
 */
export type Failure =
  | { errorCode: number }
  | { writeConcernError: { code: number; errmsg: string } }

/**
 * Fails a server's commands by MongoDB's fail point `failCommand`. The server must take test
 * commands.
 */
export interface FailPoint {
  /** From now on fails these commands of Sluice's processes. */
  set(failCommands: readonly string[], failure: Failure): Promise<void>
  clear(): Promise<void>
  close(): Promise<void>
}

export async function openFailPoint(url: string): Promise<FailPoint> {
  const client = await new MongoClient(url).connect()
  const configure = async (mode: string, data: object) =>
    void (await client.db('admin').command({ configureFailPoint: 'failCommand', mode, data }))
  return {
    set: (failCommands, failure) =>
      configure('alwaysOn', { failCommands, appName: 'sluice', ...failure }),
    clear: () => configure('off', {}),
    close: () => client.close(),
  }
}
