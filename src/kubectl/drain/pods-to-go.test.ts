import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'

import { type DaemonSetState, type DrainWish, type PodsToGo, podsToGo } from './pods-to-go.ts'

const WISH: DrainWish = { force: false, ignoreDaemonSets: false, deleteEmptyDirData: false, skipDeletedAfterSeconds: 0 }
const NOW = Date.parse('2026-01-01T00:10:00Z')

function pod(name: string, { owner, ...more }: { owner?: string } & Partial<Pod> = {}): Pod {
  const owners =
    owner === undefined
      ? {}
      : { ownerReferences: [{ kind: owner, apiVersion: 'apps/v1', name: 'o', controller: true, uid: 'u' }] }
  return { spec: {}, ...more, metadata: { name, namespace: 'ns', ...owners, ...more.metadata } } as unknown as Pod
}

const judge = (
  pods: readonly Pod[],
  wish: Partial<DrainWish> = {},
  state: DaemonSetState = 'there',
): Promise<PodsToGo> => podsToGo(pods, { ...WISH, ...wish }, { nowMs: NOW, daemonSetOf: () => Promise.resolve(state) })

describe('pods of a node that is drained', () => {
  it('go when a controller makes them again', async () => {
    const { pods, errors } = await judge([pod('a', { owner: 'ReplicaSet' })])
    assert.deepEqual([pods.length, errors], [1, []])
  })

  it('stand in the way when nobody does, unless it is forced', async () => {
    const text = 'cannot delete Pods that declare no controller (use --force to override): ns/a, ns/b'
    assert.deepEqual((await judge([pod('a'), pod('b')])).errors, [text])
    const { pods, warnings } = await judge([pod('a')], { force: true })
    assert.deepEqual([pods.length, warnings], [1, 'deleting Pods that declare no controller: ns/a'])
  })

  it('of daemon sets stay', async () => {
    const own = pod('a', { owner: 'DaemonSet' })
    const text = 'cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): ns/a'
    assert.deepEqual((await judge([own])).errors, [text])
    const { pods, warnings } = await judge([own], { ignoreDaemonSets: true })
    assert.deepEqual([pods.length, warnings], [0, 'ignoring DaemonSet-managed Pods: ns/a'])
    const orphan = await judge([own], { force: true }, { isMissing: true, message: 'gone' })
    assert.equal(orphan.pods.length, 1)
  })

  it('with local data need a word of their own', async () => {
    const local = pod('a', { owner: 'ReplicaSet', spec: { volumes: [{ name: 'v', emptyDir: {} }] } as never })
    const text = 'cannot delete Pods with local storage (use --delete-emptydir-data to override): ns/a'
    assert.deepEqual((await judge([local])).errors, [text])
    assert.equal((await judge([local], { deleteEmptyDirData: true })).pods.length, 1)
    assert.equal((await judge([{ ...local, status: { phase: 'Succeeded' } }])).pods.length, 1)
  })

  it('that the node runs by itself, or that should be gone for long, are left alone', async () => {
    const mirror = pod('a', { metadata: { annotations: { 'kubernetes.io/config.mirror': 'x' }, name: 'a' } })
    const stuck = pod('b', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z', name: 'b' } })
    const { pods, errors } = await judge([mirror, stuck], { skipDeletedAfterSeconds: 60 })
    assert.deepEqual([pods, errors], [[], []])
  })
})
