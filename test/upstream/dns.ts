/**
 * Compares our DNS server with CoreDNS on the same API server and upstream servers: `node test/upstream/dns.ts
 * [answers|load|size]`. `answers` sends some thousand queries to both; each difference must be listed below with its
 * reason. `load` measures the queries per second for existing and missing names. Each server runs alone on core 0, and
 * dnsperf on core 1. `size` measures memory with 5,000 Services and 50,000 endpoints, and the delay of a change.
 * Without an argument it runs all three. Needs root (port 53 of the loopback), Go for CoreDNS, and dnsperf and taskset
 * for `load`. Exits with 1 on a difference without a reason.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { rcodeOf, TYPE } from '#dns/wire.ts'
import { realClock, sleep } from '#lib/clock.ts'

import { askOne, linesOf } from './dns-answers.ts'
import { type Asked, CLUSTER, type Made, QUESTIONS, slice } from './dns-questions.ts'
import { startWorld } from './dns-world.ts'
import { buildCoreDns } from './go-program.ts'
import { ask, type Server, startOurs, writeKubeconfig } from './ours.ts'

const WORLD = '127.53.14.1'
const DOMAIN = 'cluster.local'
const say = (line: string): void => void process.stdout.write(`${line}\n`)
const run = promisify(execFile)

interface Named {
  readonly name: string
  readonly port: number
  readonly pid: number
}

/** The accepted differences, each with its reason. */
const REASONS: readonly (readonly [is: (asked: Asked, ours: string, theirs: string) => boolean, why: string])[] = [
  [
    ({ name }, ours, theirs) => /^away|example\.com$/i.test(name) && untimed(ours) === untimed(theirs),
    'our server caches upstream answers and returns the remaining TTL',
  ],
  [
    ({ type }, ours) => type === TYPE.SOA && ours.startsWith('rcode 3'),
    'CoreDNS answers SOA queries without a check that the name exists',
  ],
  [
    ({ name }) => /^ns\.dns\.cluster\.local$/i.test(name),
    'without a Service kube-dns, CoreDNS answers most queries with addresses of its machine; our answer is empty',
  ],
  [
    ({ name, type }) => name === DOMAIN && type === TYPE.NS,
    'without a Service kube-dns, CoreDNS answers with addresses of its machine; our answer is empty',
  ],
  [
    ({ name }) => /^(?:lost|gone|inside|twice)\.shop/i.test(name),
    'our answer contains an alias even if its target lacks the record, so that clients see which name lacks it',
  ],
  [
    ({ type }, ours, theirs) => type === TYPE.TXT && ours.startsWith('rcode 0') && theirs.startsWith('rcode 3'),
    'CoreDNS answers NXDOMAIN to TXT queries for names that only have names below them',
  ],
  [
    ({ name, type }) => type === TYPE.SRV && /\.pod\.cluster\.local$/i.test(name),
    'the name of a pod has no SRV record: CoreDNS answers with port 0',
  ],
  [
    ({ name, type }) => /^away\.shop/i.test(name) && type === TYPE.TXT,
    'our server resolves only the addresses behind an alias, not its TXT records',
  ],
]

const untimed = (lines: string): string => lines.replaceAll(/^(a\w+ \S+) \d+ /gm, '$1 ')

async function main(): Promise<number> {
  const wanted = process.argv.slice(2)
  const wants = (what: string): boolean => wanted.length === 0 || wanted.includes(what)
  const folder = await mkdtemp(join(tmpdir(), 'dns-'))
  await mkdir(join(folder, 'api'))
  await using closing = new AsyncDisposableStack()
  closing.defer(() => rm(folder, { recursive: true }))
  closing.use(await startWorld(WORLD))
  const server = await startOurs(join(folder, 'api'), ['--service-cluster-ip-range=10.0.0.0/16'])
  closing.defer(() => server.stop())
  const kubeconfig = await writeKubeconfig(join(folder, 'kubeconfig'), server)
  for (const made of CLUSTER) await make(server, made)
  let failed = 0
  if (wants('answers')) {
    // CoreDNS runs without its cache, so that TTLs can be compared.
    await using pair = await startPair(folder, kubeconfig, { caches: false })
    failed += await compare(pair.servers)
  }
  if (wants('load')) await measureLoad(folder, kubeconfig)
  if (wants('size')) await measureSize(folder, kubeconfig, server)
  return failed === 0 ? 0 : 1
}

async function make(server: Server, [path, body]: Made): Promise<void> {
  const { status, body: told } = await ask(server, { method: 'POST', path, body })
  if (status !== 201) throw new Error(`${path}: ${JSON.stringify(told)}`)
}

interface PairOptions {
  readonly core?: number
  /** Whether CoreDNS caches its answers for half a minute, even if they change. */
  readonly caches?: boolean
}

interface Pair extends AsyncDisposable {
  readonly servers: readonly Named[]
}

async function startPair(folder: string, kubeconfig: string, { core, caches = true }: PairOptions = {}): Promise<Pair> {
  const closing = new AsyncDisposableStack()
  const on = core === undefined ? [] : ['taskset', '-c', String(core)]
  const servers = [
    await startOwn(folder, kubeconfig, on, closing),
    await startTheirs(folder, { kubeconfig, caches }, on, closing),
  ]
  return { servers, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}

async function startOwn(
  folder: string,
  kubeconfig: string,
  on: readonly string[],
  closing: AsyncDisposableStack,
): Promise<Named> {
  const resolvConf = join(folder, 'resolv.conf')
  await writeFile(resolvConf, `nameserver ${WORLD}\n`)
  const program = join(import.meta.dirname, 'dns-server.ts')
  const args = [...on, process.execPath, '--expose-gc', program, kubeconfig, '127.0.0.1', String(portOf(1)), resolvConf]
  const child = spawn(args[0] ?? '', args.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] })
  closing.defer(() => ended(child))
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return { name: 'ours', port: Number(String(line).trim()), pid: child.pid ?? 0 }
}

async function startTheirs(
  folder: string,
  { kubeconfig, caches }: { readonly kubeconfig: string; readonly caches: boolean },
  on: readonly string[],
  closing: AsyncDisposableStack,
): Promise<Named> {
  const port = portOf(0)
  const corefile = join(folder, 'Corefile')
  // The Corefile of upstream's addon, without the parts for a pod.
  await writeFile(
    corefile,
    `.:${port} {
  bind 127.0.0.1
  kubernetes ${DOMAIN} in-addr.arpa ip6.arpa {
    kubeconfig ${kubeconfig}
    pods insecure
    fallthrough in-addr.arpa ip6.arpa
    ttl 30
  }
  forward . ${WORLD} {
    max_concurrent 1000
  }
${caches ? '  cache 30\n' : ''}  loadbalance
}
`,
  )
  const args = [...on, buildCoreDns(), '-conf', corefile]
  const env = on.length === 0 ? process.env : { ...process.env, GOMAXPROCS: '1' }
  const child = spawn(args[0] ?? '', args.slice(1), { stdio: ['pipe', 'ignore', 'inherit'], env })
  closing.defer(() => ended(child))
  await eventually(async () => {
    const answer = await askOne({ name: `kubernetes.default.svc.${DOMAIN}`, type: TYPE.A, via: 'tcp' }, port)
    if (rcodeOf(answer.flags) !== 0) throw new Error('CoreDNS is not ready')
  })
  return { name: 'CoreDNS', port, pid: child.pid ?? 0 }
}

const portOf = (nth: number): number => 20_000 + (process.pid % 10_000) * 2 + nth

async function ended(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit')
  child.stdin?.end()
  child.kill('SIGTERM')
  await exit
}

async function eventually(attempt: () => Promise<void>): Promise<void> {
  for (let left = 200; ; left--) {
    try {
      return await attempt()
    } catch (error) {
      if (left === 0) throw error
      await sleep(realClock, 100)
    }
  }
}

async function compare(servers: readonly Named[]): Promise<number> {
  const [ours, theirs] = servers
  if (ours === undefined || theirs === undefined) return 1
  const counts = new Map<string, number>()
  let failed = 0
  for (const asked of QUESTIONS) {
    const [own, other] = await Promise.all(
      [ours, theirs].map(async ({ port }) => linesOf(await askOne(asked, port)).join('\n')),
    )
    if (own === undefined || other === undefined || own === other) continue
    const reason = REASONS.find(([is]) => is(asked, own, other))?.[1]
    if (reason === undefined) {
      failed++
      say(`${asked.name} ${asked.type} ${asked.via} ${asked.edns ?? ''}\n--- ours\n${own}\n--- CoreDNS\n${other}`)
    } else counts.set(reason, (counts.get(reason) ?? 0) + 1)
  }
  for (const [reason, many] of counts) say(`${many} differ: ${reason}`)
  say(`${QUESTIONS.length} questions, ${failed} answers differ without a reason`)
  return failed
}

const LOAD_SECONDS = 15
/** The number of concurrent clients, and of queries in flight. */
const CLIENTS = 8
const UNDER_WAY = 100
/** The rate at which the latency depends on the server, not on its queue. */
const CALM_PER_SECOND = 3000

async function measureLoad(folder: string, kubeconfig: string): Promise<void> {
  const loads: Readonly<Record<string, readonly string[]>> = {
    'names of the cluster': [
      `web.shop.svc.${DOMAIN} A`,
      `one.shop.svc.${DOMAIN} A`,
      `db.shop.svc.${DOMAIN} A`,
      `kubernetes.default.svc.${DOMAIN} A`,
    ],
    // The names that ndots:5 makes of every missing name.
    'names that are not there': Array.from({ length: 20_000 }, (_, nth) => `miss-${nth}.shop.svc.${DOMAIN} A`),
  }
  await using pair = await startPair(folder, kubeconfig, { core: 0 })
  for (const [what, lines] of Object.entries(loads)) {
    const file = join(folder, 'questions')
    await writeFile(file, `${lines.join('\n')}\n`)
    for (const { name, port, pid } of pair.servers) {
      const before = await cpuSeconds(pid)
      const where = ['-s', '127.0.0.1', '-p', String(port), '-d', file]
      const whole = await dnsperf([
        ...where,
        '-l',
        String(LOAD_SECONDS),
        '-c',
        String(CLIENTS),
        '-q',
        String(UNDER_WAY),
      ])
      const used = (await cpuSeconds(pid)) - before
      const completed = Number(/Queries completed:\s+(\d+)/.exec(whole)?.[1])
      const perSecond = Number(/Queries per second:\s+([\d.]+)/.exec(whole)?.[1])
      const calm = await dnsperf([...where, '-l', '10', '-c', String(CLIENTS), '-Q', String(CALM_PER_SECOND), '-v'])
      const ms = [...calm.matchAll(/^> \S+ \S+ \S+ ([\d.]+)$/gm)]
        .map(([, text]) => Number(text) * 1000)
        .sort((x, y) => x - y)
      const p = (part: number): string => `${ms[Math.floor(ms.length * part)]?.toFixed(2)} ms`
      const rate = `${Math.round(perSecond)}/s, ${Math.round(completed / used)} for each second of a core`
      say(`${what}, ${name}: ${rate}; at ${CALM_PER_SECOND}/s p50 ${p(0.5)}, p99 ${p(0.99)}`)
    }
  }
}

/** Runs dnsperf on core 1. */
async function dnsperf(args: readonly string[]): Promise<string> {
  return (await run('taskset', ['-c', '1', 'dnsperf', ...args], { maxBuffer: 64 << 20 })).stdout
}

async function cpuSeconds(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8')
  const [, , , , , , , , , , , user = '0', system = '0'] = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(user) + Number(system)) / 100
}

const SERVICES = 5000
const ENDPOINTS = 10

async function measureSize(folder: string, kubeconfig: string, server: Server): Promise<void> {
  const made = Array.from({ length: SERVICES }, (_, nth): readonly Made[] => {
    const name = `s-${nth}`
    const spec = { clusterIP: nth % 2 === 0 ? 'None' : undefined, ports: [{ name: 'http', port: 80, protocol: 'TCP' }] }
    const endpoints = Array.from({ length: ENDPOINTS }, (__, at) => ({
      addresses: [`10.${128 + (nth >> 8)}.${nth & 255}.${at + 1}`],
    }))
    const service = { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: 'bank' }, spec }
    return [['/api/v1/namespaces/bank/services', service], slice(`bank/${name}`, endpoints, { name })]
  })
  await using pair = await startPair(folder, kubeconfig, { caches: false })
  const before = await Promise.all(pair.servers.map(({ pid }) => residentMiB(pid)))
  for (let at = 0; at < made.length; at += 50)
    await Promise.all(
      made
        .slice(at, at + 50)
        .flat()
        .map((one) => make(server, one)),
    )
  for (const [nth, { name, port, pid }] of pair.servers.entries()) {
    const last = { name: `s-${SERVICES - 2}.bank.svc.${DOMAIN}`, type: TYPE.A, via: 'tcp' as const }
    await eventually(async () => {
      if ((await askOne(last, port)).answers.length !== ENDPOINTS) throw new Error(`${name} does not know all names`)
    })
    if (name === 'ours') process.kill(pid, 'SIGUSR2')
    await sleep(realClock, 5000)
    say(
      `${name}: ${await residentMiB(pid)} MiB with ${SERVICES} Services and ${SERVICES * ENDPOINTS} endpoints, ${before[nth]} MiB before`,
    )
  }
  await measureChange(pair.servers, server)
}

/** Measures the time from the response of the API server to the first DNS answer with the change. */
async function measureChange(servers: readonly Named[], server: Server): Promise<void> {
  const took = new Map<string, number[]>(servers.map(({ name }) => [name, []]))
  for (let nth = 0; nth < 50; nth++) {
    const service = `s-${nth * 2}`
    const path = `/apis/discovery.k8s.io/v1/namespaces/bank/endpointslices/${service}`
    const startedMs = realClock.elapsed()
    await ask(server, { method: 'PATCH', path, body: { endpoints: [{ addresses: ['10.9.9.9'] }] } })
    await Promise.all(
      servers.map(async ({ name, port }) => {
        const asked = { name: `${nth}.${service}.bank.svc.${DOMAIN}`, type: TYPE.A, via: 'udp' as const }
        const changed = { ...asked, name: `10-9-9-9.${service}.bank.svc.${DOMAIN}` }
        while ((await askOne(changed, port)).answers.length === 0) await new Promise((resolve) => setImmediate(resolve))
        took.get(name)?.push(realClock.elapsed() - startedMs)
      }),
    )
  }
  for (const [name, all] of took) {
    const sorted = all.toSorted((a, b) => a - b)
    say(
      `${name}: a change is answered after ${sorted[25]?.toFixed(1)} ms (p50), ${sorted.at(-1)?.toFixed(1)} ms at most`,
    )
  }
}

async function residentMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024)
}

process.exitCode = await main()
