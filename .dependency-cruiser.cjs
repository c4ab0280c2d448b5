// Imports go one way: apps → packages → contract. The comment of each rule says what to do instead.

const tests = '\\.test\\.ts$|\\.test-support\\.ts$|\\.program\\.ts$|^test/|^bench/'

/** The folders of a place, from top to bottom: each imports from itself, from those below it, from the shared files, and nothing else of that place. */
const oneWay = (place, folders, shared = []) =>
  folders.map((folder, at) => ({
    name: `one-way-${place.split('/')[1]}-${folder}`,
    severity: 'error',
    comment: `The folders of ${place} import downwards, in this order: ${folders.join(', ')}. Move the shared part down.`,
    from: { path: `^${place}/${folder}/`, pathNot: tests },
    to: {
      path: `^${place}/`,
      pathNot: [...folders.slice(at).map((own) => `^${place}/${own}/`), ...shared.map((file) => `^${place}/${file}$`)],
    },
  }))

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'resolvable',
      severity: 'error',
      comment: 'An unresolved import escapes every other rule: name the package in package.json, or fix the path.',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'no-circle',
      severity: 'error',
      comment:
        'Two files that need each other are one idea, or hide a third: move the shared part into a file of its own.',
      from: {},
      to: { circular: true },
    },
    {
      name: 'packages-know-no-apps',
      severity: 'error',
      comment:
        'A package serves any app: let the app pass in what the package needs, or move the code into the package.',
      from: { path: '^packages/' },
      to: { path: '^apps/' },
    },
    {
      name: 'apps-are-strangers',
      severity: 'error',
      comment:
        'Apps meet in Redis, in MongoDB and in packages only: move what both need into a package. Only the command `start` knows the apps, because it runs them and checks their settings.',
      from: { path: '^apps/([^/]+)/', pathNot: [tests, '^apps/cli/src/start/start-command\\.ts$'] },
      to: { path: '^apps/', pathNot: '^apps/$1/' },
    },
    {
      name: 'packages-know-the-contract-alone',
      severity: 'error',
      comment:
        'Queue and store are independent, and a package imports no other package but the contract: declare the narrow interface that you need, and let an app pass in an implementation.',
      from: { path: '^packages/([^/]+)/', pathNot: tests },
      to: { path: '^packages/', pathNot: ['^packages/$1/', '^packages/contract/'] },
    },
    {
      name: 'contract-knows-nobody',
      severity: 'error',
      comment: 'Callers and all other packages rely on the contract: it imports no other package of ours.',
      from: { path: '^packages/contract/' },
      to: { path: '^(apps|packages|test)/', pathNot: '^packages/contract/' },
    },
    {
      name: 'runs-without-dev-dependencies',
      severity: 'error',
      comment:
        'Production installs no devDependencies: import only types of them (of TypeBox, packages/contract/src/json-schema.ts has the builders), or list the package under dependencies.',
      from: { path: '^(apps|packages)/', pathNot: tests },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only', 'npm'] },
    },
    {
      name: 'loads-what-is-configured',
      severity: 'error',
      comment:
        'Most installations have no identity provider and no traces: load it by `import()` where the settings name one.',
      from: { path: '^(apps|packages)/', pathNot: tests },
      to: {
        path: 'node_modules/(openid-client|@opentelemetry/(sdk|exporter|resources))',
        dynamic: false,
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'client-needs-no-package',
      severity: 'error',
      comment:
        'The client is published, and its users install nothing else: use what Node has. Its types of requests and answers are generated from the contract.',
      from: { path: '^packages/client/', pathNot: tests },
      to: { pathNot: '^packages/client/', dependencyTypesNot: ['core'] },
    },
    {
      name: 'api-writes-no-documents',
      severity: 'error',
      comment:
        'The API computes ids, connects, looks up keys and reads sources: of the store it imports @sluice/store/ids, /connect, /keys, /read and /find. Sources and quotes are written by workers: enqueue a job.',
      from: { path: '^apps/api/', pathNot: tests },
      to: {
        path: '^packages/store/',
        pathNot: '^packages/store/src/(ids|mongodb/connect-store|keys/manage-keys|read-source|find-stored)\\.ts$',
      },
    },
    {
      name: 'api-reaches-no-writes',
      severity: 'error',
      comment: 'No import of the API may lead to code that writes sources and quotes: split the file.',
      from: { path: '^apps/api/src/main\\.ts$' },
      to: {
        path: '^packages/store/src/(write/|merge/|mongodb/mongo-commands\\.ts$)',
        reachable: true,
      },
    },
    {
      name: 'store-goes-one-way',
      severity: 'error',
      comment: 'In the store, `write` uses `merge`, `mongodb` and `words`, which know neither it nor each other.',
      from: { path: '^packages/store/src/(merge|mongodb|words)/' },
      to: { path: '^packages/store/src/(write|merge|mongodb|words)/', pathNot: '^packages/store/src/$1/' },
    },
    {
      name: 'front-doors',
      severity: 'error',
      comment: 'Import another package by its name: only its `exports` are public.',
      from: { path: '^((?:apps|packages)/[^/]+|test)/' },
      to: { path: '^(apps|packages|test)/', pathNot: '^$1/', dependencyTypes: ['local'] },
    },
    ...oneWay('packages/queue/src', [
      'consume',
      'enqueue',
      'failed',
      'find',
      'replies',
      'sessions',
      'imports',
      'load',
      'bullmq-layout',
      'job',
      'redis',
    ]),
    ...oneWay(
      'apps/api/src',
      ['routes', 'admin', 'imports', 'sources', 'docs', 'body', 'request'],
      ['api-deps\\.ts', 'settings\\.ts'],
    ),
    ...oneWay('apps/cli/src/import', ['show', 'send', 'shape', 'gather', 'input', 'account']),
    {
      name: 'formats-are-strangers',
      severity: 'error',
      comment: 'A format imports no other format: move what both need into `read` or `values`.',
      from: { path: '^packages/formats/src/([^/]+)/', pathNot: tests },
      to: { path: '^packages/formats/src/[^/]+/', pathNot: ['^packages/formats/src/($1|read|values)/'] },
    },
    {
      name: 'product-knows-no-tests',
      severity: 'error',
      comment: 'The product imports no test code: move shared code into the product.',
      from: { path: '^(apps|packages)/', pathNot: tests },
      to: { path: tests },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default'],
      extensions: ['.ts', '.js', '.mjs', '.cjs', '.json'],
    },
  },
}
