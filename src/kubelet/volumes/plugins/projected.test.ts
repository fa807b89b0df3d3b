import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Pod, PodSpec } from '#apis/core/v1.ts'

import type { VolumeSources } from '../volume-plugin.ts'
import { projected } from './projected.ts'

const SOURCES = {
  allocatable: () => ({ memory: '1Gi' }),
  token: async () => 'token',
} as unknown as VolumeSources

/** Mode and owner of the token. */
async function tokenOf(spec: Partial<PodSpec>): Promise<string> {
  const pod = { metadata: {}, spec: { containers: [{ name: 'c' }], ...spec } } as unknown as Pod
  const volume = {
    name: 'v',
    projected: { defaultMode: 0o644, sources: [{ serviceAccountToken: { path: 'token' } }] },
  }
  const plan = await projected.plan({ pod, volume }, SOURCES)
  const file = plan.at === 'pod' ? plan.files?.get('token') : undefined
  return `${file?.mode.toString(8)} ${file?.user}`
}

const running = (...users: (number | undefined)[]): Partial<PodSpec> => ({
  containers: users.map((user, at) => ({
    name: `c${at}`,
    resources: {},
    ...(user !== undefined && { securityContext: { runAsUser: user } }),
  })),
})

test('a token is its user’s alone when the pod has one user, and its group’s when it has a group', async () => {
  assert.equal(await tokenOf({}), '644 undefined')
  assert.equal(await tokenOf(running(1000, 1000)), '600 1000')
  assert.equal(await tokenOf(running(1000, 2000)), '644 undefined')
  assert.equal(await tokenOf(running(1000, undefined)), '644 undefined')
  assert.equal(await tokenOf({ ...running(1000, undefined), securityContext: { runAsUser: 1000 } }), '600 1000')
  assert.equal(await tokenOf({ securityContext: { fsGroup: 3000 } }), '600 undefined')
})
