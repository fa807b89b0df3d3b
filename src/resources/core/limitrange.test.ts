import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { limitRange } from './limitrange.ts'
import { trialOf } from './trial.suite.ts'

const trial = trialOf(limitRange)
const metadata = { name: 'l', namespace: 'ns' }
const sent = (...limits: unknown[]): Record<string, unknown> => ({ metadata, spec: { limits } })

describe('LimitRange', () => {
  it('gets container defaults from other fields, rounded to thousandths', () => {
    const [item] = trial.load(sent({ type: 'Container', max: { cpu: '2', memory: '1Gi' }, min: { disk: '100u' } })).spec
      .limits as { default: unknown; defaultRequest: unknown }[]
    assert.deepEqual(item?.default, { cpu: '2', memory: '1Gi' })
    assert.deepEqual(item?.defaultRequest, { cpu: '2', disk: '1m', memory: '1Gi' })
    assert.equal(trial.load(sent({ type: 'Pod', max: { cpu: '2' } })).spec.limits?.[0]?.default, undefined)
  })

  it('may have no name, and gets a generated one', () => {
    assert.match(
      trial.create({ metadata: { namespace: 'ns' }, spec: { limits: [] } }).object.metadata.name ?? '',
      /^[\da-f-]{36}$/,
    )
  })

  const path = 'spec.limits[0]'
  const refusals: [string, Record<string, unknown>, string[]][] = [
    [
      'an unknown type',
      { type: 'x' },
      [`${path}.type: Invalid value: "x": must be a standard limit type or fully qualified`],
    ],
    [
      'defaults for pods',
      { type: 'Pod', default: { cpu: '1' }, defaultRequest: { cpu: '1' } },
      [
        `${path}.default: Forbidden: may not be specified when \`type\` is 'Pod'`,
        `${path}.defaultRequest: Forbidden: may not be specified when \`type\` is 'Pod'`,
      ],
    ],
    [
      'claims without bounds',
      { type: 'PersistentVolumeClaim' },
      [`${path}.limits: Required value: either minimum or maximum storage value is required, but neither was provided`],
    ],
    [
      'a minimum above the maximum',
      {
        type: 'Container',
        min: { cpu: '3' },
        max: { cpu: '2' },
        default: { cpu: '1' },
        defaultRequest: { cpu: '2500m' },
      },
      [
        `${path}.min[cpu]: Invalid value: "3": min value 3 is greater than max value 2`,
        `${path}.defaultRequest[cpu]: Invalid value: "2500m": min value 3 is greater than default request value 2500m`,
        `${path}.defaultRequest[cpu]: Invalid value: "2500m": default request value 2500m is greater than max value 2`,
        `${path}.defaultRequest[cpu]: Invalid value: "2500m": default request value 2500m is greater than default limit value 1`,
        `${path}.default[cpu]: Invalid value: "3": min value 3 is greater than default value 1`,
      ],
    ],
    [
      'a maxLimitRequestRatio above the quotient of max and min',
      { type: 'Pod', min: { cpu: '1' }, max: { cpu: '2' }, maxLimitRequestRatio: { cpu: '3' } },
      [`${path}.maxLimitRequestRatio[cpu]: Invalid value: "3": ratio 3 is greater than max/min = 2.000000`],
    ],
    [
      'a maxLimitRequestRatio below one',
      { type: 'Pod', maxLimitRequestRatio: { cpu: '500m' } },
      [`${path}.maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1`],
    ],
    [
      'different default and defaultRequest of a resource that cannot be overcommitted',
      { type: 'Container', default: { 'x.io/gpu': '2' }, defaultRequest: { 'x.io/gpu': '1' } },
      [
        `${path}.defaultRequest[x.io/gpu]: Invalid value: "1": default value 2 must equal to defaultRequest value 1 in x.io/gpu`,
      ],
    ],
    [
      'storage limits of pods',
      { type: 'Pod', max: { storage: '1' } },
      [`${path}.max[storage]: Invalid value: "storage": must be a standard resource for containers`],
    ],
  ]
  for (const [what, item, errors] of refusals) {
    it(`rejects ${what}`, () => assert.deepEqual(trial.create(sent(item)).errors, errors))
  }

  it('rejects two items of the same type', () => {
    assert.deepEqual(trial.create(sent({ type: 'Pod' }, { type: 'Pod' })).errors, [
      'spec.limits[1].type: Duplicate value: "Pod"',
    ])
  })
})
