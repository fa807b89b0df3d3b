/** kubectl drain: evicts the pods of nodes before maintenance and respects disruption budgets. */
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, int, string } from '#lib/flags/kinds.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { parseSelector } from '#meta/labels.ts'

import { type Command, defineCommand } from '../command.ts'
import { evictPodsOf } from '../drain/eviction.ts'
import { checkNodes, cordonNodes, selectNodes, NODE_FLAGS } from '../drain/nodes.ts'
import { asError, Failures, KubectlError } from '../errors.ts'
import { CHUNK_FLAG, dryRunOf, withDryRun } from '../flag-sets.ts'
import { namePrinter } from '../print/structured.ts'

const FLAGS = {
  ...NODE_FLAGS,
  ...CHUNK_FLAG,
  'delete-emptydir-data': flag(bool, false, 'Also evict pods with emptyDir volumes, which lose their data.'),
  'disable-eviction': flag(bool, false, 'Delete pods instead of evicting them. This ignores disruption budgets.'),
  force: flag(bool, false, 'Also evict pods that no controller recreates.'),
  'grace-period': flag(int, -1, 'Seconds that pods get to terminate. If negative, use the value of each pod.'),
  'ignore-daemonsets': flag(bool, false, 'Ignore pods of daemon sets.'),
  'pod-selector': flag(string, '', 'Label selector for the pods to evict.'),
  'skip-wait-for-delete-timeout': flag(
    int,
    0,
    'Skip pods whose deletion began more than this number of seconds ago. Zero waits for all pods.',
  ),
  timeout: flag(duration, 0, 'Time to wait before giving up. Zero means no limit.'),
}

export const drain: Command = defineCommand({
  name: 'drain',
  use: 'NODE [options]',
  long: "Prepare a node for maintenance: mark it as unschedulable and evict its pods, except static pods. Pods of daemon sets and pods without a controller need a flag. drain waits until the pods have terminated. 'kubectl uncordon' makes the node schedulable again.",
  examples: `# Drain node "foo", including pods without a controller
kubectl drain foo --force

# Give pods 15 minutes to terminate
kubectl drain foo --grace-period=900`,
  flags: FLAGS,
  completes: { names: 'node' },
  async run(invocation) {
    const { flags, session, stdout, stderr } = invocation
    checkNodes(invocation, 'drain NODE')
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    checkPodSelector(flags['pod-selector'])
    await session.config()
    const nodes = await selectNodes(invocation, flags['chunk-size'])
    await cordonNodes(invocation, nodes, { isWanted: true, dryRun })
    const failed: { name: string; error: Error }[] = []
    for (const { name, object } of nodes) {
      try {
        await evictPodsOf(invocation, name, dryRun)
        const operation = withDryRun('drained', dryRun)
        namePrinter({ operation }).print(object as unknown as JsonObject, stdout)
      } catch (thrown) {
        const error = asError(thrown)
        failed.push({ name, error })
        stderr.write(`error: unable to drain node "${name}" due to error: ${error.message}, continuing command...\n`)
      }
    }
    if (failed.length === 0) return
    stderr.write(`There are pending nodes to be drained:\n${failed.map(({ name }) => ` ${name}\n`).join('')}`)
    throw new Failures(failed.map(({ error }) => error))
  },
})

function checkPodSelector(text: string): void {
  if (text === '') return
  try {
    parseSelector(text)
  } catch (cause) {
    throw new KubectlError('--pod-selector=<pod_selector> must be a valid label selector', { cause })
  }
}
