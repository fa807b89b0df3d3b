/** `hyperkube build util`: the state and the kubeconfig again, where they were lost. */
import { writeFileAtomically } from '#lib/atomic-file.ts'
import { type Command, defineProgram, type Program, ProgramError } from '#lib/program.ts'

import { BUILD_FLAGS } from './flags.ts'
import { sayTo } from './progress.ts'
import { openSession } from './session.ts'

const getKubeconfig: Program = defineProgram({
  name: 'get-kubeconfig',
  long: 'get-kubeconfig writes the kubeconfig of the administrator again, from the state.',
  flags: { build: BUILD_FLAGS },
  async run({ flags, stdout, stderr, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const say = sayTo(flags, stderr)
    const session = await openSession({ ...context, flags, stdout, stderr, say }, closing, signal)
    if (session.before === undefined) throw new ProgramError(`There is no cluster in ${session.files.state} yet`)
    await session.saveKubeconfig(session.stage)
    stdout.write(`${session.files.kubeconfig}\n`)
    return 0
  },
})

const getStateFile: Program = defineProgram({
  name: 'get-state-file',
  long: 'get-state-file writes the state again, from the secret in the cluster. The kubeconfig must be there.',
  flags: { build: BUILD_FLAGS },
  async run({ flags, stdout, stderr, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const say = sayTo(flags, stderr)
    const session = await openSession({ ...context, flags, stdout, stderr, say }, closing, signal)
    const state = await session.api.savedState()
    if (state === undefined) throw new ProgramError('The cluster has no secret full-cluster-state')
    await writeFileAtomically(session.files.state, state, { mode: 0o600 })
    stdout.write(`${session.files.state}\n`)
    return 0
  },
})

const COMMANDS: readonly Command[] = [
  {
    name: 'get-kubeconfig',
    short: 'Writes the kubeconfig again, from the state',
    load: () => Promise.resolve(getKubeconfig),
  },
  {
    name: 'get-state-file',
    short: 'Writes the state again, from the cluster',
    load: () => Promise.resolve(getStateFile),
  },
]

export const util: Program = defineProgram({
  name: 'util',
  long: 'util brings back files that were lost.',
  flags: {},
  commands: [{ title: 'Commands', commands: COMMANDS }],
  async run({ help, stdout }) {
    stdout.write(await help())
    return 1
  },
})
