// Runs Redis and MongoDB on this machine, and processes that end with their parent.
export { type Kept, keepRunning, type Running } from './keep-running.ts'
export { DidNotStart, type LaunchedProcess, launchNode, NODE_FLAGS } from './launch-process.ts'
export { findProgram, freePort, isPortFree } from './machine.ts'
export { type OpenServers, openServers, type ServerName, type Servers } from './open-servers.ts'
export { NoServer, UnusableData } from './provider.ts'
export { findPython } from './wheels.ts'
