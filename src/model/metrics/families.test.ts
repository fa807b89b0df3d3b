import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createRegistry } from '#lib/metrics/metrics.ts'
import { parseFamily } from '#lib/metrics/table.ts'

import { CONTROLLER_FAMILIES, createControllerMeters } from './controller-families.ts'
import { createServerMeters, FAMILIES } from './families.ts'
import { createMetricRules, registerMetaMetrics, USUAL_METRICS } from './rules.ts'

describe('metric families of the API server', () => {
  const meters = createServerMeters()

  for (const name of Object.keys(FAMILIES)) {
    it(`include ${name}`, () => void meters.family(name as 'apiserver_request_total'))
  }

  it('have buckets exactly if they are histograms', () => {
    const wrong = Object.values(FAMILIES).filter((row) => {
      const { type, buckets } = parseFamily(row)
      return (buckets !== undefined) !== (type === 'histogram')
    })
    assert.deepEqual(wrong, [])
  })

  it('are the same object for each caller', () => {
    meters.family('authentication_attempts').labels('success').inc()
    meters.family('authentication_attempts').labels('success').inc()
    assert.match(meters.registry.render(), /^authentication_attempts\{result="success"\} 2$/m)
  })
})

describe('metric families of controllers', () => {
  const meters = createControllerMeters()

  for (const name of Object.keys(CONTROLLER_FAMILIES)) {
    it(`include ${name}`, () => void meters.family(name as keyof typeof CONTROLLER_FAMILIES))
  }
})

describe('flags for metrics', () => {
  const render = (settings: Partial<typeof USUAL_METRICS>): string => {
    const rules = createMetricRules({ ...USUAL_METRICS, ...settings })
    const meters = createServerMeters(createRegistry(rules))
    registerMetaMetrics(meters, rules)
    meters.family('authentication_attempts').labels('success').inc()
    meters.family('apiserver_storage_objects').labels('pods').set(1)
    meters.registry.gauge({ name: 'ancient', help: 'Old.', stability: 'ALPHA', deprecatedSince: '1.30.0' }).labels()
    return meters.registry.render()
  }

  it('disable families by name', () => {
    const text = render({ disabled: ['authentication_attempts'] })
    assert.doesNotMatch(text, /authentication_attempts/)
    assert.match(text, /^disabled_metrics_total 1$/m)
  })

  it('hide families that were deprecated long ago, and show them on request', () => {
    assert.match(render({}), /^# HELP apiserver_storage_objects \[STABLE\] \(Deprecated since 1\.34\.0\) /m)
    assert.doesNotMatch(render({}), /^ancient/m)
    assert.match(render({}), /^hidden_metrics_total 1$/m)
    assert.match(render({ showsHidden: true }), /^ancient 0$/m)
  })

  it('restrict label values', () => {
    const text = render({ allowed: new Map([['authentication_attempts,result', 'error,failure']]) })
    assert.match(text, /^authentication_attempts\{result="unexpected"\} 1$/m)
    assert.match(text, /^cardinality_enforcement_unexpected_categorizations_total 1$/m)
  })

  it('count families by stability', () => {
    assert.match(render({}), /^registered_metrics_total\{deprecated_version="1\.34\.0",stability_level="STABLE"\} 1$/m)
  })
})
