// Entry point: the command that imports export files, and the formats of these files.
export { FORMAT_OPTIONS, OPTION_NAMES, readersOf } from './formats/format-options.ts'
export { formats } from './formats/formats.ts'
export { importCommand } from './import-command.ts'
