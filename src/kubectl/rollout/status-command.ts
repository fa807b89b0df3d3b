/** kubectl rollout status: prints the progress of a rollout and watches it until it is complete. */
import type { DaemonSet, Deployment, StatefulSet } from '#apis/apps/v1.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, int } from '#lib/flags/kinds.ts'

import type { Info } from '../builder/select-options.ts'
import { ROLLED_TYPES } from '../choices.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { KubectlError } from '../errors.ts'
import type { AnyObject } from '../session/rest.ts'
import { awaited, LATE } from '../wait/awaited.ts'
import { checkSelection, groupKind, selectWorkloads, ROLLED, ROLLOUT_FLAGS, reportNoneFound } from './selection.ts'
import { daemonSetStatus, deploymentStatus, type RolloutStatus, statefulSetStatus } from './status.ts'

const FLAGS = {
  ...ROLLOUT_FLAGS,
  revision: flag(int, 0, 'Watch only this revision and fail if another one is rolled out. 0 means the latest.'),
  timeout: flag(duration, 0, 'Time to wait before giving up. Zero means no limit.'),
  watch: flag(bool, true, 'Watch until the rollout is complete.', { shorthand: 'w' }),
}

export const rolloutStatus: Command = defineCommand({
  name: 'status',
  use: '(TYPE NAME | TYPE/NAME) [flags] [options]',
  long: 'Show the progress of a rollout. By default the command watches until the rollout is complete.',
  examples: '# Watch the rollout of a deployment\nkubectl rollout status deployment/nginx',
  flags: FLAGS,
  completes: { resources: ROLLED_TYPES, isSingle: true },
  async run(invocation) {
    checkSelection(invocation, invocation.flags.revision)
    const selection = await selectWorkloads(invocation)
    let found = 0
    await selection.visit(async (info) => {
      found++
      await follow(invocation, info)
    })
    if (found === 0) await reportNoneFound(invocation)
  },
})

function statusOf(kind: string, object: AnyObject, revision: number): RolloutStatus {
  if (kind === 'Deployment.apps') return deploymentStatus(object as unknown as Deployment, revision)
  return kind === 'DaemonSet.apps'
    ? daemonSetStatus(object as unknown as DaemonSet)
    : statefulSetStatus(object as unknown as StatefulSet)
}

/** Prints every observed state, including the last. */
async function follow({ session, stdout, flags }: Invocation<typeof FLAGS>, info: Info): Promise<void> {
  const rolled = groupKind(info)
  if (!ROLLED.has(rolled)) throw new KubectlError(`no status viewer has been implemented for ${rolled}`)
  let isSeen = false
  const isDone = (object: AnyObject | undefined): boolean => {
    if (object === undefined) {
      if (isSeen) throw new KubectlError('object has been deleted')
      return false
    }
    isSeen = true
    const now = statusOf(rolled, object, flags.revision)
    stdout.write(now.text)
    return now.isDone || !flags.watch
  }
  await awaited(session, info, { timeoutMs: flags.timeout > 0 ? flags.timeout : undefined, late: LATE }, isDone)
}
