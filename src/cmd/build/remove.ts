/** `hyperkube build remove`: machines become what they were. */
import { rm } from 'node:fs/promises'
import { createInterface } from 'node:readline/promises'

import { flag } from '#lib/flags/flags.ts'
import { bool } from '#lib/flags/kinds.ts'
import { defineProgram, type Program, ProgramError } from '#lib/program.ts'
import { applyPlan } from '#provision/apply.ts'
import { observeCluster } from '#provision/observe.ts'
import { planRemoval } from '#provision/removal.ts'

import { BUILD_FLAGS } from './flags.ts'
import { progressLine, sayTo } from './progress.ts'
import { openSession } from './session.ts'

export const remove: Program = defineProgram({
  name: 'remove',
  long:
    'remove ends the cluster and takes all that was made for it off its machines, data included. Files that were there before are put ' +
    'back. The state and the kubeconfig beside cluster.yml go too.',
  flags: { build: { ...BUILD_FLAGS, force: flag(bool, false, 'do not ask') } },
  async run({ flags, stdin, stdout, stderr, clock, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const say = sayTo(flags, stdout)
    const session = await openSession({ ...context, flags, stdin, stdout, stderr, clock, say }, closing, signal)
    if (!flags.force && !(await isSure(stdin(), stdout, session.files.config))) return 1
    const { connections, api, stage } = session
    const desired = await session.desired(stage)
    const reach = (name: string): ReturnType<typeof connections.reach> => connections.reach(name)
    const { hosts } = await observeCluster(desired, { reach, api, clock })
    const plan = planRemoval(desired, hosts)
    const site = { machine: (name: string) => connections.machine(name), api, clock }
    const told = (progress: Parameters<typeof progressLine>[0]): void => {
      const line = progressLine(progress, flags.debug || flags.trace)
      if (line !== undefined) say(line)
    }
    const { failures } = await applyPlan(plan, site, told, signal)
    const problems = [...plan.notes, ...failures.map(({ message }) => message)]
    if (problems.length > 0) throw new ProgramError(`Some machines are not as they were:\n  ${problems.join('\n  ')}`)
    for (const file of [session.files.state, session.files.kubeconfig]) await rm(file, { force: true })
    say('The cluster is gone.')
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
