/** kubectl delete: deletes objects by file, name, selector or type, and waits until they have disappeared. */
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, int, string } from '#lib/flags/kinds.ts'

import type { Selection } from '../builder/builder.ts'
import type { Info } from '../builder/select-options.ts'
import { selectFor } from '../builder/selection.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { type Deletion, waitUntilGone } from '../deletion.ts'
import { asError, KubectlError, withoutMissing, withSource } from '../errors.ts'
import {
  ALL_NAMESPACES_FLAG,
  CASCADE_FLAG,
  cascadeOf,
  DRY_RUN_FLAG,
  type DryRun,
  dryRunOf,
  FIELD_SELECTOR_FLAG,
  fileFlags,
  SELECTOR_FLAG,
  withDryRun,
} from '../flag-sets.ts'
import { rawPathProblem, readLine, sendRaw } from '../manifests/raw.ts'

const FLAGS = {
  ...fileFlags('containing the resource to delete.'),
  ...SELECTOR_FLAG,
  ...FIELD_SELECTOR_FLAG,
  ...ALL_NAMESPACES_FLAG,
  ...CASCADE_FLAG,
  ...DRY_RUN_FLAG,
  all: flag(bool, false, 'Delete all objects of the given types in the namespace.'),
  force: flag(bool, false, 'Delete objects from the API immediately, without waiting for a graceful termination.'),
  'grace-period': flag(
    int,
    -1,
    'Seconds that objects get to terminate. If negative, use the value of the object. 0 requires --force.',
  ),
  'ignore-not-found': flag(bool, false, 'Treat a missing object as deleted. Enabled by --all and selectors.'),
  interactive: flag(bool, false, 'List the objects and ask for confirmation before deleting them.', { shorthand: 'i' }),
  now: flag(bool, false, 'Give objects one second to terminate (like --grace-period=1).'),
  output: flag(string, '', 'Output mode. Use "-o name" for shorter output (resource/name).', { shorthand: 'o' }),
  raw: flag(string, '', 'Path on the server to DELETE.'),
  timeout: flag(duration, 0, 'Time to wait before giving up. If zero, derive it from the object.'),
  wait: flag(bool, true, 'Wait until the objects have disappeared, including finalizers.'),
}

type DeleteInvocation = Invocation<typeof FLAGS>

export const deleteCommand: Command = defineCommand({
  name: 'delete',
  use: '([-f FILENAME] | [-k DIRECTORY] | TYPE [(NAME | -l label | --all)]) [options]',
  long: 'Delete objects by file, standard input, names, or types and selectors.',
  examples: `# Delete the pod in pod.json
kubectl delete -f ./pod.json

# Delete pods and services named "baz" and "foo"
kubectl delete pod,service baz foo

# Delete pods and services with the label name=myLabel
kubectl delete pods,services -l name=myLabel

# Delete a pod immediately
kubectl delete pod foo --force`,
  flags: FLAGS,
  completes: 'resources',
  async run(invocation) {
    const { flags, session, stdout } = invocation
    const policy = cascadeOf(flags.cascade, invocation)
    const graceSeconds = graceOf(flags)
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    // An unknown context is reported before everything else.
    await session.namespace()
    const selection = flags.raw === '' ? await selected(invocation) : undefined
    checkFlags(invocation, graceSeconds)
    if (selection === undefined) return sendRaw(invocation, 'DELETE', flags.raw, flags.filename[0])
    const agreed = flags.interactive ? await confirm(invocation) : undefined
    if (flags.interactive && agreed === undefined) return undefined
    const plan: DeletePlan = { graceSeconds, policy, dryRun, ...(agreed !== undefined && { agreed }) }
    const { found, deleted } = await deleteAll(invocation, selection, plan)
    if (found === 0) stdout.write('No resources found\n')
    if (flags.wait && dryRun === 'none') await waitUntilGone(session, deleted, flags.timeout)
    return undefined
  },
})

interface DeletePlan {
  /** Negative: use the value of the object. */
  readonly graceSeconds: number
  readonly policy: string
  readonly dryRun: DryRun
  /** The confirmed objects; nothing else is deleted. */
  readonly agreed?: ReadonlySet<string>
}

async function deleteAll(
  invocation: DeleteInvocation,
  selection: Selection,
  { graceSeconds, policy, dryRun, agreed }: DeletePlan,
): Promise<{ readonly found: number; readonly deleted: readonly Deletion[] }> {
  const { flags, session, stdout, stderr } = invocation
  const { isExplicit } = await session.namespace()
  const rest = await session.rest()
  const deleted: Deletion[] = []
  let found = 0
  let warnsOfScope = isExplicit && !flags['all-namespaces']
  const options = {
    ...(graceSeconds >= 0 && { gracePeriodSeconds: graceSeconds }),
    propagationPolicy: policy,
    ...(dryRun === 'server' && { dryRun: ['All'] }),
  }
  const visiting = selection.visit(async (info) => {
    if (agreed !== undefined && !agreed.has(idOf(info))) return
    found++
    if (warnsOfScope && !info.kind.namespaced) {
      stderr.write('Warning: deleting cluster-scoped resources, not scoped to the provided namespace\n')
      warnsOfScope = false
    }
    if (dryRun !== 'client') {
      const answer = await rest.delete(info, options).catch((error: unknown) => {
        throw withSource('deleting', info.source, asError(error))
      })
      deleted.push({ info, uid: uidIn(answer) })
    }
    stdout.write(resultText(info, { output: flags.output, isForced: graceSeconds === 0, dryRun }))
  })
  await visiting.catch((error: unknown) => {
    const failed = ignoresMissing(invocation) ? withoutMissing(asError(error)) : asError(error)
    if (failed !== undefined) throw failed
  })
  return { found, deleted }
}

function selected(invocation: DeleteInvocation): Promise<Selection> {
  const { flags, args } = invocation
  return selectFor(invocation, {
    labelSelector: flags.selector,
    fieldSelector: flags['field-selector'],
    all: flags.all,
    allNamespaces: flags['all-namespaces'],
    args,
    requireObject: false,
  })
}

function graceOf(flags: DeleteInvocation['flags']): number {
  const given = flags['grace-period']
  if (flags.now) {
    if (given !== -1) throw new KubectlError('--now and --grace-period cannot be specified together')
    return 1
  }
  // A zero requires --force, because it can lose data.
  if (given === 0 && !flags.force) return 1
  return flags.force && given < 0 ? 0 : given
}

function checkFlags({ flags, stderr }: DeleteInvocation, graceSeconds: number): void {
  const { output, all, selector, force } = flags
  if (output !== '' && output !== 'name') {
    throw new KubectlError(`unexpected -o output mode: ${output}. We only support '-o name'`)
  }
  if (all && selector !== '') throw new KubectlError('cannot set --all and --selector at the same time')
  if (all && flags['field-selector'] !== '') {
    throw new KubectlError('cannot set --all and --field-selector at the same time')
  }
  if (force && graceSeconds > 0) {
    throw new KubectlError('--force and --grace-period greater than 0 cannot be specified together')
  }
  if (force && graceSeconds === 0) stderr.write(`Warning: ${AT_ONCE}\n`)
  if (flags.raw === '') return
  if (flags.interactive) throw new KubectlError('--interactive can not be used with --raw')
  const problem = rawPathProblem(flags)
  if (problem !== undefined) throw problem
}

const AT_ONCE =
  'Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.'

/** By default a selector without matches is no error. */
function ignoresMissing({ flags, changed }: DeleteInvocation): boolean {
  const isSelecting = flags.all || flags.selector !== '' || flags['field-selector'] !== ''
  return flags['ignore-not-found'] || (isSelecting && !changed.has('ignore-not-found'))
}

/** The uid of the deleted object, if the server returns it. */
export function uidIn(answer: object): string {
  const { details, metadata } = answer as { details?: { uid?: string }; metadata?: { uid?: string } }
  return details?.uid ?? metadata?.uid ?? ''
}

function idOf({ kind, namespace, name }: Info): string {
  return `${kind.plural}.${kind.group} ${namespace}/${name}`
}

function kindText({ kind }: Info): string {
  return [kind.kind.toLowerCase(), ...(kind.group === '' ? [] : [kind.group])].join('.')
}

interface Result {
  readonly output: string
  readonly isForced: boolean
  readonly dryRun: DryRun
}

/** `pod "web" deleted from default namespace`. */
export function resultText(info: Info, { output, isForced, dryRun }: Result): string {
  if (output === 'name') return `${kindText(info)}/${info.name}\n`
  const done = `${isForced ? 'force deleted' : 'deleted'}${info.kind.namespaced ? ` from ${info.namespace} namespace` : ''}`
  return `${kindText(info)} "${info.name}" ${withDryRun(done, dryRun)}\n`
}

/** The confirmed objects; undefined without confirmation. */
async function confirm(invocation: DeleteInvocation): Promise<ReadonlySet<string> | undefined> {
  const { stdin, stdout } = invocation
  const { infos, error } = await (await selected(invocation)).infos()
  const failed = error !== undefined && ignoresMissing(invocation) ? withoutMissing(error) : error
  if (failed !== undefined) throw failed
  if (infos.length === 0) {
    stdout.write('No resources found\n')
    return undefined
  }
  stdout.write(`You are about to delete the following ${infos.length} resource(s):\n`)
  for (const info of infos) stdout.write(`${kindText(info)}/${info.name}\n`)
  stdout.write('Do you want to continue? (y/N): ')
  const isAgreed = (await readLine(stdin())).trim().toLowerCase() === 'y'
  if (!isAgreed) stdout.write('deletion is cancelled\n')
  return isAgreed ? new Set(infos.map(idOf)) : undefined
}
