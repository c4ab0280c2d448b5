import fc from 'fast-check'
import { explore } from './explorer/explore.ts'
import { history, WORLDS } from './explorer/history.ts'
const runs = Number(process.argv[2] ?? 1000), seed = process.argv[3] ? Number(process.argv[3]) : undefined
for (const [name, requests] of Object.entries(WORLDS)) {
  const t = Date.now()
  const r = await fc.check(fc.asyncProperty(history(requests), (h) => explore(h)), { numRuns: runs, ...(seed !== undefined && { seed }), ...(process.env.NOSHRINK && {endOnFailure: true}) })
  console.log(name, r.failed ? 'FAILED' : 'ok', r.numRuns, 'runs', Date.now() - t, 'ms', 'seed', r.seed, 'shrinks', r.numShrinks)
  if (r.failed) await explore((r.counterexample as never)[0], (l) => console.log(l.replaceAll(/"(_id|sourceId)":"\w{24}-?/g, (x)=>x.slice(0,12)).replaceAll(/"(tenant|service|externalId|title|acceptedAt|createdAt|status|since|derived)":("[^"]*"|\["[^"]*"\]),?/g, '').replaceAll(/000000000+/g,''))).catch(() => {})
  if (r.failed) console.log(String(r.errorInstance).slice(0, 1500))
  if (r.failed && !process.env.NOJSON) { console.log(JSON.stringify(r.counterexample, null, 1).slice(0, 6000)); console.log(String((r.errorInstance as Error)?.stack).slice(0, 1500)) }
}
