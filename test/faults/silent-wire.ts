import type { Gate } from '../support/tcp-proxy.ts'

const NOTHING = Buffer.alloc(0)

/**
 * Connections that can die without a word: neither side gets another byte, a FIN or a reset, as
 * when the cable of a machine is pulled.
 */
export interface SilentWire {
  /** For `createTcpProxy`. */
  gate: () => Gate
  /** From now on all connections are dead, and those that are made. */
  cut(): void
  /** New connections work. Those that died stay dead. */
  repair(): void
}

/**
 * @param isMeant recognises, by what its client sends, the connections that die. The others live.
 */
export function createSilentWire(isMeant: (sent: Buffer) => boolean = () => true): SilentWire {
  const meant = new Set<{ isDead: boolean }>()
  let isCut = false

  function gate(): Gate {
    const connection = { isDead: false }
    const pass = (chunk: Buffer) => (connection.isDead ? NOTHING : chunk)
    return {
      toServer(chunk) {
        if (isMeant(chunk)) {
          meant.add(connection)
          connection.isDead ||= isCut
        }
        return pass(chunk)
      },
      toClient: pass,
    }
  }

  return {
    gate,
    cut() {
      isCut = true
      for (const connection of meant) connection.isDead = true
    },
    repair() {
      isCut = false
    },
  }
}
