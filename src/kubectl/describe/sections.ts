/** Parts that many descriptions have: labels, annotations, tolerations, conditions, events. */
import type { Event, Taint, Toleration, TopologySpreadConstraint } from '#apis/core/v1.ts'
import { byteLength } from '#lib/go-text.ts'
import { labelSelectorText } from '#meta/label-selector.ts'
import { type KubeObject } from '#meta/object.ts'
import { epochMsOf } from '#meta/time.ts'

import type { Surroundings } from './describer.ts'
import type { Page } from './page.ts'
import { dateText, sinceText } from './times.ts'

type Texts = Readonly<Record<string, string>> | undefined

export function byKey(texts: Texts): [key: string, value: string][] {
  return Object.entries(texts ?? {}).sort(([one], [other]) => (one < other ? -1 : 1))
}

/** `%v` of a list. */
export function listText(items: readonly unknown[] | undefined): string {
  return `[${(items ?? []).join(' ')}]`
}

export function boolText(value: boolean | undefined): string {
  if (value === undefined) return '<unset>'
  return value ? 'True' : 'False'
}

export function putLabels(page: Page, label: string, labels: Texts, margin = ''): void {
  page.lines(
    label,
    byKey(labels).map(([key, value]) => `${key}=${value}`),
    margin,
  )
}

/** Nobody reads what apply remembers. */
const SKIPPED_ANNOTATIONS = new Set(['kubectl.kubernetes.io/last-applied-configuration'])
const MAX_ANNOTATION = 140

export function putAnnotations(page: Page, label: string, annotations: Texts): void {
  const shown = byKey(annotations).filter(([key]) => !SKIPPED_ANNOTATIONS.has(key))
  page.lines(
    label,
    shown.flatMap(([key, written]) => annotationLines(key, written.replace(/\n$/, ''))),
  )
}

function annotationLines(key: string, value: string): string[] {
  const isLong = byteLength(value) + byteLength(key) + 2 > MAX_ANNOTATION || value.includes('\n')
  if (!isLong) return [`${key}: ${value}`]
  return [`${key}:`, ...value.split('\n').map((line) => `  ${shortened(line, MAX_ANNOTATION - 2)}`)]
}

export function shortened(text: string, most: number): string {
  return byteLength(text) > most ? `${Buffer.from(text).subarray(0, most).toString()}...` : text
}

/** Name, namespace, labels and annotations, with which most begin. */
export function putHead(page: Page, { metadata }: KubeObject): void {
  page.rows(0, [
    ['Name', metadata.name],
    ['Namespace', metadata.namespace ?? ''],
  ])
  putLabels(page, 'Labels', metadata.labels)
  putAnnotations(page, 'Annotations', metadata.annotations)
}

/** The same for what is in no namespace. */
export function putClusterHead(page: Page, { metadata }: KubeObject): void {
  page.row(0, 'Name', metadata.name)
  putLabels(page, 'Labels', metadata.labels)
  putAnnotations(page, 'Annotations', metadata.annotations)
}

/** `ReplicaSet/web-1`, for what has a controller. */
export function controllerText({ metadata }: KubeObject): string | undefined {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true)
  return owner === undefined ? undefined : `${owner.kind}/${owner.name}`
}

export function putTaints(page: Page, taints: readonly Taint[] = []): void {
  const order = ({ effect, key }: Taint): string => `${effect},${key}`
  const lines = [...taints].sort((one, other) => (order(one) < order(other) ? -1 : 1)).map(taintText)
  page.lines('Taints', lines)
}

function taintText({ key, value = '', effect }: Taint): string {
  if (effect === '') return value === '' ? key : `${key}=${value}:`
  return value === '' ? `${key}:${effect}` : `${key}=${value}:${effect}`
}

export function putTolerations(page: Page, tolerations: readonly Toleration[] = [], margin = ''): void {
  const sorted = [...tolerations].sort(
    ({ key: one = '' }, { key: other = '' }) => Number(one > other) - Number(one < other),
  )
  page.lines(`${margin}Tolerations`, sorted.map(tolerationText))
}

function tolerationText({ key = '', value = '', effect = '', operator, tolerationSeconds }: Toleration): string {
  const named = key + (value === '' ? '' : `=${value}`) + (effect === '' ? '' : `:${effect}`)
  const exists = operator === 'Exists' && value === '' ? `${named === '' ? '' : ' '}op=Exists` : ''
  return `${named}${exists}${tolerationSeconds === undefined ? '' : ` for ${tolerationSeconds}s`}`
}

export function putSpread(page: Page, constraints: readonly TopologySpreadConstraint[] = [], margin = ''): void {
  if (constraints.length === 0) return
  const sorted = [...constraints].sort((one, other) => (one.topologyKey < other.topologyKey ? -1 : 1))
  page.lines(
    'Topology Spread Constraints',
    sorted.map(({ topologyKey, whenUnsatisfiable, maxSkew, labelSelector }) => {
      const selector = labelSelector === undefined ? '' : ` for selector ${labelSelectorText(labelSelector)}`
      return `${topologyKey}:${whenUnsatisfiable} when max skew ${maxSkew} is exceeded${selector}`
    }),
    margin,
  )
}

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime?: string | null
}

/** Type, status and reason, as workloads have them. */
export function putConditions(page: Page, conditions: readonly Condition[] = []): void {
  if (conditions.length === 0) return
  page.put(0, 'Conditions:\n')
  page.table(
    1,
    ['Type', 'Status', 'Reason'],
    conditions.map(({ type, status, reason }) => [`${type} `, status, reason]),
  )
}

/** With when they changed last, and why. */
export function putTimedConditions(page: Page, conditions: readonly Condition[] = []): void {
  if (conditions.length === 0) return
  page.put(0, 'Conditions:\n')
  page.table(
    1,
    ['Type', 'Status', 'LastTransitionTime', 'Reason', 'Message'],
    conditions.map((one) => [one.type, one.status, dateText(one.lastTransitionTime), one.reason, one.message]),
  )
}

export interface EventSubject {
  readonly name: string
  readonly namespace?: string | undefined
  /** Empty: of any kind. */
  readonly kind?: string | undefined
  readonly uid?: string | undefined
}

/** What happened to an object. What cannot be had is not there. */
export async function eventsAbout(around: Surroundings, subject: EventSubject): Promise<Event[]> {
  const { name, namespace = '', kind = '', uid = '' } = subject
  const fields = [
    ...(kind === '' ? [] : [`involvedObject.kind=${kind}`]),
    `involvedObject.name=${name}`,
    `involvedObject.namespace=${namespace}`,
    ...(uid === '' ? [] : [`involvedObject.uid=${uid}`]),
  ]
  try {
    return await around.list<Event>('v1/events', namespace, { fields: fields.join(',') })
  } catch {
    return []
  }
}

/** At the end of most descriptions. */
export async function putEventsOf(page: Page, object: KubeObject, around: Surroundings): Promise<void> {
  if (!around.showsEvents) return
  const { name = '', namespace, uid } = object.metadata
  putEvents(page, await eventsAbout(around, { name, namespace, uid, kind: object.kind }), around.nowMs)
}

export function putEvents(page: Page, events: readonly Event[], nowMs: number): void {
  if (events.length === 0) return page.row(0, 'Events', '<none>')
  const lastMs = ({ lastTimestamp }: Event): number =>
    lastTimestamp ? epochMsOf(lastTimestamp) : Number.MIN_SAFE_INTEGER
  const sorted = [...events].sort((one, other) => lastMs(one) - lastMs(other))
  page.put(0, 'Events:\n')
  page.line(1, 'Type', 'Reason', 'Age', 'From', 'Message')
  page.line(1, '----', '------', '----', '----', '-------')
  for (const event of sorted) {
    const source = event.source?.component || event.reportingComponent
    page.line(1, event.type, event.reason, eventAge(event, nowMs), source, eventMessage(event))
  }
}

function eventAge({ eventTime, firstTimestamp, lastTimestamp, series, count = 0 }: Event, nowMs: number): string {
  const first = sinceText(eventTime ?? firstTimestamp, nowMs)
  if (series !== undefined) return `${sinceText(series.lastObservedTime, nowMs)} (x${series.count ?? 0} over ${first})`
  return count > 1 ? `${sinceText(lastTimestamp, nowMs)} (x${count} over ${first})` : first
}

function eventMessage({ message = '', involvedObject }: Event): string {
  const path = involvedObject.fieldPath ?? ''
  return path === '' ? message.trim() : `${path}: ${message.trim()}`
}
