/**
 * Event: that something happened to an object, kept for an hour. One store, two shapes: what old clients write as v1
 * is checked loosely, what comes as events.k8s.io/v1 strictly, and after that hardly anything of it may change.
 */
import { type Event, Events } from '#apis/core/v1.ts'
import { Events as NewEvents } from '#apis/events/v1.ts'
import { defineResource, type Column, type Resource } from '#apiserver/registry/resource.ts'
import { byteLength } from '#lib/go-text.ts'
import { ageText } from '#meta/duration.ts'
import { type ObjectMeta, semanticEqual } from '#meta/object.ts'
import { type FieldError, invalid, required } from '#meta/validation/field-error.ts'
import { dns1123Subdomain, nameIsPathSegment, nameIsSubdomain } from '#meta/validation/names.ts'
import { complaining, immutable } from '#meta/validation/rules.ts'
import { validateQualifiedName } from '#model/pod-spec/checks.ts'

/** `--event-ttl`'s default. */
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
  // An event that happened once has no count in the new shape.
  {
    name: 'Count',
    wide: true,
    value: ({ series, count = 0 }) => (series === undefined ? count || 1 : (series.count ?? 0)),
  },
  { name: 'Name', format: 'name', wide: true, value: ({ metadata }) => metadata.name ?? '' },
]

export const event: Resource<Event> = createEventResource(TTL_MS)

/** Events that go by themselves after `ttlMs`. */
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

/** No time is null in canonical form, the zero one included. */
function isUnset(time: string | null | undefined): boolean {
  return time === null || time === undefined
}

/** What holds for every event. The field of the reporter has another name in each of the two shapes. */
function validateLegacyEvent(object: Event, reporterField = 'reportingComponent'): FieldError[] {
  const { namespace = '' } = object.metadata
  const errors = isUnset(object.eventTime) ? validateOldShape(object) : validateNewShape(object, reporterField)
  return [...errors, ...complaining('namespace', namespace, dns1123Subdomain(namespace))]
}

function mismatch(namespace: string): FieldError {
  return invalid('involvedObject.namespace', namespace, 'does not match event.namespace')
}

/** Events about objects without a namespace are in `default`, or, from very old clients, in none. */
function validateOldShape({ metadata: { namespace = '' }, involvedObject }: Event): FieldError[] {
  const about = involvedObject?.namespace ?? ''
  const fits = about === '' ? ['', 'default'].includes(namespace) : namespace === about
  return fits ? [] : [mismatch(about)]
}

const LIMIT_BYTES = 128
const MESSAGE_LIMIT_BYTES = 1024

function validateNewShape(object: Event, reporterField: string): FieldError[] {
  const { metadata, involvedObject, reportingComponent, message = '' } = object
  const about = involvedObject?.namespace ?? ''
  const lost = about === '' && !['default', 'kube-system'].includes(metadata.namespace ?? '')
  return [
    ...(lost ? [mismatch(about)] : []),
    ...(reportingComponent === '' ? [required(reporterField)] : []),
    ...validateQualifiedName(reporterField, reportingComponent),
    ...(['reportingInstance', 'action', 'reason'] as const).flatMap((name) => validateWord(name, object[name] ?? '')),
    ...validateLength('message', message, MESSAGE_LIMIT_BYTES),
  ]
}

function validateWord(field: string, text: string): FieldError[] {
  return text === '' ? [required(field)] : validateLength(field, text, LIMIT_BYTES)
}

function validateLength(field: string, text: string, limit: number): FieldError[] {
  return byteLength(text) > limit ? [invalid(field, '', `can have at most ${limit} characters`)] : []
}

/** An event that is created through events.k8s.io/v1; `object` is in the form of v1. */
export function validateStrictEvent(object: Event): FieldError[] {
  const { metadata, type = '', source, count = 0 } = object
  const unset = (field: string, isSet: boolean): FieldError[] =>
    isSet ? [invalid(field, '', 'needs to be unset')] : []
  return [
    ...validateLegacyEvent(object, 'reportingController'),
    ...validateNames(metadata),
    ...validateSeries(object),
    ...(isUnset(object.eventTime) ? [required('eventTime')] : []),
    ...(type === 'Normal' || type === 'Warning' ? [] : [invalid('type', '', `has invalid value: ${type}`)]),
    ...unset('firstTimestamp', !isUnset(object.firstTimestamp)),
    ...unset('lastTimestamp', !isUnset(object.lastTimestamp)),
    ...unset('count', count !== 0),
    ...unset('source', (source?.component ?? '') !== '' || (source?.host ?? '') !== ''),
  ]
}

/** Stricter than what holds for every version. That a name is missing has been refused by then. */
function validateNames({ name = '', generateName = '' }: ObjectMeta): FieldError[] {
  return [
    ...(generateName === ''
      ? []
      : complaining('metadata.generateName', generateName, nameIsSubdomain(generateName, true))),
    ...(name === '' ? [] : complaining('metadata.name', name, nameIsSubdomain(name, false))),
  ]
}

/**
 * In the order in which upstream looks at them, which has `reason` twice, and what Go has instead of nothing. The time
 * of the event counts to the microsecond, which is all there is of it here.
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

/** An event that is changed through events.k8s.io/v1: only its series may grow. */
export function validateStrictEventUpdate(next: Event, old: Event): FieldError[] {
  return [
    ...validateLegacyEvent(next, 'reportingController'),
    ...(semanticEqual(next.series, old.series) ? [] : validateSeries(next)),
    ...fixedFields.flatMap(([name, zero]) => immutable(name, next[name] ?? zero, old[name] ?? zero)),
    ...immutable('reportingController', next.reportingComponent, old.reportingComponent),
    ...immutable('reportingInstance', next.reportingInstance, old.reportingInstance),
  ]
}

function validateSeries({ series }: Event): FieldError[] {
  if (series === undefined) return []
  return [
    ...((series.count ?? 0) < 2 ? [invalid('series.count', '', 'should be at least 2')] : []),
    ...(isUnset(series.lastObservedTime) ? [required('series.lastObservedTime')] : []),
  ]
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
