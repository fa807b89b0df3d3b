/** kubectl rollout status: how far a rollout is, watched until it is done. */
import type { DaemonSet, Deployment, StatefulSet } from '#apis/apps/v1.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, int } from '#lib/flags/kinds.ts'

import { type Command, defineCommand, type Invocation } from '../command.ts'
import { KubectlError } from '../errors.ts'
import type { AnyObject } from '../rest.ts'
import type { Info } from '../selecting.ts'
import { awaited, LATE } from '../wait/awaited.ts'
import { checkMeaning, groupKind, meant, ROLLED, ROLLOUT_FLAGS, sayNoneFound } from './rolled.ts'
import { daemonSetStatus, deploymentStatus, type RolloutStatus, statefulSetStatus } from './status.ts'

const FLAGS = {
  ...ROLLOUT_FLAGS,
  revision: flag(int, 0, 'Follow this revision only: fail when another one is rolled out. 0: the latest.'),
  timeout: flag(duration, 0, 'How long to wait before giving up. Zero: as long as it takes.'),
  watch: flag(bool, true, 'Watch until the rollout is done.', { shorthand: 'w' }),
}

export const rolloutStatus: Command = defineCommand({
  name: 'status',
  use: '(TYPE NAME | TYPE/NAME) [flags] [options]',
  long: 'Show how far the rollout is, and watch it until it is done unless --watch=false.',
  examples: '# Watch the rollout of a deployment\nkubectl rollout status deployment/nginx',
  flags: FLAGS,
  async run(invocation) {
    checkMeaning(invocation, invocation.flags.revision)
    const selection = await meant(invocation)
    let found = 0
    await selection.visit(async (info) => {
      found++
      await follow(invocation, info)
    })
    if (found === 0) await sayNoneFound(invocation)
  },
})

function statusOf(kind: string, object: AnyObject, revision: number): RolloutStatus {
  if (kind === 'Deployment.apps') return deploymentStatus(object as unknown as Deployment, revision)
  return kind === 'DaemonSet.apps'
    ? daemonSetStatus(object as unknown as DaemonSet)
    : statefulSetStatus(object as unknown as StatefulSet)
}

/** Every state that is seen is told, the last one too. */
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
