// Finds the lists in an answer of GraphQL.
import { isRecord } from '@sluice/contract'
import { asArray, asObject, asObjects, type JsonObject } from './record-fields.ts'

/** For example, `data.team.issues.nodes` is inside three objects. */
const DEEPEST = 5

/** Returns the records of a list: `[…]`, `{ nodes: […] }`, or `{ edges: [{ node }] }`. */
export function nodesOf(list: unknown): readonly JsonObject[] {
  const { nodes = list, edges } = asObject(list) ?? {}
  return edges === undefined
    ? asObjects(nodes)
    : asObjects(asArray(edges).map((edge) => asObject(edge)?.node))
}

/**
 * Returns the records of the topmost lists, as in `{ issues: { nodes } }`.
 * @param id a member by which a record outside lists is recognised, as in
 * `{ issue: { identifier } }`.
 */
export function nodesIn(value: unknown, id?: string, depth = DEEPEST): readonly unknown[] {
  if (!isRecord(value) || depth === 0) return []
  if (id !== undefined && value[id] !== undefined) return [value]
  return Array.isArray(value.nodes ?? value.edges)
    ? nodesOf(value)
    : Object.values(value).flatMap((one) => nodesIn(one, id, depth - 1))
}
