/** kubectl rollout history: earlier revisions of deployments and sets. */
import { flag } from '#lib/flags/flags.ts'
import { int } from '#lib/flags/kinds.ts'
import type { JsonObject } from '#lib/json-value.ts'

import { type Command, defineCommand } from '../command.ts'
import { printerOf, printFlags } from '../printing.ts'
import { surroundings } from '../surroundings.ts'
import { historyText, type Rolled, revisionOf, revisionsOf } from './history.ts'
import { checkMeaning, meant, requireRevisions, ROLLOUT_FLAGS } from './rolled.ts'

const CHUNK = 500

export const rolloutHistory: Command = defineCommand({
  name: 'history',
  use: '(TYPE NAME | TYPE/NAME) [flags] [options]',
  long: 'Show earlier revisions, and what one of them was.',
  examples: `# Show the revisions of a deployment
kubectl rollout history deployment/abc

# Show what the third one was
kubectl rollout history daemonset/abc --revision=3`,
  flags: {
    ...printFlags(),
    ...ROLLOUT_FLAGS,
    revision: flag(int, 0, 'Show the details of this revision, pod template included.'),
  },
  async run(invocation) {
    const { flags, session, stdout, clock } = invocation
    checkMeaning(invocation, flags.revision)
    const selection = await meant(invocation)
    // As upstream, a template without -o is of the object itself.
    const whole = flags.output === '' ? undefined : await printerOf(invocation, { keepOrder: true })
    const rest = await session.rest()
    const around = surroundings({ rest, chunkSize: CHUNK, nowMs: clock.now(), showsEvents: false })
    await selection.visit(async (info) => {
      requireRevisions(info, 'history viewer')
      const revisions = await revisionsOf(info.object as unknown as Rolled, around)
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
