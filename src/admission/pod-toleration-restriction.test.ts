import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Pod, Toleration } from '#apis/core/v1.ts'
import { admit, refusalStatus, type SampleWrite } from '#kits/admission/sample-write.ts'

import { type ClusterTolerations, createPodTolerationRestriction } from './pod-toleration-restriction.ts'

interface Case {
  readonly own?: readonly Toleration[]
  readonly isBurstable?: boolean
  readonly isUpdate?: boolean
  readonly defaults?: string
  readonly whitelist?: string
  readonly cluster?: ClusterTolerations
}

const plugin = ({ cluster = {} }: Case): ReturnType<typeof createPodTolerationRestriction> =>
  createPodTolerationRestriction({ isEnabled: () => true, podTolerations: cluster })

function write({ own, isBurstable, isUpdate, defaults, whitelist }: Case): SampleWrite {
  const resources = isBurstable === true ? { requests: { cpu: '1' } } : {}
  const spec = { containers: [{ name: 'c', resources }], tolerations: own }
  const pod = { metadata: { name: 'p' }, spec, status: {} }
  const annotations = {
    ...(defaults !== undefined && { 'scheduler.alpha.kubernetes.io/defaultTolerations': defaults }),
    ...(whitelist !== undefined && { 'scheduler.alpha.kubernetes.io/tolerationsWhitelist': whitelist }),
  }
  return {
    resource: 'pods',
    object: pod,
    ...(isUpdate === true && { oldObject: pod }),
    world: { namespaces: [{ metadata: { name: 'ns', annotations } }] },
  }
}

const a: Toleration = { key: 'a', operator: 'Equal', value: 'x', effect: 'NoSchedule' }
const anyA: Toleration = { key: 'a', operator: 'Exists' }
const b: Toleration = { key: 'b', operator: 'Exists' }
const pressure: Toleration = { key: 'node.kubernetes.io/memory-pressure', operator: 'Exists', effect: 'NoSchedule' }

describe('PodTolerationRestriction', () => {
  const merged: readonly (readonly [what: string, given: Case, tolerations: readonly Toleration[] | undefined])[] = [
    ['no memory pressure toleration to a BestEffort pod', {}, undefined],
    ['a memory pressure toleration to pods of other QoS classes', { isBurstable: true }, [pressure]],
    ['a memory pressure toleration on update as well', { isBurstable: true, isUpdate: true, own: [a] }, [a, pressure]],
    ['the default tolerations of the namespace', { own: [b], defaults: JSON.stringify([a]) }, [b, a]],
    ['the default tolerations of the cluster', { cluster: { default: [a] } }, [a]],
    ['no cluster default if the namespace has an empty one', { defaults: '', cluster: { default: [a] } }, undefined],
    ['no default tolerations on update', { isUpdate: true, cluster: { default: [a] } }, undefined],
    [
      'a default toleration and removes tolerations that it covers',
      { own: [a], defaults: JSON.stringify([anyA]) },
      [anyA],
    ],
    [
      'no toleration, but admits the pod, if the namespace has an empty whitelist',
      { own: [a], whitelist: '', cluster: { whitelist: [b] } },
      [a],
    ],
  ]
  for (const [what, given, tolerations] of merged) {
    it(`adds ${what}`, async () => {
      const pod = (await admit(plugin(given), write(given))) as Pod
      assert.deepEqual(pod.spec.tolerations, tolerations)
    })
  }

  const conflict = 'pod tolerations (possibly merged with namespace default tolerations) conflict with its'
  const refused: readonly (readonly [what: string, given: Case, message: string | undefined])[] = [
    ['that the whitelist of the namespace allows', { own: [a], whitelist: JSON.stringify([anyA]) }, undefined],
    [
      'that the whitelist of the namespace does not allow',
      { own: [b], whitelist: JSON.stringify([anyA]) },
      `${conflict} namespace whitelist`,
    ],
    [
      'that the whitelist of the cluster does not allow',
      { own: [b], cluster: { whitelist: [anyA] } },
      `${conflict} cluster whitelist`,
    ],
    [
      'from a namespace default that the whitelist does not allow',
      { defaults: JSON.stringify([b]), cluster: { whitelist: [anyA] } },
      `${conflict} cluster whitelist`,
    ],
    [
      'if the default in the namespace annotation is not a list',
      { defaults: '{}' },
      'json: cannot unmarshal object into Go value of type []v1.Toleration',
    ],
  ]
  for (const [what, given, message] of refused) {
    it(`${message === undefined ? 'admits' : 'rejects'} tolerations ${what}`, async () => {
      const status = await refusalStatus(plugin(given), write(given))
      assert.deepEqual([status?.code, status?.message], message === undefined ? [undefined, undefined] : [500, message])
    })
  }
})
