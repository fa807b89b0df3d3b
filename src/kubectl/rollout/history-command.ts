/** kubectl rollout history: lists revisions of Deployments, DaemonSets and StatefulSets. */
import { flag } from '#lib/flags/flags.ts'
import { int } from '#lib/flags/kinds.ts'
import type { JsonObject } from '#lib/json/value.ts'

import { ROLLED_TYPES } from '../choices.ts'
import { type Command, defineCommand } from '../command.ts'
import { printerOf, printFlags } from '../printing.ts'
import { createRelatedObjects } from '../related-objects.ts'
import { historyText, type RevisionedWorkload, revisionOf, revisionsOf } from './history.ts'
import { checkSelection, selectWorkloads, requireRevisions, ROLLOUT_FLAGS } from './selection.ts'

const CHUNK = 500

export const rolloutHistory: Command = defineCommand({
  name: 'history',
  use: '(TYPE NAME | TYPE/NAME) [flags] [options]',
  long: 'List the revisions of a rollout, or show details of one revision.',
  examples: `# List the revisions of a deployment
kubectl rollout history deployment/abc

# Show details of revision 3
kubectl rollout history daemonset/abc --revision=3`,
  flags: {
    ...printFlags(),
    ...ROLLOUT_FLAGS,
    revision: flag(int, 0, 'Show details of this revision, including the pod template.'),
  },
  completes: { resources: ROLLED_TYPES },
  async run(invocation) {
    const { flags, session, stdout, clock } = invocation
    checkSelection(invocation, flags.revision)
    const selection = await selectWorkloads(invocation)
    // Like upstream, a template without -o applies to the workload itself.
    const whole = flags.output === '' ? undefined : await printerOf(invocation, { keepOrder: true })
    const rest = await session.rest()
    const around = createRelatedObjects({ rest, chunkSize: CHUNK, nowMs: clock.now(), showsEvents: false })
    await selection.visit(async (info) => {
      requireRevisions(info, 'history viewer')
      const revisions = await revisionsOf(info.object as unknown as RevisionedWorkload, around)
      if (whole !== undefined) {
        const shown = flags.revision > 0 ? [revisionOf(revisions, flags.revision)] : revisions
        for (const { object } of shown) {
          const { kind, apiVersion, ...rest } = object as unknown as JsonObject & { kind: string; apiVersion: string }
          whole.print({ kind, apiVersion, ...rest }, stdout)
        }
        return
      }
      const which = flags.revision > 0 ? `with revision #${flags.revision}` : ''
      const operation = `${which}\n${historyText(revisions, flags.revision)}`
      const printer = await printerOf(invocation, { operation })
      printer.print(info.object as unknown as JsonObject, stdout)
    })
  },
})
