import { readFileSync } from 'node:fs'
import { MongoDBContainer } from '@testcontainers/mongodb'
import { RedisContainer } from '@testcontainers/redis'
import { getContainerRuntimeClient } from 'testcontainers'
import type { Containers } from './open-test-servers.ts'

// Redis and MongoDB in containers, by Testcontainers, which also removes them where this process is
// killed.

/** Resolves to undefined where no container engine answers. */
export async function findContainers(): Promise<Containers | undefined> {
  const engine = await getContainerRuntimeClient().catch(() => undefined)
  return engine && { REDIS_URL: startRedis, MONGODB_URL: startMongodb }
}

async function startRedis() {
  const command = ['redis-server', '--maxmemory-policy', 'noeviction', '--save', '']
  const container = await new RedisContainer(imageOf('redis')).withCommand(command).start()
  return { url: container.getConnectionUrl(), stop: async () => void (await container.stop()) }
}

async function startMongodb() {
  const container = await new MongoDBContainer(imageOf('mongo')).start()
  // The replica set knows its one member by a name that means nothing outside the container.
  return {
    url: `${container.getConnectionString()}/?directConnection=true`,
    stop: async () => void (await container.stop()),
  }
}

/**
 * The image that docker-compose.yml pins for a service, so that tests run against what is deployed.
 */
export function imageOf(service: string): string {
  const compose = readFileSync(new URL('../../docker-compose.yml', import.meta.url), 'utf8')
  const image = new RegExp(`^  ${service}:\\n    image: (\\S+)$`, 'm').exec(compose)?.[1]
  if (image === undefined)
    throw new Error(`docker-compose.yml names no image for the service ${service}`)
  return image
}
