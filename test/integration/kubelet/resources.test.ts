/** What a kubelet is configured with, as a real container sees it; and what it tells of such a container. */
import assert from 'node:assert/strict'
import { request } from 'node:https'
import { availableParallelism } from 'node:os'
import { describe, it } from 'node:test'

import { realClock, sleep } from '#lib/clock.ts'

import { type KubeletBed, type RunningKubelet, startKubeletBed } from '../../upstream/kubelet-bed.ts'
import { IMAGE, whyNoContainerd } from './containerd-bed.ts'

const fault = (await whyNoContainerd()) ?? (availableParallelism() < 2 ? 'there is one processor only' : undefined)

const PODS = '/api/v1/namespaces/default/pods'
const PATIENCE_MS = 120_000

/** Of the kubelet, with the certificate of the administrator. */
function page({ server: { tls } }: KubeletBed, { port }: RunningKubelet, path: string): Promise<string> {
  const { cert, key } = tls
  return new Promise((resolve, reject) => {
    const asking = request({ host: '127.0.0.1', port, path, cert, key, rejectUnauthorized: false }, (answer) => {
      const pieces: Buffer[] = []
      answer.on('data', (piece: Buffer) => pieces.push(piece))
      answer.on('end', () => resolve(Buffer.concat(pieces).toString()))
    })
    asking.on('error', reject)
    asking.end()
  })
}

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
  'cat /sys/fs/cgroup/cpu/cpu.cfs_period_us /sys/fs/cgroup/cpu.max 2>/dev/null',
  'echo done',
  'sleep 3600',
].join('; ')

describe('a container of a kubelet that is configured', { skip: fault ?? false }, () => {
  it('has a processor of its own, and is kept from unusual calls; what it uses is told', async () => {
    await using closing = new AsyncDisposableStack()
    const bed = await startKubeletBed('configured', closing)
    const kubelet = await bed.start('sources', {
      cpuManagerPolicy: 'static',
      systemReserved: { cpu: '1' },
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
      const text = await page(bed, kubelet, '/containerLogs/default/pinned/c')
      return text.includes('done\n') ? text : undefined
    })
    const allowed = /^Cpus_allowed_list:\s+(.*)$/m.exec(log)?.[1]
    assert.match(allowed ?? '', /^\d+$/, 'one processor, and one only')
    assert.match(log, /^Seccomp:\s+2$/m)
    assert.match(log, /^(?:20000|\S+ 20000)$/m, 'the period that was configured')
    const metrics = await page(bed, kubelet, '/metrics')
    assert.match(metrics, /^kubelet_cpu_manager_exclusive_cpu_allocation_count 1$/m)
    assert.match(metrics, /^kubelet_started_containers_total\{container_type="container"\} 1$/m)
    const summary = JSON.parse(await page(bed, kubelet, '/stats/summary')) as Summary
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
