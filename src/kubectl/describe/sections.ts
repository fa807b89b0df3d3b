/** Rows that many descriptions share: names, labels, annotations, taints, tolerations and conditions. */
import type { Taint, Toleration, TopologySpreadConstraint } from '#apis/core/v1.ts'
import { byteLength } from '#lib/go/text.ts'
import { labelSelectorText } from '#meta/label-selector.ts'
import type { KubeObject, ObjectMeta } from '#meta/object.ts'

import { type Part, type Row, tableOf } from './rows.ts'
import { dateText, sinceText } from './times.ts'

type Texts = Readonly<Record<string, string>> | undefined

export function byKey(texts: Texts): [key: string, value: string][] {
  return Object.entries(texts ?? {}).sort(([one], [other]) => (one < other ? -1 : 1))
}

/** Sorts a copy; items with equal keys keep their order. */
export function sortedBy<T>(items: readonly T[], keyOf: (item: T) => string): T[] {
  return items.toSorted((one, other) => Number(keyOf(one) > keyOf(other)) - Number(keyOf(one) < keyOf(other)))
}

/** Go's `%v` of a list. */
export function listText(items: readonly unknown[] | undefined): string {
  return `[${(items ?? []).join(' ')}]`
}

export function boolText(value: boolean | undefined): string {
  if (value === undefined) return '<unset>'
  return value ? 'True' : 'False'
}

export function orNone(items: readonly string[] | undefined, separator = ','): string {
  return items === undefined || items.length === 0 ? '<none>' : items.join(separator)
}

export function labelRow(label: string, texts: Texts): Row {
  return [label, { lines: byKey(texts).map(([key, value]) => `${key}=${value}`) }]
}

/** The last-applied-configuration annotation is omitted. */
const SKIPPED_ANNOTATIONS = new Set(['kubectl.kubernetes.io/last-applied-configuration'])
const MAX_ANNOTATION = 140

export function annotationRow(texts: Texts): Row {
  const shown = byKey(texts).filter(([key]) => !SKIPPED_ANNOTATIONS.has(key))
  return ['Annotations', { lines: shown.flatMap(([key, value]) => annotationLines(key, value.replace(/\n$/, ''))) }]
}

function annotationLines(key: string, value: string): string[] {
  const isLong = byteLength(value) + byteLength(key) + 2 > MAX_ANNOTATION || value.includes('\n')
  if (!isLong) return [`${key}: ${value}`]
  return [`${key}:`, ...value.split('\n').map((line) => `  ${shortened(line, MAX_ANNOTATION - 2)}`)]
}

export function shortened(text: string, most: number): string {
  return byteLength(text) > most ? `${Buffer.from(text).subarray(0, most).toString()}...` : text
}

export function nameRows({ metadata }: KubeObject): Part[] {
  return [
    ['Name', metadata.name],
    ['Namespace', metadata.namespace ?? ''],
  ]
}

export function labelRows({ metadata }: KubeObject): Part[] {
  return [labelRow('Labels', metadata.labels), annotationRow(metadata.annotations)]
}

/** Name, namespace, labels and annotations, the first rows of most descriptions. */
export function head(object: KubeObject): Part[] {
  return [...nameRows(object), ...labelRows(object)]
}

/** The same rows for cluster-scoped objects. */
export function clusterHead(object: KubeObject): Part[] {
  return [['Name', object.metadata.name], ...labelRows(object)]
}

/** `ReplicaSet/web-1` for an object with a controller. */
export function controllerText({ metadata }: KubeObject): string | undefined {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true)
  return owner === undefined ? undefined : `${owner.kind}/${owner.name}`
}

/** The phase, or the deletion in progress. */
export function phaseText(metadata: Partial<ObjectMeta>, phase: string | undefined, nowMs: number): string {
  const { deletionTimestamp } = metadata
  return deletionTimestamp === undefined ? (phase ?? '') : `Terminating (lasts ${sinceText(deletionTimestamp, nowMs)})`
}

export function taintRow(taints: readonly Taint[] = []): Row {
  return ['Taints', { lines: sortedBy(taints, ({ effect, key }) => `${effect},${key}`).map(taintText) }]
}

function taintText({ key, value = '', effect }: Taint): string {
  if (effect === '') return value === '' ? key : `${key}=${value}:`
  return value === '' ? `${key}:${effect}` : `${key}=${value}:${effect}`
}

export function tolerationRow(tolerations: readonly Toleration[] = []): Row {
  return ['Tolerations', { lines: sortedBy(tolerations, ({ key = '' }) => key).map(tolerationText) }]
}

function tolerationText({ key = '', value = '', effect = '', operator, tolerationSeconds }: Toleration): string {
  const named = key + (value === '' ? '' : `=${value}`) + (effect === '' ? '' : `:${effect}`)
  const exists = operator === 'Exists' && value === '' ? `${named === '' ? '' : ' '}op=Exists` : ''
  return `${named}${exists}${tolerationSeconds === undefined ? '' : ` for ${tolerationSeconds}s`}`
}

export function spreadRow(constraints: readonly TopologySpreadConstraint[] = []): Part {
  if (constraints.length === 0) return undefined
  const lines = sortedBy(constraints, ({ topologyKey }) => topologyKey).map((one) => {
    const selector = one.labelSelector === undefined ? '' : ` for selector ${labelSelectorText(one.labelSelector)}`
    return `${one.topologyKey}:${one.whenUnsatisfiable} when max skew ${one.maxSkew} is exceeded${selector}`
  })
  return ['Topology Spread Constraints', { lines, isIndented: true }]
}

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime?: string | null
}

/** Type, status and reason, for workloads. */
export function conditionRow(conditions: readonly Condition[] = []): Row {
  const rows = conditions.map(({ type, status, reason }) => [`${type} `, status, reason])
  return ['Conditions', tableOf(['Type', 'Status', 'Reason'], rows)]
}

/** With times of the last transition, and messages. */
export function timedConditionRow(conditions: readonly Condition[] = []): Row {
  const columns = ['Type', 'Status', 'LastTransitionTime', 'Reason', 'Message']
  const rows = conditions.map((one) => [
    one.type,
    one.status,
    dateText(one.lastTransitionTime),
    one.reason,
    one.message,
  ])
  return ['Conditions', tableOf(columns, rows)]
}
