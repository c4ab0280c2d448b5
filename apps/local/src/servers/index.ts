// Redis and MongoDB on this machine, and processes that end with their parent.
export { type Kept, keepRunning, type Running } from './keep-running.ts'
export type { LaunchedProcess } from './launch-process.ts'
export { DidNotStart, launchNode, NODE_FLAGS } from './launch-ready.ts'
export { findProgram, freePort, isPortFree } from './machine.ts'
export { type OpenServers, openServers, type ServerName, type Servers } from './open-servers.ts'
export { NoServer, UnusableData } from './provider.ts'
export { findPython } from './wheels.ts'
