// Finds the lists in an answer of GraphQL.
import { isRecord } from '@sluice/contract'

/**
 * A list is searched for down to this depth. For example, `data.team.issues.nodes` is inside three
 * objects.
 */
const DEEPEST = 5

/**
 * Returns the elements of the topmost lists named `nodes`, for example in `{ data: { issues: {
 * nodes } } }`.
 */
export function nodesIn(value: unknown, depth = DEEPEST): readonly unknown[] {
  if (!isRecord(value) || depth === 0) return []
  return Array.isArray(value.nodes)
    ? value.nodes
    : Object.values(value).flatMap((one) => nodesIn(one, depth - 1))
}
