/** The flag group "metrics": the shown metric families and allowed label values. */
import { flagRows, type RowValues } from '#lib/flags/flag-rows.ts'
import type { FlagGroup, FlagsOf } from '#lib/flags/flag-support.ts'
import { goQuote } from '#lib/go/text.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'
import { KUBERNETES_VERSION } from '#model/version.ts'

const METRICS = {
  'allow-metric-labels': `stringMap Allowed values of metric labels: metric1,label1='v1,v2', metric1,label2='v1'. Other values appear as "unexpected".`,
  'allow-metric-labels-manifest': 'string YAML file with the content of --allow-metric-labels.',
  'disabled-metrics': 'strings Full names of metrics to omit.',
  'show-hidden-metrics-for-version': 'string Previous minor version, to show the metrics that this version hides.',
} as const

export interface MetricsValues extends RowValues<typeof METRICS> {}

export const METRICS_FLAGS: FlagsOf<MetricsValues> & FlagGroup = flagRows(METRICS)

const LABEL = '[a-zA-Z_][a-zA-Z0-9_]*'
const METRIC = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const isMetric = new RegExp(`^${METRIC}$`)
const isMetricLabel = new RegExp(`^${METRIC},${LABEL}$`)

/** With upstream's texts. */
export function metricsErrors(flags: MetricsValues): string[] {
  const { 'show-hidden-metrics-for-version': hidden, 'disabled-metrics': disabled } = flags
  const { 'allow-metric-labels': allowed, 'allow-metric-labels-manifest': manifest } = flags
  const [major, minor] = KUBERNETES_VERSION.slice(1).split('.')
  const before = `${major}.${Number(minor) - 1}`
  const errors: string[] = []
  if (hidden !== '' && hidden !== before) {
    errors.push(
      `metrics.showHiddenMetricsForVersion: Invalid value: ${goQuote(hidden)}: must be omitted or have the value '${before}'; only the previous minor version is allowed`,
    )
  }
  const wrong = disabled.find((name) => !isMetric.test(name))
  if (wrong !== undefined) {
    errors.push(
      `metrics.disabledMetrics: Invalid value: ${JSON.stringify(disabled)}: must be fully qualified metric names matching ${goQuote(`^${METRIC}$`)}, got ${goQuote(wrong)}`,
    )
  }
  errors.push(...allowListErrors(allowed))
  if (allowed.size > 0 && manifest !== '') {
    errors.push('metrics: Invalid value: cannot specify both allowListMapping and allowListMappingManifest')
  }
  return errors
}

function allowListErrors(allowed: ReadonlyMap<string, string>): string[] {
  if ([...allowed.keys()].every((key) => isMetricLabel.test(key))) return []
  const given = JSON.stringify(Object.fromEntries(allowed))
  return [
    `metrics.allowListMapping: Invalid value: ${given}: must have keys with format \`metricName,labelName\` where metricName matches ${goQuote(METRIC)} and labelName matches ${goQuote(LABEL)}`,
  ]
}

/** The text of `--allow-metric-labels-manifest`. Throws for errors in it. */
export function parseAllowedLabels(text: string): ReadonlyMap<string, string> {
  const read = parseYaml(text)
  if (read === null || typeof read !== 'object') throw new Error('it must be a mapping of texts')
  const allowed = new Map(Object.entries(read).map(([key, value]) => [key, String(value)] as const))
  const [error] = allowListErrors(allowed)
  if (error !== undefined) throw new Error(error)
  return allowed
}
