import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import type { PersistentVolume } from '#apis/core/v1.ts'

import { attachableOf, attachmentName, csiIn } from '../attachable.ts'
import { type AttachmentView, planAttachments, UNMOUNT_MS, type VolumeView } from './plan.ts'

const at = (node: string, more: Partial<AttachmentView> = {}): AttachmentView => ({
  node,
  isConfirmed: true,
  isMounted: false,
  unwantedMs: 0,
  isHealthy: true,
  isOutOfService: false,
  ...more,
})

const sight = (more: Partial<VolumeView>): VolumeView => ({
  isShared: false,
  wanted: [],
  attachments: [],
  mayForce: true,
  isBusy: () => false,
  ...more,
})

describe('planAttachments() of a volume', () => {
  const overdue = { isMounted: true, unwantedMs: UNMOUNT_MS + 1 }
  const rows: [what: string, Partial<VolumeView>, string[]][] = [
    ['attaches the volume to the node of the pod that uses it', { wanted: ['a'] }, ['attach a']],
    ['attaches the volume to one node at a time', { wanted: ['a', 'b'] }, ['attach a']],
    [
      'attaches a shared volume to the nodes of all pods that use it',
      { isShared: true, wanted: ['a', 'b'] },
      ['attach a', 'attach b'],
    ],
    ['keeps an attachment that a pod uses', { wanted: ['a'], attachments: [at('a')] }, []],
    [
      'attaches again if the result of the first attempt is unknown',
      { wanted: ['a'], attachments: [at('a', { isConfirmed: false })] },
      ['attach a'],
    ],
    [
      'detaches the volume from one node before it attaches it to another',
      { wanted: ['b'], attachments: [at('a')] },
      ['detach a checked'],
    ],
    [
      'waits while the volume is mounted on another node',
      { wanted: ['b'], attachments: [at('a', { isMounted: true })] },
      ['complain b a'],
    ],
    ['never detaches a mounted volume from a healthy node', { attachments: [at('a', overdue)] }, []],
    [
      'detaches a mounted volume from a node that is unresponsive for too long',
      { attachments: [at('a', { ...overdue, isHealthy: false })] },
      ['detach a'],
    ],
    [
      'never detaches a mounted volume if force detach is disabled',
      { mayForce: false, attachments: [at('a', { ...overdue, isHealthy: false })] },
      [],
    ],
    [
      'detaches a mounted volume at once from an out-of-service node',
      { attachments: [at('a', { isMounted: true, isOutOfService: true })] },
      ['detach a'],
    ],
    ['plans nothing while an operation is pending', { wanted: ['b'], attachments: [at('a')], isBusy: () => true }, []],
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

  it('returns the time until the node must have unmounted the volume', () => {
    const { waitMs } = planAttachments(sight({ attachments: [at('a', { isMounted: true, unwantedMs: 1000 })] }))
    assert.equal(waitMs, UNMOUNT_MS - 999)
  })

  it('never attaches an exclusive volume twice, and never detaches one that a healthy node uses', () => {
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

describe('volume names in the attach/detach controller', () => {
  const volume = (spec: PersistentVolume['spec']): PersistentVolume => ({ metadata: { name: 'v' }, spec, status: {} })

  it('equal the names that kubelets report in volumesInUse', () => {
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

  it("yield upstream's names of VolumeAttachments", () => {
    assert.equal(
      attachmentName({ driver: 'csi.example.com', handle: 'h1' }, 'n1'),
      'csi-8157d03abc5a2bde671ba3121addefb9168531d96b38761bc92ae350c651387b',
    )
  })
})
