/** A peer's settings from the benchmark. Throws if one is missing. */
export function peerEnv() {
  return {
    redisUrl: required('REDIS_URL'),
    mongodbUrl: required('MONGODB_URL'),
    queue: required('QUEUE'),
    key: required('KEY'),
    port: Number(required('PORT')),
  }
}

function required(name: string): string {
  const value = process.env[name]
  if (value === undefined) throw new Error(`${name} is not set: peers are started by the benchmark`)
  return value
}
