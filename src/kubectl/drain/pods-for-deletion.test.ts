import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'

import { type DaemonSetState, type DrainOptions, type PodsForDeletion, podsForDeletion } from './pods-for-deletion.ts'

const OPTIONS: DrainOptions = {
  force: false,
  ignoreDaemonSets: false,
  deleteEmptyDirData: false,
  skipDeletedAfterSeconds: 0,
}
const NOW = Date.parse('2026-01-01T00:10:00Z')

function pod(name: string, { owner, ...more }: { owner?: string } & Partial<Pod> = {}): Pod {
  const owners =
    owner === undefined
      ? {}
      : { ownerReferences: [{ kind: owner, apiVersion: 'apps/v1', name: 'o', controller: true, uid: 'u' }] }
  return { spec: {}, ...more, metadata: { name, namespace: 'ns', ...owners, ...more.metadata } } as unknown as Pod
}

const decide = (
  pods: readonly Pod[],
  options: Partial<DrainOptions> = {},
  state: DaemonSetState = 'there',
): Promise<PodsForDeletion> =>
  podsForDeletion(pods, { ...OPTIONS, ...options }, { nowMs: NOW, daemonSetOf: () => Promise.resolve(state) })

describe('kubectl drain', () => {
  it('evicts pods that a controller recreates', async () => {
    const { pods, errors } = await decide([pod('a', { owner: 'ReplicaSet' })])
    assert.deepEqual([pods.length, errors], [1, []])
  })

  it('refuses pods without a controller unless --force is set', async () => {
    const text = 'cannot delete Pods that declare no controller (use --force to override): ns/a, ns/b'
    assert.deepEqual((await decide([pod('a'), pod('b')])).errors, [text])
    const { pods, warnings } = await decide([pod('a')], { force: true })
    assert.deepEqual([pods.length, warnings], [1, 'deleting Pods that declare no controller: ns/a'])
  })

  it('keeps pods of DaemonSets', async () => {
    const own = pod('a', { owner: 'DaemonSet' })
    const text = 'cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): ns/a'
    assert.deepEqual((await decide([own])).errors, [text])
    const { pods, warnings } = await decide([own], { ignoreDaemonSets: true })
    assert.deepEqual([pods.length, warnings], [0, 'ignoring DaemonSet-managed Pods: ns/a'])
    const orphan = await decide([own], { force: true }, { isMissing: true, message: 'gone' })
    assert.equal(orphan.pods.length, 1)
  })

  it('requires --delete-emptydir-data for pods with emptyDir volumes', async () => {
    const local = pod('a', { owner: 'ReplicaSet', spec: { volumes: [{ name: 'v', emptyDir: {} }] } as never })
    const text = 'cannot delete Pods with local storage (use --delete-emptydir-data to override): ns/a'
    assert.deepEqual((await decide([local])).errors, [text])
    assert.equal((await decide([local], { deleteEmptyDirData: true })).pods.length, 1)
    assert.equal((await decide([{ ...local, status: { phase: 'Succeeded' } }])).pods.length, 1)
  })

  it('skips static pods and pods whose deletion began long ago', async () => {
    const mirror = pod('a', { metadata: { annotations: { 'kubernetes.io/config.mirror': 'x' }, name: 'a' } })
    const stuck = pod('b', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z', name: 'b' } })
    const { pods, errors } = await decide([mirror, stuck], { skipDeletedAfterSeconds: 60 })
    assert.deepEqual([pods, errors], [[], []])
  })
})
