import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import type { Container, ContainerStatus, Pod, PodSpec, ResourceRequirements } from '#apis/core/v1.ts'
import { compareQuantities, parseQuantity, type Quantity, quantityText } from '#meta/quantity.ts'

import { computeQosClass, podLimits, podRequests, type PodResourcesOptions, qosClassOf } from './pod-resources.ts'

function container(requests: Record<string, string>, more: Partial<Container> = {}): Container {
  return { name: 'a', resources: { requests, limits: requests }, ...more }
}

const pod = (spec: PodSpec, status: Pod['status'] = {}): Pick<Pod, 'spec' | 'status'> => ({ spec, status })
const texts = (amounts: ReadonlyMap<string, Quantity>): Record<string, string> =>
  Object.fromEntries([...amounts].map(([name, amount]) => [name, quantityText(amount)]))

describe('resource requests of a pod', () => {
  const requests = (spec: PodSpec, options?: PodResourcesOptions): Record<string, string> =>
    texts(podRequests(pod(spec), options))

  it('are the sum of its containers', () => {
    assert.deepEqual(requests({ containers: [container({ cpu: '1', memory: '1Gi' }), container({ cpu: '500m' })] }), {
      cpu: '1500m',
      memory: '1Gi',
    })
  })

  it('are those of the largest init container if that is larger', () => {
    const initContainers = [container({ cpu: '3' }), container({ cpu: '1', memory: '2Gi' })]
    assert.deepEqual(requests({ containers: [container({ cpu: '1', memory: '1Gi' })], initContainers }), {
      cpu: '3',
      memory: '2Gi',
    })
  })

  it('include sidecars in the sum, also for later init containers', () => {
    const initContainers = [container({ cpu: '1' }, { restartPolicy: 'Always' }), container({ cpu: '3' })]
    assert.deepEqual(requests({ containers: [container({ cpu: '1' })], initContainers }), { cpu: '4' })
    assert.deepEqual(requests({ containers: [container({ cpu: '5' })], initContainers }), { cpu: '6' })
  })

  it('include the overhead by default', () => {
    const spec = { containers: [container({ cpu: '1' })], overhead: { cpu: '100m', memory: '1Mi' } }
    assert.deepEqual(requests(spec), { cpu: '1100m', memory: '1Mi' })
    assert.deepEqual(requests(spec, { excludeOverhead: true }), { cpu: '1' })
    assert.deepEqual(texts(podLimits(pod(spec))), { cpu: '1100m' })
  })

  it('are the pod-level requests if the pod has any', () => {
    const spec = {
      containers: [container({ cpu: '1', 'example.com/gpu': '1' })],
      resources: { requests: { cpu: '2' }, limits: { memory: '1Gi' } },
    }
    assert.deepEqual(requests(spec), { cpu: '2', 'example.com/gpu': '1' })
    assert.deepEqual(requests(spec, { skipPodLevel: true }), { cpu: '1', 'example.com/gpu': '1' })
    assert.deepEqual(texts(podLimits(pod(spec))), { cpu: '1', 'example.com/gpu': '1', memory: '1Gi' })
  })

  it("use the scheduler's defaults for containers without requests", () => {
    const atLeast = new Map([['cpu', parseQuantity('100m')]])
    const spec = { containers: [container({ cpu: '0' }), container({ memory: '1Gi' })] }
    assert.deepEqual(requests(spec, { atLeast }), { cpu: '100m', memory: '1Gi' })
  })

  it('are the maximum of desired, allocated and actual resources during a resize', () => {
    const status = (conditions: Pod['status']['conditions'] = []): Pod['status'] => ({
      conditions,
      containerStatuses: [
        {
          name: 'a',
          resources: { requests: { cpu: '1' } },
          allocatedResources: { cpu: '2' },
        } as unknown as ContainerStatus,
      ],
    })
    const spec = { containers: [container({ cpu: '4' })] }
    const under = (given: Pod['status']): Record<string, string> =>
      texts(podRequests(pod(spec, given), { useStatus: true }))
    assert.deepEqual(under(status()), { cpu: '4' })
    const condition = { type: 'PodResizePending', status: 'True', lastProbeTime: null, lastTransitionTime: null }
    assert.deepEqual(under(status([{ ...condition, reason: 'Infeasible' }])), { cpu: '2' })
    assert.deepEqual(texts(podRequests(pod(spec, status()))), { cpu: '4' })
  })

  it('are never lower than those of any container', () => {
    const amount = fc.constantFrom('0', '1m', '1', '2Gi')
    const one = fc.record({ cpu: amount, memory: amount })
    const kinds = fc.constantFrom(undefined, 'Always')
    const init = fc
      .tuple(one, kinds)
      .map(([own, restartPolicy]) => container(own, restartPolicy ? { restartPolicy } : {}))
    fc.assert(
      fc.property(fc.array(one, { maxLength: 3 }), fc.array(init, { maxLength: 3 }), (own, initContainers) => {
        const containers = own.map((each) => container(each))
        const total = podRequests(pod({ containers, initContainers }))
        for (const { resources } of [...containers, ...initContainers]) {
          for (const [name, text] of Object.entries(resources.requests ?? {})) {
            assert.ok(compareQuantities(total.get(name) as Quantity, parseQuantity(text)) >= 0)
          }
        }
      }),
    )
  })
})

describe('QoS class of a pod', () => {
  const both = { cpu: '1', memory: '1Gi' }
  const classes: readonly [ResourceRequirements[], string, ResourceRequirements?][] = [
    [[{}], 'BestEffort'],
    [[{ requests: { cpu: '0' } }], 'BestEffort'],
    [[{ requests: { 'ephemeral-storage': '1Gi' } }], 'BestEffort'],
    [[{ requests: both, limits: both }], 'Guaranteed'],
    [[{ requests: { cpu: '1000m', memory: '1Gi' }, limits: both }], 'Guaranteed'],
    [[{ requests: both, limits: both }, {}], 'Burstable'],
    [[{ requests: { cpu: '1' }, limits: { cpu: '1' } }], 'Burstable'],
    [[{ requests: { cpu: '1' } }], 'Burstable'],
    [[{}], 'Guaranteed', { requests: both, limits: both }],
    [[{}], 'Burstable', { requests: both }],
    [[{ requests: both, limits: both }], 'BestEffort', {}],
  ]
  for (const [given, wanted, resources] of classes) {
    const spec: PodSpec = {
      containers: given.map((one) => ({ name: 'a', resources: one })),
      ...(resources && { resources }),
    }
    it(`is ${wanted} for containers with ${JSON.stringify(given)}${resources === undefined ? '' : ` and pod-level resources ${JSON.stringify(resources)}`}`, () =>
      assert.equal(computeQosClass(spec), wanted))
  }

  it('is that in the status if the status has one', () => {
    assert.equal(qosClassOf(pod({ containers: [] }, { qosClass: 'Burstable' })), 'Burstable')
    assert.equal(qosClassOf(pod({ containers: [] })), 'BestEffort')
  })
})
