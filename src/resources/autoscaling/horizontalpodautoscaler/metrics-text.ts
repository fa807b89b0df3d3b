/** Formats the metrics of an autoscaler for `kubectl get`: `cpu: 12%/80%, 3/10 (avg) + 1 more...`. */
import type { MetricSpec, MetricStatus, MetricTarget, MetricValueStatus } from '#apis/autoscaling/v2.ts'

const SHOWN = 2
const UNKNOWN = '<unknown>'

export function metricsText(specs: readonly MetricSpec[], statuses: readonly MetricStatus[]): string {
  if (specs.length === 0) return '<none>'
  const texts = specs.map((spec, at) => metricText(spec, statuses[at]))
  const shown = texts.slice(0, SHOWN).join(', ')
  return texts.length > SHOWN ? `${shown} + ${texts.length - SHOWN} more...` : shown
}

function metricText(spec: MetricSpec, status: MetricStatus | undefined): string {
  switch (spec.type) {
    case 'External':
      return valueText(spec.external?.target, status?.external)
    case 'Object':
      return valueText(spec.object?.target, status?.object)
    case 'Pods':
      return `${averageOf(status?.pods)}/${amount(spec.pods?.target.averageValue)}`
    case 'Resource':
      return resourceText(spec.resource, status?.resource)
    case 'ContainerResource':
      return resourceText(spec.containerResource, status?.containerResource)
    default:
      return '<unknown type>'
  }
}

interface CurrentValue {
  readonly current: MetricValueStatus
}

/** Go's text for a missing quantity. */
function amount(quantity: string | undefined): string {
  return quantity ?? '<nil>'
}

function averageOf(status: CurrentValue | undefined): string {
  return status === undefined ? UNKNOWN : amount(status.current.averageValue)
}

function valueText(target: MetricTarget | undefined, status: CurrentValue | undefined): string {
  if (target?.averageValue !== undefined)
    return `${status?.current.averageValue ?? UNKNOWN}/${target.averageValue} (avg)`
  const current = status === undefined ? UNKNOWN : amount(status.current.value)
  return `${current}/${amount(target?.value)}`
}

interface ResourceSource {
  readonly name: string
  readonly target: MetricTarget
}

function resourceText(source: ResourceSource | undefined, status: CurrentValue | undefined): string {
  const { name = '', target } = source ?? {}
  if (target?.averageValue !== undefined) return `${name}: ${averageOf(status)}/${target.averageValue}`
  return `${name}: ${share(status?.current.averageUtilization, UNKNOWN)}/${share(target?.averageUtilization, '<auto>')}`
}

function share(percent: number | undefined, otherwise: string): string {
  return percent === undefined ? otherwise : `${percent}%`
}
