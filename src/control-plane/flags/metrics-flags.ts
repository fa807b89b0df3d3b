/** The group "metrics": which families are shown, and with which values of labels. */
import type { FlagGroup, FlagsOf } from '#lib/flags/flag-support.ts'
import { flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'
import { stringMap, strings } from '#lib/flags/list-kinds.ts'
import { goQuote } from '#lib/go-text.ts'
import { parseYaml } from '#lib/yaml.ts'
import { KUBERNETES_VERSION } from '#model/version.ts'

export interface MetricsValues {
  readonly 'allow-metric-labels': ReadonlyMap<string, string>
  readonly 'allow-metric-labels-manifest': string
  readonly 'disabled-metrics': readonly string[]
  readonly 'show-hidden-metrics-for-version': string
}

export const METRICS_FLAGS: FlagsOf<MetricsValues> & FlagGroup = {
  'allow-metric-labels': flag(
    stringMap,
    new Map(),
    "Values that labels may have, all others being shown as \"unexpected\": metric1,label1='v1,v2', metric1,label2='v1'",
  ),
  'allow-metric-labels-manifest': flag(string, '', 'YAML file with the same as --allow-metric-labels'),
  'disabled-metrics': flag(strings, [], 'Metrics that are not shown, by their full names'),
  'show-hidden-metrics-for-version': flag(
    string,
    '',
    'The release before this one, to be shown once more what it has hidden since',
  ),
}

const LABEL = '[a-zA-Z_][a-zA-Z0-9_]*'
const METRIC = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const isMetric = new RegExp(`^${METRIC}$`)
const isMetricLabel = new RegExp(`^${METRIC},${LABEL}$`)

/** In upstream's words. */
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

/** The text of `--allow-metric-labels-manifest`. Throws what is wrong with it. */
export function parseAllowedLabels(text: string): ReadonlyMap<string, string> {
  const read = parseYaml(text)
  if (read === null || typeof read !== 'object') throw new Error('it must be a mapping of texts')
  const allowed = new Map(Object.entries(read).map(([key, value]) => [key, String(value)] as const))
  const [error] = allowListErrors(allowed)
  if (error !== undefined) throw new Error(error)
  return allowed
}
