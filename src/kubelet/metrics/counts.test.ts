import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'
import { createVirtualClock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { createRegistry } from '#lib/metrics/metrics.ts'
import type { Certificate } from '#lib/x509/certificate.ts'

import { bedOf, podOf } from '../pods/worker.fixture.ts'
import { registerVolumeMetrics } from '../volumes/volume-metrics.ts'
import { countClientCertificate, countServerCertificate } from './certificate-metrics.ts'
import { createKubeletMeters } from './kubelet-families.ts'
import { NodeStartup } from './node-startup.ts'
import { ProbeCounts } from './probe-counts.ts'
import { countRequests, pathClass } from './request-counts.ts'

function shows(page: string, lines: readonly string[]): void {
  const all = page.split('\n')
  for (const line of lines) assert.ok(all.includes(line), `${line}\n${page}`)
}

test('kubelet metrics measure pod start durations from the first sight of the pod until it runs', async () => {
  const meters = createKubeletMeters()
  const { clock, workers } = bedOf({}, { meters })
  workers.updatePod({ type: 'ADDED', object: podOf() })
  await clock.advance(5000)
  shows(meters.registry.render(), [
    'kubelet_containers_per_pod_count_count 1',
    'kubelet_pod_start_duration_seconds_count 1',
    'kubelet_pod_worker_duration_seconds_count{operation_type="create"} 1',
    'kubelet_pod_worker_start_duration_seconds_count 1',
    'kubelet_run_podsandbox_duration_seconds_count{runtime_handler=""} 1',
    'kubelet_started_containers_total{container_type="container"} 1',
    'kubelet_started_pods_total 1',
  ])
  assert.match(meters.registry.render(), /^kubelet_pod_status_sync_duration_seconds_count [1-9]/m)
  assert.match(meters.registry.render(), /^kubelet_image_pull_duration_seconds_count\{image_size_in_bytes="\S+"\} 1$/m)
  assert.match(meters.registry.render(), /^kubelet_pleg_relist_duration_seconds_count [1-9]/m)
  await workers.stop()
})

test('kubelet metrics count rejected pods by reason', async () => {
  const meters = createKubeletMeters()
  const { clock, workers } = bedOf({}, { meters })
  const resources = { requests: { cpu: '500' } }
  const containers = [{ name: 'c', image: 'nginx:1', resources }] as Pod['spec']['containers']
  workers.updatePod({ type: 'ADDED', object: podOf({ containers }) })
  await clock.advance(2000)
  shows(meters.registry.render(), ['kubelet_admission_rejections_total{reason="OutOfcpu"} 1'])
  await workers.stop()
})

test('kubelet metrics count probes while the container exists', () => {
  const counts = new ProbeCounts()
  const pod = podOf()
  counts.count(pod, 'c', 'Liveness', { result: 'successful', seconds: 0.5 })
  counts.count(pod, 'c', 'Liveness', { result: 'failed', seconds: 1 })
  const labels = 'container="c",namespace="default",pod="web"'
  shows(counts.registry.render(), [
    `prober_probe_total{${labels},pod_uid="u1",probe_type="Liveness",result="successful"} 1`,
    `prober_probe_total{${labels},pod_uid="u1",probe_type="Liveness",result="failed"} 1`,
    `prober_probe_duration_seconds_count{${labels},probe_type="Liveness"} 1`,
  ])
  counts.forget(pod, 'c')
  assert.equal(counts.registry.render(), '')
})

test('kubelet metrics count HTTP requests by a bounded set of paths', async () => {
  assert.equal(pathClass('/metrics/cadvisor?x=1'), 'metrics/cadvisor')
  assert.equal(pathClass('/containerLogs/ns/pod/c'), 'containerLogs')
  assert.equal(pathClass('/anything/else'), 'other')
  const meters = createKubeletMeters()
  const serve = countRequests(
    meters,
    createVirtualClock(),
    false,
  )(async () => {
    shows(meters.registry.render(), [`kubelet_http_inflight_requests{${labels}} 1`])
  })
  const labels = 'long_running="true",method="POST",path="exec",server_type="readwrite"'
  await serve({ path: '/exec/ns/p/c', method: 'POST', upgradeProtocol: 'websocket' } as unknown as Exchange)
  shows(meters.registry.render(), [
    `kubelet_http_inflight_requests{${labels}} 0`,
    `kubelet_http_requests_total{${labels}} 1`,
    `kubelet_http_requests_duration_seconds_count{${labels}} 1`,
    'kubelet_websocket_streaming_requests_total{subresource="exec"} 1',
  ])
})

test('kubelet metrics contain startup durations only for a newly registered node', async () => {
  const clock = createVirtualClock()
  const meters = createKubeletMeters()
  for (const isNew of [false, true]) {
    const startup = new NodeStartup(meters, clock, clock.now() - 10_000)
    await clock.advance(1000)
    startup.registering()
    await clock.advance(2000)
    startup.registered(isNew)
    await clock.advance(3000)
    startup.ready()
    startup.ready()
    if (!isNew) assert.equal(meters.registry.render(), '')
  }
  shows(meters.registry.render(), [
    'kubelet_node_startup_duration_seconds 16',
    'kubelet_node_startup_pre_kubelet_duration_seconds 10',
    'kubelet_node_startup_pre_registration_duration_seconds 1',
    'kubelet_node_startup_registration_duration_seconds 2',
    'kubelet_node_startup_post_registration_duration_seconds 3',
  ])
})

test('kubelet metrics contain the remaining lifetime of certificates and their rotations', () => {
  const clock = createVirtualClock()
  const registry = createRegistry()
  const leaf = { notBeforeMs: clock.now() - 7000, notAfterMs: clock.now() + 60_500 } as Certificate
  const client = countClientCertificate(registry, clock)
  client.follow(() => leaf)
  client.failed()
  const server = countServerCertificate(registry, clock)
  server.follow(() => undefined)
  server.rotated(leaf)
  shows(registry.render(), [
    'kubelet_certificate_manager_client_ttl_seconds 60',
    'kubelet_certificate_manager_client_expiration_renew_errors 1',
    'kubelet_certificate_manager_server_ttl_seconds +Inf',
    'kubelet_certificate_manager_server_rotation_seconds_sum 7',
    'kubelet_server_expiration_renew_errors 0',
  ])
})

test('kubelet metrics contain the usage of each PersistentVolumeClaim once', () => {
  const meters = createKubeletMeters()
  const use = { availableBytes: 1, capacityBytes: 3, usedBytes: 2, inodesFree: 4, inodes: 9, inodesUsed: 5, name: 'v' }
  const claimed = { ...use, claim: { name: 'c', namespace: 'n' }, isAbnormal: false }
  const counts = (): { plugin: string; desired: number; actual: number }[] => [
    { plugin: 'kubernetes.io/secret', desired: 2, actual: 2 },
  ]
  registerVolumeMetrics(meters, { counts }, () => [use, claimed, claimed])
  shows(meters.registry.render(), [
    'kubelet_volume_stats_used_bytes{namespace="n",persistentvolumeclaim="c"} 2',
    'kubelet_volume_stats_inodes_free{namespace="n",persistentvolumeclaim="c"} 4',
    'kubelet_volume_stats_health_status_abnormal{namespace="n",persistentvolumeclaim="c"} 0',
    'volume_manager_total_volumes{plugin_name="kubernetes.io/secret",state="actual_state_of_world"} 2',
  ])
})
