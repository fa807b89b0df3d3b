/** Horizontal pod autoscalers: what is measured, what it is and what it should be. */
import type {
  HorizontalPodAutoscaler,
  HPAScalingRules,
  MetricSpec,
  MetricStatus,
  MetricTarget,
  MetricValueStatus,
} from '#apis/autoscaling/v2.ts'
import { goQuote } from '#lib/go-text.ts'

import type { Surroundings } from './describer.ts'
import { Page } from './page.ts'
import { putEventsOf, putHead } from './sections.ts'
import { dateText } from './times.ts'

const UNKNOWN = '<unknown>'

export async function describeAutoscaler(hpa: HorizontalPodAutoscaler, around: Surroundings): Promise<string> {
  const page = new Page()
  const { metadata, spec, status } = hpa
  const target = spec.scaleTargetRef
  putHead(page, hpa)
  page.row(0, 'CreationTimestamp', dateText(metadata.creationTimestamp))
  page.row(0, 'Reference', `${target.kind}/${target.name}`)
  page.row(0, 'Metrics', '( current / target )')
  for (const [at, metric] of (spec.metrics ?? []).entries()) {
    page.put(1, `${metricText(metric, status?.currentMetrics?.[at])}\n`)
  }
  page.row(0, 'Min replicas', spec.minReplicas ?? '<unset>')
  page.row(0, 'Max replicas', spec.maxReplicas)
  if (spec.behavior !== undefined) {
    page.put(0, 'Behavior:\n')
    putBehavior(page, 'Scale Up', spec.behavior.scaleUp)
    putBehavior(page, 'Scale Down', spec.behavior.scaleDown)
  }
  page.row(
    0,
    `${target.kind} pods`,
    `${status?.currentReplicas ?? 0} current / ${status?.desiredReplicas ?? 0} desired`,
  )
  const { conditions } = status ?? {}
  if ((conditions ?? []).length > 0) {
    page.put(0, 'Conditions:\n')
    page.table(
      1,
      ['Type', 'Status', 'Reason', 'Message'],
      (conditions ?? []).map((one) => [one.type, one.status, one.reason, one.message]),
    )
  }
  await putEventsOf(page, hpa, around)
  return page.text()
}

/** Of a metric that has a name: its own amount, or that of each pod. */
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

function putBehavior(page: Page, label: string, rules: HPAScalingRules | undefined): void {
  if (rules === undefined) return
  const { stabilizationWindowSeconds: window, selectPolicy = 'Max', policies = [] } = rules
  page.put(1, `${label}:\n`)
  if (window !== undefined) page.put(2, `Stabilization Window: ${window} seconds\n`)
  if ((policies ?? []).length === 0) return
  page.put(2, `Select Policy: ${selectPolicy}\n`)
  page.put(2, 'Policies:\n')
  for (const { type, value, periodSeconds } of policies ?? []) {
    page.line(3, `- Type: ${type}`, `Value: ${value}`, `Period: ${periodSeconds} seconds`)
  }
}
