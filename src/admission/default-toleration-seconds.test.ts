import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'
import { admit } from '#kits/admission/sample-write.ts'

import { createDefaultTolerationSeconds } from './default-toleration-seconds.ts'

function pod(spec: object = {}): object {
  return { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', resources: {} }], ...spec } }
}

describe('DefaultTolerationSeconds', () => {
  const added = (key: string, tolerationSeconds = 300): object => ({
    key: `node.kubernetes.io/${key}`,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds,
  })
  const table: readonly [what: string, tolerations: object[] | undefined, expected: object[]][] = [
    ['without tolerations', undefined, [added('not-ready'), added('unreachable')]],
    ['with both tolerations', [{ operator: 'Exists' }], [{ operator: 'Exists' }]],
    [
      'with one of both tolerations',
      [{ key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' }],
      [{ key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' }, added('unreachable')],
    ],
    [
      'with a toleration of another effect',
      [{ operator: 'Exists', effect: 'NoSchedule' }],
      [{ operator: 'Exists', effect: 'NoSchedule' }, added('not-ready'), added('unreachable')],
    ],
  ]
  for (const [what, tolerations, expected] of table) {
    it(`adds missing tolerations to a pod ${what}`, async () => {
      const plugin = createDefaultTolerationSeconds()
      const { spec } = (await admit(plugin, { resource: 'pods', object: pod({ tolerations }) })) as Pod
      assert.deepEqual(spec.tolerations, expected)
    })
  }
  it('takes the toleration seconds from its flags', async () => {
    const plugin = createDefaultTolerationSeconds({ notReadySeconds: 5, unreachableSeconds: 6 })
    const { spec } = (await admit(plugin, { resource: 'pods', object: pod() })) as Pod
    assert.deepEqual(spec.tolerations, [added('not-ready', 5), added('unreachable', 6)])
  })
})
