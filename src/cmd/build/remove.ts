/** `hyperkube build remove`: removes the cluster and restores its machines. */
import { rm } from 'node:fs/promises'
import { createInterface } from 'node:readline/promises'

import { flag } from '#lib/flags/flags.ts'
import { bool } from '#lib/flags/kinds.ts'
import { defineProgram, type Program, ProgramError } from '#lib/program.ts'
import { openOperatorSession } from '#provision/builder/operator-session.ts'
import { sayTo } from '#provision/builder/progress.ts'
import { removeCluster } from '#provision/builder/remove.ts'

import { BUILD_FLAGS } from './flags.ts'
import { withKubectl } from './kubectl-runner.ts'

export const remove: Program = defineProgram({
  name: 'remove',
  long:
    'remove stops the cluster and removes everything it created from its machines, including data. Files that existed before are ' +
    'restored. It also deletes the state file and the kubeconfig beside cluster.yml.',
  flags: { build: { ...BUILD_FLAGS, force: flag(bool, false, 'do not ask for confirmation') } },
  async run({ flags, stdin, stdout, stderr, clock, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const say = sayTo(flags, stdout)
    const session = await openOperatorSession(
      withKubectl({ ...context, flags, stdin, stdout, stderr, clock, say }),
      closing,
      signal,
    )
    if (!flags.force && !(await isSure(stdin(), stdout, session.files.config))) return 1
    const problems = await removeCluster(session, { say, isDebug: flags.debug || flags.trace, clock, signal })
    if (problems.length > 0) throw new ProgramError(`Some machines could not be restored:\n  ${problems.join('\n  ')}`)
    for (const file of [session.files.state, session.files.kubeconfig]) await rm(file, { force: true })
    say('The cluster is removed.')
    return 0
  },
})

async function isSure(input: NodeJS.ReadableStream, output: NodeJS.WritableStream, file: string): Promise<boolean> {
  using asking = createInterface({ input, output })
  const answer = await asking.question(
    `Are you sure you want to remove the cluster of ${file} with all its data [y/n]: `,
  )
  return /^y(?:es)?$/i.test(answer.trim())
}
