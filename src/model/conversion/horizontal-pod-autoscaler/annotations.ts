/**
 * The annotations in which autoscaling/v1 carries what only v2 can say. Their texts are upstream's to the byte, also
 * where upstream writes its internal type, with Go's names and without leaving anything out.
 */
import { structFor } from '#apis/schemas.ts'
import { isJsonObject, JsonError, type JsonObject, type JsonValue, setMember } from '#lib/json-value.ts'
import { parseJson } from '#lib/json.ts'
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

/** Never more than in transit: whoever has read v1 has read them, and v2 must not keep them. */
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

/** Undefined when the text is not what it should be: upstream takes no notice of it then. */
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

/** Undefined also when it has nothing to say. */
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

/** Go's own decoder, which reads these, does not mind the case of names. */
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
