// Redis and MongoDB on this machine, and processes that end with their parent.
export { type Kept, keepRunning, type Running } from './keep-running.ts'
export { endOfLog, type LaunchedProcess, launchProcess, NODE_FLAGS } from './launch-process.ts'
export { freePort, isPortFree, processFacts } from './machine.ts'
export { type OpenServers, openServers, type ServerName, type Servers, ServerUnreachable } from './open-servers.ts'
export { DataInUse, NoServerFound, UnusableData } from './provider.ts'
