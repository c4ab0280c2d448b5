// The front door: the command that imports export files, and their formats.
export { formats } from './formats/formats.ts'
export { importCommand } from './import-command.ts'
