// The lists in an answer of GraphQL.
import { isRecord } from '@sluice/contract'

/** How deep a list may lie: `data.team.issues.nodes` has three objects around it. */
const DEEPEST = 5

/**
 * Returns the elements of the topmost lists named `nodes`, such as those of `{ data: { issues: {
 * nodes } } }`.
 */
export function nodesIn(value: unknown, depth = DEEPEST): readonly unknown[] {
  if (!isRecord(value) || depth === 0) return []
  return Array.isArray(value.nodes)
    ? value.nodes
    : Object.values(value).flatMap((one) => nodesIn(one, depth - 1))
}
