import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'

import { type DebugStyle, withProfile } from './debug-profiles.ts'

const KEEPING = {
  labels: false,
  annotations: false,
  liveness: false,
  readiness: false,
  startup: false,
  initContainers: true,
}

const POD = {
  metadata: { name: 'p', labels: { a: 'b' }, annotations: { c: 'd' } },
  spec: {
    initContainers: [{ name: 'i' }],
    containers: [{ name: 'app', livenessProbe: {} }, { name: 'debugger' }],
  },
} as unknown as Pod

function applied(profile: string, style: DebugStyle, keeping: Partial<typeof KEEPING> = {}): Pod {
  return withProfile(POD, { profile, style, container: 'debugger', keeping: { ...KEEPING, ...keeping } })
}

describe('profiles of kubectl debug', () => {
  it('allow process tracing in a container and full access on a node, in profile general', () => {
    const { containers } = applied('general', 'copy').spec
    assert.deepEqual(containers[1]?.securityContext, { capabilities: { add: ['SYS_PTRACE'] } })
    assert.equal(containers[0]?.securityContext, undefined)
    const { spec } = applied('general', 'node')
    assert.ok(spec.hostPID && spec.hostNetwork && spec.hostIPC)
    assert.deepEqual(spec.containers[1]?.volumeMounts, [{ mountPath: '/host', name: 'host-root' }])
  })

  it('drop most permissions in profile restricted', () => {
    assert.deepEqual(applied('restricted', 'node').spec.containers[1]?.securityContext, {
      runAsNonRoot: true,
      capabilities: { drop: ['ALL'] },
      allowPrivilegeEscalation: false,
      seccompProfile: { type: 'RuntimeDefault' },
    })
    assert.equal(applied('restricted', 'node').spec.hostPID, undefined)
  })

  it('remove labels and probes from a copied pod, so that controllers do not adopt it', () => {
    const copy = applied('general', 'copy')
    assert.deepEqual(copy.metadata, { name: 'p' })
    assert.deepEqual(copy.spec.containers[0], { name: 'app' })
    assert.equal(copy.spec.shareProcessNamespace, true)
    assert.deepEqual(applied('general', 'copy', { labels: true }).metadata.labels, { a: 'b' })
    assert.equal(applied('general', 'copy', { initContainers: false }).spec.initContainers, undefined)
  })

  it('change only the labels of a copied pod in profile legacy', () => {
    const copy = applied('legacy', 'copy')
    assert.deepEqual(copy.metadata, { name: 'p', annotations: { c: 'd' } })
    assert.deepEqual(copy.spec, POD.spec)
  })
})
