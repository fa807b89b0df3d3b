/** Where the process begins: bin/entry.mjs loads this file in a checkout, and its bundle once published. */
import { setFlagsFromString } from 'node:v8'

import { main } from './main.ts'
import { runProcess } from './process.ts'

// A server holds as much as is stored. By default its heap may become three times that before anything is collected.
setFlagsFromString('--heap-growing-percent=50')
await runProcess(main)
