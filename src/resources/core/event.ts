/**
 * The Event resource: an occurrence about an object, stored for an hour by default. Both API groups share one store.
 * core/v1 is validated loosely; events.k8s.io/v1 is validated strictly and hardly allows changes.
 */
import { type Event, Events } from '#apis/core/v1.ts'
import { Events as NewEvents } from '#apis/events/v1.ts'
import { defineResource, type Column, type Resource } from '#apiserver/registry/resource.ts'
import { byteLength } from '#lib/go/text.ts'
import { ageText } from '#meta/duration.ts'
import { type ObjectMeta, semanticEqual } from '#meta/object.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Subdomain, nameIsPathSegment, nameIsSubdomain } from '#meta/validation/names.ts'
import { immutable, validateQualifiedName } from '#meta/validation/rules.ts'

/** The default of `--event-ttl`. */
const TTL_MS = 60 * 60 * 1000

const referenceFields = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'] as const

const columns: readonly Column<Event>[] = [
  { name: 'Last Seen', value: (object, nowMs) => ageOf(lastSeen(object), nowMs) },
  { name: 'Type', value: ({ type = '' }) => type },
  { name: 'Reason', value: ({ reason = '' }) => reason },
  { name: 'Object', value: ({ involvedObject }) => objectText(involvedObject?.kind, involvedObject?.name) },
  { name: 'Subobject', wide: true, value: ({ involvedObject }) => involvedObject?.fieldPath ?? '' },
  { name: 'Source', wide: true, value: sourceText },
  { name: 'Message', value: ({ message = '' }) => message.trim() },
  { name: 'First Seen', wide: true, value: (object, nowMs) => ageOf(firstSeen(object), nowMs) },
  // A single event has no count in the new form.
  {
    name: 'Count',
    wide: true,
    value: ({ series, count = 0 }) => (series === undefined ? count || 1 : (series.count ?? 0)),
  },
  { name: 'Name', format: 'name', wide: true, value: ({ metadata }) => metadata.name ?? '' },
]

export const event: Resource<Event> = createEventResource(TTL_MS)

/** Events expire after `ttlMs`. */
export function createEventResource(ttlMs: number): Resource<Event> {
  return defineResource<Event>({
    kind: Events,
    metadataRules: { update: [], plainFinalizers: true },
    otherVersions: [
      {
        kind: NewEvents,
        metadataRules: {},
        validate: (object) => validateStrictEvent(object as Event),
        validateUpdate: (next, old) => validateStrictEventUpdate(next as Event, old as Event),
        fieldNames: {
          ...Object.fromEntries(referenceFields.map((name) => [`regarding.${name}`, `involvedObject.${name}`])),
          reason: 'reason',
          reportingController: 'reportingComponent',
          type: 'type',
        },
      },
    ],
    ignoresPropagation: true,
    ttlMs,
    nameRule: nameIsPathSegment,
    validate: (object) => validateLegacyEvent(object),
    fieldSelectors: {
      ...Object.fromEntries(
        referenceFields.map((name) => [
          `involvedObject.${name}`,
          ({ involvedObject }: Event) => involvedObject?.[name] ?? '',
        ]),
      ),
      reason: ({ reason = '' }) => reason,
      reportingComponent: ({ reportingComponent }) => reportingComponent,
      source: ({ source, reportingComponent }) => source?.component || reportingComponent,
      type: ({ type = '' }) => type,
    },
    unknownField: (label) => `field label not supported: ${label}`,
    columns,
    putCreates: true,
  })
}

/** A missing or zero time is null in canonical form. */
function isUnset(time: string | null | undefined): boolean {
  return time === null || time === undefined
}

/** The rules of every event. The field of the reporter has a different name in each form. */
function validateLegacyEvent(object: Event, reporterField = fieldPath('reportingComponent')): FieldError[] {
  const { namespace = '' } = object.metadata
  const errors = isUnset(object.eventTime) ? validateOldShape(object) : validateNewShape(object, reporterField)
  return [...errors, ...fieldPath('namespace').check(namespace, dns1123Subdomain)]
}

function mismatch(namespace: string): FieldError {
  return fieldPath('involvedObject.namespace').invalid(namespace, 'does not match event.namespace')
}

/** Events about cluster-scoped objects are in `default`, or, from very old clients, in no namespace. */
function validateOldShape({ metadata: { namespace = '' }, involvedObject }: Event): FieldError[] {
  const about = involvedObject?.namespace ?? ''
  const fits = about === '' ? ['', 'default'].includes(namespace) : namespace === about
  return fits ? [] : [mismatch(about)]
}

const LIMIT_BYTES = 128
const MESSAGE_LIMIT_BYTES = 1024

function validateNewShape(object: Event, reporterField: FieldPath): FieldError[] {
  const { metadata, involvedObject, reportingComponent, message = '' } = object
  const about = involvedObject?.namespace ?? ''
  const lost = about === '' && !['default', 'kube-system'].includes(metadata.namespace ?? '')
  return collectErrors(
    lost && mismatch(about),
    reportingComponent === '' && reporterField.required(),
    validateQualifiedName(reporterField, reportingComponent),
    (['reportingInstance', 'action', 'reason'] as const).flatMap((name) =>
      validateRequiredText(fieldPath(name), object[name] ?? ''),
    ),
    validateLength(fieldPath('message'), message, MESSAGE_LIMIT_BYTES),
  )
}

function validateRequiredText(path: FieldPath, text: string): FieldError[] {
  return text === '' ? [path.required()] : validateLength(path, text, LIMIT_BYTES)
}

function validateLength(path: FieldPath, text: string, limit: number): FieldError[] {
  return byteLength(text) > limit ? [path.invalid('', `can have at most ${limit} characters`)] : []
}

/** Creation through events.k8s.io/v1; `object` has the form of v1. */
export function validateStrictEvent(object: Event): FieldError[] {
  const { metadata, type = '', source, count = 0 } = object
  const unset = (path: FieldPath, isSet: boolean): FieldError[] =>
    isSet ? [path.invalid('', 'needs to be unset')] : []
  return collectErrors(
    validateLegacyEvent(object, fieldPath('reportingController')),
    validateNames(metadata),
    validateSeries(object),
    isUnset(object.eventTime) && fieldPath('eventTime').required(),
    type !== 'Normal' && type !== 'Warning' && fieldPath('type').invalid('', `has invalid value: ${type}`),
    unset(fieldPath('firstTimestamp'), !isUnset(object.firstTimestamp)),
    unset(fieldPath('lastTimestamp'), !isUnset(object.lastTimestamp)),
    unset(fieldPath('count'), count !== 0),
    unset(fieldPath('source'), (source?.component ?? '') !== '' || (source?.host ?? '') !== ''),
  )
}

/** Stricter than the rules of every version. A missing name was already rejected. */
function validateNames({ name = '', generateName = '' }: ObjectMeta): FieldError[] {
  return collectErrors(
    generateName !== '' &&
      fieldPath('metadata.generateName').check(generateName, () => nameIsSubdomain(generateName, true)),
    name !== '' && fieldPath('metadata.name').check(name, () => nameIsSubdomain(name, false)),
  )
}

/**
 * In the order of upstream's checks, which contain `reason` twice, with Go's zero values. The event time is compared in
 * microseconds.
 */
const fixedFields: readonly (readonly [name: keyof Event, zero?: '' | 0])[] = [
  ['involvedObject'],
  ['reason', ''],
  ['message', ''],
  ['source'],
  ['firstTimestamp'],
  ['lastTimestamp'],
  ['count', 0],
  ['reason', ''],
  ['type', ''],
  ['eventTime'],
  ['action', ''],
  ['related'],
]

/** An update through events.k8s.io/v1: only its series may grow. */
export function validateStrictEventUpdate(next: Event, old: Event): FieldError[] {
  return collectErrors(
    validateLegacyEvent(next, fieldPath('reportingController')),
    !semanticEqual(next.series, old.series) && validateSeries(next),
    fixedFields.flatMap(([name, zero]) => immutable(fieldPath(name), next[name] ?? zero, old[name] ?? zero)),
    immutable(fieldPath('reportingController'), next.reportingComponent, old.reportingComponent),
    immutable(fieldPath('reportingInstance'), next.reportingInstance, old.reportingInstance),
  )
}

function validateSeries({ series }: Event): FieldError[] {
  if (series === undefined) return []
  return collectErrors(
    (series.count ?? 0) < 2 && fieldPath('series.count').invalid('', 'should be at least 2'),
    isUnset(series.lastObservedTime) && fieldPath('series.lastObservedTime').required(),
  )
}

function ageOf(time: string | null | undefined, nowMs: number): string {
  return ageText(isUnset(time) ? undefined : (time ?? undefined), nowMs)
}

function firstSeen({ firstTimestamp, eventTime }: Event): string | null {
  return isUnset(firstTimestamp) ? eventTime : firstTimestamp
}

function lastSeen(object: Event): string | null {
  if (object.series !== undefined) return object.series.lastObservedTime
  return isUnset(object.lastTimestamp) ? firstSeen(object) : object.lastTimestamp
}

function objectText(kind = '', name = ''): string {
  return name === '' ? kind.toLowerCase() : `${kind.toLowerCase()}/${name}`
}

function sourceText({ source, reportingComponent, reportingInstance }: Event): string {
  const component = source?.component || reportingComponent
  const instance = source?.host || reportingInstance
  return instance === '' ? component : `${component}, ${instance}`
}
