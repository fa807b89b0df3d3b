/** kubectl label: changes labels. */
import { goQuote } from '#lib/go/text.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { labelValue } from '#meta/validation/names.ts'

import { select } from '../builder/builder.ts'
import type { Info } from '../builder/select-options.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { failuresOf, KubectlError } from '../errors.ts'
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
import { type Changes, splitPairs } from '../label/pairs.ts'
import { printerOf } from '../printing.ts'
import { recorded } from '../recording.ts'

export const label: Command = defineCommand({
  name: 'label',
  use: '[--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N [--resource-version=version] [options]',
  long: 'Update labels of a resource: KEY=VALUE sets a label, KEY- removes it.',
  examples: `# Set a label of a pod
kubectl label pods foo unhealthy=true

# Set a label and overwrite an existing value
kubectl label --overwrite pods foo status=unhealthy

# Remove a label
kubectl label pods foo bar-`,
  flags: changeFlags('label', 'kubectl-label'),
  completes: 'resources',
  async run(invocation) {
    const { args, flags } = invocation
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    const { resources, pairs } = splitPairs(args, 'label')
    const changes = parseLabels(pairs)
    if (flags.list && flags.output !== '') {
      throw new KubectlError('--list and --output may not be specified together')
    }
    checkChange(invocation, { resources, changes, dryRun }, { what: 'label', file: 'pod' })
    const selection = await select(await changeSelecting(invocation, resources))
    if (!selection.isSingle && flags['resource-version'] !== '') {
      throw new KubectlError('--resource-version may only be used with a single resource')
    }
    const labelOne = labeler(invocation, changes, dryRun)
    await selection.visit((info) => labelOne(info, selection.isSingle))
  },
})

function labeler(
  invocation: Invocation<ChangeFlags>,
  changes: Changes,
  dryRun: DryRun,
): (info: Info, isSingle: boolean) => Promise<void> {
  const { flags, stdout, session } = invocation
  return async (info, isSingle) => {
    const { object } = info
    if (object === undefined) return
    const { labels: before = {}, annotations } = object.metadata
    const isHere = dryRun === 'client' || flags.local || flags.list
    const missing = isHere ? [] : changes.removed.filter((key) => !Object.hasOwn(before, key))
    for (const key of missing) stdout.write(`label ${goQuote(key)} not found.\n`)
    if (!flags.overwrite) refuseOverwriting(before, changes)
    const after = changed(before, changes)
    if (!isHere && (after.added || after.removed)) {
      const version = flags['resource-version']
      const metadata = {
        ...mapPatch('labels', object.metadata.labels, after.map),
        ...mapPatch('annotations', annotations, recorded(invocation, object).metadata.annotations ?? {}),
        ...(version !== '' && { resourceVersion: version }),
      }
      const query = { fieldManager: flags['field-manager'], ...dryRunQuery(dryRun) }
      await (await session.rest()).patch(info, 'merge', { metadata }, query)
    }
    const result = { ...object, metadata: { ...object.metadata, labels: after.map } }
    if (flags.list) {
      stdout.write(listing('label', object, after.map, isSingle))
      return
    }
    const printer = await printerOf(invocation, { operation: withDryRun(outcome(after), dryRun) })
    printer.print(result as unknown as JsonObject, stdout)
  }
}

function outcome({ added, removed }: { added: boolean; removed: boolean }): string {
  if (added && removed) return 'modified'
  if (added) return 'labeled'
  return removed ? 'unlabeled' : 'not labeled'
}

function refuseOverwriting(before: Readonly<Record<string, string>>, { set }: Changes): void {
  const errors = [...set]
    .filter(([key, value]) => Object.hasOwn(before, key) && before[key] !== value)
    .map(([key]) => new KubectlError(`'${key}' already has a value (${before[key] ?? ''}), and --overwrite is false`))
  const failed = failuresOf(errors)
  if (failed !== undefined) throw failed
}

/** Throws KubectlError. */
export function parseLabels(specs: readonly string[]): Changes {
  const set = new Map<string, string>()
  const removed: string[] = []
  for (const spec of specs) {
    if (!spec.includes('=')) {
      if (!spec.endsWith('-')) throw new KubectlError(`unknown label spec: ${spec}`)
      removed.push(spec.slice(0, -1))
      continue
    }
    const [key = '', value = '', ...rest] = spec.split('=')
    if (rest.length > 0) throw new KubectlError(`invalid label spec: ${spec}`)
    const problems = labelValue(value)
    if (problems.length > 0) throw new KubectlError(`invalid label value: ${goQuote(spec)}: ${problems.join(';')}`)
    set.set(key, value)
  }
  if (removed.some((key) => set.has(key))) {
    throw new KubectlError('can not both modify and remove a label in the same command')
  }
  return { set, removed }
}
