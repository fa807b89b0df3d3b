/** `hyperkube build util`: restores a lost state file or kubeconfig. */
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import { type Command, defineProgram, type Program, ProgramError } from '#lib/program.ts'
import { openOperatorSession } from '#provision/builder/operator-session.ts'
import { sayTo } from '#provision/builder/progress.ts'

import { BUILD_FLAGS } from './flags.ts'
import { withKubectl } from './kubectl-runner.ts'

const getKubeconfig: Program = defineProgram({
  name: 'get-kubeconfig',
  long: 'get-kubeconfig writes the kubeconfig of the administrator from the state file.',
  flags: { build: BUILD_FLAGS },
  async run({ flags, stdout, stderr, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const say = sayTo(flags, stderr)
    const session = await openOperatorSession(withKubectl({ ...context, flags, stdout, stderr, say }), closing, signal)
    if (session.before === undefined) throw new ProgramError(`There is no cluster in ${session.files.state} yet`)
    await session.saveKubeconfig(session.stage)
    stdout.write(`${session.files.kubeconfig}\n`)
    return 0
  },
})

const getStateFile: Program = defineProgram({
  name: 'get-state-file',
  long: 'get-state-file writes the state file from the secret in the cluster. It needs the kubeconfig.',
  flags: { build: BUILD_FLAGS },
  async run({ flags, stdout, stderr, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const say = sayTo(flags, stderr)
    const session = await openOperatorSession(withKubectl({ ...context, flags, stdout, stderr, say }), closing, signal)
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
    short: 'Restore the kubeconfig from the state file',
    load: () => Promise.resolve(getKubeconfig),
  },
  {
    name: 'get-state-file',
    short: 'Restore the state file from the cluster',
    load: () => Promise.resolve(getStateFile),
  },
]

export const util: Program = defineProgram({
  name: 'util',
  long: 'util restores lost files.',
  flags: {},
  commands: [{ title: 'Commands', commands: COMMANDS }],
  async run({ help, stdout }) {
    stdout.write(await help())
    return 1
  },
})
