/** kubectl set selector: sets the pod selector of a service. */
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import { type LabelSelector, parseLabelSelector } from '#meta/label-selector.ts'

import type { Info } from '../builder/select-options.ts'
import { type Command, defineCommand } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { dryRunOf, withDryRun } from '../flag-sets.ts'
import { printerOf } from '../printing.ts'
import { RECORD_FLAG } from '../recording.ts'
import { changeAll, selectObjects, setFlags } from './changing.ts'

const { kustomize: _, ...OWN } = setFlags()

export const setSelector: Command = defineCommand({
  name: 'selector',
  use: '(-f FILENAME | TYPE NAME) EXPRESSIONS [--resource-version=version] [options]',
  long: 'Set the selector of a service. An existing selector is replaced.',
  examples: `# Select pods with the label environment=qa
kubectl set selector svc/my-svc 'environment=qa'`,
  flags: {
    ...OWN,
    ...RECORD_FLAG,
    filename: flag(strings, [], 'Filename, directory, or URL to files identifying the resource.', { shorthand: 'f' }),
    recursive: flag(bool, true, 'Process directories given with -f recursively.', { shorthand: 'R' }),
    'resource-version': flag(
      string,
      '',
      'Update only if the object has this resource version. Requires a single object.',
    ),
  },
  async run(invocation) {
    const { args, flags } = invocation
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    const operation = 'selector updated'
    const given = args.at(-1)
    const selector = given === undefined ? undefined : parseLabelSelector(given)
    await printerOf(invocation, { operation: withDryRun(operation, dryRun) })
    if (selector === undefined) throw new KubectlError('one selector is required')
    const wide = { ...invocation, flags: { ...flags, kustomize: '' } }
    const infos = await selectObjects(wide, args.slice(0, -1))
    const version = flags['resource-version']
    checkSelectable(infos, selector)
    await changeAll(wide, infos, {
      dryRun,
      operation,
      failure: '',
      sendsAlways: true,
      change(object) {
        object['spec'] = { ...(object['spec'] as object), selector: selector.matchLabels ?? {} }
        if (version !== '') object.metadata.resourceVersion = version
      },
    })
  },
})

/** Throws KubectlError: service selectors support only equality, and other kinds have none to set. */
function checkSelectable(infos: readonly Info[], { matchExpressions = [] }: LabelSelector): void {
  if (infos.some(({ kind }) => kind.kind !== 'Service')) {
    throw new KubectlError('setting a selector is only supported for Services')
  }
  if (matchExpressions.length === 0) return
  const shown = matchExpressions.map(({ key, operator, values = [] }) => `{${key} ${operator} [${values.join(' ')}]}`)
  throw new KubectlError(`match expression [${shown.join(' ')}] not supported on this object`)
}
