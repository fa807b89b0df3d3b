/** Tests the status of ValidatingAdmissionPolicies on a complete API server with a virtual clock. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { ValidatingAdmissionPolicies, type ValidatingAdmissionPolicySpec } from '#apis/admissionregistration/v1.ts'
import { CustomResourceDefinitions } from '#apis/apiextensions/v1.ts'
import { validatingAdmissionPolicyStatusController } from '#controllers/objects/validatingadmissionpolicy-status.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

import { definition, specSchema } from '../custom-kit.ts'

let clock: VirtualClock
let plane: ControlPlane
let controllers: RunningControllers

beforeEach(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  plane = await startControlPlane({ clock })
  controllers = startControllers(plane, clock, [validatingAdmissionPolicyStatusController])
})

afterEach(async () => {
  await controllers.stop()
  await plane.stop()
})

type Rule = readonly [group: string, version: string, ...resources: string[]]

async function statusOf(
  rules: readonly Rule[],
  expressions: readonly string[],
  more: Partial<ValidatingAdmissionPolicySpec> = {},
): Promise<{
  generation: number | undefined
  observed: number | undefined
  warnings: [string, string][]
  typeChecking: unknown
}> {
  const { client } = controllers
  const resourceRules = rules.map(([group, version, ...resources]) => ({
    apiGroups: [group],
    apiVersions: [version],
    resources,
    operations: ['CREATE'],
  }))
  const validations = expressions.map((expression) => ({ expression }))
  await client.create(ValidatingAdmissionPolicies, {
    metadata: { name: 'p' },
    spec: { matchConstraints: { resourceRules }, validations, ...more },
  })
  await clock.advance(2000)
  const { metadata, status } = await client.get(ValidatingAdmissionPolicies, { name: 'p' })
  const warnings = (status.typeChecking?.expressionWarnings ?? []).map((one): [string, string] => [
    one.fieldRef,
    one.warning,
  ])
  return {
    generation: metadata.generation,
    observed: status.observedGeneration,
    warnings,
    typeChecking: status.typeChecking,
  }
}

describe('status of a ValidatingAdmissionPolicy', () => {
  it('has no warnings for valid expressions', async () => {
    const { generation, observed, typeChecking } = await statusOf(
      [['apps', 'v1', 'deployments']],
      [
        'object.spec.replicas > 1 && object.spec.template.spec.containers.all(c, c.image.startsWith("a"))',
        'object.metadata.labels["app"] == "x" && object.spec.strategy.rollingUpdate.maxSurge == "1"',
        'object.metadata.creationTimestamp > timestamp("2026-01-01T00:00:00Z")',
      ],
    )
    assert.deepEqual([observed, typeChecking], [generation, {}])
    const { metadata } = await controllers.client.get(ValidatingAdmissionPolicies, { name: 'p' })
    const managers = metadata.managedFields?.map(({ manager, operation, subresource }) => [
      manager,
      operation,
      subresource,
    ])
    assert.ok(managers?.some((one) => one.join() === 'validatingadmissionpolicy-status,Apply,status'))
  })

  it("warns about missing fields with upstream's message", async () => {
    const { warnings } = await statusOf([['apps', 'v1', 'deployments']], ['object.spec.replicsa > 1'], {
      validations: [{ expression: 'object.spec.replicsa > 1', messageExpression: 'string(object.nothing)' }],
    })
    assert.deepEqual(warnings, [
      [
        'spec.validations[0].expression',
        "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replicsa'\n | object.spec.replicsa > 1\n | ...........^\n",
      ],
      [
        'spec.validations[0].messageExpression',
        "apps/v1, Kind=Deployment: ERROR: <input>:1:14: undefined field 'nothing'\n | string(object.nothing)\n | .............^\n",
      ],
    ])
  })

  it('contains warnings for every matched kind in order, and for parameters', async () => {
    const rules: readonly Rule[] = [
      ['apps', 'v1', 'statefulsets', 'deployments', 'deployments/scale'],
      ['', 'v1', 'configmaps'],
    ]
    const { warnings } = await statusOf(rules, ['object.spec.replicas > 1', 'params.dtaa.x == ""'], {
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
    })
    assert.deepEqual(
      warnings.map(([field, text]) => [field, text.split('\n').filter((line) => line.includes('ERROR'))]),
      [
        ['spec.validations[0].expression', ["/v1, Kind=ConfigMap: ERROR: <input>:1:7: undefined field 'spec'"]],
        [
          'spec.validations[1].expression',
          ['/v1, Kind=ConfigMap', 'apps/v1, Kind=Deployment', 'apps/v1, Kind=StatefulSet'].map(
            (kind) => `${kind}: ERROR: <input>:1:7: undefined field 'dtaa'`,
          ),
        ],
      ],
    )
  })

  it('has no warnings without matched or served kinds', async () => {
    const { observed, typeChecking } = await statusOf(
      [
        ['*', '*', '*'],
        ['example.com', 'v1', 'things'],
      ],
      ['object.nothing == 1'],
    )
    assert.deepEqual([observed, typeChecking], [1, {}])
  })

  it('contains warnings for custom resources', async () => {
    const schema = specSchema({ size: { type: 'integer' }, port: { 'x-kubernetes-int-or-string': true } })
    await controllers.client.create(
      CustomResourceDefinitions,
      definition('Widget', { group: 'example.com', versions: [{ name: 'v1', schema }] }),
    )
    await clock.advance(2000)
    const { warnings } = await statusOf(
      [['example.com', 'v1', 'widgets']],
      ['object.spec.size > 1 && object.metadata.name == "x" && object.spec.port == 1', 'object.spec.colour == "red"'],
    )
    assert.deepEqual(
      warnings.map(([field, text]) => [field, text.split('\n')[0]]),
      [
        [
          'spec.validations[1].expression',
          "example.com/v1, Kind=Widget: ERROR: <input>:1:12: undefined field 'colour'",
        ],
      ],
    )
  })

  it('is computed again only for a new generation', async () => {
    await statusOf([['apps', 'v1', 'deployments']], ['object.nothing == 1'])
    const { client } = controllers
    const validations = [{ expression: 'true' }]
    await client.patch(ValidatingAdmissionPolicies, { name: 'p' }, { type: 'merge', value: { spec: { validations } } })
    await clock.advance(2000)
    const { status } = await client.get(ValidatingAdmissionPolicies, { name: 'p' })
    assert.deepEqual([status.observedGeneration, status.typeChecking?.expressionWarnings], [2, undefined])
  })
})
