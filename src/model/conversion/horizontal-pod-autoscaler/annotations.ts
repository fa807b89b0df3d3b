/**
 * Reads and writes the annotations in which autoscaling/v1 stores the fields that only v2 has. Their texts equal
 * upstream's.
 */
import { structFor } from '#apis/schemas.ts'
import { parseJson } from '#lib/json/json.ts'
import { isJsonObject, JsonError, type JsonObject, type JsonValue, setMember } from '#lib/json/value.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { CodecError } from '#meta/codec/error.ts'
import type { Schema } from '#meta/schema.ts'

import { metricFromV1, metricToV1, type Part } from './metrics.ts'

const PREFIX = 'autoscaling.alpha.kubernetes.io/'

export const metricsAnnotation: string = `${PREFIX}metrics`
export const currentMetricsAnnotation: string = `${PREFIX}current-metrics`
export const conditionsAnnotation: string = `${PREFIX}conditions`
export const behaviorAnnotation: string = `${PREFIX}behavior`

/** Only for transport: readers of v1 have seen them, and v2 must not store them. */
export const roundTripAnnotations: ReadonlySet<string> = new Set([
  metricsAnnotation,
  currentMetricsAnnotation,
  conditionsAnnotation,
  behaviorAnnotation,
  `${PREFIX}scale-down-tolerance`,
  `${PREFIX}scale-up-tolerance`,
])

export function writeMetrics(part: Part, metrics: readonly JsonObject[]): string {
  return encodeJson(metrics.map((metric) => metricToV1(part, metric)))
}

/** Undefined for an invalid text, which upstream ignores. */
export function readMetrics(part: Part, text: string | undefined): JsonObject[] | undefined {
  const items = structFor('autoscaling.v1', part === 'spec' ? 'MetricSpec' : 'MetricStatus')
  const metrics = read({ type: 'list', items, pointerItems: false }, text) as JsonObject[] | undefined
  return metrics?.map((metric) => metricFromV1(part, metric))
}

export function writeConditions(conditions: readonly JsonObject[]): string {
  return encodeJson(conditions)
}

export function readConditions(text: string | undefined): JsonValue | undefined {
  const items = structFor('autoscaling.v1', 'HorizontalPodAutoscalerCondition')
  return read({ type: 'list', items, pointerItems: false }, text)
}

export function writeBehavior(behavior: JsonObject): string {
  const { scaleUp = null, scaleDown = null } = behavior
  return encodeJson({ ScaleUp: internalRules(scaleUp), ScaleDown: internalRules(scaleDown) })
}

/** Undefined also for an empty one. */
export function readBehavior(text: string | undefined): JsonObject | undefined {
  const behavior = read(structFor('autoscaling.v2', 'HorizontalPodAutoscalerBehavior'), text) as JsonObject | undefined
  return behavior !== undefined && Object.keys(behavior).length > 0 ? behavior : undefined
}

function internalRules(rules: JsonValue): JsonValue {
  if (!isJsonObject(rules)) return null
  const { stabilizationWindowSeconds = null, selectPolicy = null, policies = null, tolerance = null } = rules
  return {
    StabilizationWindowSeconds: stabilizationWindowSeconds,
    SelectPolicy: selectPolicy,
    Policies: policies && (policies as JsonObject[]).map(internalPolicy),
    Tolerance: tolerance,
  }
}

function internalPolicy({ type = '', value = 0, periodSeconds = 0 }: JsonObject): JsonObject {
  return { Type: type, Value: value, PeriodSeconds: periodSeconds }
}

function read(schema: Schema, text: string | undefined): JsonValue | undefined {
  if (text === undefined) return undefined
  try {
    const value = foldNames(schema, parseJson(text, { exactNumbers: true }))
    const decoded = decodeValue(schema, value, 'Ignore', { offences: [] }) as JsonValue
    return decoded ?? []
  } catch (cause) {
    if (cause instanceof JsonError || cause instanceof CodecError) return undefined
    throw cause
  }
}

/** Go's decoder, which reads these, ignores the case of names. */
function foldNames(schema: Schema, value: JsonValue): JsonValue {
  if (schema.type === 'list' && Array.isArray(value)) return value.map((item) => foldNames(schema.items, item))
  if (schema.type !== 'struct' || !isJsonObject(value)) return value
  const names = new Map([...schema.fields.keys()].map((name) => [name.toLowerCase(), name]))
  const output: JsonObject = {}
  for (const [key, member] of Object.entries(value)) {
    const name = names.get(key.toLowerCase()) ?? key
    const field = schema.fields.get(name)
    setMember(output, name, field === undefined ? member : foldNames(field.schema, member))
  }
  return output
}
