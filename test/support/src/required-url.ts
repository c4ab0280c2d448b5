/**
 * The URL that the test runner put into the environment for one of its servers; throws if a test
 * runs without the runner.
 */
export function requiredUrl(name: 'REDIS_URL' | 'MONGODB_URL'): string {
  const url = process.env[name]
  if (url === undefined)
    throw new Error(
      `${name} is not set: run tests by \`pnpm test [file …]\`, which starts the servers`,
    )
  return url
}
