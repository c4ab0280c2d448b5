import { constants, setPriority } from 'node:os'

// The tests of this process compute in what all others leave of the processors.

setPriority(constants.priority.PRIORITY_LOW)
