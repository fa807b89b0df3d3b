import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { metricsErrors, type MetricsValues, parseAllowedLabels } from './metrics-flags.ts'

const NONE: MetricsValues = {
  'allow-metric-labels': new Map(),
  'allow-metric-labels-manifest': '',
  'disabled-metrics': [],
  'show-hidden-metrics-for-version': '',
}

describe('metrics flags', () => {
  it('accept the values that upstream accepts', () => {
    assert.deepEqual(metricsErrors(NONE), [])
    const all = {
      'allow-metric-labels': new Map([['a_total,code', '200,404']]),
      'disabled-metrics': ['a_total'],
      'show-hidden-metrics-for-version': '1.35',
    }
    assert.deepEqual(metricsErrors({ ...NONE, ...all }), [])
  })

  it("reject invalid values with upstream's texts", () => {
    assert.deepEqual(
      metricsErrors({
        'allow-metric-labels': new Map([['code', '200']]),
        'allow-metric-labels-manifest': 'file',
        'disabled-metrics': ['a total'],
        'show-hidden-metrics-for-version': '1.34',
      }),
      [
        `metrics.showHiddenMetricsForVersion: Invalid value: "1.34": must be omitted or have the value '1.35'; only the previous minor version is allowed`,
        'metrics.disabledMetrics: Invalid value: ["a total"]: must be fully qualified metric names matching "^[a-zA-Z_:][a-zA-Z0-9_:]*$", got "a total"',
        'metrics.allowListMapping: Invalid value: {"code":"200"}: must have keys with format `metricName,labelName` where metricName matches "[a-zA-Z_:][a-zA-Z0-9_:]*" and labelName matches "[a-zA-Z_][a-zA-Z0-9_]*"',
        'metrics: Invalid value: cannot specify both allowListMapping and allowListMappingManifest',
      ],
    )
  })

  it('read the allow-metric-labels manifest', () => {
    assert.deepEqual(parseAllowedLabels('"a_total,code": "200,404"\n'), new Map([['a_total,code', '200,404']]))
    assert.throws(() => parseAllowedLabels('code: x'), /must have keys with format/)
    assert.throws(() => parseAllowedLabels('just text'), /mapping/)
  })
})
