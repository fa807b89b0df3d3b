/** kubectl rollout undo: back to an earlier revision. */
import { flag } from '#lib/flags/flags.ts'
import { int } from '#lib/flags/kinds.ts'
import type { JsonObject } from '#lib/json-value.ts'

import { type Command, defineCommand } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'
import { DRY_RUN_FLAG, dryRunOf, dryRunQuery, withDryRun } from '../flag-sets.ts'
import { LAST_APPLIED } from '../last-applied.ts'
import { printerOf, printFlags } from '../printing.ts'
import type { Info } from '../selecting.ts'
import { surroundings } from '../surroundings.ts'
import { type Rolled, revisionsOf } from './history.ts'
import { checkMeaning, meant, requireRevisions, ROLLOUT_FLAGS } from './rolled.ts'
import { planUndo } from './undo.ts'

const CHUNK = 500

export const rolloutUndo: Command = defineCommand({
  name: 'undo',
  use: '(TYPE NAME | TYPE/NAME) [flags] [options]',
  long: 'Go back to an earlier rollout.',
  examples: `# Go back to the one before
kubectl rollout undo deployment/abc

# Go back to the third revision
kubectl rollout undo daemonset/abc --to-revision=3`,
  flags: {
    ...printFlags(),
    ...ROLLOUT_FLAGS,
    ...DRY_RUN_FLAG,
    'to-revision': flag(int, 0, 'The revision to go back to. 0: the one before.'),
  },
  async run(invocation) {
    const { flags, stdout, stderr, session, clock } = invocation
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    checkMeaning(invocation)
    const selection = await meant(invocation)
    const rest = await session.rest()
    const around = surroundings({ rest, chunkSize: CHUNK, nowMs: clock.now(), showsEvents: false })
    const toRevision = flags['to-revision']
    await selection.visit(async (info) => {
      if (Object.hasOwn(info.object?.metadata.annotations ?? {}, LAST_APPLIED)) stderr.write(appliedWarning(info))
      requireRevisions(info, 'rollbacker')
      const object = info.object as unknown as Rolled
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
