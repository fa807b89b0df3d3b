/** kubectl replace: replaces whole objects with files; with `--force` it deletes and recreates them. */
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, int, string } from '#lib/flags/kinds.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { isNotFound } from '#meta/status.ts'

import { withSavedConfig } from '../apply/last-applied.ts'
import type { Info } from '../builder/select-options.ts'
import { selectFor } from '../builder/selection.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { type Deletion, waitUntilGone } from '../deletion.ts'
import { asError, KubectlError, withoutMissing, withSource } from '../errors.ts'
import {
  CASCADE_FLAG,
  cascadeOf,
  DRY_RUN_FLAG,
  type DryRun,
  dryRunOf,
  dryRunQuery,
  fieldManagerFlag,
  fieldValidationOf,
  fileFlags,
  VALIDATE_FLAG,
  withDryRun,
} from '../flag-sets.ts'
import { readAll } from '../manifests/manifests.ts'
import { rawPathProblem, sendRaw } from '../manifests/raw.ts'
import { pollUntil } from '../polling.ts'
import { printerOf, printFlags } from '../printing.ts'
import type { AnyObject, Rest } from '../session/rest.ts'
import { resultText, uidIn } from './delete.ts'

const FLAGS = {
  ...printFlags(),
  ...fileFlags('Files with the objects to replace.'),
  ...DRY_RUN_FLAG,
  ...VALIDATE_FLAG,
  ...CASCADE_FLAG,
  ...fieldManagerFlag('kubectl-replace'),
  force: flag(bool, false, 'Delete and recreate the objects.'),
  'grace-period': flag(
    int,
    -1,
    'With --force, seconds that objects get to terminate. If negative, use the value of the object.',
  ),
  raw: flag(string, '', 'Path on the server to PUT to.'),
  'save-config': flag(bool, false, 'Save the configuration in an annotation for kubectl apply.'),
  subresource: flag(string, '', 'Replace this subresource of the object.'),
  timeout: flag(duration, 0, 'With --force, time to wait before giving up. Zero means five minutes.'),
  wait: flag(bool, false, 'With --force, wait until objects have disappeared, including finalizers.'),
}

type ReplaceInvocation = Invocation<typeof FLAGS>

/** Upstream's timeout for deletions. */
const GONE_MS = 5 * 60_000

export const replace: Command = defineCommand({
  name: 'replace',
  use: '-f FILENAME [options]',
  long: 'Replace a resource with a file or standard input. The file must contain the complete object: omitted fields are removed.',
  examples: `# Replace a pod with pod.json
kubectl replace -f ./pod.json

# Delete and recreate a pod
kubectl replace --force -f ./pod.json`,
  flags: FLAGS,
  async run(invocation) {
    const { flags, session } = invocation
    const fieldValidation = fieldValidationOf(flags.validate)
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    await printerOf(invocation, { operation: withDryRun('replaced', dryRun) })
    const policy = cascadeOf(flags.cascade, invocation)
    if (flags.filename.length === 0 && flags.kustomize === '') throw new KubectlError('must specify one of -f and -k')
    checkFlags(flags, dryRun)
    await session.config()
    if (flags.raw !== '') return sendRaw(invocation, 'PUT', flags.raw, flags.filename[0])
    if (flags.force) return replaceByForce(invocation, { policy, fieldValidation })
    const selection = await selectFor(invocation, { validate: fieldValidation === 'Strict' })
    const rest = await session.rest()
    const query = { fieldManager: flags['field-manager'], fieldValidation, ...dryRunQuery(dryRun) }
    const printer = await printerOf(invocation, { operation: withDryRun('replaced', dryRun) })
    await selection.visit(async (info) => {
      const object = withSavedConfig(info.object as AnyObject, flags['save-config'])
      const target = { ...info, ...(flags.subresource !== '' && { subresource: flags.subresource }) }
      const made =
        dryRun === 'client'
          ? object
          : await rest.replace(target, await overwriting(rest, target, object), query).catch((error: unknown) => {
              throw withSource('replacing', info.source, asError(error))
            })
      printer.print(made as unknown as JsonObject, invocation.stdout)
    })
    return undefined
  },
})

function checkFlags(flags: ReplaceInvocation['flags'], dryRun: DryRun): void {
  const problems: [isSo: boolean, text: string][] = [
    [flags['grace-period'] >= 0 && !flags.force, '--grace-period must have --force specified'],
    [flags.timeout !== 0 && !flags.force, '--timeout must have --force specified'],
    [flags.force && dryRun !== 'none', '--dry-run can not be used when --force is set'],
    [flags.raw !== '' && flags.filename.length !== 1, '--raw can only use a single local file or stdin'],
  ]
  const problem = problems.find(([isSo]) => isSo)
  if (problem !== undefined) throw new KubectlError(problem[1])
  const rawProblem = flags.raw === '' ? undefined : rawPathProblem(flags)
  if (rawProblem !== undefined) throw rawProblem
}

/** Without a resource version, any existing object is replaced. */
async function overwriting(rest: Rest, target: Info, object: AnyObject): Promise<AnyObject> {
  if ((object.metadata.resourceVersion ?? '') !== '') return object
  const live = await rest.get(target).catch(() => undefined)
  const { resourceVersion = '' } = live?.metadata ?? {}
  return resourceVersion === '' ? object : { ...object, metadata: { ...object.metadata, resourceVersion } }
}

/** Files are read twice, but standard input can be read only once. */
async function replaceByForce(
  given: ReplaceInvocation,
  { policy, fieldValidation }: { readonly policy: string; readonly fieldValidation: string },
): Promise<void> {
  const { flags, session, stdout, args } = given
  const rest = await session.rest()
  const typed = flags.filename.includes('-') ? await readAll(given.stdin()) : undefined
  const { Readable } = await import('node:stream')
  const invocation = typed === undefined ? given : { ...given, stdin: () => Readable.from([typed]) as never }
  // A zero would lose data, so it becomes one second.
  const grace = flags['grace-period'] === 0 ? 1 : flags['grace-period']
  const deleted: Deletion[] = []
  let found = 0
  const removing = (await selectFor(invocation, { args, requireObject: false })).visit(async (info) => {
    found++
    const options = { ...(grace >= 0 && { gracePeriodSeconds: grace }), propagationPolicy: policy }
    const answer = await rest.delete(info, options)
    deleted.push({ info, uid: uidIn(answer) })
    stdout.write(resultText(info, { output: flags.output, isForced: false, dryRun: 'none' }))
  })
  const failed = await removing.then(() => undefined, withoutMissing)
  if (failed !== undefined) throw failed
  if (found === 0) stdout.write('No resources found\n')
  if (flags.wait || flags['grace-period'] === 0) await waitUntilGone(session, deleted, flags.timeout)
  await untilAllGone(invocation, deleted)
  const printer = await printerOf(invocation, { operation: 'replaced' })
  const query = { fieldManager: flags['field-manager'], fieldValidation }
  let count = 0
  await (
    await selectFor(invocation, { validate: fieldValidation === 'Strict' })
  ).visit(async ({ kind, namespace, object }) => {
    const { metadata, ...rest2 } = withSavedConfig(object as AnyObject, flags['save-config'])
    const { resourceVersion: _, ...others } = metadata
    const made = await rest.create({ kind, namespace }, { ...rest2, metadata: others }, query)
    count++
    printer.print(made as unknown as JsonObject, stdout)
  })
  if (count === 0) throw new KubectlError('no objects passed to replace')
}

async function untilAllGone(invocation: ReplaceInvocation, deleted: readonly Deletion[]): Promise<void> {
  const { flags, session } = invocation
  const rest = await session.rest()
  for (const { info } of deleted) {
    const isGone = (): Promise<boolean> =>
      rest.get(info).then(
        () => false,
        (error: unknown) => {
          if (isNotFound(error)) return true
          throw error
        },
      )
    const limit = flags.timeout === 0 ? GONE_MS : flags.timeout
    if (!(await pollUntil(invocation, limit, isGone))) throw new KubectlError('timed out waiting for the condition')
  }
}
