import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { INT, mapOf, STRING } from '#cel/type.ts'

import { declareObject } from './declared-type.ts'
import { typeCheckPolicy } from './type-check.ts'

const CONFIG_MAP = {
  kind: { group: '', version: 'v1', kind: 'ConfigMap' },
  type: declareObject('ConfigMap', { data: mapOf(STRING, STRING) }),
}
const DEPLOYMENT = {
  kind: { group: 'apps', version: 'v1', kind: 'Deployment' },
  type: declareObject('Deployment', { spec: declareObject('Deployment.spec', { replicas: INT }) }),
}

describe('type check of an admission policy', () => {
  const check = (validation: { expression: string; messageExpression?: string }, more: object = {}): unknown =>
    typeCheckPolicy({ validations: [validation], ...more }, [CONFIG_MAP, DEPLOYMENT])

  it('returns warnings for each kind, in upstream’s words', () => {
    assert.deepEqual(check({ expression: 'object.spec.zork == 1' }), [
      {
        fieldRef: 'spec.validations[0].expression',
        warning:
          "/v1, Kind=ConfigMap: ERROR: <input>:1:7: undefined field 'spec'\n | object.spec.zork == 1\n | ......^\n\napps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'zork'\n | object.spec.zork == 1\n | ...........^\n",
      },
    ])
  })

  it('accepts untyped fields', () => {
    assert.deepEqual(check({ expression: "has(request.name) && authorizer.path('/').check('get').allowed()" }), [])
  })

  it('includes variables and messages', () => {
    const variables = [{ name: 'n', expression: 'object.spec.replicas' }]
    const warnings = check({ expression: 'variables.n > 1', messageExpression: "variables.n + 'x'" }, { variables })
    assert.deepEqual(
      (warnings as { fieldRef: string; warning: string }[]).map(({ fieldRef, warning }) => [
        fieldRef,
        warning.split(':')[0],
      ]),
      [['spec.validations[0].messageExpression', 'apps/v1, Kind=Deployment']],
    )
  })
})
