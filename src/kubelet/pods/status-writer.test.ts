import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Pod, PodCondition } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { activeCauses } from '#lib/causes.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { createKubeletMeters } from '../metrics/kubelet-families.ts'
import { StatusWriter } from './status-writer.ts'

interface Written {
  readonly status: { readonly conditions?: readonly Partial<PodCondition>[]; readonly phase?: string }
}

interface WriteRequest {
  readonly value: Written
  readonly causes: readonly string[]
  readonly answer: () => void
}

/** A server whose answers the test controls. */
function serverOf(): { client: ApiClient; requests: WriteRequest[] } {
  const requests: WriteRequest[] = []
  const patch = (_: unknown, __: unknown, { value }: { value: Written }): Promise<void> =>
    new Promise((resolve) => requests.push({ value, causes: activeCauses(), answer: resolve }))
  return { client: { patch, clock: createVirtualClock() } as unknown as ApiClient, requests }
}

const condition = (type: string, status: string, time = ''): PodCondition =>
  ({ type, status, ...(time !== '' && { lastTransitionTime: time }) }) as PodCondition

const podAt = (resourceVersion: string): Pod => ({
  metadata: { name: 'p', namespace: 'n', uid: 'u', resourceVersion },
  spec: { containers: [] },
  status: {},
})

function writerOf(client: ApiClient): StatusWriter {
  const pod = podAt('1')
  const signal = new AbortController().signal
  return new StatusWriter({
    client,
    random: createSeededRandom(1),
    pod,
    signal,
    onError: (error) => assert.fail(String(error)),
    synced: createKubeletMeters().family('kubelet_pod_status_sync_duration_seconds').labels(),
  })
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('the kubelet computes a pod status from the previous one, even if that is not written yet', async () => {
  const { client, requests } = serverOf()
  const writer = writerOf(client)
  const first = { conditions: [condition('Ready', 'True', '2026-01-01T00:00:01Z')] }
  writer.put(first, podAt('1'))
  assert.deepEqual(writer.latest, first)
  writer.put({ ...writer.latest, phase: 'Running' }, podAt('1'))
  requests[0]?.answer()
  await settle()
  assert.deepEqual(requests[1]?.value.status, { phase: 'Running' })
  requests[1]?.answer()
  await writer.settled()
  assert.equal(requests.length, 2)
})

test('the kubelet keeps a pod condition that another client writes during a pending status update', async () => {
  const { client, requests } = serverOf()
  const writer = writerOf(client)
  writer.put({ phase: 'Pending', conditions: [condition('Ready', 'False')] }, podAt('1'))
  writer.put({ phase: 'Running', conditions: [condition('Ready', 'True')] }, podAt('1'))
  writer.updateConditions([condition('example.com/gate', 'True')])
  requests[0]?.answer()
  await settle()
  const [, second] = requests
  assert.deepEqual(second?.value.status.conditions, [{ type: 'Ready', status: 'True' }])
  second?.answer()
  await writer.settled()
  assert.deepEqual(
    writer.latest.conditions?.map(({ type }) => type),
    ['example.com/gate', 'Ready'],
  )
})

test('the kubelet names the version of the pod that it acted on in each status update', async () => {
  const { client, requests } = serverOf()
  const writer = writerOf(client)
  writer.put({ phase: 'Pending' }, podAt('1'))
  writer.put({ phase: 'Running' }, podAt('5'))
  requests[0]?.answer()
  await settle()
  requests[1]?.answer()
  await writer.settled()
  assert.deepEqual(
    requests.map(({ causes }) => causes),
    [['pods/n/p@1'], ['pods/n/p@5']],
  )
})
