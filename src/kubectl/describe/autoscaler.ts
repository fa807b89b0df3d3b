/** Describes horizontal pod autoscalers: current and target values of metrics. */
import type {
  HorizontalPodAutoscaler,
  HPAScalingRules,
  MetricSpec,
  MetricStatus,
  MetricTarget,
  MetricValueStatus,
} from '#apis/autoscaling/v2.ts'
import { goQuote } from '#lib/go/text.ts'

import { type DescribedKinds, describes } from './describer.ts'
import { cells, nested, type Part, type Row, tableOf, unlessEmpty } from './rows.ts'
import { head } from './sections.ts'
import { dateText } from './times.ts'

const UNKNOWN = '<unknown>'

export const AUTOSCALING_KINDS: DescribedKinds = {
  'HorizontalPodAutoscaler.autoscaling': describes('autoscaling/v2/horizontalpodautoscalers', autoscalerRows),
}

function autoscalerRows(hpa: HorizontalPodAutoscaler): Part[] {
  const { metadata, spec, status } = hpa
  const { kind, name } = spec.scaleTargetRef
  const conditions = (status?.conditions ?? []).map((one) => [one.type, one.status, one.reason, one.message])
  return [
    ...head(hpa),
    ['CreationTimestamp', dateText(metadata.creationTimestamp)],
    ['Reference', `${kind}/${name}`],
    ['Metrics', '( current / target )'],
    nested(...(spec.metrics ?? []).map((metric, at) => metricText(metric, status?.currentMetrics?.[at]))),
    ['Min replicas', spec.minReplicas ?? '<unset>'],
    ['Max replicas', spec.maxReplicas],
    [
      'Behavior',
      spec.behavior && [
        behaviorRow('Scale Up', spec.behavior.scaleUp),
        behaviorRow('Scale Down', spec.behavior.scaleDown),
      ],
    ],
    [`${kind} pods`, `${status?.currentReplicas ?? 0} current / ${status?.desiredReplicas ?? 0} desired`],
    ['Conditions', tableOf(['Type', 'Status', 'Reason', 'Message'], conditions)],
  ]
}

/** The value of a named metric: its own amount, or the average per pod. */
function valueText(target: MetricTarget, current: MetricValueStatus | undefined, isAverage: boolean): string {
  const label = isAverage ? '(target average value)' : '(target value)'
  const [now, wanted] = isAverage ? [current?.averageValue, target.averageValue] : [current?.value, target.value]
  return `${label}:\t${now ?? (current === undefined || isAverage ? UNKNOWN : '<nil>')} / ${wanted ?? '<nil>'}`
}

function metricText(metric: MetricSpec, status: MetricStatus = { type: '' }): string {
  const { external, pods, object } = metric
  if (external !== undefined) {
    const isAverage = external.target.averageValue !== undefined
    return `${goQuote(external.metric.name)} ${valueText(external.target, status.external?.current, isAverage)}`
  }
  if (pods !== undefined) {
    const now = status.pods?.current.averageValue ?? UNKNOWN
    return `${goQuote(pods.metric.name)} on pods:\t${now} / ${pods.target.averageValue ?? '<nil>'}`
  }
  if (object === undefined) return resourceMetricText(metric, status)
  const isAverage = object.target.type === 'AverageValue'
  const about = `"${object.metric.name}" on ${object.describedObject.kind}/${object.describedObject.name}`
  return `${about} ${valueText(object.target, status.object?.current, isAverage)}`
}

function resourceMetricText({ type, resource, containerResource }: MetricSpec, status: MetricStatus): string {
  if (resource !== undefined) {
    return usageText(`resource ${resource.name} on pods`, resource.target, status.resource?.current)
  }
  if (containerResource === undefined) return `<unknown metric type ${goQuote(type)}>`
  const about = `resource ${containerResource.name} of container "${containerResource.container}" on pods`
  return usageText(about, containerResource.target, status.containerResource?.current)
}

function usageText(about: string, target: MetricTarget, current: MetricValueStatus | undefined): string {
  if (target.averageValue !== undefined)
    return `${about}:\t${current?.averageValue ?? UNKNOWN} / ${target.averageValue}`
  const { averageUtilization: now } = current ?? {}
  const shown = now === undefined ? UNKNOWN : `${now}% (${current?.averageValue ?? '<nil>'})`
  const wanted = target.averageUtilization === undefined ? '<auto>' : `${target.averageUtilization}%`
  return `${about}  (as a percentage of request):\t${shown} / ${wanted}`
}

function behaviorRow(label: string, rules: HPAScalingRules | undefined): Row {
  if (rules === undefined) return [label, undefined]
  const { stabilizationWindowSeconds: window, selectPolicy = 'Max', policies } = rules
  const lines = (policies ?? []).map(({ type, value, periodSeconds }) =>
    cells(`- Type: ${type}`, `Value: ${value}`, `Period: ${periodSeconds} seconds`),
  )
  return [
    label,
    [
      window === undefined ? undefined : `Stabilization Window: ${window} seconds`,
      lines.length === 0 ? undefined : `Select Policy: ${selectPolicy}`,
      ['Policies', unlessEmpty(lines)],
    ],
  ]
}
