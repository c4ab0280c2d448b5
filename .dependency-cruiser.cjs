// Arrows point one way: apps → packages → contract. Each rule says what to do instead.

const tests = '\\.test\\.ts$|\\.test-support\\.ts$|^test/|^bench/'

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'resolvable',
      severity: 'error',
      comment:
        'An import that leads nowhere hides from every other rule: name the package in package.json, or mend the path.',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'no-circle',
      severity: 'error',
      comment:
        'Two files that need each other are one thought, or hide a third one: take what both need into a file of its own.',
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
        'Queue and store never meet, and no package needs another but the contract: declare the narrow interface that you need, and let an app pass in what fits.',
      from: { path: '^packages/([^/]+)/', pathNot: tests },
      to: { path: '^packages/', pathNot: ['^packages/$1/', '^packages/contract/'] },
    },
    {
      name: 'contract-knows-nobody',
      severity: 'error',
      comment:
        'The contract is what callers rely on and what all others are built upon: it imports no other package of ours.',
      from: { path: '^packages/contract/' },
      to: { path: '^(apps|packages|test)/', pathNot: '^packages/contract/' },
    },
    {
      name: 'api-writes-no-documents',
      severity: 'error',
      comment:
        'The API computes ids, connects and looks up keys: of the store it imports @sluice/store/ids, /connect and /keys. Sources and quotes are written by workers: enqueue a job.',
      from: { path: '^apps/api/', pathNot: tests },
      to: {
        path: '^packages/store/',
        pathNot: '^packages/store/src/(ids|connect-store|keys/index)\\.ts$',
      },
    },
    {
      name: 'api-reaches-no-writes',
      severity: 'error',
      comment:
        'What the API imports of the store must not lead to what writes sources and quotes: part the file in two.',
      from: { path: '^apps/api/src/main\\.ts$' },
      to: {
        path: '^packages/store/src/(store-batch|guarded-write|merge-values|repair-sources)\\.ts$',
        reachable: true,
      },
    },
    {
      name: 'front-doors',
      severity: 'error',
      comment: 'Import another package by its name: what its `exports` do not offer is nobody else’s.',
      from: { path: '^((?:apps|packages)/[^/]+|test)/' },
      to: { path: '^(apps|packages|test)/', pathNot: '^$1/', dependencyTypes: ['local'] },
    },
    {
      name: 'product-knows-no-tests',
      severity: 'error',
      comment: 'What tests need stays with the tests: move it out of them where the product needs it too.',
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
