/** Tests what a real container sees of the kubelet's configuration, and the metrics of that container. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'

import { realClock, sleep } from '#lib/clock.ts'

import { pageOf, startKubeletBed } from '../../upstream/kubelet-bed.ts'
import { IMAGE, whyNoContainerd } from './containerd-bed.ts'

const fault = (await whyNoContainerd()) ?? (availableParallelism() < 2 ? 'there is one processor only' : undefined)

const PODS = '/api/v1/namespaces/default/pods'
const PATIENCE_MS = 120_000

async function until<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += 100) {
    const found = await look()
    if (found !== undefined) return found
    await sleep(realClock, 100)
  }
  throw new Error('It did not come')
}

const SCRIPT = [
  'cat /proc/self/status',
  'cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu/cpu.cfs_period_us /sys/fs/cgroup/cpu.max 2>/dev/null',
  'echo done',
  'sleep 3600',
].join('; ')

describe('container with static CPU manager and default seccomp', { skip: fault ?? false }, () => {
  it('has an exclusive CPU and the default seccomp profile, and its usage is reported', async () => {
    await using closing = new AsyncDisposableStack()
    const bed = await startKubeletBed('configured', closing)
    const kubelet = await bed.start('sources', {
      cpuManagerPolicy: 'static',
      memoryManagerPolicy: 'Static',
      systemReserved: { cpu: '1', memory: '924Mi' },
      reservedMemory: [{ numaNode: 0, limits: { memory: '1Gi' } }],
      seccompDefault: true,
      podPidsLimit: 200,
      featureGates: { CustomCPUCFSQuotaPeriod: true },
      cpuCFSQuotaPeriod: '20ms',
    })
    const resources = { limits: { cpu: '1', memory: '64Mi' } }
    const volumes = [{ name: 'e', emptyDir: {} }]
    const volumeMounts = [{ name: 'e', mountPath: '/e' }]
    const container = { name: 'c', image: IMAGE, command: ['sh', '-c', SCRIPT], resources, volumeMounts }
    const spec = { nodeName: bed.node, automountServiceAccountToken: false, volumes, containers: [container] }
    await bed.ask('POST', PODS, { metadata: { name: 'pinned' }, spec: { ...spec, terminationGracePeriodSeconds: 0 } })
    const log = await until(async () => {
      const text = await pageOf(bed, kubelet, '/containerLogs/default/pinned/c')
      return text.includes('done\n') ? text : undefined
    })
    const allowed = /^Cpus_allowed_list:\s+(.*)$/m.exec(log)?.[1]
    assert.match(allowed ?? '', /^\d+$/, 'one processor, and one only')
    assert.match(log, /^Seccomp:\s+2$/m)
    assert.match(log, /^(?:20000|\S+ 20000)$/m, 'the period that was configured')
    assert.match(log, /^(?:-1|max 20000)$/m, 'who has a processor of its own may use it up')
    assert.match(log, /^Mems_allowed_list:\s+0$/m)
    const state = await readFile(join(kubelet.rootDir, 'memory_manager_state'), 'utf8')
    assert.match(state, /"entries":\{"[^"]+":\{"c":\[\{"numaAffinity":\[0\],"type":"memory","size":67108864\}\]\}\}/)
    const metrics = await pageOf(bed, kubelet, '/metrics')
    assert.match(metrics, /^kubelet_cpu_manager_exclusive_cpu_allocation_count 1$/m)
    assert.match(metrics, /^kubelet_memory_manager_pinning_requests_total 1$/m)
    assert.match(metrics, /^kubelet_started_containers_total\{container_type="container"\} 1$/m)
    const cadvisor = await pageOf(bed, kubelet, '/metrics/cadvisor')
    const ofContainer = (name: string): RegExp =>
      new RegExp(`^${name}\\{container="c",.*pod="pinned".*\\} (?!0$)\\d`, 'm')
    for (const name of [
      'container_cpu_usage_seconds_total',
      'container_memory_working_set_bytes',
      'container_memory_rss',
      'container_spec_memory_limit_bytes',
      'container_processes',
      'container_threads',
      'container_file_descriptors',
      'container_start_time_seconds',
    ]) {
      assert.match(cadvisor, ofContainer(name))
    }
    assert.match(cadvisor, /^container_network_receive_packets_total\{.*interface="eth0".*pod="pinned".*\} [1-9]/m)
    assert.match(cadvisor, /^container_fs_limit_bytes\{.*id="\/",.*\} [1-9]/m)
    const summary = JSON.parse(await pageOf(bed, kubelet, '/stats/summary')) as Summary
    const [pod] = summary.pods
    assert.ok((summary.node.fs?.capacityBytes ?? 0) > 0)
    assert.ok((pod?.['ephemeral-storage']?.usedBytes ?? 0) > 0)
    assert.ok((pod?.process_stats?.process_count ?? 0) >= 2, 'the container, and what holds its sandbox')
    assert.deepEqual(
      pod?.volume?.map(({ name }) => name),
      ['e'],
    )
    await bed.ask('DELETE', `${PODS}/pinned?gracePeriodSeconds=0`)
  })
})

interface Summary {
  readonly node: { readonly fs?: { readonly capacityBytes: number } }
  readonly pods: readonly {
    readonly 'ephemeral-storage'?: { readonly usedBytes: number }
    readonly process_stats?: { readonly process_count: number }
    readonly volume?: readonly { readonly name: string }[]
  }[]
}
