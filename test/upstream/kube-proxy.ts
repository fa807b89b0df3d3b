/**
 * Measures our kube-proxy and upstream's in nftables mode on the same Services, one after the other in a network
 * namespace: node test/upstream/kube-proxy.ts [services] [endpoints of each] It measures the time until all rules
 * exist, the delay of a changed endpoint, memory, and processor time under a hundred changes a second. Child processes
 * are included. Prints a JSON summary. Needs root, ip and nft.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'

import { Nodes, Services } from '#apis/core/v1.ts'
import { type EndpointSlice, EndpointSlices } from '#apis/discovery/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { pick, secureRandom } from '#lib/random.ts'
import { startControlPlane } from '#testing/control-plane.ts'

import { installed } from '../bench/server-under-test.ts'
import { upstreamPrograms } from './programs.ts'

const run = promisify(execFile)
const INSIDE = 'HYPERKUBE_PROXY_BENCH'
/** Seldom enough that each is a round of its own: both wait a second between two. */
const SPACING_MS = 2000
const SAMPLES = 30
const LOAD_SECONDS = 20
const LOAD_PER_SECOND = 100
const LIMIT_MS = 300_000
/** Upstream's needs most of a minute for a change among ten thousand Services. */
const CHANGE_LIMIT_MS = 180_000
/** Both give memory back when nothing happens for a while. */
const QUIET_MS = 30_000
const say = (text: string): void => void process.stderr.write(`${text}\n`)

interface Figures {
  readonly firstRulesMs: number
  readonly changeMsP50: number
  readonly changeMsP99: number
  /** Resident memory. `proportional`: shared memory counts in proportion; `own`: private anonymous memory only. */
  readonly memoryMib: number
  readonly proportionalMib: number
  readonly ownMib: number
  readonly peakMib: number
  /** Of one processor, with the programs that it starts. */
  readonly loadCpuPercent: number
}

interface Bed {
  readonly client: ApiClient
  readonly slices: readonly EndpointSlice[]
  readonly args: readonly string[]
}

const sliceName = (at: number): string => `service-${at}-slice`
const endpointIp = (number: number): string => `10.${128 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`

/** The next unused address. */
let fresh = 1 << 20

async function fill(client: ApiClient, services: number, endpoints: number): Promise<EndpointSlice[]> {
  await client.create(Nodes, { metadata: { name: 'node-1' } })
  // Upstream's waits for a while when it does not find its own.
  const addresses = [{ type: 'InternalIP', address: '192.0.2.1' }]
  const where = { name: 'node-1', subresource: 'status' }
  await client.patch(Nodes, where, { type: 'merge', value: { status: { addresses } } })
  const slices: EndpointSlice[] = []
  const make = async (at: number): Promise<void> => {
    const name = `service-${at}`
    const ports = [{ name: 'http', protocol: 'TCP', port: 80 }]
    await client.create(Services, {
      metadata: { name, namespace: 'default' },
      spec: { ports: ports.map((port) => ({ ...port, targetPort: 8080 })) },
    })
    slices[at] = await client.create(EndpointSlices, {
      metadata: { name: sliceName(at), namespace: 'default', labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
      endpoints: Array.from({ length: endpoints }, (_, index) => ({
        addresses: [endpointIp(at * endpoints + index + 1)],
        conditions: { ready: true },
        nodeName: `node-${index + 2}`,
      })),
    })
  }
  for (let at = 0; at < services; at += 50)
    await Promise.all(Array.from({ length: Math.min(50, services - at) }, (_, index) => make(at + index)))
  return slices
}

/** The last endpoint of a Service is another; returns its address. */
async function change({ client, slices }: Bed, at: number): Promise<string> {
  const address = endpointIp(fresh++)
  const endpoints = (slices[at]?.endpoints ?? []).map((one, index, all) =>
    index === all.length - 1 ? { ...one, addresses: [address] } : one,
  )
  await client.patch(
    EndpointSlices,
    { namespace: 'default', name: sliceName(at) },
    { type: 'merge', value: { endpoints } },
  )
  return address
}

async function metric(name: string): Promise<number> {
  const text = await fetch('http://127.0.0.1:10249/metrics').then(
    (response) => response.text(),
    () => '',
  )
  const line = text.split('\n').find((one) => one.startsWith(name) && one.includes('IPv4'))
  return Number(line?.split(' ').at(-1) ?? 0)
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const endMs = realClock.elapsed() + LIMIT_MS
  while (!(await isSo())) {
    if (realClock.elapsed() > endMs) throw new Error(`${what} did not come about`)
    await sleep(realClock, 20)
  }
}

/** Seconds of processors that it and the programs it started have had. */
async function cpuSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0) / 100
}

async function memoryMib(pid: number, file: string, key: string): Promise<number> {
  const text = await readFile(`/proc/${pid}/${file}`, 'utf8')
  return Number(new RegExp(`^${key}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0) / 1024
}

/** Tells when an address first appears in what is written to the kernel. */
async function watchRules(): Promise<{ seen(address: string): Promise<number>; stop(): void }> {
  const monitor = spawn('nft', ['monitor', 'new'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const waiting = new Map<string, (ms: number) => void>()
  createInterface({ input: monitor.stdout }).on('line', (line) => {
    for (const [address, tell] of waiting) if (line.includes(address)) tell(realClock.elapsed())
  })
  // It reads everything that is there first.
  await sleep(realClock, 3000)
  return {
    seen: (address) =>
      new Promise((resolve, reject) => {
        const late = realClock.after(CHANGE_LIMIT_MS, () => reject(new Error(`${address} never came`)))
        waiting.set(address, (ms) => {
          late.cancel()
          waiting.delete(address)
          resolve(ms)
        })
      }),
    stop: () => void monitor.kill('SIGKILL'),
  }
}

async function changes(bed: Bed): Promise<number[]> {
  const rules = await watchRules()
  const taken: number[] = []
  for (let sample = 0; sample < SAMPLES; sample++) {
    await sleep(realClock, SPACING_MS)
    const beganMs = realClock.elapsed()
    const address = await change(bed, sample * 7)
    taken.push((await rules.seen(address)) - beganMs)
  }
  rules.stop()
  return taken.sort((one, other) => one - other)
}

async function load(bed: Bed, pid: number): Promise<number> {
  const [beganMs, before] = [realClock.elapsed(), await cpuSeconds(pid)]
  for (let count = 0; count < LOAD_SECONDS * LOAD_PER_SECOND; count++) {
    const dueMs = beganMs + (count * 1000) / LOAD_PER_SECOND
    if (dueMs > realClock.elapsed()) await sleep(realClock, dueMs - realClock.elapsed())
    await change(bed, (count * 13) % bed.slices.length)
  }
  const seconds = (realClock.elapsed() - beganMs) / 1000
  say(`  ${((LOAD_SECONDS * LOAD_PER_SECOND) / seconds).toFixed(0)} changes/s`)
  return (100 * ((await cpuSeconds(pid)) - before)) / seconds
}

async function measure(bed: Bed, program: readonly string[], services: number): Promise<Figures> {
  const [first = '', ...rest] = [...program, ...bed.args]
  const beganMs = realClock.now()
  const child: ChildProcess = spawn(first, rest, { stdio: ['ignore', 'ignore', 'ignore'] })
  const pid = child.pid ?? 0
  try {
    const name = 'kubeproxy_sync_proxy_rules_last_timestamp_seconds'
    await until('the first rules', async () => (await metric(name)) * 1000 > beganMs)
    const firstRulesMs = (await metric(name)) * 1000 - beganMs
    const listed = await run('nft', ['list', 'map', 'ip', 'kube-proxy', 'service-ips'], { maxBuffer: 1 << 28 })
    const found = listed.stdout.split(' . tcp . 80 ').length - 1
    if (found !== services) throw new Error(`${found} Services have rules, not ${services}`)
    const taken = await changes(bed)
    const loadCpuPercent = await load(bed, pid)
    await sleep(realClock, QUIET_MS)
    return {
      firstRulesMs,
      changeMsP50: taken[Math.floor(taken.length / 2)] ?? 0,
      changeMsP99: taken[Math.ceil(taken.length * 0.99) - 1] ?? 0,
      memoryMib: await memoryMib(pid, 'status', 'VmRSS'),
      proportionalMib: await memoryMib(pid, 'smaps_rollup', 'Pss'),
      ownMib: await memoryMib(pid, 'smaps_rollup', 'Pss_Anon'),
      peakMib: await memoryMib(pid, 'status', 'VmHWM'),
      loadCpuPercent,
    }
  } finally {
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
    await run('nft', ['flush', 'ruleset'])
  }
}

async function inside(services: number, endpoints: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-proxy-bench-'))
  await using plane = await startControlPlane({ settings: { 'service-cluster-ip-range': '10.64.0.0/12' } })
  const masters = { name: 'admin', uid: '', groups: ['system:masters'], extra: {} }
  const transport = plane.running.server.clientAs(masters)
  const client = new ApiClient({ transport, clock: realClock, userAgent: 'bench' })
  const kubeconfig = join(folder, 'kubeconfig')
  await writeFile(kubeconfig, plane.kubeconfig)
  say(`${services} Services with ${endpoints} endpoints each`)
  const slices = await fill(client, services, endpoints)
  const args = [
    `--kubeconfig=${kubeconfig}`,
    '--proxy-mode=nftables',
    '--hostname-override=node-1',
    '--cluster-cidr=10.128.0.0/9',
    '--conntrack-max-per-core=0',
    '--oom-score-adj=0',
  ]
  const { 'kube-proxy': upstream } = await upstreamPrograms(['kube-proxy'], say)
  const hyperkube = await installed()
  const figures: Record<string, Figures> = {}
  for (const [who, program] of [
    ['upstream', [upstream]],
    ['hyperkube', [hyperkube, 'kube-proxy']],
  ] as const) {
    say(who)
    figures[who] = await measure({ client, slices, args }, program, services)
    say(`  ${JSON.stringify(figures[who])}`)
  }
  process.stdout.write(`${JSON.stringify({ services, endpoints, ...figures })}\n`)
  await rm(folder, { recursive: true })
}

async function outside(): Promise<void> {
  // Built here, because the namespace has no network.
  await upstreamPrograms(['kube-proxy'], say)
  const name = `hk-proxy-bench-${pick(secureRandom, '0123456789abcdef', 6)}`
  await run('ip', ['netns', 'add', name])
  try {
    await run('ip', ['-n', name, 'link', 'set', 'lo', 'up'])
    const args = ['netns', 'exec', name, process.execPath, import.meta.filename, ...process.argv.slice(2)]
    const child = spawn('ip', args, { stdio: 'inherit', env: { ...process.env, [INSIDE]: '1' } })
    const [code] = (await once(child, 'exit')) as [number | null]
    process.exitCode = code ?? 1
  } finally {
    await run('ip', ['netns', 'delete', name])
  }
}

const [services = '1000', endpoints = '10'] = process.argv.slice(2)
await (process.env[INSIDE] === undefined ? outside() : inside(Number(services), Number(endpoints)))
