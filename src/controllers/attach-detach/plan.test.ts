import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import type { PersistentVolume } from '#apis/core/v1.ts'

import { attachableOf, attachmentName, csiIn } from '../attachable.ts'
import { planAttachments, type Seen, type Sight, UNMOUNT_MS } from './plan.ts'

const at = (node: string, more: Partial<Seen> = {}): Seen => ({
  node,
  isConfirmed: true,
  isMounted: false,
  unwantedMs: 0,
  isHealthy: true,
  isOutOfService: false,
  ...more,
})

const sight = (more: Partial<Sight>): Sight => ({
  isShared: false,
  wanted: [],
  attachments: [],
  mayForce: true,
  isBusy: () => false,
  ...more,
})

describe('a volume', () => {
  const overdue = { isMounted: true, unwantedMs: UNMOUNT_MS + 1 }
  const rows: [what: string, Partial<Sight>, string[]][] = [
    ['is attached where it is wanted', { wanted: ['a'] }, ['attach a']],
    ['is attached to one node at a time', { wanted: ['a', 'b'] }, ['attach a']],
    [
      'is attached to all that want it when it is shared',
      { isShared: true, wanted: ['a', 'b'] },
      ['attach a', 'attach b'],
    ],
    ['stays where it is wanted', { wanted: ['a'], attachments: [at('a')] }, []],
    [
      'is attached again when nobody knows whether it is',
      { wanted: ['a'], attachments: [at('a', { isConfirmed: false })] },
      ['attach a'],
    ],
    ['is detached before it is attached elsewhere', { wanted: ['b'], attachments: [at('a')] }, ['detach a checked']],
    [
      'is waited for while it is mounted elsewhere',
      { wanted: ['b'], attachments: [at('a', { isMounted: true })] },
      ['complain b a'],
    ],
    ['stays mounted at a healthy node for ever', { attachments: [at('a', overdue)] }, []],
    [
      'is taken from a node that is silent for too long',
      { attachments: [at('a', { ...overdue, isHealthy: false })] },
      ['detach a'],
    ],
    [
      'is never taken by force where that is forbidden',
      { mayForce: false, attachments: [at('a', { ...overdue, isHealthy: false })] },
      [],
    ],
    [
      'is taken at once from a node that is out of service',
      { attachments: [at('a', { isMounted: true, isOutOfService: true })] },
      ['detach a'],
    ],
    ['is left alone while something is under way', { wanted: ['b'], attachments: [at('a')], isBusy: () => true }, []],
  ]
  for (const [what, seen, expected] of rows) {
    it(what, () => {
      const steps = planAttachments(sight(seen)).steps.map((step) => {
        if (step.to === 'complain') return `complain ${step.node} ${step.elsewhere.join()}`
        return `${step.to} ${step.node}${step.to === 'detach' && step.isChecked ? ' checked' : ''}`
      })
      assert.deepEqual(steps, expected)
    })
  }

  it('is looked at again when its node has had enough time', () => {
    const { waitMs } = planAttachments(sight({ attachments: [at('a', { isMounted: true, unwantedMs: 1000 })] }))
    assert.equal(waitMs, UNMOUNT_MS - 999)
  })

  it('that is for one node never goes to a second, and never away from where it is wanted or mounted by the healthy', () => {
    const node = fc.constantFrom<string>('a', 'b', 'c')
    const seen = fc.record({
      node,
      isConfirmed: fc.boolean(),
      isMounted: fc.boolean(),
      unwantedMs: fc.nat(2 * UNMOUNT_MS),
      isHealthy: fc.boolean(),
      isOutOfService: fc.boolean(),
    })
    const attachments = fc.uniqueArray(seen, { selector: (one) => one.node, maxLength: 3 })
    const wanted = fc.uniqueArray(node, { maxLength: 3 })
    fc.assert(
      fc.property(attachments, wanted, fc.boolean(), (there, nodes, mayForce) => {
        const { steps } = planAttachments(sight({ attachments: there, wanted: nodes, mayForce }))
        const attached = steps.filter(({ to }) => to === 'attach')
        const confirmed = there.filter(({ isConfirmed }) => isConfirmed)
        assert.ok(attached.length === 0 || (attached.length === 1 && confirmed.length === 0))
        for (const step of steps.filter(({ to }) => to === 'detach')) {
          const from = there.find((one) => one.node === step.node)
          assert.ok(!nodes.includes(step.node) && !attached.includes(step))
          assert.ok(!(from?.isMounted && from.isHealthy && !from.isOutOfService))
        }
      }),
    )
  })
})

describe('what is attached', () => {
  const volume = (spec: PersistentVolume['spec']): PersistentVolume => ({ metadata: { name: 'v' }, spec, status: {} })

  it('has the name that nodes report', () => {
    const csi = { driver: 'csi.example.com', volumeHandle: 'h1' }
    const rows: [PersistentVolume['spec'], string | undefined][] = [
      [{ csi }, 'kubernetes.io/csi/csi.example.com^h1'],
      [{ iscsi: { targetPortal: '1.2.3.4:3260', iqn: 'iqn.x', lun: 2 } }, 'kubernetes.io/iscsi/1.2.3.4:3260:iqn.x:2'],
      [{ fc: { targetWWNs: ['a', 'b'], lun: 1 } }, 'kubernetes.io/fc/[a b]:1'],
      [{ fc: { wwids: ['w'] } }, 'kubernetes.io/fc/[w]'],
      [{ hostPath: { path: '/x' } }, undefined],
    ]
    for (const [spec, expected] of rows) assert.equal(attachableOf(volume(spec))?.name, expected)
    assert.deepEqual(csiIn('kubernetes.io/csi/csi.example.com^h1'), { driver: 'csi.example.com', handle: 'h1' })
  })

  it('is asked for by the name that upstream gives', () => {
    assert.equal(
      attachmentName({ driver: 'csi.example.com', handle: 'h1' }, 'n1'),
      'csi-8157d03abc5a2bde671ba3121addefb9168531d96b38761bc92ae350c651387b',
    )
  })
})
