/** `hyperkube build encrypt`: rotates the encryption key of Secrets. */
import { type Command, defineProgram, type Program, ProgramError } from '#lib/program.ts'
import { converge } from '#provision/builder/converge.ts'
import { openOperatorSession } from '#provision/builder/operator-session.ts'
import { sayTo } from '#provision/builder/progress.ts'
import { keyStages } from '#provision/state/stages.ts'

import { BUILD_FLAGS } from './flags.ts'
import { withKubectl } from './kubectl-runner.ts'

const rotateKey: Program = defineProgram({
  name: 'rotate-key',
  long:
    'rotate-key creates a new encryption key for Secrets, distributes it to all API servers, rewrites every Secret with it and removes the old key. ' +
    'Earlier snapshots of etcd need the old key, which is in the state file that "etcd snapshot-save" stores beside them.',
  flags: { build: BUILD_FLAGS },
  async run({ flags, stdout, stderr, clock, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const say = sayTo(flags, stdout)
    const options = withKubectl({ ...context, flags, stdout, stderr, clock, say, change: keyStages })
    const session = await openOperatorSession(options, closing, signal)
    if (session.before === undefined) throw new ProgramError(`There is no cluster in ${session.files.state} yet`)
    if (session.cluster.services['kube-api'].secrets_encryption_config.custom_config !== undefined)
      throw new ProgramError('secrets_encryption_config has a custom_config: edit it and run "up"')
    const done = await converge(
      session,
      { checksPorts: false, workersOnly: false, keepsPods: true },
      { say, isDebug: flags.debug || flags.trace, clock, signal },
    )
    say(`Done: ${done} steps. Secrets have a new key.`)
    return 0
  },
})

const COMMANDS: readonly Command[] = [
  { name: 'rotate-key', short: 'Rotate the encryption key of Secrets', load: () => Promise.resolve(rotateKey) },
]

export const encrypt: Program = defineProgram({
  name: 'encrypt',
  long: 'encrypt manages the encryption key of Secrets.',
  flags: {},
  commands: [{ title: 'Commands', commands: COMMANDS }],
  async run({ help, stdout }) {
    stdout.write(await help())
    return 1
  },
})
