/** What `hyperkube up` starts for each further node of its machine, in the node's namespace. It is not for people. */
import { NODE_PROGRAM } from '#cluster/further-nodes.ts'
import { startNodeProcess } from '#cluster/node-process.ts'
import { aborted } from '#lib/abort.ts'
import { flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'
import { LOG_FLAGS } from '#lib/log-flags.ts'
import { defineProgram, type Program, ProgramError } from '#lib/program.ts'
import { tidyWhenQuiet } from '#lib/tidy-memory.ts'

export const upNode: Program = defineProgram({
  name: NODE_PROGRAM,
  long:
    'up-node is a further node of a cluster on one machine. "hyperkube up" starts it in a network namespace, tells it by files who ' +
    'it is, and ends it. When "up" is killed, it ends too, and its containers go on until the next "up".',
  flags: {
    node: { 'data-dir': flag(string, '', '`directory` of the node') },
    logs: LOG_FLAGS,
  },
  async run({ flags, stdin, clock, ...context }, signal) {
    if (flags['data-dir'] === '') throw new ProgramError('Say with --data-dir which node this is')
    const orphaned = new AbortController()
    // Whoever started it holds the other end, and says nothing.
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
