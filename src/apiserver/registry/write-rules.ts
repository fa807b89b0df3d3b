/**
 * The rules of every create and update: metadata that the server sets, status, generation, validation. Pure except for
 * the resource's hooks.
 */
import { uuid } from '#lib/random.ts'
import { runInSlices } from '#lib/time-slicing.ts'
import { apiVersionOf, type GroupVersionKind } from '#meta/kind.ts'
import { type KubeObject, type ObjectMeta, semanticEqual } from '#meta/object.ts'
import { badRequestError, failure, invalidError } from '#meta/status-errors.ts'
import { timeOf } from '#meta/time.ts'
import { type FieldError, fieldPath, withErrorLimit } from '#meta/validation/field-path.ts'
import { type NameRule, nameIsPathSegment } from '#meta/validation/names.ts'
import { validateFinalizerNames, validateObjectMeta, validateObjectMetaUpdate } from '#meta/validation/object-meta.ts'

import type {
  Finish,
  MetadataLook,
  MetadataRules,
  OtherVersion,
  PartRules,
  Resource,
  RuleContext,
  WriteContext,
} from './resource.ts'
import type { WriteRequest } from './services.ts'

/** An object with a status; most kinds have one, and these rules do not read it. */
type WithStatus = KubeObject & { status?: unknown; spec?: unknown }

/** Defaults of the client's version, set before anything else reads the object. */
export function applyDefaults(
  resource: Resource,
  gvk: GroupVersionKind,
  object: KubeObject,
  context: RuleContext,
): void {
  ;(otherVersionOf(resource, gvk) ?? resource).applyDefaults?.(object, context)
}

function otherVersionOf({ otherVersions }: Resource, gvk: GroupVersionKind): OtherVersion | undefined {
  if (otherVersions === undefined) return undefined
  const wanted = apiVersionOf(gvk)
  return otherVersions.find(({ kind }) => apiVersionOf(kind) === wanted)
}

/** Server-set fields of a new object: after mutating and before validating admission. */
export function fillSystemFields(metadata: ObjectMeta, { clock, random }: RuleContext): void {
  metadata.creationTimestamp = timeOf(clock.now())
  metadata.uid = uuid(random)
}

/** The client's values of these fields are ignored. */
export function clearSystemFields(metadata: ObjectMeta): void {
  delete metadata.creationTimestamp
  delete metadata.uid
  delete metadata.deletionTimestamp
  delete metadata.deletionGracePeriodSeconds
  delete metadata.selfLink
}

/** The namespace of a new object after mutating admission: that of the request. */
export function settleNew(metadata: ObjectMeta, namespace: string): void {
  const own = metadata.namespace ?? ''
  if (namespace === '') delete metadata.namespace
  else if (own === '') metadata.namespace = namespace
  else if (own !== namespace) {
    throw badRequestError('the namespace of the provided object does not match the namespace sent on the request')
  }
}

/** A new object has no version. Upstream's store rejects only a valid one, after all other checks. */
export function refuseVersion({ resourceVersion = '' }: ObjectMeta): void {
  if (!/^0*[1-9]\d*$/.test(resourceVersion) || BigInt(resourceVersion) >> 64n !== 0n) return
  throw failure({ code: 500, message: 'resourceVersion should not be set on objects to be created' })
}

export function prepareCreate(resource: Resource, object: KubeObject, context: WriteContext): void {
  const hasStatus = resource.kind.subresources.some(({ name }) => name === 'status')
  if (hasStatus && resource.statusOnCreate !== 'kept') delete (object as WithStatus).status
  // Kinds that do not count changes keep the creator's number.
  if (resource.generation !== undefined) object.metadata.generation = 1
  resource.prepareCreate?.(object, context)
}

/** Throws StatusError; for validation in steps, asynchronously. */
export function validateCreate(
  resource: Resource,
  object: KubeObject,
  context: RuleContext,
  gvk: GroupVersionKind,
): Promise<void> | void {
  const rules = rulesOf(resource, gvk)
  const errors = withErrorLimit(() => [
    ...validateObjectMeta(object.metadata, {
      namespaced: resource.kind.namespaced,
      name: rules.nameRuleFor?.(object) ?? resource.nameRule,
    }),
    ...checkFinalizers(metadataRulesOf(resource, rules), object),
  ])
  const own = (): FieldError[] => rules.validate?.(object, context) ?? []
  return checkRules(resource, [object, undefined], context, { errors, own })
}

interface Findings {
  readonly errors: readonly FieldError[]
  /** The errors of the kind's synchronous rules. */
  readonly own: () => readonly FieldError[]
}

function checkRules(
  resource: Resource,
  [next, old]: readonly [KubeObject, KubeObject | undefined],
  context: RuleContext,
  { errors, own }: Findings,
): Promise<void> | void {
  const steps = resource.validateInSteps?.(next, old, context)
  if (steps === undefined) return refuse(resource, next, [...errors, ...withErrorLimit(own)])
  return runInSlices(steps, context.clock).then((more) => refuse(resource, next, [...errors, ...more]))
}

function metadataRulesOf(resource: Resource, rules: Rules): MetadataRules {
  return rules.metadataRules ?? resource.metadataRules ?? {}
}

function checkFinalizers(rules: MetadataRules, { metadata: { finalizers } }: KubeObject): FieldError[] {
  return rules.plainFinalizers === true ? [] : validateFinalizerNames(fieldPath('metadata.finalizers'), finalizers)
}

type Rules = Pick<Resource, 'validate' | 'validateUpdate' | 'metadataRules' | 'nameRuleFor'>

/** Some versions have separate rules for the same stored kind. */
function rulesOf(resource: Resource, gvk: GroupVersionKind): Rules {
  const other = otherVersionOf(resource, gvk)
  return other?.validate === undefined ? resource : other
}

/** The part of the object that this request may change; an empty name is the main resource. */
function partOf(resource: Resource, subresource: string): PartRules<KubeObject> | undefined {
  return subresource === 'status' ? (resource.status ?? {}) : resource.parts?.[subresource]
}

/** Immutable metadata and fields of other subresources come from the stored object. */
export function prepareUpdate(
  resource: Resource,
  [next, old]: readonly [KubeObject, KubeObject],
  subresource: string,
  context: WriteContext,
): void {
  keepSystemFields(next.metadata, old.metadata)
  const part = partOf(resource, subresource)
  if (part !== undefined) {
    if (part.keeps !== undefined) for (const path of part.keeps) keepStored(next, old, path.split('.'))
    else if (subresource === 'status') keepAllButStatus(next, old)
    part.prepareUpdate?.(next, old, context)
    return
  }
  const hasStatus = resource.kind.subresources.some(({ name }) => name === 'status')
  if (hasStatus) copyField(next, old, 'status')
  resource.prepareUpdate?.(next, old, context)
  if (generationGrows(resource, next, old)) next.metadata.generation = (old.metadata.generation ?? 0) + 1
}

function keepSystemFields(next: ObjectMeta, old: ObjectMeta): void {
  for (const name of ['creationTimestamp', 'resourceVersion', 'generation'] as const) {
    if (old[name] === undefined) delete next[name]
    else next[name] = old[name] as never
  }
  // A later step rejects a different value, and a deletion that was not requested.
  if (old.uid !== undefined) next.uid ||= old.uid
  if (old.deletionTimestamp !== undefined) next.deletionTimestamp = old.deletionTimestamp
  if (old.deletionGracePeriodSeconds !== undefined) next.deletionGracePeriodSeconds ??= old.deletionGracePeriodSeconds
}

/** /status of most kinds: everything but status and managedFields comes from the stored object. */
function keepAllButStatus(next: KubeObject, old: KubeObject): void {
  for (const name of new Set([...Object.keys(next), ...Object.keys(old)])) {
    if (name !== 'status' && name !== 'metadata') copyField(next, old, name)
  }
  const { managedFields, uid } = next.metadata
  // A later step rejects a different value.
  next.metadata = { ...old.metadata, ...(uid !== undefined && { uid }) }
  if (managedFields === undefined) delete next.metadata.managedFields
  else next.metadata.managedFields = managedFields
}

/** Copies the value at the path (fields only) from the stored object, or removes it if that has none. */
function keepStored(next: object, old: object, [name = '', ...rest]: readonly string[]): void {
  if (rest.length === 0) return copyField(next, old, name)
  const [to, from] = [next as Record<string, unknown>, old as Record<string, unknown>]
  if (from[name] !== undefined) to[name] ??= {}
  if (to[name] !== undefined) keepStored(to[name] as object, from[name] ?? {}, rest)
}

function copyField(next: object, old: object, name: string): void {
  const [to, from] = [next as Record<string, unknown>, old as Record<string, unknown>]
  if (from[name] === undefined) delete to[name]
  else to[name] = from[name]
}

function generationGrows(resource: Resource, next: KubeObject, old: KubeObject): boolean {
  if (resource.generation === undefined) return false
  if (resource.generation !== 'spec') return resource.generation(next, old)
  const { metadata: _, status: __, ...now } = next as WithStatus
  const { metadata: ___, status: ____, ...before } = old as WithStatus
  return !semanticEqual(now, before)
}

/** As `validateCreate`. */
export function validateUpdate(
  resource: Resource,
  [next, old]: readonly [KubeObject, KubeObject],
  { subresource, gvk }: Pick<WriteRequest, 'subresource' | 'gvk'>,
  context: RuleContext,
): Promise<void> | void {
  const part = partOf(resource, subresource)
  const rules = rulesOf(resource, gvk)
  const own = (): FieldError[] => {
    if (part !== undefined) return part.validateUpdate?.(next, old, context) ?? []
    if (rules.validateUpdate !== undefined) return rules.validateUpdate(next, old, context)
    return rules.validate?.(next, context) ?? []
  }
  const metadataRules = metadataRulesOf(resource, rules)
  const { update = AT_THE_CHANGE, part: ofPart = AT_THE_CHANGE } = metadataRules
  const errors = withErrorLimit(() => {
    const finalizers = checkFinalizers(metadataRules, next)
    return validateMetadata(resource, [next, old], { looks: part === undefined ? update : ofPart, finalizers })
  })
  if (part !== undefined) return refuse(resource, next, [...errors, ...withErrorLimit(own)])
  return checkRules(resource, [next, old], context, { errors, own })
}

const AT_THE_CHANGE: readonly MetadataLook[] = ['change']

interface Again {
  readonly looks: readonly MetadataLook[]
  readonly finalizers: readonly FieldError[]
}

/** Metadata errors: once for every kind, and again for each validation by this kind's rules. */
function validateMetadata(
  { kind: { namespaced }, nameRule, nameRuleFor }: Resource,
  [next, old]: readonly [KubeObject, KubeObject],
  { looks, finalizers }: Again,
): FieldError[] {
  const checkRules = (name: NameRule): FieldError[] => validateObjectMeta(next.metadata, { namespaced, name })
  // Every kind's name rule is stricter than the common one, so a valid name needs no second check.
  const own = looks.includes('whole') ? checkRules(nameRuleFor?.(next) ?? nameRule) : undefined
  const whole = own?.length === 0 ? own : checkRules(nameIsPathSegment)
  const change = validateObjectMetaUpdate(next.metadata, old.metadata)
  const again = looks.flatMap((look) => [...(look === 'whole' ? (own ?? []) : change), ...finalizers])
  return [...whole, ...change, ...again]
}

function refuse({ kind }: Resource, { metadata }: KubeObject, errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalidError({ group: kind.group, kind: kind.kind }, metadata.name ?? '', errors)
}

export function warningsFor(
  resource: Resource,
  next: KubeObject,
  old: KubeObject | undefined,
  subresource: string,
): string[] {
  const part = partOf(resource, subresource)
  if (part !== undefined) return old === undefined ? [] : (part.warnings?.(next, old) ?? [])
  return resource.warnings?.(next, old) ?? []
}

/** Runs `work`, then reports to the reserving hook whether the write succeeded; exactly once. */
export function finishing<R>(
  finish: Finish | undefined,
  isWritten: (outcome: R) => boolean,
  work: () => Promise<R>,
): Promise<R> {
  return finish === undefined ? work() : workAndTell(finish, isWritten, work)
}

async function workAndTell<R>(finish: Finish, isWritten: (outcome: R) => boolean, work: () => Promise<R>): Promise<R> {
  let written = false
  try {
    const outcome = await work()
    written = isWritten(outcome)
    return outcome
  } finally {
    await finish(written)
  }
}
