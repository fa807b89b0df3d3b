/** kubectl apply: creates or updates objects from files, with a patch computed here or on the server. */
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, int, string } from '#lib/flags/kinds.ts'
import { stringArray } from '#lib/flags/list-kinds.ts'
import type { JsonObject } from '#lib/json/value.ts'

import type { ApplySet } from '../apply/applyset.ts'
import { applyHere } from '../apply/client-side.ts'
import { applyOnServer } from '../apply/server-side.ts'
import type { Info } from '../builder/select-options.ts'
import { selectFor } from '../builder/selection.ts'
import { type Command, defineCommand, type Invocation, row } from '../command.ts'
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
import type { AnyObject } from '../session/rest.ts'

const FLAGS = {
  ...printFlags(),
  ...fileFlags('that contains the configuration to apply'),
  ...DRY_RUN_FLAG,
  ...SELECTOR_FLAG,
  ...VALIDATE_FLAG,
  ...CASCADE_FLAG,
  ...RECORD_FLAG,
  ...fieldManagerFlag('kubectl-client-side-apply'),
  all: flag(bool, false, 'With --prune, select all objects of the given types in the namespace.'),
  force: flag(bool, false, 'Delete and recreate objects that cannot be patched.'),
  'force-conflicts': flag(bool, false, 'With --server-side, take over fields that other managers own.'),
  'grace-period': flag(
    int,
    -1,
    'Seconds that deleted objects get to terminate. If negative, use the value of the object.',
  ),
  'openapi-patch': flag(bool, true, 'Accepted without effect: patches always use the schema of the kind.'),
  overwrite: flag(bool, true, 'If the live object differs from the last applied configuration, let the file win.'),
  prune: flag(bool, false, 'Delete objects that were applied earlier and that no file contains now.'),
  'prune-allowlist': flag(stringArray, [], 'Types that --prune may delete, as <group/version/kind>.'),
  'server-side': flag(bool, false, 'Let the server merge the configuration instead of kubectl.'),
  subresource: flag(string, '', 'With --server-side, apply to this subresource of the object.'),
  timeout: flag(duration, 0, 'Time to wait for deleted objects to disappear.'),
  wait: flag(bool, false, 'Wait until deleted objects have disappeared.'),
}

type ApplyInvocation = Invocation<typeof FLAGS>

/** ApplySets are alpha: the environment must enable them. */
const APPLYSET_FLAG = {
  applyset: flag(
    string,
    '',
    '[alpha] Parent object of the ApplySet, as [RESOURCE][.GROUP]/NAME; a Secret by default. --prune deletes members of the set that no file contains.',
  ),
}

export const apply: Command = defineCommand({
  name: 'apply',
  use: '(-f FILENAME | -k DIRECTORY) [options]',
  long: 'Apply a configuration to a resource by file or stdin. Resources that do not exist yet are created.',
  examples: `# Apply the configuration in pod.json
kubectl apply -f ./pod.json

# Apply a kustomization
kubectl apply -k dir/

# Apply on the server with the field manager "me"
kubectl apply --server-side --field-manager=me -f ./pod.json`,
  flags: FLAGS,
  moreFlags: (env) => ((env['KUBECTL_APPLYSET'] ?? '').toLowerCase() === 'true' ? APPLYSET_FLAG : {}),
  commands: [
    row(
      'edit-last-applied',
      'Edit the last applied configuration',
      async () => (await import('../apply/last-applied-commands.ts')).applyEditLastApplied,
    ),
    row(
      'set-last-applied',
      'Set the last applied configuration to the contents of a file',
      async () => (await import('../apply/last-applied-commands.ts')).applySetLastApplied,
    ),
    row(
      'view-last-applied',
      'Show the last applied configuration',
      async () => (await import('../apply/last-applied-commands.ts')).applyViewLastApplied,
    ),
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
    // An unknown context is reported before everything else.
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

type ApplySetSettings = Pick<Settings, 'dryRun' | 'fieldValidation' | 'policy'>

async function openSet(invocation: ApplyInvocation, settings: ApplySetSettings): Promise<ApplySet | undefined> {
  const { applyset = '' } = invocation.flags as { readonly applyset?: string }
  if (applyset === '') return undefined
  return (await import('../apply/applyset.ts')).ApplySet.open(invocation, applyset, settings)
}

interface Infos {
  readonly infos: readonly Info[]
  readonly error: Error | undefined
}

/** Adds the label of the set to the objects; fails if one of them already has it. */
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

/** With -o, all objects are printed at the end as one list. */
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
