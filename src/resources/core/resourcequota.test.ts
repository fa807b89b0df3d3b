import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { resourceQuota } from './resourcequota.ts'
import { trialOf } from './trial.suite.ts'

const trial = trialOf(resourceQuota)
const metadata = { name: 'q', namespace: 'ns' }
const errorsOf = (spec: Record<string, unknown>): string[] => trial.create({ metadata, spec }).errors

describe('ResourceQuota', () => {
  it('counts built-in and custom resources', () => {
    const hard = {
      pods: '10',
      'count/jobs.batch': '1',
      'requests.nvidia.com/gpu': '4',
      'requests.hugepages-2Mi': '1Gi',
    }
    assert.deepEqual(errorsOf({ hard, scopes: [] }), [])
  })

  const matching = 'spec.scopeSelector.matchExpressions'
  const refusals: [string, Record<string, unknown>, string[]][] = [
    [
      'unknown resources and invalid amounts',
      { hard: { disk: '1', pods: '1500m', services: '-1' } },
      [
        'spec.hard[disk]: Invalid value: "disk": must be a standard resource type or fully qualified',
        'spec.hard[disk]: Invalid value: "disk": must be a standard resource for quota',
        'spec.hard[pods]: Invalid value: "1500m": must be an integer',
        'spec.hard[services]: Invalid value: "-1": must be greater than or equal to 0',
      ],
    ],
    ['an unknown scope', { scopes: ['x'] }, ['spec.scopes: Invalid value: ["x"]: unsupported scope']],
    [
      'a scope that does not apply to the resource',
      { hard: { services: '1' }, scopes: ['BestEffort'] },
      ['spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource'],
    ],
    [
      'contradictory scopes',
      { scopes: ['Terminating', 'NotTerminating'] },
      ['spec.scopes: Invalid value: ["Terminating","NotTerminating"]: conflicting scopes'],
    ],
    [
      'invalid scope selectors',
      {
        scopeSelector: {
          matchExpressions: [
            { scopeName: 'PriorityClass', operator: 'In' },
            { scopeName: 'PriorityClass', operator: 'Exists', values: ['x'] },
            { scopeName: 'y', operator: 'z' },
          ],
        },
      },
      [
        `${matching}.values: Required value: must be at least one value when \`operator\` is 'In' or 'NotIn' for scope selector`,
        `${matching}.values: Invalid value: ["x"]: must be no value when \`operator\` is 'Exist' or 'DoesNotExist' for scope selector`,
        `${matching}.scopeName: Invalid value: "y": unsupported scope`,
        `${matching}.operator: Invalid value: "z": not a valid selector operator`,
      ],
    ],
  ]
  for (const [what, spec, errors] of refusals) {
    it(`rejects ${what}`, () => assert.deepEqual(errorsOf(spec), errors))
  }

  it('rejects updates of scopes, except for their order', () => {
    const of = (...scopes: string[]): Record<string, unknown> => ({ metadata, spec: { scopes } })
    assert.deepEqual(trial.update(of('BestEffort', 'Terminating'), of('Terminating', 'BestEffort')).errors, [])
    assert.deepEqual(trial.update(of('BestEffort'), of()).errors, [
      'spec.scopes: Invalid value: ["BestEffort"]: field is immutable',
    ])
  })

  it('validates the counts in its status', () => {
    const status = { hard: { pods: '1' }, used: { disk: '1' } }
    assert.equal(trial.update({ metadata, status }, { metadata }, 'status').errors.length, 2)
  })

  it('warns if a request exceeds the limit', () => {
    const spec = { hard: { cpu: '2', 'limits.cpu': '1', 'requests.storage': '3', 'limits.storage': '4' } }
    assert.deepEqual(trial.create({ metadata, spec }).warnings, [
      'ResourceQuota cpu (2) should be less than limits.cpu (1)',
    ])
  })

  it('prints used and hard amounts', () => {
    const status = { hard: { pods: '10', 'limits.cpu': '1', 'count/x.y': '2' }, used: { pods: '3' } }
    assert.deepEqual(trial.cells({ metadata, status }), [
      'q',
      'count/x.y: 0/2, pods: 3/10',
      'limits.cpu: 0/1',
      '<unknown>',
    ])
  })
})
