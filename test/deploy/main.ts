import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { parse } from 'yaml'
import { CRDS, crdFile } from './crds.ts'
import { MANIFESTS, render, root } from './manifests.ts'

// `pnpm run manifests`: renders the manifests again, by Helm (`go install
// helm.sh/helm/v3/cmd/helm@v3.22.0`), and reads the schemas of custom resources out of Go modules.
for (const [path, args] of Object.entries(MANIFESTS)) await writeFile(root + path, render(args))

for (const crd of CRDS) {
  const source = `${crd.module}@${crd.version}`
  const { Dir: folder } = JSON.parse(
    execFileSync('go', ['mod', 'download', '-json', source], { encoding: 'utf8' }),
  )
  const definition = parse(await readFile(`${folder}/${crd.path}`, 'utf8'))
  const version = definition.spec.versions.find(
    ({ name }: { name: string }) => name === crd.servedVersion,
  )
  const schema = {
    $comment: `From ${source}, ${crd.path}, Apache License 2.0 (see LICENSE here), without its descriptions.`,
    ...withoutDescriptions(version.schema.openAPIV3Schema),
  }
  await writeFile(crdFile(crd), `${JSON.stringify(schema, null, 2)}\n`)
}

/** A property may be called `description` too: then it is a schema and no text. */
function withoutDescriptions(schema: object): object {
  return JSON.parse(
    JSON.stringify(schema, (key, value) =>
      key === 'description' && typeof value === 'string' ? undefined : value,
    ),
  )
}
