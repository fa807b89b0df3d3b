import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Container, EnvVarSource, Pod } from '#apis/core/v1.ts'

import { environmentOf } from '../pods/environment.ts'
import { containerOf, podOf } from '../pods/worker.fixture.ts'
import { downwardFiles } from '../volumes/payloads.ts'
import { defaultLimits, resourceText } from './downward.ts'

const ALLOCATABLE = { cpu: '8', memory: '16Gi', 'ephemeral-storage': '100Gi', 'hugepages-2Mi': '1Gi' }
const POD_LIMITS = { limits: { cpu: '1250m', memory: '64Mi', 'ephemeral-storage': '1Gi' } }

const podWith = (resources: Pod['spec']['resources'], ...containers: Container[]): Pod =>
  podOf({ containers, ...(resources !== undefined && { resources }) })

const limitText = (pod: Pod, resource: string, divisor?: string): string => {
  const [container] = pod.spec.containers
  assert.ok(container)
  return resourceText(
    container,
    { resource, ...(divisor !== undefined && { divisor }) },
    defaultLimits(pod, ALLOCATABLE),
  )
}

describe('downward API', () => {
  it('uses the limits of the pod for a container without limits', () => {
    const pod = podWith(POD_LIMITS, containerOf('c'))
    assert.equal(limitText(pod, 'limits.cpu'), '2')
    assert.equal(limitText(pod, 'limits.cpu', '1m'), '1250')
    assert.equal(limitText(pod, 'limits.memory'), String(64 * 1024 ** 2))
  })

  it('prefers the limits of the container to those of the pod', () => {
    const resources = { limits: { cpu: '1', memory: '0' } }
    const pod = podWith(POD_LIMITS, containerOf('c', { resources }))
    assert.equal(limitText(pod, 'limits.cpu'), '1')
    assert.equal(limitText(pod, 'limits.memory', '1Mi'), '64')
  })

  it('uses node allocatable if neither container nor pod has a limit', () => {
    const pod = podWith({ limits: { cpu: '0' } }, containerOf('c'))
    assert.equal(limitText(pod, 'limits.cpu'), '8')
    assert.equal(limitText(pod, 'limits.memory', '1Gi'), '16')
    assert.equal(limitText(podWith(POD_LIMITS, containerOf('c')), 'limits.ephemeral-storage', '1Gi'), '100')
  })

  it('has no default for huge pages and for requests', () => {
    const pod = podWith({ requests: { cpu: '1' } }, containerOf('c'))
    assert.equal(limitText(pod, 'limits.hugepages-2Mi'), '0')
    assert.equal(limitText(pod, 'requests.cpu'), '0')
  })

  it('reads the container that the variable names', async () => {
    const ref = (resource: string, containerName: string): EnvVarSource => ({
      resourceFieldRef: { resource, containerName, divisor: '0' },
    })
    const first = containerOf('first', {
      env: [
        { name: 'CPU', valueFrom: ref('limits.cpu', 'second') },
        { name: 'MEMORY', valueFrom: ref('limits.memory', 'second') },
      ],
    })
    const pod = podWith(POD_LIMITS, first, containerOf('second', { resources: { limits: { cpu: '3' } } }))
    const input = { pod, container: first, addresses: { hostIps: [], podIps: [] }, services: [] }
    const sources = { configMap: async () => undefined, secret: async () => undefined, file: async () => '' }
    const values = await environmentOf({ ...input, allocatable: ALLOCATABLE, sources })
    assert.deepEqual([values.get('CPU'), values.get('MEMORY')], ['3', String(64 * 1024 ** 2)])
  })

  it('writes the same values to files', () => {
    const resourceFieldRef = { containerName: 'c', resource: 'limits.memory', divisor: '1Mi' }
    const pod = podWith(POD_LIMITS, containerOf('c'))
    const files = downwardFiles([{ path: 'memory', resourceFieldRef }], pod, ALLOCATABLE, 0o644)
    assert.equal(files.get('memory')?.data.toString(), '64')
    const absent = [{ path: 'memory', resourceFieldRef: { ...resourceFieldRef, containerName: 'x' } }]
    assert.throws(() => downwardFiles(absent, pod, ALLOCATABLE, 0o644), { message: 'container x not found' })
  })
})
