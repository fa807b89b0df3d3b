/**
 * Compares the exclusive resources that our kubelet and upstream's give a guaranteed pod on the same machine: `node
 * test/upstream/kubelet-topology.ts [policy …]` as root. They run one after the other, with each topology policy or
 * the named ones. The script compares state files, cgroups, the pod resources API and metrics, except for uids. Exits
 * with 1 on a difference.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'

import type { Pod } from '#apis/core/v1.ts'
import { PodResourcesLister } from '#apis/wire/pod-resources.ts'
import { memoryChecksum, type MemoryState } from '#kubelet/topology/memory-state.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { createGrpcClient } from '#lib/grpc/client.ts'
import { secureRandom } from '#lib/random.ts'

import { IMAGE, whyNoContainerd } from '../integration/kubelet/containerd-bed.ts'
import { type KubeletBed, type Make, pageOf, type RunningKubelet, startKubeletBed } from './kubelet-bed.ts'

const PODS = '/api/v1/namespaces/default/pods'
const PATIENCE_MS = 90_000

const SETTINGS = {
  cpuManagerPolicy: 'static',
  memoryManagerPolicy: 'Static',
  systemReserved: { cpu: '100m', memory: '512Mi' },
  kubeReserved: { memory: '412Mi' },
  evictionHard: { 'memory.available': '100Mi' },
  reservedMemory: [{ numaNode: 0, limits: { memory: '1Gi' } }],
}

const POLICIES = ['none', 'best-effort', 'restricted', 'single-numa-node']

/** Upstream counts a CPU twice if an init container had it and the next container gets it. */
const REUSED = /^kubelet_cpu_manager_(?:exclusive_cpu_allocation_count|shared_pool_size_millicores)$/

async function main(): Promise<number> {
  const fault = (await whyNoContainerd()) ?? (availableParallelism() < 2 ? 'there is one processor only' : undefined)
  if (fault !== undefined) throw new Error(`This cannot be tried here: ${fault}`)
  let count = 0
  const asked = process.argv.slice(2)
  for (const topologyManagerPolicy of asked.length > 0 ? asked : POLICIES) {
    await using closing = new AsyncDisposableStack()
    const bed = await startKubeletBed('compared', closing)
    const settings = { ...SETTINGS, topologyManagerPolicy }
    const [mine, reference] = [await given(bed, 'sources', settings), await given(bed, 'upstream', settings)]
    const differing = [...new Set([...mine.keys(), ...reference.keys()])].filter(
      (name) => !REUSED.test(name) && mine.get(name) !== reference.get(name),
    )
    process.stdout.write(`${topologyManagerPolicy}: ${mine.size} values, ${differing.length} differ\n`)
    for (const name of differing)
      process.stdout.write(`  ${name}: ${mine.get(name)}, upstream ${reference.get(name)}\n`)
    count += differing.length
  }
  return count === 0 ? 0 : 1
}

const container = (name: string, cpu: string, memory: string): object => {
  const amounts = { cpu, memory }
  const resources = { requests: amounts, limits: amounts }
  return { name, image: IMAGE, imagePullPolicy: 'Never', command: ['sleep', '3600'], resources }
}

/** By name: what was written, set and said. */
async function given(bed: KubeletBed, make: Make, settings: object): Promise<Map<string, string>> {
  const kubelet = await bed.start(make, settings)
  const values = new Map<string, string>()
  const common = { nodeName: bed.node, automountServiceAccountToken: false, terminationGracePeriodSeconds: 0 }
  const init = { ...container('init', '1', '96Mi'), command: ['true'] }
  const containers = [container('alone', '1', '64Mi'), container('shared', '100m', '32Mi')]
  await bed.ask('POST', PODS, { metadata: { name: 'held' }, spec: { ...common, initContainers: [init], containers } })
  const pod = await running(bed, 'held')
  const masked = (text: string): string => text.replaceAll(pod.metadata.uid ?? '', 'UID')
  for (const name of ['cpu_manager_state', 'memory_manager_state']) {
    const text = await readFile(join(kubelet.rootDir, name), 'utf8')
    // The checksum is of the uid too; that it is the right one is what a kubelet of either make says by starting.
    values.set(name, masked(text).replace(/"checksum":\d+/, '"checksum":N'))
    if (name === 'memory_manager_state') {
      const { checksum, ...state } = JSON.parse(text) as MemoryState & { checksum: number }
      values.set('checksum', String(checksum === memoryChecksum(state)))
    }
  }
  for (const [path, text] of cgroupsOf(bed, pod)) values.set(path, text)
  for (const [name, text] of await resourcesOf(kubelet)) values.set(name, masked(text))
  const metrics = await pageOf(bed, kubelet, '/metrics')
  for (const [, name = '', value = ''] of metrics.matchAll(/^(kubelet_(?:memory|cpu)_manager_\S+) (\S+)$/gm)) {
    values.set(name, value)
  }
  await bed.ask('DELETE', `${PODS}/held?gracePeriodSeconds=0`)
  await kubelet.stop('SIGTERM')
  await bed.ask('DELETE', `/api/v1/nodes/${bed.node}`)
  return values
}

async function running(bed: KubeletBed, name: string): Promise<Pod> {
  for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += 200) {
    const pod = await bed.ask<Pod>('GET', `${PODS}/${name}`)
    if (pod.status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')) return pod
    if (pod.status.phase === 'Failed') throw new Error(`${name} was refused: ${pod.status.message}`)
    await sleep(realClock, 200)
  }
  throw new Error(`${name} does not run`)
}

const FILES = [
  'cpu/cpu.cfs_quota_us',
  'cpu/cpu.shares',
  'cpuset/cpuset.cpus',
  'cpuset/cpuset.mems',
  'memory/memory.limit_in_bytes',
  'cpu.max',
  'cpu.weight',
  'cpuset.cpus',
  'cpuset.mems',
  'memory.max',
]

/** Reads the cgroup files of the pod and its containers, for both cgroup versions. */
function cgroupsOf({ machine }: KubeletBed, { metadata: { uid = '' }, status }: Pod): Map<string, string> {
  const values = new Map<string, string>()
  const parent = join(machine.places.cgroupParent, 'kubepods', `pod${uid}`)
  const ids = (status.containerStatuses ?? []).map(
    ({ name, containerID = '' }) => [name, containerID.split('//')[1]] as const,
  )
  for (const [name, id] of [['pod', ''], ...ids] as const) {
    for (const file of FILES) {
      const slash = file.indexOf('/')
      const path = join(
        '/sys/fs/cgroup',
        slash < 0 ? '' : file.slice(0, slash),
        parent,
        id ?? '',
        file.slice(slash + 1),
      )
      if (existsSync(path)) values.set(`${name} ${file}`, readFileSync(path, 'utf8').trim())
    }
  }
  if (values.size === 0) throw new Error(`There is no cgroup of the pod: ${readdirSync('/sys/fs/cgroup').join()}`)
  return values
}

/** As the pod resources API tells it. */
async function resourcesOf({ rootDir }: RunningKubelet): Promise<Map<string, string>> {
  const path = join(rootDir, 'pod-resources', 'kubelet.sock')
  const client = createGrpcClient({ targets: [{ path }], clock: realClock, random: secureRandom })
  const text = (value: unknown): string =>
    JSON.stringify(value, (_, one: unknown) => (typeof one === 'bigint' ? Number(one) : one))
  try {
    const { podResources } = await client.unary(PodResourcesLister.list, {})
    return new Map([
      ['List', text(podResources)],
      ['GetAllocatableResources', text(await client.unary(PodResourcesLister.getAllocatableResources, {}))],
    ])
  } finally {
    client.close()
  }
}

process.exitCode = await main()
