/** kubectl set selector: which pods a service leads to. */
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import { type LabelSelector, parseLabelSelector } from '#meta/label-selector.ts'

import { type Command, defineCommand } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { dryRunOf, withDryRun } from '../flag-sets.ts'
import { printerOf } from '../printing.ts'
import { RECORD_FLAG } from '../recording.ts'
import type { Info } from '../selecting.ts'
import { changeAll, meantToSet, setFlags } from './changing.ts'

const { kustomize: _, ...OWN } = setFlags()

export const setSelector: Command = defineCommand({
  name: 'selector',
  use: '(-f FILENAME | TYPE NAME) EXPRESSIONS [--resource-version=version] [options]',
  long: 'Set the selector of a service, whatever it was before.',
  examples: `# Pods with the label environment=qa
kubectl set selector svc/my-svc 'environment=qa'`,
  flags: {
    ...OWN,
    ...RECORD_FLAG,
    filename: flag(strings, [], 'Filename, directory, or URL to files identifying the resource.', { shorthand: 'f' }),
    recursive: flag(bool, true, 'Process directories given with -f and all below them.', { shorthand: 'R' }),
    'resource-version': flag(string, '', 'Change the object only if it has this version. For a single object.'),
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
    const infos = await meantToSet(wide, args.slice(0, -1))
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

/** Throws KubectlError: services know nothing but equality, and others have no selector to set. */
function checkSelectable(infos: readonly Info[], { matchExpressions = [] }: LabelSelector): void {
  if (infos.some(({ kind }) => kind.kind !== 'Service')) {
    throw new KubectlError('setting a selector is only supported for Services')
  }
  if (matchExpressions.length === 0) return
  const shown = matchExpressions.map(({ key, operator, values = [] }) => `{${key} ${operator} [${values.join(' ')}]}`)
  throw new KubectlError(`match expression [${shown.join(' ')}] not supported on this object`)
}
