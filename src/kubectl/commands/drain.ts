/** kubectl drain: empties nodes before maintenance, as far as disruption budgets let it. */
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, int, string } from '#lib/flags/kinds.ts'
import type { JsonObject } from '#lib/json-value.ts'
import { parseSelector } from '#meta/labels.ts'

import { type Command, defineCommand } from '../command.ts'
import { emptyNode } from '../drain/emptying.ts'
import { checkNodes, cordonNodes, meantNodes, NODE_FLAGS } from '../drain/nodes.ts'
import { asError, Failures, KubectlError } from '../errors.ts'
import { CHUNK_FLAG, dryRunOf, withDryRun } from '../flag-sets.ts'
import { namePrinter } from '../print/structured.ts'

const FLAGS = {
  ...NODE_FLAGS,
  ...CHUNK_FLAG,
  'delete-emptydir-data': flag(bool, false, 'Go on also with pods whose emptyDir volumes are lost by it.'),
  'disable-eviction': flag(bool, false, 'Delete pods instead of evicting them: disruption budgets are not asked.'),
  force: flag(bool, false, 'Go on also with pods that no controller will make again.'),
  'grace-period': flag(int, -1, 'Seconds for pods to stop in. Negative: as each pod says.'),
  'ignore-daemonsets': flag(bool, false, 'Leave pods of daemon sets alone.'),
  'pod-selector': flag(string, '', 'Label selector of the pods to look at.'),
  'skip-wait-for-delete-timeout': flag(
    int,
    0,
    'Do not wait for pods that should have been gone for more than so many seconds. Zero: wait for all.',
  ),
  timeout: flag(duration, 0, 'How long to wait before giving up. Zero: as long as it takes.'),
}

export const drain: Command = defineCommand({
  name: 'drain',
  use: 'NODE [options]',
  long: "Empty a node before maintenance: it takes no more pods, and those that it has are evicted, but for pods that the node runs by itself. Pods of daemon sets and pods that nobody would make again need a flag to say what is meant. Waits until they are gone; 'kubectl uncordon' takes the node back.",
  examples: `# Empty node "foo", also of pods that nobody will make again
kubectl drain foo --force

# Give pods 15 minutes to stop
kubectl drain foo --grace-period=900`,
  flags: FLAGS,
  async run(invocation) {
    const { flags, session, stdout, stderr } = invocation
    checkNodes(invocation, 'drain NODE')
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    checkPodSelector(flags['pod-selector'])
    await session.config()
    const nodes = await meantNodes(invocation, flags['chunk-size'])
    await cordonNodes(invocation, nodes, { isWanted: true, dryRun })
    const failed: { name: string; error: Error }[] = []
    for (const { name, object } of nodes) {
      try {
        await emptyNode(invocation, name, dryRun)
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
