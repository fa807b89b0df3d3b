/** The entry point of the process: bin/entry.cjs loads this file in a checkout, and its bundle once published. */
import { main } from './main.ts'
import { runProcess } from './process.ts'

await runProcess(main)
