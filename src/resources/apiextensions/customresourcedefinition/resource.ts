/** The CustomResourceDefinition resource: a custom kind. */
import { isDeepStrictEqual } from 'node:util'

import {
  type CustomResourceDefinition,
  type CustomResourceDefinitionCondition,
  CustomResourceDefinitions,
} from '#apis/apiextensions/v1.ts'
import { nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { goQuote } from '#lib/go/text.ts'
import { createRepetition } from '#lib/repetition.ts'
import { flatMapSteps, type Steps } from '#lib/time-slicing.ts'
import { addFinalizer, semanticEqual } from '#meta/object.ts'
import { timeOf } from '#meta/time.ts'
import { collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { nameIsSubdomain } from '#meta/validation/names.ts'
import { immutable } from '#meta/validation/rules.ts'
import { validateDefaults } from '#model/custom/default-rules.ts'
import { anySchema, schemasOf, type Schema, someSchema } from '#model/custom/schema-walk.ts'
import { structuralOf } from '#model/custom/structural.ts'
import { structuralObstacle, validateStructural } from '#model/custom/structure-rules.ts'

import { createdAtColumn } from '../../created-at.ts'
import { DEFAULT_WEBHOOK_PORT } from '../../webhook-client.ts'
import { definitionOf } from './definition.ts'
import { hasLooseItems, openApiTypes, validateMapKeys } from './schema-rules.ts'
import { hasCertificate, isKnownReviewVersion, type SpecOptions, validateNames, validateSpec } from './spec.ts'
import { MAX_SELECTABLE_FIELDS } from './version-parts.ts'

/** The finalizer of the controller that deletes the custom resources. */
export const CLEANUP_FINALIZER = 'customresourcecleanup.apiextensions.k8s.io'
const APPROVAL = 'api-approved.kubernetes.io'

export const customResourceDefinition: Resource<CustomResourceDefinition> = defineResource<CustomResourceDefinition>({
  kind: CustomResourceDefinitions,
  metadataRules: { plainFinalizers: true },
  storagePrefix: 'apiextensions.k8s.io/customresourcedefinitions',
  nameRuleFor:
    ({ spec }) =>
    (name, prefix) => [
      ...nameIsSubdomain(name, prefix),
      ...(name === `${spec.names.plural}.${spec.group}` ? [] : ['must be spec.names.plural+"."+spec.group']),
    ],
  // An empty object enables the status subresource.
  generation: (next, old) => !isDeepStrictEqual(next.spec, old.spec),
  applyDefaults({ spec, status }) {
    spec.names.singular ||= spec.names.kind.toLowerCase()
    if (spec.names.kind !== '') spec.names.listKind ||= `${spec.names.kind}List`
    spec.conversion ??= { strategy: 'None' }
    const service = spec.conversion.webhook?.clientConfig?.service
    if (service !== undefined) service.port ??= DEFAULT_WEBHOOK_PORT
    if (status !== undefined && (status.storedVersions ?? []).length === 0) status.storedVersions = storageVersion(spec)
  },
  prepareCreate(object) {
    object.status = {
      conditions: null,
      acceptedNames: { plural: '', kind: '' },
      storedVersions: storageVersion(object.spec),
    }
  },
  prepareUpdate(next) {
    const stored = next.status.storedVersions ?? []
    const missing = storageVersion(next.spec).filter((name) => !stored.includes(name))
    if (missing.length > 0) next.status = { ...next.status, storedVersions: [...stored, ...missing] }
  },
  validateInSteps: validateDefinition,
  warnings: formatWarnings,
  marksFirst: 'without-policy',
  deletion(object, _, { clock }) {
    if (object.metadata.deletionTimestamp === undefined) markTerminating(object, clock)
  },
  status: {
    keeps: ['spec'],
    prepareUpdate({ status }, old, { isEnabled }) {
      if (!isEnabled('CRDObservedGenerationTracking') && !tracksGeneration(old.status)) dropGenerations(status)
    },
    validateUpdate: ({ status }) => validateNames(fieldPath('status.acceptedNames'), status.acceptedNames),
  },
  columns: [nameColumn, createdAtColumn],
  putNeedsVersion: true,
})

type Spec = CustomResourceDefinition['spec']
type Status = CustomResourceDefinition['status']

function tracksGeneration({ observedGeneration, conditions }: Status): boolean {
  return observedGeneration !== undefined || (conditions ?? []).some((one) => one.observedGeneration !== undefined)
}

function dropGenerations(status: Status): void {
  for (const part of [status, ...(status.conditions ?? [])]) delete part.observedGeneration
}

/** The first version that is marked; undefined without one. */
function storageVersion({ versions }: Spec): string[] {
  const stored = (versions ?? []).find(({ storage }) => storage)
  return stored === undefined ? [] : [stored.name]
}

function markTerminating(object: CustomResourceDefinition, clock: RuleContext['clock']): void {
  addFinalizer(object, CLEANUP_FINALIZER)
  const condition: CustomResourceDefinitionCondition = {
    type: 'Terminating',
    status: 'True',
    lastTransitionTime: timeOf(clock.now()),
    reason: 'InstanceDeletionPending',
    message: 'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon',
  }
  const others = (object.status.conditions ?? []).filter(({ type }) => type !== condition.type)
  object.status = { ...object.status, conditions: [...others, condition] }
}

const strict: SpecOptions = {
  openApiSchema: true,
  structural: true,
  prunedDefaults: true,
  reviewVersion: true,
  // A new definition may get its certificates later.
  soundCaBundle: false,
  knownTypes: true,
  atomicSets: true,
  soundMapKeys: true,
  manySelectable: new Set(),
  unchanged: new Set(),
}

/** Schemas of a megabyte are common, and their rules take long to compile. */
function* validateDefinition(
  next: CustomResourceDefinition,
  old: CustomResourceDefinition | undefined,
): Steps<FieldError[]> {
  const { spec, status } = next
  return collectErrors(
    yield* validateSpecChange(next, old),
    old !== undefined && validateFixed(next, old),
    validateNames(fieldPath('status.acceptedNames'), status.acceptedNames),
    validateStoredVersions(status.storedVersions ?? [], spec),
    validateApproval(next, old),
    spec.preserveUnknownFields === true &&
      old?.spec.preserveUnknownFields !== true &&
      fieldPath('spec.preserveUnknownFields').invalid(true, NO_PRESERVING),
  )
}

/** The ratcheting options are computed only after errors, because large schemas make them expensive. */
function* validateSpecChange(
  next: CustomResourceDefinition,
  old: CustomResourceDefinition | undefined,
): Steps<FieldError[]> {
  if (old === undefined) return yield* validateSpec(next.spec, strict)
  const soundCaBundle = needsSoundCaBundle(old)
  const errors = yield* validateSpec(next.spec, { ...strict, soundCaBundle })
  if (errors.length === 0) return []
  return yield* validateSpec(next.spec, { ...(yield* optionsFor(next, old)), soundCaBundle })
}

const NO_PRESERVING =
  'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead'

function isEstablished({ status }: CustomResourceDefinition): boolean {
  return (status?.conditions ?? []).some(({ type, status: value }) => type === 'Established' && value === 'True')
}

function needsSoundCaBundle(old: CustomResourceDefinition): boolean {
  const bundle = old.spec.conversion?.webhook?.clientConfig?.caBundle ?? ''
  return isEstablished(old) && (bundle === '' || hasCertificate(bundle))
}

function* optionsFor(
  next: CustomResourceDefinition,
  old: CustomResourceDefinition,
): Steps<Omit<SpecOptions, 'soundCaBundle'>> {
  const { spec } = old
  const reviewed = spec.conversion?.webhook?.conversionReviewVersions ?? []
  const obstacles = schemasOf(spec).filter((schema) => structuralObstacle(schema) !== undefined)
  const faults = yield* flatMapSteps(schemasOf(spec), (schema) => validateStructural(fieldPath(''), schema))
  const unpruned = yield* flatMapSteps(schemasOf(spec), unprunedDefaults)
  return {
    openApiSchema: (spec.versions ?? []).every(({ schema }) => schema?.openAPIV3Schema !== undefined),
    structural: obstacles.length + faults.length === 0,
    prunedDefaults: unpruned.length === 0,
    reviewVersion: reviewed.length === 0 || reviewed.some(isKnownReviewVersion),
    knownTypes: !anySchema(spec, ({ type = '' }) => type !== '' && !openApiTypes.includes(type)),
    atomicSets: !anySchema(spec, hasLooseItems),
    soundMapKeys: !anySchema(spec, (schema) => validateMapKeys(fieldPath(''), schema).length > 0),
    manySelectable: manySelectable(next.spec, spec),
    unchanged: unchangedSchemas(next.spec, spec),
  }
}

function* unprunedDefaults(schema: Schema): Steps<FieldError[]> {
  const errors = yield* validateDefaults(structuralOf(schema), fieldPath(''), { pruned: true })
  return errors.filter(({ detail }) => detail === 'must not have unknown fields')
}

function manySelectable(next: Spec, old: Spec): Set<string> {
  const [now, before] = [definitionOf(next), definitionOf(old)]
  const named = (definition: typeof now): Map<string, readonly unknown[]> =>
    new Map([
      ['', definition.common.selectableFields ?? []],
      ...definition.versions.map((one) => [one.name, one.selectableFields ?? []] as const),
    ])
  const earlier = named(before)
  const kept = [...named(now)].filter(
    ([name, fields]) => fields.length > MAX_SELECTABLE_FIELDS && semanticEqual(fields, earlier.get(name)),
  )
  return new Set(kept.map(([name]) => name))
}

/** The cost of these rules is not limited, because they were accepted before. */
function unchangedSchemas(next: Spec, old: Spec): Set<string> {
  const before = new Map((old.versions ?? []).map(({ name, schema }) => [name, schema]))
  const same = (next.versions ?? []).filter(
    ({ name, schema }) => before.has(name) && semanticEqual(schema, before.get(name)),
  )
  return new Set(same.map(({ name }) => name))
}

function validateFixed({ spec }: CustomResourceDefinition, old: CustomResourceDefinition): FieldError[] {
  return collectErrors(
    isEstablished(old) && [
      ...immutable(fieldPath('spec.scope'), spec.scope, old.spec.scope),
      ...immutable(fieldPath('spec.names.kind'), spec.names.kind, old.spec.names.kind),
    ],
    immutable(fieldPath('spec.group'), spec.group, old.spec.group),
    immutable(fieldPath('spec.names.plural'), spec.names.plural, old.spec.names.plural),
  )
}

/** Objects may still be stored in any of them. */
function validateStoredVersions(stored: readonly string[], { versions }: Spec): FieldError[] {
  const field = fieldPath('status.storedVersions')
  if (stored.length === 0) return [field.invalid(null, 'must have at least one stored version')]
  const all = versions ?? []
  const names = new Set(all.map(({ name }) => name))
  const gone = field.each(stored, (path, name) => {
    if (names.has(name)) return []
    const why = `${name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`
    return [path.invalid(name, `missing from spec.versions; ${why}`)]
  })
  // Each name counts once, so that a second version of the same name is missing.
  const isRepeated = createRepetition()
  const storedNames = new Set(stored)
  const missing = all.filter(({ name, storage }) => {
    const isSecond = isRepeated(name)
    return storage && (!storedNames.has(name) || isSecond)
  })
  return [...missing.map(({ name }) => field.invalid(stored, `must have the storage version ${name}`)), ...gone]
}

type Approval = 'missing' | 'bypassed' | 'approved' | 'invalid'

function approvalOf({ metadata: { annotations } }: CustomResourceDefinition): Approval {
  const text = annotations?.[APPROVAL] ?? ''
  if (text === '') return 'missing'
  if (text.startsWith('unapproved')) return 'bypassed'
  return /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]+/i.test(text) ? 'approved' : 'invalid'
}

/** Groups of the Kubernetes project need an API review. */
function validateApproval(next: CustomResourceDefinition, old: CustomResourceDefinition | undefined): FieldError[] {
  if (!/(?:^|\.)(?:k8s|kubernetes)\.io$/.test(next.spec.group)) return []
  const state = approvalOf(next)
  if (old !== undefined && approvalOf(old) === state) return []
  const field = fieldPath('metadata.annotations').key(APPROVAL)
  const rule = `protected groups must have approval annotation "${APPROVAL}"`
  const link = 'see https://github.com/kubernetes/enhancements/pull/1111'
  if (state === 'missing') return [field.required(`${rule}, ${link}`)]
  if (state !== 'invalid') return []
  const detail = `${rule} with either a URL or a reason starting with "unapproved", ${link}`
  return [field.invalid(next.metadata.annotations?.[APPROVAL], detail)]
}

/** Without dashes, as they are compared. */
const textFormats = new Set(
  'bsonobjectid uri email hostname ipv4 ipv6 cidr mac uuid uuid3 uuid4 uuid5 isbn isbn10 isbn13 creditcard ssn hexcolor rgbcolor byte password date duration datetime k8sshortname k8slongname'.split(
    ' ',
  ),
)

const numberFormats = new Map([
  ['integer', ['int32', 'int64']],
  ['number', ['float', 'double']],
])

function isKnownFormat({ type = '', format = '' }: Schema): boolean {
  if (type === '' || type === 'string') return textFormats.has(format.replaceAll('-', ''))
  return numberFormats.get(type)?.includes(format) ?? false
}

function unknownFormats(spec: Spec): string[] {
  const found: string[] = []
  const { common, versions } = definitionOf(spec)
  for (const { schema } of [common, ...versions]) {
    if (schema?.openAPIV3Schema === undefined) continue
    someSchema(schema.openAPIV3Schema, (one) => {
      if ((one.format ?? '') !== '' && !isKnownFormat(one)) found.push(one.format ?? '')
      return false
    })
  }
  return found
}

function formatWarnings({ spec }: CustomResourceDefinition, old: CustomResourceDefinition | undefined): string[] {
  const known = old === undefined ? [] : unknownFormats(old.spec)
  return unknownFormats(spec)
    .filter((format) => !known.includes(format))
    .map((format) => `unrecognized format ${goQuote(format)}`)
}
