/** The process that `hyperkube up` starts for each additional node, in the network namespace of the node. */
import { NODE_PROGRAM } from '#cluster/machine/extra-nodes.ts'
import { startNodeProcess } from '#cluster/machine/node-process.ts'
import { aborted } from '#lib/abort.ts'
import { flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'
import { LOG_FLAGS } from '#lib/log/flags.ts'
import { tidyWhenQuiet } from '#lib/process/tidy-memory.ts'
import { defineProgram, type Program, ProgramError } from '#lib/program.ts'

export const upNode: Program = defineProgram({
  name: NODE_PROGRAM,
  long:
    'up-node runs an additional node of a cluster on one machine. "hyperkube up" starts it in a network namespace, configures it through ' +
    'files, and stops it. If "up" is killed, it exits too, and its containers keep running until the next "up".',
  flags: {
    node: { 'data-dir': flag(string, '', '`directory` of the node') },
    logs: LOG_FLAGS,
  },
  async run({ flags, stdin, clock, ...context }, signal) {
    if (flags['data-dir'] === '') throw new ProgramError('Set --data-dir to the directory of the node')
    const orphaned = new AbortController()
    // The parent keeps the other end of standard input open and writes nothing.
    stdin()
      .on('close', () => orphaned.abort())
      .on('error', () => orphaned.abort())
      .resume()
    await using closing = new AsyncDisposableStack()
    closing.use(tidyWhenQuiet(clock))
    const leavesContainers = (): boolean => !signal.aborted
    await startNodeProcess({ ...context, clock, dataDir: flags['data-dir'], leavesContainers }, closing)
    await aborted(AbortSignal.any([signal, orphaned.signal]))
    return 0
  },
})
