import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'
import { admit, refusal } from '#kits/admission/sample-write.ts'

import { createPriority } from './priority.ts'

const isEnabled = (): boolean => true

function pod(spec: object = {}): object {
  return { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', resources: {} }], ...spec } }
}

describe('Priority admission plugin', () => {
  const plugin = createPriority({ isEnabled })
  const classes = (...found: object[]): Record<string, object[]> => ({ 'priorityclasses.scheduling.k8s.io': found })
  const high = { metadata: { name: 'high' }, value: 1000, preemptionPolicy: 'Never' }

  it('sets priority 0 if the pod has no priorityClassName and no default class exists', async () => {
    const { spec } = (await admit(plugin, { resource: 'pods', object: pod() })) as Pod
    assert.equal(spec.priority, 0)
    assert.equal(spec.preemptionPolicy, 'PreemptLowerPriority')
    assert.equal(spec.priorityClassName, undefined)
  })

  it("sets the priority to the value of the pod's PriorityClass", async () => {
    const object = pod({ priorityClassName: 'high' })
    const { spec } = (await admit(plugin, { resource: 'pods', object, world: classes(high) })) as Pod
    assert.equal(spec.priority, 1000)
    assert.equal(spec.preemptionPolicy, 'Never')
  })

  it('sets the lowest value of several default classes for a pod without priorityClassName', async () => {
    const world = classes(
      { metadata: { name: 'b' }, value: 7, globalDefault: true },
      { metadata: { name: 'a' }, value: 5, globalDefault: true },
    )
    const { spec } = (await admit(plugin, { resource: 'pods', object: pod(), world })) as Pod
    assert.equal(spec.priorityClassName, 'a')
    assert.equal(spec.priority, 5)
  })

  it('rejects a pod whose priority contradicts its PriorityClass', async () => {
    const refusalOf = (spec: object): Promise<string | undefined> =>
      refusal(plugin, { resource: 'pods', object: pod(spec), world: classes(high) })
    assert.equal(
      await refusalOf({ priorityClassName: 'low' }),
      'pods "p" is forbidden: no PriorityClass with name low was found',
    )
    assert.equal(
      await refusalOf({ priorityClassName: 'high', priority: 1 }),
      'pods "p" is forbidden: the integer value of priority (1) must not be provided in pod spec; priority admission controller computed 1000 from the given PriorityClass name',
    )
    assert.equal(
      await refusalOf({ priorityClassName: 'high', preemptionPolicy: 'PreemptLowerPriority' }),
      'pods "p" is forbidden: the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; priority admission controller computed Never from the given PriorityClass name',
    )
    assert.equal(await refusalOf({ priorityClassName: 'high', priority: 1000, preemptionPolicy: 'Never' }), undefined)
  })

  it('keeps the priority unchanged on update', async () => {
    const oldObject = pod({ priority: 3, preemptionPolicy: 'Never' })
    const { spec } = (await admit(plugin, { resource: 'pods', object: pod(), oldObject })) as Pod
    assert.equal(spec.priority, 3)
    assert.equal(spec.preemptionPolicy, 'Never')
  })

  it('rejects a second default PriorityClass', async () => {
    const one = { metadata: { name: 'one' }, value: 1, globalDefault: true }
    const two = { metadata: { name: 'two' }, value: 2, globalDefault: true }
    const resource = 'priorityclasses.scheduling.k8s.io'
    assert.equal(await refusal(plugin, { resource, object: one }), undefined)
    assert.equal(await refusal(plugin, { resource, object: one, oldObject: one, world: classes(one) }), undefined)
    assert.equal(
      await refusal(plugin, { resource, object: two, world: classes(one) }),
      'priorityclasses.scheduling.k8s.io "two" is forbidden: PriorityClass one is already marked as default. Only one default can exist',
    )
  })
})
