import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'

import { PodInfo } from './pod-info.ts'

const requests = { cpu: '1', memory: '1Gi' }
const before: Pod = {
  metadata: { namespace: 'ns', name: 'p', uid: 'u', labels: { a: 'b' } },
  spec: { containers: [{ name: 'c', image: 'i', resources: { requests } }] },
  status: { phase: 'Pending' },
}

describe('PodInfo of the scheduler', () => {
  const known = new PodInfo(before)

  it("reuses computed requests if the pod's resources are unchanged", () => {
    const bound: Pod = { ...before, spec: { ...before.spec, nodeName: 'n' }, status: { phase: 'Running' } }
    const info = new PodInfo(bound, known)
    assert.equal(info.requests, known.requests)
    assert.equal(info.pod, bound)
    assert.deepEqual(info.requests, new PodInfo(bound).requests)
  })

  it('computes requests again if they may have changed', () => {
    const [container] = before.spec.containers
    const grown = [{ ...container, name: 'c', resources: { requests: { ...requests, cpu: '3' } } }]
    const resized: Pod = { ...before, spec: { containers: grown } }
    assert.equal(new PodInfo(resized, known).requests.cpu, new PodInfo(resized).requests.cpu)
    assert.notEqual(new PodInfo(resized, known).requests.cpu, known.requests.cpu)
    const granted = {
      name: 'c',
      image: 'i',
      imageID: '',
      ready: true,
      restartCount: 0,
      state: {},
      lastState: {},
      resources: { requests: { cpu: '2' } },
    }
    const granting: Pod = { ...before, status: { containerStatuses: [granted] } }
    assert.equal(new PodInfo(granting, known).requests.cpu, new PodInfo(granting).requests.cpu)
    assert.notEqual(new PodInfo(granting, known).requests.cpu, known.requests.cpu)
    assert.equal(new PodInfo(before, new PodInfo(granting)).requests.cpu, known.requests.cpu)
  })
})
