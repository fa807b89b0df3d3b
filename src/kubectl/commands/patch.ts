/** kubectl patch: updates fields of an object with a strategic merge, JSON merge or JSON patch. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'

import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { goQuote } from '#lib/go/text.ts'
import { jsonEqual } from '#lib/json/patch.ts'
import type { JsonObject, JsonValue } from '#lib/json/value.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'
import { statusOf } from '#meta/status.ts'

import type { Info } from '../builder/select-options.ts'
import { selectFor } from '../builder/selection.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'
import { DRY_RUN_FLAG, type DryRun, dryRunOf, dryRunQuery, fieldManagerFlag, fileFlags } from '../flag-sets.ts'
import { patchedLocally } from '../manifests/local-patch.ts'
import { goFileError, printerOf, printFlags } from '../printing.ts'
import { RECORD_FLAG, recordPatch } from '../recording.ts'
import type { AnyObject, PatchType } from '../session/rest.ts'

const TYPES = ['json', 'merge', 'strategic'] as const

const FLAGS = {
  ...printFlags(),
  ...fileFlags('identifying the resource to update'),
  ...DRY_RUN_FLAG,
  ...RECORD_FLAG,
  ...fieldManagerFlag('kubectl-patch'),
  patch: flag(string, '', 'The patch.', { shorthand: 'p' }),
  'patch-file': flag(string, '', 'File with the patch.'),
  type: flag(string, 'strategic', `The kind of patch; one of [${TYPES.join(' ')}].`),
  local: flag(bool, false, 'Patch the object in the file instead of the object on the server.'),
  subresource: flag(string, '', 'Patch this subresource of the object.'),
}

type PatchInvocation = Invocation<typeof FLAGS>

export const patch: Command = defineCommand({
  name: 'patch',
  use: '(-f FILENAME | TYPE NAME) [-p PATCH|--patch-file FILE] [options]',
  long: 'Update fields of a resource with a strategic merge patch, a JSON merge patch or a JSON patch, in JSON or YAML.',
  examples: `# Mark a node as unschedulable
kubectl patch node k8s-node-1 -p '{"spec":{"unschedulable":true}}'

# Change the image of the first container
kubectl patch pod valid-pod --type='json' -p='[{"op": "replace", "path": "/spec/containers/0/image", "value":"new image"}]'`,
  flags: FLAGS,
  completes: 'resources',
  async run(invocation) {
    const { args, flags, session } = invocation
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    // An unknown context is reported before everything else.
    await session.namespace()
    checkFlags(flags, args, dryRun)
    const isSent = !flags.local && dryRun !== 'client'
    const document = await readPatch(invocation, isSent)
    const selection = await selectFor(invocation, { subresource: flags.subresource, args, local: flags.local })
    let count = 0
    await selection.visit(async (info) => {
      count++
      await patchOne(invocation, info, { document, dryRun })
    })
    if (count === 0) throw new KubectlError('no objects passed to patch')
  },
})

function checkFlags(flags: PatchInvocation['flags'], args: readonly string[], dryRun: DryRun): void {
  const problems: [isSo: boolean, text: string][] = [
    [flags.patch !== '' && flags['patch-file'] !== '', 'cannot specify --patch and --patch-file together'],
    [
      flags.patch === '' && flags['patch-file'] === '',
      'must specify --patch or --patch-file containing the contents of the patch',
    ],
    [flags.local && args.length > 0, 'cannot specify --local and server resources'],
    [
      flags.local && dryRun === 'server',
      'cannot specify --local and --dry-run=server - did you mean --dry-run=client?',
    ],
    [
      flags.type !== '' && !(TYPES as readonly string[]).includes(flags.type.toLowerCase()),
      `--type must be one of [${TYPES.join(' ')}], not ${goQuote(flags.type)}`,
    ],
  ]
  const problem = problems.find(([isSo]) => isSo)
  if (problem !== undefined) throw new KubectlError(problem[1])
}

async function readPatch({ flags, cwd }: PatchInvocation, isSent: boolean): Promise<JsonValue | Buffer> {
  const file = flags['patch-file']
  const text =
    file === ''
      ? flags.patch
      : await readFile(resolve(cwd, file), 'utf8').catch((cause: Error) => {
          throw new KubectlError(`unable to read patch file: ${goFileError(file, cause)}`, { cause })
        })
  // A text that begins like JSON goes to the server unchanged.
  if (isSent && /^\s*\{/.test(text)) return Buffer.from(text)
  try {
    return parseYaml(text)
  } catch (cause) {
    throw new KubectlError(`unable to parse ${goQuote(flags.patch)}: ${asError(cause).message}`, { cause })
  }
}

async function patchOne(
  invocation: PatchInvocation,
  info: Info,
  { document, dryRun }: { readonly document: JsonValue | Buffer; readonly dryRun: DryRun },
): Promise<void> {
  const { flags, session, stdout } = invocation
  const type = (flags.type === '' ? 'strategic' : flags.type.toLowerCase()) as PatchType
  const before = info.object as unknown as JsonObject
  const query = { fieldManager: flags['field-manager'], ...dryRunQuery(dryRun) }
  const target = { ...info, ...(flags.subresource !== '' && { subresource: flags.subresource }) }
  const isHere = !Buffer.isBuffer(document) && (flags.local || dryRun === 'client')
  const after = isHere
    ? await patchedLocally(info.kind, before, { type, document })
    : ((await (await session.rest()).patch(target, type, document, query).catch((error: unknown) => {
        throw unsupported(error, type, info)
      })) as unknown as JsonObject)
  const operation = jsonEqual(before, after) ? 'patched (no change)' : 'patched'
  const printer = await printerOf(invocation, { operation })
  printer.print(isHere ? after : await recordedPatch(invocation, target, { after, query }), stdout)
}

/** Upstream sends a second patch with the change cause; if the server rejects it, the first patch remains valid. */
async function recordedPatch(
  invocation: PatchInvocation,
  target: Info,
  { after, query }: { readonly after: JsonObject; readonly query: Readonly<Record<string, string>> },
): Promise<JsonObject> {
  const patch = recordPatch(invocation, after as unknown as AnyObject)
  if (patch === undefined) return after
  const rest = await invocation.session.rest()
  return rest.patch(target, 'merge', patch, query).then(
    (object) => object as unknown as JsonObject,
    () => after,
  )
}

const CONTENT_TYPES = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const

function unsupported(error: unknown, type: PatchType, { kind }: Info): unknown {
  if (statusOf(error)?.code !== 415) return error
  const name = `${kind.group}/${kind.version}, Kind=${kind.kind}`
  return new KubectlError(`${CONTENT_TYPES[type]} is not supported by ${name}: ${asError(error).message}`, {
    cause: error,
  })
}
