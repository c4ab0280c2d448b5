// Finds the lists in an answer of GraphQL.
import { isRecord } from '@sluice/contract'

/** For example, `data.team.issues.nodes` is inside three objects. */
const DEEPEST = 5

/** Returns the elements of the topmost lists named `nodes`, as in `{ issues: { nodes } }`. */
export function nodesIn(value: unknown, depth = DEEPEST): readonly unknown[] {
  if (!isRecord(value) || depth === 0) return []
  return Array.isArray(value.nodes)
    ? value.nodes
    : Object.values(value).flatMap((one) => nodesIn(one, depth - 1))
}
