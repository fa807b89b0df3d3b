import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { schemaFor } from '#apis/schemas.ts'
import { arbitraryOf } from '#kits/meta/arbitrary-object.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { apiVersionOf, type GroupVersionKind } from '#meta/kind.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'

import { convert } from '../conversion.ts'

const kind = 'HorizontalPodAutoscaler'
const v1: GroupVersionKind = { group: 'autoscaling', version: 'v1', kind }
const v2: GroupVersionKind = { group: 'autoscaling', version: 'v2', kind }
const prefix = 'autoscaling.alpha.kubernetes.io/'
const scaleTargetRef = { kind: 'Deployment', name: 'web', apiVersion: 'apps/v1' }

interface Parts {
  readonly spec?: object
  readonly status?: object
  readonly annotations?: Record<string, string>
}

function autoscaler(gvk: GroupVersionKind, { spec, status, annotations }: Parts): KubeObject {
  const object = {
    kind,
    apiVersion: apiVersionOf(gvk),
    metadata: { name: 'a', namespace: 'b', ...(annotations && { annotations }) },
    spec: { scaleTargetRef, maxReplicas: 3, ...deepCopy(spec) },
    status: { desiredReplicas: 1, currentReplicas: 1, ...deepCopy(status) },
  }
  const offences: string[] = []
  const decoded = decodeValue(schemaFor(gvk)!, object, 'Strict', { offences })
  assert.deepEqual(offences, [])
  return decoded as KubeObject
}

function part(object: KubeObject, name: 'spec' | 'status'): JsonObject {
  return (object as unknown as JsonObject)[name] as JsonObject
}

const cpu = (averageUtilization: number): object => ({
  type: 'Resource',
  resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } },
})

describe('HorizontalPodAutoscaler in autoscaling/v1', () => {
  it('has a field for CPU utilization', () => {
    const old = autoscaler(v1, { spec: { targetCPUUtilizationPercentage: 50 } })
    const current = autoscaler(v2, { spec: { metrics: [cpu(50)] } })
    assert.deepEqual(convert(old, v2), current)
    assert.deepEqual(convert(current, v1), old)
  })

  it('defaults to 80 percent without a target', () => {
    assert.deepEqual(part(convert(autoscaler(v1, {}), v2), 'spec')['metrics'], [cpu(80)])
  })

  it('has other fields of v2 in annotations, with the same bytes as upstream', () => {
    const given = autoscaler(v2, {
      annotations: { mine: 'kept' },
      spec: {
        metrics: [
          cpu(50),
          { type: 'Pods', pods: { metric: { name: 'rps' }, target: { type: 'AverageValue', averageValue: '10' } } },
        ],
        behavior: {
          scaleDown: {
            stabilizationWindowSeconds: 60,
            policies: [{ type: 'Pods', value: 4, periodSeconds: 60 }],
            tolerance: '50m',
          },
        },
      },
      status: {
        currentMetrics: [
          { type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: 7, averageValue: '3m' } } },
        ],
        conditions: [{ type: 'AbleToScale', status: 'True', lastTransitionTime: null, message: 'a < b' }],
      },
    })
    const old = convert(given, v1)
    assert.deepEqual(old.metadata.annotations, {
      mine: 'kept',
      [`${prefix}behavior`]:
        '{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":60,"SelectPolicy":null,' +
        '"Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":60}],"Tolerance":"50m"}}',
      [`${prefix}conditions`]: String.raw`[{"type":"AbleToScale","status":"True","lastTransitionTime":null,"message":"a \u003c b"}]`,
      [`${prefix}current-metrics`]:
        '[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":7,"currentAverageValue":"3m"}}]',
      [`${prefix}metrics`]: '[{"type":"Pods","pods":{"metricName":"rps","targetAverageValue":"10"}}]',
    })
    assert.equal(part(old, 'spec')['targetCPUUtilizationPercentage'], 50)
    assert.equal(part(old, 'status')['currentCPUUtilizationPercentage'], 7)
    // Only the position of CPU among the metrics is lost.
    const back = convert(old, v2)
    const metrics = part(given, 'spec')['metrics'] as JsonObject[]
    assert.deepEqual(back, { ...given, spec: { ...part(given, 'spec'), metrics: metrics.toReversed() } })
  })

  it('has only the current utilization if the raw value is unknown', () => {
    const current = convert(autoscaler(v1, { status: { currentCPUUtilizationPercentage: 9 } }), v2)
    assert.deepEqual(part(current, 'status')['currentMetrics'], [
      { type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: 9 } } },
    ])
  })

  it('ignores and drops unparsable annotations', () => {
    const broken = [
      '{',
      '[{"type":1}]',
      '[{"type":"Pods","pods":{"targetAverageValue":"x","currentAverageValue":"x"}}]',
      '{}',
      '"a"',
      '',
    ]
    for (const text of broken) {
      const names = ['metrics', 'current-metrics', 'conditions', 'behavior', 'scale-up-tolerance']
      const annotations = Object.fromEntries(names.map((name) => [prefix + name, text]))
      const current = convert(autoscaler(v1, { annotations }), v2)
      assert.equal(current.metadata.annotations, undefined, text)
      assert.deepEqual(part(current, 'spec')['metrics'], [cpu(80)], text)
      assert.equal(part(current, 'spec')['behavior'], undefined, text)
      assert.equal(part(current, 'status')['currentMetrics'], null, text)
    }
  })

  it('accepts names in annotations in any case', () => {
    const annotations = { [`${prefix}behavior`]: '{"scaleup":{"SELECTPOLICY":"Max"}}' }
    const current = convert(autoscaler(v1, { annotations }), v2)
    assert.deepEqual(part(current, 'spec')['behavior'], { scaleUp: { selectPolicy: 'Max' } })
  })

  const external = { metric: { name: 'm', selector: { matchLabels: { a: 'b' } } } }
  const object = { describedObject: { kind: 'Service', name: 's' }, metric: { name: 'm' } }
  const targets: readonly [name: string, metric: object][] = [
    ['Object by value', { type: 'Object', object: { ...object, target: { type: 'Value', value: '2' } } }],
    [
      'Object by average',
      { type: 'Object', object: { ...object, target: { type: 'AverageValue', averageValue: '2' } } },
    ],
    ['External by value', { type: 'External', external: { ...external, target: { type: 'Value', value: '2' } } }],
    [
      'External by average',
      { type: 'External', external: { ...external, target: { type: 'AverageValue', averageValue: '2' } } },
    ],
    [
      'Resource by average',
      { type: 'Resource', resource: { name: 'cpu', target: { type: 'AverageValue', averageValue: '2' } } },
    ],
    [
      'ContainerResource by utilization',
      {
        type: 'ContainerResource',
        containerResource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 9 }, container: 'c' },
      },
    ],
  ]
  for (const [name, metric] of targets) {
    it(`round-trips a metric of ${name}`, () => {
      const given = autoscaler(v2, { spec: { metrics: [metric] } })
      assert.deepEqual(convert(convert(given, v1), v2), given)
    })
  }
})

describe('HorizontalPodAutoscaler in autoscaling/v2', () => {
  it('never has the annotations of v1', () => {
    const given = autoscaler(v2, { annotations: { [`${prefix}metrics`]: '[]', mine: 'kept' } })
    assert.deepEqual(convert(given, v2).metadata.annotations, { mine: 'kept' })
    assert.deepEqual(convert(given, v1).metadata.annotations, { mine: 'kept' })
    assert.equal(given.metadata.annotations?.[`${prefix}metrics`], '[]')
    const plain = autoscaler(v2, { annotations: { mine: 'kept' } })
    assert.equal(convert(plain, v2), plain)
  })

  it('round-trips through v1', () => {
    const property = fc.property(arbitraryOf(v2), (given) => {
      const once = convert(convert(given, v1), v2)
      assert.deepEqual(convert(convert(once, v1), v2), once)
      const { metrics: _m, behavior: _b, ...spec } = part(given, 'spec')
      const { metrics: _m2, behavior: _b2, ...kept } = part(once, 'spec')
      assert.deepEqual(kept, spec)
    })
    fc.assert(property, { numRuns: 60 })
  })
})
