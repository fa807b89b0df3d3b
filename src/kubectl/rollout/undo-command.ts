/** kubectl rollout undo: rolls back to an earlier revision. */
import { flag } from '#lib/flags/flags.ts'
import { int } from '#lib/flags/kinds.ts'
import type { JsonObject } from '#lib/json/value.ts'

import { LAST_APPLIED } from '../apply/last-applied.ts'
import type { Info } from '../builder/select-options.ts'
import { ROLLED_TYPES } from '../choices.ts'
import { type Command, defineCommand } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'
import { DRY_RUN_FLAG, dryRunOf, dryRunQuery, withDryRun } from '../flag-sets.ts'
import { printerOf, printFlags } from '../printing.ts'
import { createRelatedObjects } from '../related-objects.ts'
import { type RevisionedWorkload, revisionsOf } from './history.ts'
import { checkSelection, selectWorkloads, requireRevisions, ROLLOUT_FLAGS } from './selection.ts'
import { planUndo } from './undo.ts'

const CHUNK = 500

export const rolloutUndo: Command = defineCommand({
  name: 'undo',
  use: '(TYPE NAME | TYPE/NAME) [flags] [options]',
  long: 'Roll back to an earlier revision.',
  examples: `# Roll back to the previous revision
kubectl rollout undo deployment/abc

# Roll back to revision 3
kubectl rollout undo daemonset/abc --to-revision=3`,
  flags: {
    ...printFlags(),
    ...ROLLOUT_FLAGS,
    ...DRY_RUN_FLAG,
    'to-revision': flag(int, 0, 'Revision to roll back to. 0 means the previous one.'),
  },
  completes: { resources: ROLLED_TYPES },
  async run(invocation) {
    const { flags, stdout, stderr, session, clock } = invocation
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    checkSelection(invocation)
    const selection = await selectWorkloads(invocation)
    const rest = await session.rest()
    const around = createRelatedObjects({ rest, chunkSize: CHUNK, nowMs: clock.now(), showsEvents: false })
    const toRevision = flags['to-revision']
    await selection.visit(async (info) => {
      if (Object.hasOwn(info.object?.metadata.annotations ?? {}, LAST_APPLIED)) stderr.write(appliedWarning(info))
      requireRevisions(info, 'rollbacker')
      const object = info.object as unknown as RevisionedWorkload
      const revisions = toRevision < 0 ? [] : await revisionsOf(object, around)
      const { text, patch } = planUndo(object, revisions, { toRevision, dryRun })
      if (patch !== undefined) {
        await rest.patch(info, patch.type, patch.body, dryRunQuery(dryRun)).catch((error: unknown) => {
          throw new KubectlError(`failed restoring revision ${toRevision}: ${asError(error).message}`, { cause: error })
        })
      }
      const printer = await printerOf(invocation, { operation: withDryRun(text, dryRun), keepOrder: true })
      printer.print(info.object as unknown as JsonObject, stdout)
    })
  },
})

function appliedWarning({ kind, name }: Info): string {
  return `Warning: resource ${kind.plural}/${name} was previously managed with 'kubectl apply'. Rolling back will not update the ${LAST_APPLIED} annotation, which may cause unexpected behavior on future 'kubectl apply' operations. Consider using 'kubectl apply' with your previous configuration file instead.\n`
}
