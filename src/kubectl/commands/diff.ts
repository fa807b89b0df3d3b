/**
 * kubectl diff: shows the difference between live objects and the result of applying files, with an external program.
 * The exit code is 1 if there is one.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { flag } from '#lib/flags/flags.ts'
import { bool, int } from '#lib/flags/kinds.ts'
import { stringArray } from '#lib/flags/list-kinds.ts'
import { stringifyYaml } from '#lib/yaml/write.ts'
import { isConflict, isNotFound } from '#meta/status.ts'

import { patchBetween } from '../apply/client-side.ts'
import { configurationOf } from '../apply/last-applied.ts'
import { type Prunable, prunable } from '../apply/prune.ts'
import { readObject } from '../builder/builder.ts'
import type { Info } from '../builder/select-options.ts'
import { selectFor } from '../builder/selection.ts'
import { type Command, defineCommand, type Invocation, usageError } from '../command.ts'
import { maskedSecrets } from '../diff/diff-masks.ts'
import { compare, fileName } from '../diff/external-diff.ts'
import { asError, ExitError, KubectlError, reportOf, withSource } from '../errors.ts'
import { fieldManagerFlag, fileFlags, SELECTOR_FLAG } from '../flag-sets.ts'
import { logWarning } from '../klog.ts'
import { MOMENTS_FLAGS } from '../past/moment-flags.ts'
import type { AnyObject } from '../session/rest.ts'

const FLAGS = {
  ...fileFlags('contains the configuration to diff'),
  ...SELECTOR_FLAG,
  ...fieldManagerFlag('kubectl-client-side-apply'),
  concurrency: flag(int, 1, 'Accepted without effect: objects are compared one after the other.'),
  'force-conflicts': flag(bool, false, 'With --server-side, take over fields that other managers own.'),
  prune: flag(bool, false, 'Include objects that apply --prune would delete.'),
  'prune-allowlist': flag(stringArray, [], 'Types that --prune may delete, as <group/version/kind>.'),
  'server-side': flag(bool, false, 'Let the server merge the configuration instead of kubectl.'),
  'show-managed-fields': flag(bool, false, 'Show managed fields.'),
  'show-secrets': flag(bool, false, 'Show the values of secrets.'),
  ...MOMENTS_FLAGS,
}

type DiffInvocation = Invocation<typeof FLAGS>

/** The number of attempts; after them an object that keeps changing is compared in its current state. */
const MAX_TRIES = 4

export const diff: Command = defineCommand({
  name: 'diff',
  use: '-f FILENAME [options]',
  long: 'Compare live objects with the result of applying files. KUBECTL_EXTERNAL_DIFF sets another program than "diff -u -N". The exit code is 0 without differences, 1 with differences, and greater than 1 after an error.',
  examples: `# Compare with pod.json
kubectl diff -f pod.json

# Compare with standard input
cat service.yaml | kubectl diff -f -`,
  flags: FLAGS,
  // 1 means a difference, so errors have greater exit codes.
  wrongFlag: (path, message) => new ExitError(2, `error: ${message}\nSee '${path} -h' for help and examples`),
  async run(invocation) {
    try {
      const code = await (invocation.flags.from === '' ? runDiff(invocation) : runBetween(invocation))
      invocation.signal.throwIfAborted()
      return code
    } catch (error) {
      if (invocation.signal.aborted) throw error
      const { text, exitCode } = reportOf(error)
      throw new ExitError(exitCode + 1, text)
    }
  },
})

/** Between two moments, without files. */
async function runBetween(invocation: DiffInvocation): Promise<number> {
  const { changed, flags, session } = invocation
  const other = [...changed].find((name) => Object.hasOwn(FLAGS, name) && !Object.hasOwn(MOMENTS_FLAGS, name))
  if (other !== undefined) throw new KubectlError(`--${other} has no effect with --from`)
  await session.config()
  const { diffMoments } = await import('../past/diff-moments.ts')
  return diffMoments(invocation, { ...flags, allNamespaces: flags['all-namespaces'] })
}

async function runDiff(invocation: DiffInvocation): Promise<number> {
  const { args, flags, changed, session, env } = invocation
  const between = Object.keys(MOMENTS_FLAGS).find((name) => changed.has(name))
  if (between !== undefined) throw new KubectlError(`--${between} only works with --from`)
  if (args.length > 0) throw usageError(invocation, `Unexpected args: [${args.join(' ')}]`)
  if (flags.filename.length === 0 && flags.kustomize === '') throw new KubectlError('must specify one of -f and -k')
  if (flags['force-conflicts'] && !flags['server-side']) {
    throw new KubectlError('--force-conflicts only works with --server-side')
  }
  await session.config()
  // An unknown context is reported before everything else.
  await session.namespace()
  const tempDir = env['TMPDIR'] || tmpdir()
  const [live, merged] = [await mkdtemp(join(tempDir, 'LIVE-')), await mkdtemp(join(tempDir, 'MERGED-'))]
  try {
    const selection = await selectFor(invocation, { continueOnError: false, labelSelector: flags.selector })
    const seen: Info[] = []
    const failed = await selection
      .visit(async (info) => {
        const pair = await versionsOf(invocation, info)
        seen.push({ ...info, ...(pair.live !== undefined && { object: pair.live }) })
        await writePair(invocation, { live, merged }, { info, pair })
        warnOfDeletion(invocation, pair.live)
      })
      .then(() => undefined, asError)
    if (flags.prune) await writePruned(invocation, live, seen)
    if (failed !== undefined) throw failed
    return await compare(invocation, live, merged)
  } finally {
    await Promise.all([live, merged].map((folder) => rm(folder, { recursive: true, force: true })))
  }
}

interface Pair {
  readonly live: AnyObject | undefined
  readonly merged: AnyObject
}

/** Retries after a conflict. */
async function versionsOf(invocation: DiffInvocation, info: Info): Promise<Pair> {
  const rest = await invocation.session.rest()
  for (let tries = 1; ; tries++) {
    const live = await readObject(rest, info).catch((error: unknown) => {
      if (!isNotFound(error)) throw error
      return undefined
    })
    const isLast = tries === MAX_TRIES
    if (isLast) {
      const { group, version, kind } = info.kind
      const what = `${group}/${version}, Kind=${kind}: ${info.name}`
      logWarning(invocation, 'diff.go:659', `Object (${what}) keeps changing, diffing without lock`)
    }
    try {
      return { live, merged: await mergedOf(invocation, info, { live, isLocked: !isLast }) }
    } catch (error) {
      if (!isConflict(error) || isLast) throw error
    }
  }
}

async function mergedOf(
  { flags, changed, session }: DiffInvocation,
  info: Info,
  { live, isLocked }: { readonly live: AnyObject | undefined; readonly isLocked: boolean },
): Promise<AnyObject> {
  const rest = await session.rest()
  const local = info.object as AnyObject
  const isServerSide = flags['server-side']
  const fieldManager = isServerSide && !changed.has('field-manager') ? 'kubectl' : flags['field-manager']
  const query = { fieldManager, dryRun: 'All' }
  if (isServerSide) {
    return rest.patch(info, 'apply', local, { ...query, force: flags['force-conflicts'] ? 'true' : 'false' })
  }
  const { kind, namespace } = info
  if (live === undefined) {
    const { resourceVersion: _, ...metadata } = local.metadata
    return rest.create({ kind, namespace }, { ...local, metadata }, query)
  }
  const modified = JSON.parse(configurationOf(local)) as AnyObject
  const { type, patch } = await patchBetween(kind, modified, live)
  if (Object.keys(patch).length === 0) return live
  const { resourceVersion } = live.metadata
  const locked = { ...patch, metadata: { ...(patch['metadata'] as object | undefined), resourceVersion } }
  return rest.patch(info, type, isLocked ? locked : patch, query).catch((error: unknown) => {
    throw isConflict(error) ? error : withSource('patching', info.source, asError(error))
  })
}

async function writePair(
  { flags }: DiffInvocation,
  folders: { readonly live: string; readonly merged: string },
  { info, pair }: { readonly info: Info; readonly pair: Pair },
): Promise<void> {
  const shown = (object: AnyObject | undefined): AnyObject | undefined =>
    object === undefined || flags['show-managed-fields'] ? object : withoutManagers(object)
  const isSecret = info.kind.kind === 'Secret' && info.kind.version === 'v1' && !flags['show-secrets']
  const both = { live: shown(pair.live), merged: shown(pair.merged) as AnyObject }
  const { live, merged } = isSecret ? maskedSecrets(both) : both
  const name = fileName(info.kind, pair.merged)
  await writeFile(join(folders.live, name), live === undefined ? '' : stringifyYaml(live))
  await writeFile(join(folders.merged, name), stringifyYaml(merged))
}

function withoutManagers(object: AnyObject): AnyObject {
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata }
}

async function writePruned(invocation: DiffInvocation, folder: string, seen: readonly Info[]): Promise<void> {
  const write = async ({ kind, object }: Prunable): Promise<void> =>
    writeFile(join(folder, fileName(kind, object)), stringifyYaml(withoutManagers(object)))
  try {
    for await (const found of prunable(invocation, seen)) await write(found)
  } catch (error) {
    const text = asError(error).message
    logWarning(invocation, 'diff.go:701', `pruning failed and could not be evaluated err: ${text}`)
  }
}

function warnOfDeletion({ stderr }: DiffInvocation, live: AnyObject | undefined): void {
  if (live?.metadata.deletionTimestamp === undefined) return
  stderr.write(`Warning: Detected changes to resource ${live.metadata.name ?? ''} which is currently being deleted.\n`)
}
