import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'
import { timeOf } from '#meta/time.ts'

import { createKubeletMeters, type KubeletMeters } from './kubelet-families.ts'
import { PodStartup, spannedMs } from './pod-startup.ts'

const CREATED_MS = 1_000_000

const podOf = (status: Pod['status'], spec: Partial<Pod['spec']> = {}): Pod => ({
  metadata: { name: 'p', creationTimestamp: timeOf(CREATED_MS) },
  spec: { containers: [], ...spec },
  status,
})
const RUNNING: Pod['status'] = {
  phase: 'Running',
  containerStatuses: [{ name: 'c', image: 'i', state: { running: {} } }] as unknown as NonNullable<
    Pod['status']['containerStatuses']
  >,
}

const sumOf = ({ registry }: KubeletMeters, name: string): string | undefined =>
  new RegExp(`^${name}_sum (.*)$`, 'm').exec(registry.render())?.[1]

test('the pod start duration subtracts overlapping image pulls only once', () => {
  assert.equal(spannedMs([]), 0)
  assert.equal(
    spannedMs([
      { startMs: 5, endMs: 9 },
      { startMs: 0, endMs: 4 },
      { startMs: 1, endMs: 6 },
    ]),
    9,
  )
})

test('the pod start duration ends when the API server reports the start, without image pulls and init containers', () => {
  const meters = createKubeletMeters()
  const startup = new PodStartup(meters, podOf({ phase: 'Pending' }))
  startup.pulled({ startMs: 0, endMs: 2000 })
  startup.initialised(1000)
  startup.observePod(podOf(RUNNING), CREATED_MS + 4000)
  assert.equal(sumOf(meters, 'kubelet_pod_start_total_duration_seconds'), undefined, 'no container has started')
  startup.runs(CREATED_MS + 500, CREATED_MS + 4500)
  startup.runs(CREATED_MS + 500, CREATED_MS + 9000)
  startup.observePod(podOf(RUNNING), CREATED_MS + 5000)
  startup.observePod(podOf(RUNNING), CREATED_MS + 8000)
  assert.equal(sumOf(meters, 'kubelet_pod_start_duration_seconds'), '4')
  assert.equal(sumOf(meters, 'kubelet_pod_start_total_duration_seconds'), '5')
  assert.equal(sumOf(meters, 'kubelet_pod_start_sli_duration_seconds'), '2')
  assert.match(meters.registry.render(), /^kubelet_first_network_pod_start_sli_duration_seconds 2$/m)
})

test('the pod start duration is not measured for pods from before a restart or with external volumes', () => {
  const meters = createKubeletMeters()
  const old = new PodStartup(meters, podOf({ ...RUNNING, startTime: timeOf(CREATED_MS) }))
  old.runs(0, 1000)
  old.observePod(podOf(RUNNING), CREATED_MS + 1000)
  assert.equal(sumOf(meters, 'kubelet_pod_start_total_duration_seconds'), undefined)
  const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }]
  const stateful = new PodStartup(meters, podOf({ phase: 'Pending' }))
  stateful.runs(0, 1000)
  stateful.observePod(podOf(RUNNING, { volumes }), CREATED_MS + 1000)
  assert.equal(sumOf(meters, 'kubelet_pod_start_total_duration_seconds'), '1')
  assert.equal(sumOf(meters, 'kubelet_pod_start_sli_duration_seconds'), undefined)
})
