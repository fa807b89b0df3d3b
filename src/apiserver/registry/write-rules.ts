/**
 * What creating and updating mean for every kind: metadata the server sets, status kept apart from the rest,
 * generation, validation. Pure but for the hooks of the resource.
 */
import { uuid } from '#lib/random.ts'
import { inSlices } from '#lib/slices.ts'
import { apiVersionOf, type GroupVersionKind } from '#meta/kind.ts'
import { type KubeObject, type ObjectMeta, semanticEqual } from '#meta/object.ts'
import { badRequestError, failure, invalidError } from '#meta/status-errors.ts'
import { timeOf } from '#meta/time.ts'
import { type FieldError, index, withErrorLimit } from '#meta/validation/field-error.ts'
import { type NameRule, nameIsPathSegment } from '#meta/validation/names.ts'
import { validateFinalizerName, validateObjectMeta, validateObjectMetaUpdate } from '#meta/validation/object-meta.ts'

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

/** An object with a status; most kinds have one, and none of these rules looks inside. */
type WithStatus = KubeObject & { status?: unknown; spec?: unknown }

/** Defaults of the version a client speaks, filled in before anything else looks at the object. */
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

/** Fields of a new object that only the server sets: after those who may change it, and before those who only look. */
export function fillSystemFields(metadata: ObjectMeta, { clock, random }: RuleContext): void {
  metadata.creationTimestamp = timeOf(clock.now())
  metadata.uid = uuid(random)
}

/** What of these a client sends is not looked at. */
export function clearSystemFields(metadata: ObjectMeta): void {
  delete metadata.creationTimestamp
  delete metadata.uid
  delete metadata.deletionTimestamp
  delete metadata.deletionGracePeriodSeconds
  delete metadata.selfLink
}

/** Where a new object is to be, after those who may change it: where the request is. */
export function settleNew(metadata: ObjectMeta, namespace: string): void {
  const own = metadata.namespace ?? ''
  if (namespace === '') delete metadata.namespace
  else if (own === '') metadata.namespace = namespace
  else if (own !== namespace) {
    throw badRequestError('the namespace of the provided object does not match the namespace sent on the request')
  }
}

/** What is new has no version yet. Upstream's store minds only what could be one, and that after everything else. */
export function refuseVersion({ resourceVersion = '' }: ObjectMeta): void {
  if (!/^0*[1-9]\d*$/.test(resourceVersion) || BigInt(resourceVersion) >> 64n !== 0n) return
  throw failure({ code: 500, message: 'resourceVersion should not be set on objects to be created' })
}

export function prepareCreate(resource: Resource, object: KubeObject, context: WriteContext): void {
  const hasStatus = resource.kind.subresources.some(({ name }) => name === 'status')
  if (hasStatus && resource.statusOnCreate !== 'kept') delete (object as WithStatus).status
  // Kinds that do not count changes keep whatever number their creator chose.
  if (resource.generation !== undefined) object.metadata.generation = 1
  resource.prepareCreate?.(object, context)
}

/** Throws StatusError; of a kind that is judged in steps, later. */
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
    ...validateFinalizerNames(metadataRulesOf(resource, rules), object),
  ])
  const own = (): FieldError[] => rules.validate?.(object, context) ?? []
  return judge(resource, [object, undefined], context, { errors, own })
}

interface Findings {
  readonly errors: readonly FieldError[]
  /** What the rules of the kind say, where they say it at once. */
  readonly own: () => readonly FieldError[]
}

function judge(
  resource: Resource,
  [next, old]: readonly [KubeObject, KubeObject | undefined],
  context: RuleContext,
  { errors, own }: Findings,
): Promise<void> | void {
  const steps = resource.judge?.(next, old, context)
  if (steps === undefined) return refuse(resource, next, [...errors, ...withErrorLimit(own)])
  return inSlices(steps, context.clock).then((more) => refuse(resource, next, [...errors, ...more]))
}

function metadataRulesOf(resource: Resource, rules: Rules): MetadataRules {
  return rules.metadataRules ?? resource.metadataRules ?? {}
}

function validateFinalizerNames(rules: MetadataRules, { metadata: { finalizers } }: KubeObject): FieldError[] {
  if (finalizers === undefined || rules.plainFinalizers === true) return []
  return finalizers.flatMap((one, at) => validateFinalizerName(index('metadata.finalizers', at), one))
}

type Rules = Pick<Resource, 'validate' | 'validateUpdate' | 'metadataRules' | 'nameRuleFor'>

/** Some versions have rules of their own for the same stored kind. */
function rulesOf(resource: Resource, gvk: GroupVersionKind): Rules {
  const other = otherVersionOf(resource, gvk)
  return other?.validate === undefined ? resource : other
}

/** The part of the object that this request may change; the main resource for an empty name. */
function partOf(resource: Resource, subresource: string): PartRules<KubeObject> | undefined {
  return subresource === 'status' ? (resource.status ?? {}) : resource.parts?.[subresource]
}

/** Metadata that no update changes, and what belongs to other subresources, comes from the stored object. */
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
  // Another one than the stored is refused later, and so is a deletion that nobody asked for.
  if (old.uid !== undefined) next.uid ||= old.uid
  if (old.deletionTimestamp !== undefined) next.deletionTimestamp = old.deletionTimestamp
  if (old.deletionGracePeriodSeconds !== undefined) next.deletionGracePeriodSeconds ??= old.deletionGracePeriodSeconds
}

/** /status of most kinds: everything but status and managedFields is the stored object's. */
function keepAllButStatus(next: KubeObject, old: KubeObject): void {
  for (const name of new Set([...Object.keys(next), ...Object.keys(old)])) {
    if (name !== 'status' && name !== 'metadata') copyField(next, old, name)
  }
  const { managedFields, uid } = next.metadata
  // Another one than the stored is refused later.
  next.metadata = { ...old.metadata, ...(uid !== undefined && { uid }) }
  if (managedFields === undefined) delete next.metadata.managedFields
  else next.metadata.managedFields = managedFields
}

/** What is at the path, of fields only, comes from the stored object, and is gone where that has none. */
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
    const finalizers = validateFinalizerNames(metadataRules, next)
    return validateMetadata(resource, [next, old], { looks: part === undefined ? update : ofPart, finalizers })
  })
  if (part !== undefined) return refuse(resource, next, [...errors, ...withErrorLimit(own)])
  return judge(resource, [next, old], context, { errors, own })
}

const AT_THE_CHANGE: readonly MetadataLook[] = ['change']

interface Again {
  readonly looks: readonly MetadataLook[]
  readonly finalizers: readonly FieldError[]
}

/** What is wrong once for every kind, and again for as often as the rules of this kind look at it. */
function validateMetadata(
  { kind: { namespaced }, nameRule, nameRuleFor }: Resource,
  [next, old]: readonly [KubeObject, KubeObject],
  { looks, finalizers }: Again,
): FieldError[] {
  const judge = (name: NameRule): FieldError[] => validateObjectMeta(next.metadata, { namespaced, name })
  // Every kind's rule for names is stricter than the one for all, so what passes it need not be looked at twice.
  const own = looks.includes('whole') ? judge(nameRuleFor?.(next) ?? nameRule) : undefined
  const whole = own?.length === 0 ? own : judge(nameIsPathSegment)
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

/** Runs `work`, then tells the hook that reserved something whether the write came about; once, whatever happens. */
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
