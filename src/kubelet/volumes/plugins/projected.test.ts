import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Pod, PodSpec, VolumeProjection } from '#apis/core/v1.ts'

import type { FileContent, VolumeSources } from '../volume-plugin.ts'
import { projected } from './projected.ts'

const SOURCES = {
  allocatable: () => ({ memory: '1Gi' }),
  token: async () => 'token',
  trustAnchors: async () => 'anchors',
  certificate: async () => ({ key: 'key', chain: 'chain' }),
} as unknown as VolumeSources

const PROJECTIONS: VolumeProjection[] = [
  { serviceAccountToken: { path: 'token' } },
  { clusterTrustBundle: { name: 'b', path: 'anchors' } },
  { podCertificate: { signerName: 'x/y', keyType: 'ED25519', keyPath: 'key', certificateChainPath: 'chain' } },
]

/** Mode and owner of the projected credentials. */
async function ownerOf(spec: Partial<PodSpec>): Promise<string> {
  const pod = { metadata: {}, spec: { containers: [{ name: 'c' }], ...spec } } as unknown as Pod
  const volume = {
    name: 'v',
    projected: { defaultMode: 0o644, sources: PROJECTIONS },
  }
  const plan = await projected.plan({ pod, volume }, SOURCES)
  const files = plan.at === 'pod' ? (plan.files ?? new Map<string, FileContent>()) : new Map<string, FileContent>()
  assert.deepEqual([...files.keys()], ['token', 'anchors', 'key', 'chain'])
  const owners = new Set([...files.values()].map(({ mode, user }) => `${mode.toString(8)} ${user}`))
  return [...owners].join()
}

const running = (...users: (number | undefined)[]): Partial<PodSpec> => ({
  containers: users.map((user, at) => ({
    name: `c${at}`,
    resources: {},
    ...(user !== undefined && { securityContext: { runAsUser: user } }),
  })),
})

test('projected tokens, trust bundles and certificates are readable only by the pod’s single user or its group', async () => {
  assert.equal(await ownerOf({}), '644 undefined')
  assert.equal(await ownerOf(running(1000, 1000)), '600 1000')
  assert.equal(await ownerOf(running(1000, 2000)), '644 undefined')
  assert.equal(await ownerOf(running(1000, undefined)), '644 undefined')
  assert.equal(await ownerOf({ ...running(1000, undefined), securityContext: { runAsUser: 1000 } }), '600 1000')
  assert.equal(await ownerOf({ securityContext: { fsGroup: 3000 } }), '600 undefined')
})
