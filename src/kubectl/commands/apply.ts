/** kubectl apply: makes objects what files say, by a patch made here or by the server itself. */
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, int, string } from '#lib/flags/kinds.ts'
import { stringArray } from '#lib/flags/list-kinds.ts'
import type { JsonObject } from '#lib/json-value.ts'

import type { ApplySet } from '../apply/applyset.ts'
import { applyHere } from '../apply/client-side.ts'
import { applyOnServer } from '../apply/server-side.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { asError, failuresOf, KubectlError } from '../errors.ts'
import {
  CASCADE_FLAG,
  cascadeOf,
  DRY_RUN_FLAG,
  type DryRun,
  dryRunOf,
  fieldManagerFlag,
  fieldValidationOf,
  fileFlags,
  SELECTOR_FLAG,
  VALIDATE_FLAG,
  withDryRun,
} from '../flag-sets.ts'
import { printerOf, printFlags } from '../printing.ts'
import { RECORD_FLAG, recorded } from '../recording.ts'
import type { AnyObject } from '../rest.ts'
import { selectFor } from '../selected.ts'
import type { Info } from '../selecting.ts'

const FLAGS = {
  ...printFlags(),
  ...fileFlags('that contains the configuration to apply'),
  ...DRY_RUN_FLAG,
  ...SELECTOR_FLAG,
  ...VALIDATE_FLAG,
  ...CASCADE_FLAG,
  ...RECORD_FLAG,
  ...fieldManagerFlag('kubectl-client-side-apply'),
  all: flag(bool, false, 'With --prune: all objects of the given types in the namespace.'),
  force: flag(bool, false, 'Delete and create objects that cannot be changed.'),
  'force-conflicts': flag(bool, false, 'With --server-side: take fields over from other managers.'),
  'grace-period': flag(int, -1, 'Seconds to stop in, for what is deleted. Negative: as the object says.'),
  'openapi-patch': flag(bool, true, 'Taken without effect: patches are made by the schema of the kind.'),
  overwrite: flag(bool, true, 'Settle differences between what was applied and what is there for the file.'),
  prune: flag(bool, false, 'Delete objects that were applied before and are in no file now.'),
  'prune-allowlist': flag(stringArray, [], 'Types that --prune looks at, as <group/version/kind>.'),
  'server-side': flag(bool, false, 'Let the server work out what changes.'),
  subresource: flag(string, '', 'With --server-side: apply to this part of the object.'),
  timeout: flag(duration, 0, 'How long to wait for what is deleted.'),
  wait: flag(bool, false, 'Wait until what is deleted is gone.'),
}

type ApplyInvocation = Invocation<typeof FLAGS>

/** Only where the environment turns sets on, as long as they are in alpha. */
const APPLYSET_FLAG = {
  applyset: flag(
    string,
    '',
    '[alpha] The object that remembers what is applied together, as [RESOURCE][.GROUP]/NAME. What it remembers and is in no file now is deleted by --prune. A Secret when no resource is named.',
  ),
}

export const apply: Command = defineCommand({
  name: 'apply',
  use: '(-f FILENAME | -k DIRECTORY) [options]',
  long: 'Apply a configuration to a resource by file or stdin. What is not there yet is created.',
  examples: `# Apply what pod.json says
kubectl apply -f ./pod.json

# Apply what a kustomization says
kubectl apply -k dir/

# Let the server merge, under a name of your own
kubectl apply --server-side --field-manager=me -f ./pod.json`,
  flags: FLAGS,
  moreFlags: (env) => ((env['KUBECTL_APPLYSET'] ?? '').toLowerCase() === 'true' ? APPLYSET_FLAG : {}),
  commands: [
    {
      name: 'edit-last-applied',
      short: 'Edit what was applied last',
      load: async () => (await import('../apply/last-applied-commands.ts')).applyEditLastApplied,
    },
    {
      name: 'set-last-applied',
      short: 'Set what was applied last to what a file says',
      load: async () => (await import('../apply/last-applied-commands.ts')).applySetLastApplied,
    },
    {
      name: 'view-last-applied',
      short: 'Show what was applied last',
      load: async () => (await import('../apply/last-applied-commands.ts')).applyViewLastApplied,
    },
  ],
  async run(invocation) {
    const { flags, session } = invocation
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    await session.config()
    const policy = cascadeOf(flags.cascade, invocation)
    if (flags.filename.length === 0 && flags.kustomize === '') {
      throw new KubectlError('must specify one of -f and -k')
    }
    const fieldValidation = fieldValidationOf(flags.validate)
    // A context that is not there is told before all else.
    await session.namespace()
    const set = await openSet(invocation, { dryRun, fieldValidation, policy })
    checkFlags(flags, dryRun)
    if (set !== undefined) await checkSet(flags, set)
    checkPrune(flags, set !== undefined)
    const selection = await selectFor(invocation, {
      labelSelector: flags.selector,
      validate: fieldValidation === 'Strict',
    })
    const { infos, error } = members(await selection.infos(), set)
    if (infos.length === 0 && error === undefined) throw new KubectlError('no objects passed to apply')
    await set?.begin(infos)
    const settings = { dryRun, fieldValidation, policy, manager: managerOf(invocation) }
    const applied = await applyAll(invocation, infos, { settings, error })
    if (printsWhole(flags.output)) await printAll(invocation, applied)
    if (set !== undefined) await set.prune(applied)
    else if (flags.prune) {
      const { prune } = await import('../apply/prune.ts')
      await prune(invocation, applied, { dryRun, policy })
    }
  },
})

type SetWishes = Pick<Settings, 'dryRun' | 'fieldValidation' | 'policy'>

async function openSet(invocation: ApplyInvocation, wishes: SetWishes): Promise<ApplySet | undefined> {
  const { applyset = '' } = invocation.flags as { readonly applyset?: string }
  if (applyset === '') return undefined
  return (await import('../apply/applyset.ts')).ApplySet.open(invocation, applyset, wishes)
}

interface Infos {
  readonly infos: readonly Info[]
  readonly error: Error | undefined
}

/** With the label of the set; none of them when one says already that it is some set's. */
function members(found: Infos, set: ApplySet | undefined): Infos {
  if (set === undefined) return found
  try {
    return { ...found, infos: set.labelled(found.infos) }
  } catch (error) {
    return { infos: [], error: asError(error) }
  }
}

function managerOf({ flags, changed }: ApplyInvocation): string {
  if (changed.has('field-manager')) return flags['field-manager']
  return flags['server-side'] ? 'kubectl' : 'kubectl-client-side-apply'
}

interface Settings {
  readonly dryRun: DryRun
  readonly fieldValidation: string
  readonly policy: string
  readonly manager: string
}

async function applyAll(
  invocation: ApplyInvocation,
  infos: readonly Info[],
  { settings, error }: { readonly settings: Settings; readonly error: Error | undefined },
): Promise<Info[]> {
  const { flags, stdout } = invocation
  const errors = error === undefined ? [] : [error]
  const applied: Info[] = []
  for (const info of infos) {
    try {
      requireName(info)
      const apply = flags['server-side'] ? applyOnServer : applyHere
      const wanted = { ...info, object: recorded(invocation, info.object as AnyObject) }
      const { object, operation } = await apply(invocation, wanted, settings)
      warnOfDeletion(object, invocation)
      applied.push({ ...info, object })
      if (printsWhole(flags.output)) continue
      const printer = await printerOf(invocation, { operation: withDryRun(operation, settings.dryRun) })
      printer.print(object as unknown as JsonObject, stdout)
    } catch (thrown) {
      errors.push(asError(thrown))
    }
  }
  const failed = failuresOf(errors)
  if (failed !== undefined) throw failed
  return applied
}

function requireName({ name, object }: Info): void {
  const { generateName = '' } = object?.metadata ?? {}
  if (name === '' && generateName !== '') {
    throw new KubectlError(`from ${generateName}: cannot use generate name with apply`)
  }
}

function warnOfDeletion({ metadata }: AnyObject, { stderr }: ApplyInvocation): void {
  if (metadata.deletionTimestamp === undefined) return
  const name = metadata.name ?? ''
  stderr.write(`Warning: Detected changes to resource ${name} which is currently being deleted.\n`)
}

/** Objects are printed all together at the end, as one list. */
function printsWhole(output: string): boolean {
  return output !== '' && output !== 'name'
}

async function printAll(invocation: ApplyInvocation, infos: readonly Info[]): Promise<void> {
  const [first] = infos
  if (first?.object === undefined) return
  const printer = await printerOf(invocation, { operation: '' })
  const items = infos.map(({ object }) => object as AnyObject)
  const list = { apiVersion: 'v1', items, kind: 'List', metadata: {} }
  printer.print((items.length > 1 ? list : first.object) as unknown as JsonObject, invocation.stdout)
}

function checkFlags(flags: ApplyInvocation['flags'], dryRun: DryRun): void {
  const isServerSide = flags['server-side']
  const problems: [isSo: boolean, text: string][] = [
    [flags['force-conflicts'] && !isServerSide, '--force-conflicts only works with --server-side'],
    [
      dryRun === 'client' && isServerSide,
      "--dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)",
    ],
    [isServerSide && flags.force, '--force cannot be used with --server-side'],
    [dryRun === 'server' && flags.force, '--dry-run=server cannot be used with --force'],
    [flags.all && flags.selector !== '', 'cannot set --all and --selector at the same time'],
  ]
  refuse(problems)
}

async function checkSet(flags: ApplyInvocation['flags'], set: ApplySet): Promise<void> {
  if (!flags.prune) throw new KubectlError('--applyset requires --prune')
  await set.validate()
}

function checkPrune(flags: ApplyInvocation['flags'], hasSet: boolean): void {
  const { prune, selector, 'server-side': isServerSide } = flags
  const [withSet, without] = [prune && hasSet, prune && !hasSet]
  refuse([
    [prune && flags.force, '--force cannot be used with --prune'],
    [withSet && flags.all, '--all is incompatible with --applyset'],
    [withSet && selector !== '', '--selector is incompatible with --applyset'],
    [withSet && flags['prune-allowlist'].length > 0, '--prune-allowlist is incompatible with --applyset'],
    [
      without && !flags.all && selector === '',
      'all resources selected for prune without explicitly passing --all. To prune all resources, pass the --all flag. If you did not mean to prune all resources, specify a label selector',
    ],
    [without && isServerSide, "--prune is in alpha and doesn't currently work on objects created by server-side apply"],
    [flags.subresource !== '' && !isServerSide, '--subresource can only be specified for --server-side'],
  ])
}

function refuse(problems: readonly (readonly [isSo: boolean, text: string])[]): void {
  const problem = problems.find(([isSo]) => isSo)
  if (problem !== undefined) throw new KubectlError(problem[1])
}
