/**
 * Edits objects in an editor until they are saved, unchanged or abandoned. Errors of the server go into the file, and
 * the editor opens again.
 */
import { unlessAborted } from '#lib/abort.ts'
import { stringifyJson } from '#lib/json/json.ts'
import { createMergePatch } from '#lib/json/merge-patch.ts'
import { isJsonObject, type JsonObject } from '#lib/json/value.ts'
import type { JsonMap } from '#meta/patch/json-map.ts'
import { threeWayStrategicPatch } from '#meta/patch/three-way.ts'
import { isInvalid, isNotFound, statusOf } from '#meta/status.ts'

import { LAST_APPLIED, withLastApplied } from '../apply/last-applied.ts'
import { isList } from '../builder/builder.ts'
import type { Info } from '../builder/select-options.ts'
import type { Invocation } from '../command.ts'
import { asError, ExitError, KubectlError } from '../errors.ts'
import { interruptible } from '../interruption.ts'
import { decodeObject, readDocuments } from '../manifests/manifests.ts'
import { printerOf, type PrintContext } from '../printing.ts'
import { recorded } from '../recording.ts'
import type { AnyObject, PatchType } from '../session/rest.ts'
import { goSyntax } from '../templates/go-value.ts'
import { hasContent, headerText, meaningOf, problemOf, type Reason, withoutComments } from './edit-file.ts'
import { type EditorResult, editText, removeFile } from './editor.ts'

export interface EditContext extends Pick<
  Invocation,
  'session' | 'stdout' | 'stderr' | 'env' | 'cwd' | 'signal' | 'changeCause'
> {
  readonly flags: PrintContext['flags'] & {
    readonly 'field-manager': string
    readonly 'output-patch'?: boolean
    readonly 'windows-line-endings': boolean
    readonly 'save-config'?: boolean
    readonly record?: boolean
    readonly subresource?: string
  }
}

export interface EditOptions {
  /** `objects` edits the objects, `last-applied` their last applied configuration, `create` new objects. */
  readonly mode: 'objects' | 'last-applied' | 'create'
  readonly fieldValidation: string
}

/** The result of sending the changes. */
interface Outcome {
  readonly reasons: Reason[]
  retryable: number
  missing: number
}

/** The state between editor sessions: the next text, and the reason to open it again. */
interface Round {
  readonly edited: string
  readonly reasons: readonly Reason[]
  readonly isWrong: boolean
  /** The file with the last version; empty at first. */
  readonly file: string
}

/** Throws KubectlError, or ExitError after printing all messages. */
export async function editObjects(context: EditContext, infos: readonly Info[], options: EditOptions): Promise<void> {
  const original = await textOf(context, infos)
  let round: Round = { edited: '', reasons: [], isWrong: false, file: '' }
  for (;;) {
    const answer = await openEditor(context, { original, round }, options)
    const reasons = await settle(context, { infos, original, answer }, options)
    if (reasons === undefined) return
    round = { edited: answer.text, reasons, isWrong: true, file: answer.file }
  }
}

/** Prints the path of the user's file before it fails. */
async function keeping<T>({ stderr }: EditContext, file: string, work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    if (file !== '') stderr.write(`A copy of your changes has been stored to "${file}"\n`)
    throw error
  })
}

async function openEditor(
  context: EditContext,
  { original, round }: { readonly original: string; readonly round: Round },
  { mode }: EditOptions,
): Promise<EditorResult> {
  const { flags, env, signal } = context
  const isJson = flags.output === 'json'
  const header = isJson ? '' : headerText(mode === 'last-applied', round.reasons)
  const shown = header + (round.isWrong ? withoutComments(round.edited) : original)
  const text = flags['windows-line-endings'] ? shown.replaceAll(/\r?\n/g, '\r\n') : shown
  const edit = (): Promise<EditorResult> => unlessAborted(signal, editText(text, isJson ? '.json' : '.yaml', env))
  const answer = await keeping(context, round.file, interruptible(signal, edit))
  if (round.isWrong && meaningOf(round.edited) === meaningOf(answer.text)) {
    const cancelled = new KubectlError('Edit cancelled, no valid changes were saved.')
    await keeping(context, answer.file, Promise.reject(cancelled))
  }
  if (round.file !== '') await removeFile(round.file)
  return answer
}

interface EditRound {
  readonly infos: readonly Info[]
  readonly original: string
  readonly answer: EditorResult
}

/** The reason to open the file again; undefined without one. */
async function settle(
  context: EditContext,
  { infos, original, answer }: EditRound,
  options: EditOptions,
): Promise<readonly Reason[] | undefined> {
  const { stderr } = context
  const { text, file } = answer
  const problem = options.fieldValidation === 'Ignore' ? undefined : problemOf(withoutComments(text))
  if (problem !== undefined) {
    const [first] = infos as [Info]
    const what = `${resourceText(first)} "${first.name}"`
    stderr.write(`error: ${what} is invalid\n`)
    const detail = `<nil>: Invalid value: "The edited file failed validation": ${problem}`
    return [{ head: `${what} was not valid`, details: [detail] }]
  }
  if (meaningOf(original) === meaningOf(text) || !hasContent(text)) {
    await removeFile(file)
    stderr.write(`Edit cancelled, ${hasContent(text) ? 'no changes made.' : 'saved file was empty.'}\n`)
    return undefined
  }
  const parsed = await infosIn(context, text).catch(asError)
  if (parsed instanceof Error) {
    return [{ head: `The edited file had a syntax error: ${parsed.message}`, details: [] }]
  }
  const outcome = await keeping(context, file, sendAll(context, { infos, edited: parsed }, options))
  return (await isSettled(context, outcome, file)) ? undefined : outcome.reasons
}

/** False opens the file again. Throws ExitError. */
async function isSettled(
  { stderr }: EditContext,
  { reasons, retryable, missing }: Outcome,
  file: string,
): Promise<boolean> {
  if (retryable > 0) {
    stderr.write(`You can run \`kubectl replace -f ${file}\` to try this update again.\n`)
    throw new ExitError(1)
  }
  if (missing > 0) {
    stderr.write(`The edits you made on deleted resources have been saved to "${file}"\n`)
    throw new ExitError(1)
  }
  if (reasons.length > 0) return false
  await removeFile(file)
  return true
}

function resourceText({ kind }: Info): string {
  return kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`
}

/** One object, or a list of several, without managed fields. */
async function textOf({ flags, cwd }: EditContext, infos: readonly Info[]): Promise<string> {
  const objects = infos.map(({ object }) => bare(object as AnyObject))
  const output = flags.output === 'json' ? 'json' : 'yaml'
  const printer = await printerOf({ flags: { output }, cwd }, { keepOrder: false })
  let text = ''
  const out = { write: (part: string | Uint8Array) => void (text += part.toString()) }
  const list = { apiVersion: 'v1', items: objects, kind: 'List', metadata: {} }
  printer.print((objects.length === 1 ? objects[0] : list) as unknown as JsonObject, out)
  return text
}

function bare(object: AnyObject): AnyObject {
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata }
}

/** Throws KubectlError for a text that is no object. */
async function infosIn({ session }: EditContext, text: string): Promise<Info[]> {
  const mapper = await session.mapper()
  const found: Info[] = []
  for (const document of readDocuments('edited-file', text)) {
    const object = decodeObject('edited-file', document) as unknown as AnyObject
    for (const one of isList(object) ? (object['items'] as AnyObject[]) : [object]) {
      const { apiVersion = '', kind = '', metadata } = one
      const served = await mapper.ofObject(apiVersion, kind)
      const { name = '', namespace = '' } = metadata ?? {}
      found.push({ kind: served, namespace, name, source: 'edited-file', object: one })
    }
  }
  return found
}

async function sendAll(
  context: EditContext,
  { infos, edited }: { readonly infos: readonly Info[]; readonly edited: readonly Info[] },
  options: EditOptions,
): Promise<Outcome> {
  const outcome: Outcome = { reasons: [], retryable: 0, missing: 0 }
  const { namespace } = await context.session.namespace()
  for (const info of edited) {
    if (info.kind.namespaced && info.namespace === '') info.namespace = namespace
    if (info.kind.namespaced && info.namespace !== namespace) {
      throw new KubectlError(
        `the namespace from the provided object "${info.namespace}" does not match the namespace "${namespace}". You must pass '--namespace=${info.namespace}' to perform this operation.`,
      )
    }
    if (context.flags['save-config'] === true) info.object = remembering(infos, info)
    info.object = recorded(context, info.object as AnyObject)
    if (options.mode === 'create') await createOne(context, info, options)
    else await changeOne(context, { info, original: originalOf(infos, info) }, { ...options, outcome })
  }
  return outcome
}

/** Managed fields are not in the editor; they come from the original object. */
function remembering(infos: readonly Info[], info: Info): AnyObject {
  const object = info.object as AnyObject
  const { managedFields } =
    infos.find((one) => one.object?.metadata.uid === object.metadata.uid)?.object?.metadata ?? {}
  const whole = { ...object, metadata: { ...object.metadata, ...(managedFields !== undefined && { managedFields }) } }
  return bare(withLastApplied(whole))
}

function originalOf(infos: readonly Info[], { object }: Info): Info {
  const found = infos.find((one) => one.object?.metadata.uid === object?.metadata.uid)
  if (found === undefined)
    throw new KubectlError(`no original object found for &unstructured.Unstructured{Object:${goSyntax(object)}}`)
  return found
}

async function print(context: EditContext, object: unknown, operation: string): Promise<void> {
  const printer = await printerOf(context, { operation })
  printer.print(object as JsonObject, context.stdout)
}

async function createOne(context: EditContext, info: Info, { fieldValidation }: EditOptions): Promise<void> {
  const { kind, namespace, object } = info
  const query = { fieldManager: context.flags['field-manager'], fieldValidation }
  const made = await (await context.session.rest()).create({ kind, namespace }, object as AnyObject, query)
  await print(context, made, 'created')
}

async function changeOne(
  context: EditContext,
  { info, original }: { readonly info: Info; readonly original: Info },
  { mode, fieldValidation, outcome }: EditOptions & { readonly outcome: Outcome },
): Promise<void> {
  const { flags, session, stdout, stderr } = context
  const object = bare(info.object as AnyObject)
  const before = bare(original.object as AnyObject)
  if (stringifyJson(object, { sortedKeys: true }) === stringifyJson(before, { sortedKeys: true })) {
    return print(context, object, 'skipped')
  }
  const rest = await session.rest()
  const { subresource = '' } = flags
  const target = { ...info, ...(subresource !== '' && { subresource }) }
  const query = { fieldManager: flags['field-manager'], fieldValidation }
  if (mode === 'last-applied') {
    const annotations = { [LAST_APPLIED]: `${stringifyJson(object, { sortedKeys: true })}\n` }
    await rest.patch(target, 'merge', { metadata: { annotations } }, query)
    return print(context, object, 'edited')
  }
  const { type, patch } = await patchOf(info, before, object)
  if (flags['output-patch'] === true) stdout.write(`Patch: ${stringifyJson(patch, { sortedKeys: true })}\n`)
  try {
    await print(context, await rest.patch(target, type, patch, query), 'edited')
  } catch (error) {
    stderr.write(`${failureText(info, error, outcome)}\n`)
  }
  return undefined
}

/** Throws KubectlError if apiVersion, kind or name has changed. */
async function patchOf(
  { kind }: Info,
  before: AnyObject,
  after: AnyObject,
): Promise<{ readonly type: PatchType; readonly patch: JsonObject }> {
  const { schemaFor } = await import('#apis/schemas.ts')
  const schema = schemaFor(kind)
  const [original, modified] = [before as JsonMap, after as JsonMap]
  const patch = (schema === undefined
    ? createMergePatch(original as never, modified as never)
    : threeWayStrategicPatch(schema, { original, modified, current: original })) as unknown as JsonObject
  const { metadata } = patch
  const isRenamed = metadata !== undefined && isJsonObject(metadata) && Object.hasOwn(metadata, 'name')
  if (isRenamed || Object.hasOwn(patch, 'apiVersion') || Object.hasOwn(patch, 'kind')) {
    throw new KubectlError('At least one of apiVersion, kind and name was changed')
  }
  return { type: schema === undefined ? 'merge' : 'strategic', patch }
}

/** The error goes into the file if another edit may help. */
function failureText(info: Info, error: unknown, outcome: Outcome): string {
  const what = `${resourceText(info)} "${info.name}"`
  if (isInvalid(error)) {
    const causes = statusOf(error)?.details?.causes ?? []
    const details = causes.map(({ field = '', message = '' }) => `${field}: ${message}`)
    outcome.reasons.push({ head: `${what} was not valid`, details })
    return `error: ${what} is invalid`
  }
  if (isNotFound(error)) {
    outcome.missing++
    return `error: ${what} could not be found on the server`
  }
  outcome.retryable++
  return `error: ${what} could not be patched: ${asError(error).message}`
}
