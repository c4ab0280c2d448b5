// Imports go one way: apps → packages, and the packages in one order. The comment of each rule says
// what to do instead.

const tests = '\\.test\\.ts$|\\.test-support\\.ts$|\\.program\\.ts$|^test/|^bench/'

/**
 * The folders of a place, from top to bottom: each imports from itself, from those below it, from
 * the shared files, and nothing else of that place.
 */
const oneWay = (place, folders, shared = []) =>
  folders.map((folder, at) => ({
    name: `one-way-${place.split('/').at(1) ?? place}-${folder}`,
    severity: 'error',
    comment: `The folders of ${place} import downwards, in this order: ${folders.join(', ')}. Move the shared part down.`,
    from: { path: `^${place}/${folder}/`, pathNot: tests },
    to: {
      path: `^${place}/`,
      pathNot: [
        ...folders.slice(at).map((own) => `^${place}/${own}/`),
        ...shared.map((file) => `^${place}/${file}$`),
      ],
    },
  }))

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'resolvable',
      severity: 'error',
      comment:
        'An unresolved import escapes every other rule: name the package in package.json, or fix the path.',
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
    ...oneWay('packages', [
      'importer',
      'terminal',
      'operations',
      'boot',
      'credentials',
      'queue',
      'store',
      'process',
      'client',
      'contract',
    ]),
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
        'Apps meet in Redis, in MongoDB and in packages only: move what both need into a package. Only `apps/local` knows the others, because it runs them and checks their settings.',
      from: { path: '^apps/([^/]+)/', pathNot: [tests, '^apps/local/'] },
      to: { path: '^apps/', pathNot: '^apps/$1/' },
    },
    {
      name: 'queue-and-store-are-strangers',
      severity: 'error',
      comment:
        'Jobs and documents are independent: an app, or a package above both, connects them.',
      from: { path: '^packages/queue/', pathNot: tests },
      to: { path: '^packages/store/' },
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
        'The client is published, and its users install nothing else: use what Node has. Only contract.ts takes types from the contract, and the packed client has them written out.',
      from: { path: '^packages/client/', pathNot: [tests, '^packages/client/src/contract\\.ts$'] },
      to: { pathNot: '^packages/client/', dependencyTypesNot: ['core'] },
    },
    {
      name: 'api-writes-no-documents',
      severity: 'error',
      comment:
        'The API computes ids, connects and reads sources: of the store it imports @sluice/store/ids, /connect, /export and /read. Sources and quotes are written by workers: enqueue a job.',
      from: { path: '^apps/api/', pathNot: tests },
      to: {
        path: '^packages/store/',
        pathNot: '^packages/store/src/(ids|mongodb/connect-store|export-threads|read-source)\\.ts$',
      },
    },
    {
      name: 'api-reaches-no-writes',
      severity: 'error',
      comment:
        'No import of the API may lead to code that writes sources and quotes: split the file.',
      from: { path: '^apps/api/src/main\\.ts$' },
      to: {
        path: '^packages/store/src/(write/|merge/|mongodb/mongo-commands\\.ts$)',
        reachable: true,
      },
    },
    {
      name: 'store-goes-one-way',
      severity: 'error',
      comment:
        'In the store, `write` uses `merge`, `mongodb` and `words`, which know neither it nor each other.',
      from: { path: '^packages/store/src/(merge|mongodb|words)/' },
      to: {
        path: '^packages/store/src/(write|merge|mongodb|words)/',
        pathNot: '^packages/store/src/$1/',
      },
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
      'purge',
      'replies',
      'imports',
      'load',
      'job',
      'bullmq-layout',
    ]),
    {
      name: 'bullmq-layout-stands-alone',
      severity: 'error',
      comment: 'What knows BullMQ’s keys knows nothing of Sluice: pass in what it needs.',
      from: { path: '^packages/queue/src/bullmq-layout/', pathNot: tests },
      to: { path: '^packages/', pathNot: '^packages/queue/src/bullmq-layout/' },
    },
    ...oneWay('packages/operations/src', ['overview', 'find', 'jobs', 'failed']),
    ...oneWay(
      'apps/api/src',
      ['routes', 'admin', 'jobs', 'imports', 'sources', 'docs', 'body', 'request'],
      ['api-deps\\.ts', 'settings\\.ts'],
    ),
    ...oneWay('packages/importer/src', [
      'show',
      'send',
      'shape',
      'gather',
      'input',
      'account',
      'formats',
    ]),
    ...oneWay('apps/local/src', ['start', 'servers']),
    {
      name: 'formats-are-strangers',
      severity: 'error',
      comment: 'A format imports no other format: move what both need into `read` or `values`.',
      from: { path: '^packages/importer/src/formats/([^/]+)/', pathNot: tests },
      to: {
        path: '^packages/importer/src/formats/[^/]+/',
        pathNot: ['^packages/importer/src/formats/($1|read|values)/'],
      },
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
