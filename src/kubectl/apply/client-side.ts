/** Client-side apply: computes a patch from the last applied configuration, the file and the live object. */
import type { ServedKind } from '#client/discovery.ts'
import { sleep } from '#lib/clock.ts'
import { stringifyJson } from '#lib/json/json.ts'
import type { JsonObject } from '#lib/json/value.ts'
import type { JsonMap } from '#meta/patch/json-map.ts'
import { threeWayMergePatch, threeWayStrategicPatch } from '#meta/patch/three-way.ts'
import { isConflict, isInvalid, isNotFound } from '#meta/status.ts'

import { readObject } from '../builder/builder.ts'
import type { Info } from '../builder/select-options.ts'
import { asError, KubectlError, withSource } from '../errors.ts'
import { dryRunQuery } from '../flag-sets.ts'
import { patchedLocally } from '../manifests/local-patch.ts'
import { pollUntil } from '../polling.ts'
import type { AnyObject, PatchType } from '../session/rest.ts'
import type { ApplyResult, ApplyContext, ApplySettings } from './applying.ts'
import { LAST_APPLIED, lastApplied, withLastApplied } from './last-applied.ts'

const MAX_RETRIES = 5
/** The first conflicts are retried at once, later ones after a pause. */
const HASTY_TRIES = 1

export async function applyHere(context: ApplyContext, info: Info, settings: ApplySettings): Promise<ApplyResult> {
  const { session, stderr } = context
  const rest = await session.rest()
  const modified = withLastApplied(info.object as AnyObject)
  const live = await readObject(rest, info).catch((error: unknown) => {
    if (isNotFound(error)) return undefined
    const about = `retrieving current configuration of:\n${infoText(info)}\nfrom server for:`
    throw withSource(about, info.source, asError(error))
  })
  if (live === undefined) return createNew(context, info, settings)
  if (!Object.hasOwn(live.metadata.annotations ?? {}, LAST_APPLIED)) {
    stderr.write(missingAnnotation(info))
  }
  return changeLive(context, { info, modified, live }, settings)
}

async function createNew({ session }: ApplyContext, info: Info, settings: ApplySettings): Promise<ApplyResult> {
  const object = withoutNulls(withLastApplied(info.object as AnyObject)) as AnyObject
  if (settings.dryRun === 'client') return { object, operation: 'created' }
  const { kind, namespace } = info
  const rest = await session.rest()
  const made = await rest
    .create({ kind, namespace }, withoutVersion(object), queryOf(settings))
    .catch((error: unknown) => {
      throw withSource('creating', info.source, asError(error))
    })
  return { object: made, operation: 'created' }
}

/** The server creates no object that already has a resource version. */
function withoutVersion(object: AnyObject): AnyObject {
  const { resourceVersion: _, ...metadata } = object.metadata
  return { ...object, metadata }
}

function queryOf({ manager, fieldValidation, dryRun }: ApplySettings): Readonly<Record<string, string | undefined>> {
  return { fieldManager: manager, fieldValidation, ...dryRunQuery(dryRun) }
}

/** Empty maps are dropped, as Go's encoder does. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([, member]) => member !== null)
  return Object.fromEntries(kept.map(([key, member]) => [key, withoutNulls(member)]))
}

function missingAnnotation({ kind, name }: Info): string {
  return `Warning: resource ${kind.plural}/${name} is missing the ${LAST_APPLIED} annotation which is required by kubectl apply. kubectl apply should only be used on resources created declaratively by either kubectl create --save-config or kubectl apply. The missing annotation will be patched automatically.\n`
}

export function infoText({ kind, name, namespace }: Info): string {
  const { group, version } = kind
  return `Resource: "${group}/${version}, Resource=${kind.plural}", GroupVersionKind: "${group}/${version}, Kind=${kind.kind}"\nName: "${name}", Namespace: "${namespace}"`
}

export interface ThreeWay {
  readonly type: PatchType
  readonly patch: JsonMap
}

/** The schemas of built-in kinds define how lists merge; lists of custom kinds are replaced. */
export async function patchBetween(kind: ServedKind, modified: AnyObject, live: AnyObject): Promise<ThreeWay> {
  const { schemaFor } = await import('#apis/schemas.ts')
  const original = (lastApplied(live) ?? {}) as JsonMap
  const versions = { original, modified: modified as JsonMap, current: live as JsonMap }
  const schema = schemaFor(kind)
  if (schema !== undefined) return { type: 'strategic', patch: threeWayStrategicPatch(schema, versions) }
  return { type: 'merge', patch: threeWayMergePatch(versions) }
}

interface LiveChange {
  readonly info: Info
  readonly modified: AnyObject
  readonly live: AnyObject
}

async function changeLive(context: ApplyContext, changing: LiveChange, settings: ApplySettings): Promise<ApplyResult> {
  const { info, modified } = changing
  const rest = await context.session.rest()
  let { live } = changing
  for (let tries = 0; ; tries++) {
    const { type, patch } = await patchBetween(info.kind, modified, live)
    if (Object.keys(patch).length === 0) return { object: live, operation: 'unchanged' }
    if (settings.dryRun === 'client') {
      const object = await patchedLocally(info.kind, live as unknown as JsonObject, {
        type,
        document: patch as JsonObject,
      })
      return { object: object as unknown as AnyObject, operation: 'configured' }
    }
    try {
      return { object: await rest.patch(info, type, patch, queryOf(settings)), operation: 'configured' }
    } catch (error) {
      const isLast = !isConflict(error) || tries >= MAX_RETRIES
      const mayForce = context.flags.force && (isConflict(error) || isInvalid(error))
      if (isLast && mayForce) return replaceLive(context, changing, settings)
      if (isLast) throw applyError(withSource('patching', info.source, asError(error)), info, textOf(patch))
      if (tries >= HASTY_TRIES) await sleep(context.clock, 1000, context.signal)
      live = await rest.get(info)
    }
  }
}

function textOf(document: object): string {
  return stringifyJson(document, { sortedKeys: true })
}

function applyError(error: Error, info: Info, document: string): Error {
  return withSource(`applying patch:\n${document}\nto:\n${infoText(info)}\nfor:`, info.source, error)
}

/** `--force`: deletes and recreates an object that cannot be patched. */
async function replaceLive(context: ApplyContext, changing: LiveChange, settings: ApplySettings): Promise<ApplyResult> {
  try {
    return { object: await recreateLive(context, changing, settings), operation: 'configured' }
  } catch (error) {
    throw applyError(asError(error), changing.info, `${textOf(changing.modified)}\n`)
  }
}

async function recreateLive(
  context: ApplyContext,
  { info, modified, live }: LiveChange,
  settings: ApplySettings,
): Promise<AnyObject> {
  const { flags, session } = context
  const rest = await session.rest()
  const grace = flags['grace-period']
  await rest.delete(info, {
    ...(grace >= 0 && { gracePeriodSeconds: grace }),
    propagationPolicy: settings.policy,
  })
  // Without --timeout the object must be gone at once, as upstream requires.
  const isGone = await pollUntil(context, flags.timeout, () =>
    rest.get(info).then(
      () => false,
      (error: unknown) => {
        if (isNotFound(error)) return true
        throw error
      },
    ),
  )
  if (!isGone) throw new KubectlError('context deadline exceeded')
  const { kind, namespace } = info
  const create = (object: AnyObject): Promise<AnyObject> =>
    rest.create({ kind, namespace }, withoutVersion(object), queryOf(settings))
  return create(modified).catch((error: unknown) => restoreLive(create, live, asError(error)))
}

/** Recreates the deleted object and throws the error, followed by a second one if that fails as well. */
async function restoreLive(
  create: (object: AnyObject) => Promise<AnyObject>,
  live: AnyObject,
  error: Error,
): Promise<never> {
  try {
    await create(live)
  } catch (cause) {
    const text = `An error occurred force-replacing the existing object with the newly provided one:\n\n${error.message}.\n\nAdditionally, an error occurred attempting to restore the original object:\n\n${asError(cause).message}`
    throw new KubectlError(text, { cause })
  }
  throw error
}
