/** kubectl annotate: changes annotations. */
import type { JsonObject } from '#lib/json/value.ts'

import { select } from '../builder/builder.ts'
import type { Info } from '../builder/select-options.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { type DryRun, dryRunOf, dryRunQuery, withDryRun } from '../flag-sets.ts'
import {
  changed,
  changeFlags,
  type ChangeFlags,
  changeSelecting,
  checkChange,
  listing,
  mapPatch,
} from '../label/metadata-change.ts'
import { type Changes, parsePairs, splitPairs } from '../label/pairs.ts'
import { printerOf } from '../printing.ts'
import { CHANGE_CAUSE, recorded } from '../recording.ts'
import type { AnyObject } from '../session/rest.ts'

export const annotate: Command = defineCommand({
  name: 'annotate',
  use: '[--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N [--resource-version=version] [options]',
  long: 'Update annotations of a resource: KEY=VALUE sets an annotation, KEY- removes it.',
  examples: `# Set an annotation of a pod
kubectl annotate pods foo description='my frontend'

# Remove the annotation
kubectl annotate pods foo description-`,
  flags: changeFlags('annotation', 'kubectl-annotate'),
  completes: 'resources',
  async run(invocation) {
    const { args, flags, stdout } = invocation
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    const printer = await printerOf(invocation, { operation: withDryRun('annotated', dryRun) })
    const { resources, pairs } = splitPairs(args, 'annotation')
    const changes = parsePairs(pairs, 'annotation')
    if (flags.list && flags.output !== '') {
      throw new KubectlError('--list and --output may not be specified together')
    }
    checkChange(invocation, { resources, changes, dryRun }, { what: 'annotation', file: 'rsrc' })
    const both = changes.removed.filter((key) => changes.set.has(key))
    if (both.length > 0) {
      throw new KubectlError(
        `can not both modify and remove the following annotation(s) in the same command: ${both.join(', ')}`,
      )
    }
    const selection = await select(await changeSelecting(invocation, resources))
    if (!selection.isSingle && flags['resource-version'] !== '') {
      throw new KubectlError('--resource-version may only be used with a single resource')
    }
    await selection.visit(async (info) => {
      const result = await annotateOne(invocation, info, { changes, dryRun })
      if (flags.list) stdout.write(listing('annotation', result, result.metadata.annotations ?? {}, selection.isSingle))
      else printer.print(result as unknown as JsonObject, stdout)
    })
  },
})

async function annotateOne(
  invocation: Invocation<ChangeFlags>,
  info: Info,
  { changes, dryRun }: { readonly changes: Changes; readonly dryRun: DryRun },
): Promise<AnyObject> {
  const { flags, session } = invocation
  const object = info.object as AnyObject
  const isHere = dryRun === 'client' || flags.local || flags.list
  const before = (isHere ? object : recorded(invocation, object)).metadata.annotations ?? {}
  if (!flags.overwrite) refuseOverwriting(before, changes)
  const { map } = changed(before, changes)
  if (isHere) {
    return { ...object, metadata: { ...object.metadata, annotations: map } }
  }
  const version = flags['resource-version']
  const metadata = {
    ...mapPatch('annotations', object.metadata.annotations, map),
    ...(version !== '' && { resourceVersion: version }),
  }
  const query = { fieldManager: flags['field-manager'], ...dryRunQuery(dryRun) }
  const patch = Object.keys(metadata).length === 0 ? {} : { metadata }
  return (await session.rest()).patch(info, 'merge', patch, query)
}

function refuseOverwriting(before: Readonly<Record<string, string>>, { set }: Changes): void {
  const taken = [...set]
    // Upstream allows any command to overwrite this annotation.
    .filter(([key, value]) => key !== CHANGE_CAUSE && Object.hasOwn(before, key) && before[key] !== value)
    .map(([key]) => `'${key}' already has a value (${before[key] ?? ''})`)
  if (taken.length === 0) return
  throw new KubectlError(`--overwrite is false but found the following declared annotation(s): ${taken.join('; ')}`)
}
