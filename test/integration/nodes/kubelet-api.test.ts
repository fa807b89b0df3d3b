import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { Pods } from '#apis/core/v1.ts'

import { type ClusterUnderTest, namespace, startCluster } from './cluster-under-test.ts'

const container = { name: 'c', image: 'img:1', resources: { requests: { cpu: '200m', memory: '64Mi' } } }
const script = 'echo starting; while true; do echo working; sleep 10; done'

async function asked({ client }: ClusterUnderTest, path: string): Promise<string> {
  const response = await client.ask({ method: 'GET', path })
  return response.text(1 << 20)
}

const log = (cluster: ClusterUnderTest, pod: string, query = ''): Promise<string> =>
  asked(cluster, `/api/v1/namespaces/${namespace}/pods/${pod}/log${query}`)

const messageOf = (error: unknown): string => (error as Error).message

describe('kubelet API of simulated nodes', () => {
  it('serves the logs that commands would write', async () => {
    await using cluster = await startCluster()
    await cluster.pod('web', { containers: [{ ...container, command: ['sh', '-c', script] }] })
    await cluster.pod('plain', {})
    await cluster.pod('crash', { containers: [{ ...container, command: ['sh', '-c', 'echo oh no; sleep 1; exit 1'] }] })
    await cluster.pod('stuck', {}, { 'simulated.hyperkube.io/pull-error': 'no such image' })
    await cluster.clock.advance(25_000)
    assert.equal(await log(cluster, 'web'), 'starting\nworking\nworking\nworking\n')
    assert.equal(await log(cluster, 'web', '?tailLines=1'), 'working\n')
    assert.equal(await log(cluster, 'web', '?sinceSeconds=10'), 'working\n')
    assert.equal(await log(cluster, 'web', '?limitBytes=5'), 'start')
    assert.match(await log(cluster, 'web', '?timestamps=true&tailLines=1'), /^2026-01-01T00:00:31\.\d{9}Z working\n$/)
    assert.equal(await log(cluster, 'plain'), 'simulated container "c" (img:1) started\n')
    assert.equal(await log(cluster, 'crash', '?previous=true'), 'oh no\n')
    const why = 'container "c" in pod "stuck" is waiting to start: trying and failing to pull image'
    assert.equal(await log(cluster, 'stuck').catch(messageOf), why)
  })

  it('streams new log lines until the container ends', async () => {
    await using cluster = await startCluster()
    await cluster.pod('job', {
      restartPolicy: 'Never',
      containers: [{ ...container, command: ['sh', '-c', 'echo one; sleep 5; echo two; sleep 5'] }],
    })
    await cluster.clock.advance(1000)
    const following = log(cluster, 'job', '?follow=true')
    await cluster.clock.advance(15_000)
    assert.equal(await following, 'one\ntwo\n')
  })

  it('serves stats and metrics derived from requests or annotations', async () => {
    await using cluster = await startCluster({ nodes: 1 })
    await cluster.pod('web', { containers: [container] })
    await cluster.pod('busy', { containers: [container] }, { 'simulated.hyperkube.io/cpu': '2' })
    await cluster.clock.advance(10_000)
    const proxy = '/api/v1/nodes/node-0/proxy'
    const summary = JSON.parse(await asked(cluster, `${proxy}/stats/summary`)) as Record<'pods', Stats[]>
    assert.deepEqual(
      summary.pods.map(({ podRef, cpu, memory }) => [podRef.name, cpu.usageNanoCores, memory.workingSetBytes]),
      [
        ['web', 100_000_000, 32 * 2 ** 20],
        ['busy', 2_000_000_000, 32 * 2 ** 20],
      ],
    )
    const metrics = await asked(cluster, `${proxy}/metrics/resource`)
    assert.match(
      metrics,
      /^container_memory_working_set_bytes\{container="c",namespace="default",pod="web"\} 33554432 \d+$/m,
    )
    assert.match(metrics, /^# HELP node_cpu_usage_seconds_total \[STABLE\] CPU time of the node/m)
  })

  it('explains why exec is not possible', async () => {
    await using cluster = await startCluster({ nodes: 1 })
    await cluster.pod('web')
    await cluster.clock.advance(1000)
    const path = `/api/v1/nodes/node-0/proxy/exec/${namespace}/web/c?command=sh`
    const refusal = await asked(cluster, path).catch(messageOf)
    assert.match(refusal, /exec is not possible on node node-0: its containers are simulated and run no programs/)
    assert.equal((await cluster.client.list(Pods)).items.length, 1)
  })
})

interface Stats {
  readonly podRef: { readonly name: string }
  readonly cpu: { readonly usageNanoCores: number }
  readonly memory: { readonly workingSetBytes: number }
}
