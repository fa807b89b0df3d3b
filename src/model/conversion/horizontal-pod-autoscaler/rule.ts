/**
 * Converts HorizontalPodAutoscalers between v1, which has only CPU utilization, and v2. Annotations keep the remaining
 * fields of v2 (upstream: pkg/apis/autoscaling/v1).
 */
import { isJsonObject, type JsonObject, type JsonValue, setMember } from '#lib/json/value.ts'

import { changeAt, type Rule, takeMembers } from '../rule.ts'
import {
  behaviorAnnotation,
  conditionsAnnotation,
  currentMetricsAnnotation,
  metricsAnnotation,
  readBehavior,
  readConditions,
  readMetrics,
  roundTripAnnotations,
  writeBehavior,
  writeConditions,
  writeMetrics,
} from './annotations.ts'

/** The default of v1 without a metric. */
const DEFAULT_CPU_UTILIZATION = 80

export const horizontalPodAutoscalerRule: Rule = {
  spoke: { group: 'autoscaling', version: 'v1', kind: 'HorizontalPodAutoscaler' },
  hub: { group: 'autoscaling', version: 'v2', kind: 'HorizontalPodAutoscaler' },
  differences: [
    'spec.behavior',
    'spec.metrics',
    'spec.targetCPUUtilizationPercentage',
    'status.conditions',
    'status.currentCPUUtilizationPercentage',
    'status.currentMetrics',
  ],
  toHub(autoscaler) {
    const text = (name: string): string | undefined => annotationsOf(autoscaler)[name] as string | undefined
    changeAt(autoscaler, ['spec'], (spec) => specToHub(spec, text))
    changeAt(autoscaler, ['status'], (status) => statusToHub(status, text))
    return withoutRoundTrip(autoscaler)
  },
  fromHub(autoscaler) {
    const annotations = new Map<string, string>()
    changeAt(autoscaler, ['spec'], (spec) => specFromHub(spec, annotations))
    changeAt(autoscaler, ['status'], (status) => statusFromHub(status, annotations))
    const clean = withoutRoundTrip(autoscaler)
    const kept = { ...annotationsOf(clean), ...Object.fromEntries(annotations) }
    return { ...clean, metadata: { ...(clean['metadata'] as JsonObject), annotations: kept } }
  },
  tidyHub: withoutRoundTrip,
}

type AnnotationText = (name: string) => string | undefined

function specToHub(spec: JsonObject, text: AnnotationText): JsonObject {
  const { targetCPUUtilizationPercentage: percent } = takeMembers(spec, ['targetCPUUtilizationPercentage'])
  const metrics: JsonValue[] = readMetrics('spec', text(metricsAnnotation)) ?? []
  if (percent !== undefined) metrics.push(cpuMetric('target', { type: 'Utilization', averageUtilization: percent }))
  if (metrics.length === 0) {
    metrics.push(cpuMetric('target', { type: 'Utilization', averageUtilization: DEFAULT_CPU_UTILIZATION }))
  }
  const behavior = readBehavior(text(behaviorAnnotation))
  return { ...spec, metrics, ...(behavior && { behavior }) }
}

function statusToHub(status: JsonObject, text: AnnotationText): JsonObject {
  const { currentCPUUtilizationPercentage: percent } = takeMembers(status, ['currentCPUUtilizationPercentage'])
  const measured = percent === undefined ? null : [cpuMetric('current', { averageUtilization: percent })]
  // The annotation also contains the raw value.
  const currentMetrics = readMetrics('status', text(currentMetricsAnnotation)) ?? measured
  const conditions = readConditions(text(conditionsAnnotation))
  return { ...status, currentMetrics, ...(conditions !== undefined && { conditions }) }
}

function specFromHub(spec: JsonObject, annotations: Map<string, string>): JsonObject {
  const { metrics, behavior } = takeMembers(spec, ['metrics', 'behavior'])
  const all = objectsOf(metrics)
  const others = all.filter((metric) => cpuUtilization(metric, 'target') === undefined)
  if (others.length > 0) annotations.set(metricsAnnotation, writeMetrics('spec', others))
  if (isJsonObject(behavior)) annotations.set(behaviorAnnotation, writeBehavior(behavior))
  const percent = all.map((metric) => cpuUtilization(metric, 'target')).find((value) => value !== undefined)
  return percent === undefined ? spec : { ...spec, targetCPUUtilizationPercentage: percent }
}

function statusFromHub(status: JsonObject, annotations: Map<string, string>): JsonObject {
  const { currentMetrics, conditions } = takeMembers(status, ['currentMetrics', 'conditions'])
  const measured = objectsOf(currentMetrics)
  if (measured.length > 0) annotations.set(currentMetricsAnnotation, writeMetrics('status', measured))
  const converted = objectsOf(conditions)
  if (converted.length > 0) annotations.set(conditionsAnnotation, writeConditions(converted))
  const percent = measured.map((metric) => cpuUtilization(metric, 'current')).findLast((value) => value !== undefined)
  return percent === undefined ? status : { ...status, currentCPUUtilizationPercentage: percent }
}

/** The only metric with a field in v1. */
function cpuUtilization(metric: JsonObject, side: 'target' | 'current'): JsonValue | undefined {
  const { type, resource } = metric
  if (type !== 'Resource' || !isJsonObject(resource) || resource['name'] !== 'cpu') return undefined
  return (resource[side] as JsonObject | undefined)?.['averageUtilization']
}

function cpuMetric(side: 'target' | 'current', value: JsonObject): JsonObject {
  return { type: 'Resource', resource: { name: 'cpu', [side]: value } }
}

function objectsOf(value: JsonValue | undefined): JsonObject[] {
  return Array.isArray(value) ? (value as JsonObject[]) : []
}

function annotationsOf(autoscaler: JsonObject): JsonObject {
  const { metadata } = autoscaler
  const annotations = isJsonObject(metadata) ? metadata['annotations'] : undefined
  return isJsonObject(annotations) ? annotations : {}
}

/** A partial copy, because the hub may be shared. */
function withoutRoundTrip(autoscaler: JsonObject): JsonObject {
  const annotations = Object.entries(annotationsOf(autoscaler))
  const kept: JsonObject = {}
  for (const [name, value] of annotations) if (!roundTripAnnotations.has(name)) setMember(kept, name, value)
  if (Object.keys(kept).length === annotations.length) return autoscaler
  const { annotations: _, ...metadata } = autoscaler['metadata'] as JsonObject
  const rest =
    Object.keys(kept).length === 0 ? metadata : { ...(autoscaler['metadata'] as JsonObject), annotations: kept }
  return { ...autoscaler, metadata: rest }
}
