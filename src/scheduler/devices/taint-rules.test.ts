import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { ResourceSlice } from '#apis/resource/v1.ts'
import type { DeviceTaintRule } from '#apis/resource/v1beta2.ts'

import { withTaints } from './taint-rules.ts'

const own = { key: 'own', effect: 'NoSchedule' as const }
const slice: ResourceSlice = {
  metadata: { name: 's' },
  spec: {
    driver: 'd',
    pool: { name: 'p', generation: 1, resourceSliceCount: 1 },
    nodeName: 'n',
    devices: [{ name: 'a' }, { name: 'b', taints: [own] }],
  },
}

const rule = (deviceSelector: DeviceTaintRule['spec']['deviceSelector'], key = 'k'): DeviceTaintRule => ({
  metadata: { name: key },
  spec: { ...(deviceSelector !== undefined && { deviceSelector }), taint: { key, effect: 'NoSchedule' } },
  status: {},
})

/** The taint keys of each device. */
const keys = (...rules: readonly DeviceTaintRule[]): string[] =>
  (withTaints(slice, rules).spec.devices ?? []).map(({ taints = [] }) => taints.map(({ key }) => key).join(' '))

describe('DeviceTaintRules', () => {
  it('add taints to the devices that they select, beside those of the driver', () => {
    assert.deepEqual(keys(rule({})), ['k', 'own k'])
    assert.deepEqual(keys(rule(undefined)), ['k', 'own k'])
    assert.deepEqual(keys(rule({ driver: 'd', pool: 'p', device: 'a' })), ['k', 'own'])
    assert.deepEqual(keys(rule({ device: 'b' }, 'x'), rule({ pool: 'p' }, 'y')), ['y', 'own x y'])
  })

  it('leave other devices unchanged', () => {
    assert.equal(withTaints(slice, [rule({ driver: 'other' }), rule({ pool: 'other' })]), slice)
    assert.deepEqual(keys(rule({ device: 'c' })), ['', 'own'])
  })
})
