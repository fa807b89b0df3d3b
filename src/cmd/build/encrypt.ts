/** `hyperkube build encrypt`: the key that Secrets are stored with. */
import { type Command, defineProgram, type Program, ProgramError } from '#lib/program.ts'
import { keyStages } from '#provision/stages.ts'

import { bringUp } from './bring.ts'
import { BUILD_FLAGS } from './flags.ts'
import { sayTo } from './progress.ts'
import { openSession } from './session.ts'

const rotateKey: Program = defineProgram({
  name: 'rotate-key',
  long:
    'rotate-key makes a new key for Secrets, lets all API servers know it, writes every Secret again with it, and forgets the old one. ' +
    'Snapshots of etcd from before need the old one, which is in the state that "etcd snapshot-save" keeps beside them.',
  flags: { build: BUILD_FLAGS },
  async run({ flags, stdout, stderr, clock, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const say = sayTo(flags, stdout)
    const options = { ...context, flags, stdout, stderr, clock, say, change: keyStages }
    const session = await openSession(options, closing, signal)
    if (session.before === undefined) throw new ProgramError(`There is no cluster in ${session.files.state} yet`)
    if (session.cluster.services['kube-api'].secrets_encryption_config.custom_config !== undefined)
      throw new ProgramError('custom_config of secrets_encryption_config is yours: change it, and run "up"')
    const done = await bringUp(
      session,
      { checksPorts: false, workersOnly: false, keepsPods: true },
      { say, isDebug: flags.debug || flags.trace, clock, signal },
    )
    say(`Done: ${done} steps. Secrets have a new key.`)
    return 0
  },
})

const COMMANDS: readonly Command[] = [
  { name: 'rotate-key', short: 'Gives Secrets a new key', load: () => Promise.resolve(rotateKey) },
]

export const encrypt: Program = defineProgram({
  name: 'encrypt',
  long: 'encrypt is about the key that Secrets are stored with.',
  flags: {},
  commands: [{ title: 'Commands', commands: COMMANDS }],
  async run({ help, stdout }) {
    stdout.write(await help())
    return 1
  },
})
