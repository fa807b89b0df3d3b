/**
 * Compares our kube-proxy with upstream's in iptables mode on the same cluster, one after the other in a network
 * namespace: node test/upstream/kube-proxy-iptables.ts It compares the output of `iptables-save` and `ip6tables-save`
 * rule by rule for several sets of flags. Then ours cleans up after upstream's, and changes modes. Needs root, ip,
 * iptables and nft. Exits with 1 on a difference.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'

import { Nodes, Services, type ServiceSpec } from '#apis/core/v1.ts'
import { type Endpoint, EndpointSlices } from '#apis/discovery/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { pick, secureRandom } from '#lib/random.ts'
import { startControlPlane } from '#testing/control-plane.ts'

import { upstreamPrograms } from './programs.ts'

const run = promisify(execFile)
const HYPERKUBE = join(import.meta.dirname, '..', '..', 'bin', 'hyperkube')
const INSIDE = 'HYPERKUBE_PROXY_RULES'
const LIMIT_MS = 120_000
const MOST_BYTES = 1 << 28
const say = (text: string): void => void process.stderr.write(`${text}\n`)

/** Foreign rules in the kernel's chains, which must be unchanged at the end. */
const FOREIGN = `*filter
:OTHER - [0:0]
-A INPUT -j OTHER
-A OTHER -p tcp -m tcp --dport 9 -j DROP
COMMIT
*nat
:OTHER - [0:0]
-A PREROUTING -j OTHER
-A OTHER -p tcp -m tcp --dport 9 -j RETURN
COMMIT
`

const VARIANTS: readonly (readonly string[])[] = [
  ['--cluster-cidr=10.128.0.0/9,fd00:128::/48'],
  ['--masquerade-all', '--iptables-masquerade-bit=15'],
  [
    '--iptables-localhost-nodeports=false',
    '--detect-local-mode=InterfaceNamePrefix',
    '--pod-interface-name-prefix=veth',
  ],
  [
    '--nodeport-addresses=192.0.2.0/24,127.0.0.0/8',
    '--detect-local-mode=BridgeInterface',
    '--pod-bridge-interface=cni0',
  ],
  ['--nodeport-addresses=primary', '--conntrack-tcp-be-liberal'],
]

interface Example {
  readonly spec?: ServiceSpec
  readonly ingress?: readonly string[]
  readonly endpoints?: readonly Endpoint[]
}

const HERE = { nodeName: 'node-1' }
const THERE = { nodeName: 'node-2' }
const at = (number: number, more: Partial<Endpoint> = THERE): Endpoint => ({
  addresses: [`10.128.0.${number}`],
  conditions: {},
  ...more,
})
const LEAVING = { conditions: { ready: false, serving: true, terminating: true } }
const BOTH = [at(1, HERE), at(10), at(2)]
const PORTS = [
  { name: 'http', protocol: 'TCP', port: 80, targetPort: 8080 },
  { name: 'dns', protocol: 'UDP', port: 53, targetPort: 8053 },
  { name: 'sctp', protocol: 'SCTP', port: 99, targetPort: 8099 },
]

const EXAMPLES: Readonly<Record<string, Example>> = {
  plain: { endpoints: BOTH },
  dual: { spec: { ipFamilyPolicy: 'RequireDualStack' }, endpoints: BOTH },
  'six-ports': { spec: { ipFamilies: ['IPv6'], type: 'NodePort', sessionAffinity: 'ClientIP' }, endpoints: BOTH },
  empty: {},
  'empty-outside': { spec: { type: 'LoadBalancer', externalIPs: ['198.51.100.9'] }, ingress: ['203.0.113.9'] },
  leaving: { endpoints: [at(1, LEAVING), at(2, { conditions: { ready: false } })] },
  sticky: {
    spec: { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 600 } } },
    endpoints: BOTH,
  },
  'node-port': { spec: { type: 'NodePort' }, endpoints: BOTH },
  'external-ip': { spec: { externalIPs: ['198.51.100.1'] }, endpoints: BOTH },
  balanced: { spec: { type: 'LoadBalancer' }, ingress: ['203.0.113.1', '203.0.113.2'], endpoints: BOTH },
  fenced: {
    spec: { type: 'LoadBalancer', loadBalancerSourceRanges: ['203.0.113.0/24', '192.0.2.0/25', '10.0.0.0/8'] },
    ingress: ['203.0.113.3'],
    endpoints: BOTH,
  },
  'inner-local': { spec: { internalTrafficPolicy: 'Local' }, endpoints: BOTH },
  'inner-elsewhere': { spec: { internalTrafficPolicy: 'Local' }, endpoints: [at(3)] },
  'outer-local': {
    spec: { type: 'LoadBalancer', externalTrafficPolicy: 'Local' },
    ingress: ['203.0.113.4'],
    endpoints: BOTH,
  },
  'outer-elsewhere': {
    spec: { type: 'LoadBalancer', externalTrafficPolicy: 'Local', externalIPs: ['198.51.100.2'] },
    ingress: ['203.0.113.5'],
    endpoints: [at(3)],
  },
  'all-local': {
    spec: { type: 'NodePort', externalTrafficPolicy: 'Local', internalTrafficPolicy: 'Local' },
    endpoints: BOTH,
  },
  hinted: {
    endpoints: [at(1, { hints: { forZones: [{ name: 'a' }] } }), at(2, { hints: { forZones: [{ name: 'b' }] } })],
  },
}

async function fill(client: ApiClient): Promise<void> {
  const labels = { 'topology.kubernetes.io/zone': 'a' }
  await client.create(Nodes, { metadata: { name: 'node-1', labels } })
  const addresses = [{ type: 'InternalIP', address: '192.0.2.1' }]
  const status = { type: 'merge', value: { status: { addresses } } } as const
  await client.patch(Nodes, { name: 'node-1', subresource: 'status' }, status)
  for (const [name, example] of Object.entries(EXAMPLES)) await makeExample(client, name, example)
}

async function makeExample(client: ApiClient, name: string, { spec, ingress, endpoints }: Example): Promise<void> {
  const { spec: made } = await client.create(Services, {
    metadata: { name, namespace: 'default' },
    spec: { ports: PORTS, ...spec },
  })
  const where = { namespace: 'default', name, subresource: 'status' }
  const loadBalancer = { ingress: (ingress ?? []).map((ip) => ({ ip })) }
  if (ingress !== undefined) await client.patch(Services, where, { type: 'merge', value: { status: { loadBalancer } } })
  for (const family of endpoints === undefined ? [] : (made.ipFamilies ?? []))
    await client.create(EndpointSlices, {
      metadata: {
        name: `${name}-${family.toLowerCase()}`,
        namespace: 'default',
        labels: { 'kubernetes.io/service-name': name },
      },
      addressType: family,
      ports: PORTS.map(({ name: port, protocol, targetPort }) => ({ name: port, protocol, port: targetPort })),
      endpoints: (endpoints ?? []).map((one) => ({
        ...one,
        addresses: one.addresses.map((ip) => (family === 'IPv6' ? ip.replace('10.128.0.', 'fd00:128::') : ip)),
      })),
    })
}

/** Enough that comments are left out. */
async function fillUp(client: ApiClient): Promise<void> {
  const many = Array.from({ length: 250 }, (_, number) => at(number + 1))
  for (const name of ['many-1', 'many-2']) await makeExample(client, name, { endpoints: many })
}

async function syncedMs(): Promise<number> {
  const text = await fetch('http://127.0.0.1:10249/metrics').then(
    (response) => response.text(),
    () => '',
  )
  const times = text.split('\n').flatMap((line) => {
    const isTime = line.startsWith('kubeproxy_sync_proxy_rules_last_timestamp_seconds{')
    return isTime ? [Number(line.split(' ').at(-1)) * 1000] : []
  })
  return times.length < 2 ? 0 : Math.min(...times)
}

/** Runs the program until its rules are there, and ends it; rules stay. */
async function runProxy(program: readonly string[]): Promise<void> {
  const beganMs = realClock.now()
  const [first = '', ...rest] = program
  const child = spawn(first, rest, { stdio: ['ignore', 'ignore', 'ignore'] })
  try {
    while ((await syncedMs()) < beganMs) {
      if (realClock.now() - beganMs > LIMIT_MS || child.exitCode !== null) throw new Error(`${first} wrote no rules`)
      await sleep(realClock, 100)
    }
  } finally {
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
}

/** Chains to which rules are added Service by Service, in no order; one of nat ends with a rule that must be its last. */
const UNORDERED = /^-A KUBE-(?:SERVICES|EXTERNAL-SERVICES|NODEPORTS|PROXY-FIREWALL) /

/** Every rule with its table and family, and its place where that counts. */
async function rulesNow(): Promise<string[]> {
  const all: string[] = []
  for (const program of ['iptables-save', 'ip6tables-save']) {
    const { stdout } = await run(program, [], { maxBuffer: MOST_BYTES })
    let table = ''
    const places = new Map<string, number>()
    for (const line of stdout.split('\n')) {
      if (line.startsWith('*')) table = `${program} ${line.slice(1)}`
      if (line.startsWith(':')) all.push(`${table} ${line.replace(/ \[.*/, '')}`)
      // Upstream has counters of the kernel where it finds them; nothing here can make them.
      if (!line.startsWith('-A') || line.includes('localhost_nps_accepted_pkts')) continue
      const rule = line.replace(/ -m nfacct --nfacct-name +\S+/, '')
      const chain = `${table} ${rule.split(' ', 2).join(' ')}`
      const place = places.get(chain) ?? 0
      places.set(chain, place + 1)
      const isAnywhere = UNORDERED.test(rule) && !rule.includes('must be the last rule')
      all.push(`${table} ${isAnywhere ? '' : `#${rule.includes('must be the last rule') ? 'last' : place} `}${rule}`)
    }
  }
  return all.sort()
}

function differences(ours: readonly string[], theirs: readonly string[]): string[] {
  const [own, other] = [new Set(ours), new Set(theirs)]
  return [
    ...theirs.filter((line) => !own.has(line)).map((line) => `only upstream: ${line}`),
    ...ours.filter((line) => !other.has(line)).map((line) => `only ours:     ${line}`),
  ]
}

async function restore(program: string, text: string): Promise<void> {
  const child = spawn(program, ['--noflush'], { stdio: ['pipe', 'inherit', 'inherit'] })
  child.stdin.end(text)
  await once(child, 'exit')
}

/** So that it does not decide what stands before it next time. */
async function dropKubelets(): Promise<void> {
  for (const program of ['iptables', 'ip6tables'])
    for (const args of [
      ['-D', 'INPUT', '-j', 'KUBE-FIREWALL'],
      ['-D', 'OUTPUT', '-j', 'KUBE-FIREWALL'],
      ['-F', 'KUBE-FIREWALL'],
      ['-X', 'KUBE-FIREWALL'],
    ])
      await run(program, args)
}

interface Programs {
  readonly upstream: readonly string[]
  readonly ours: readonly string[]
}

async function compare({ upstream, ours }: Programs, before: readonly string[]): Promise<number> {
  let failures = 0
  const judge = (what: string, found: readonly string[]): void => {
    failures += found.length
    say(`  ${found.length === 0 ? 'equal' : `${found.length} DIFFERENT`}: ${what}`)
    for (const line of found.slice(0, 20)) say(`    ${line}`)
  }
  const cleaned = async (what: string, program: readonly string[]): Promise<void> => {
    const [first = '', ...rest] = program
    await run(first, [...rest, '--cleanup'])
    // The kubelet's chain is left to it, by both.
    const kept = (await rulesNow()).filter((line) => !line.includes('KUBE-FIREWALL') && !/ (?::(?!OTHER)|#)/.test(line))
    await dropKubelets()
    judge(
      what,
      differences(
        kept,
        before.filter((line) => !/ (?::(?!OTHER)|#)/.test(line)),
      ),
    )
  }
  await runProxy(upstream)
  const theirs = await rulesNow()
  await runProxy(ours)
  judge('rules taken over from upstream', differences(await rulesNow(), theirs))
  await cleaned("our --cleanup of upstream's", ours.slice(0, 2))
  await runProxy(ours)
  const own = await rulesNow()
  judge(`${theirs.length} chains and rules from nothing`, differences(own, theirs))
  await runProxy(upstream)
  judge('rules taken over by upstream', differences(await rulesNow(), own))
  await cleaned("upstream's --cleanup of ours", upstream.slice(0, 1))
  return failures
}

async function changeModes(ours: readonly string[]): Promise<number> {
  const nft = async (): Promise<string> => (await run('nft', ['list', 'tables'])).stdout
  await runProxy([...ours, '--proxy-mode=iptables'])
  await runProxy([...ours, '--proxy-mode=nftables'])
  const left = (await rulesNow()).filter((line) => /KUBE-(?!FIREWALL)/.test(line))
  const hasTable = (await nft()).includes('kube-proxy')
  await runProxy([...ours, '--proxy-mode=iptables'])
  const isClean = left.length === 0 && hasTable && !(await nft()).includes('kube-proxy')
  say(`  changing modes: ${isClean ? 'leaves nothing behind' : `LEAVES ${left.join('\n')} ${await nft()}`}`)
  return isClean ? 0 : 1
}

async function inside(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-proxy-rules-'))
  await run('ip', ['link', 'add', 'node0', 'type', 'veth', 'peer', 'name', 'node1'])
  await run('ip', ['address', 'add', '192.0.2.1/24', 'dev', 'node0'])
  for (const link of ['node0', 'node1']) await run('ip', ['link', 'set', link, 'up'])
  for (const program of ['iptables-restore', 'ip6tables-restore']) await restore(program, FOREIGN)
  const before = await rulesNow()
  await using plane = await startControlPlane({
    settings: { 'service-cluster-ip-range': '10.64.0.0/16,fd00:64::/112' },
  })
  const masters = { name: 'admin', uid: '', groups: ['system:masters'], extra: {} }
  const client = new ApiClient({
    transport: plane.running.server.clientAs(masters),
    clock: realClock,
    userAgent: 'rules',
  })
  const kubeconfig = join(folder, 'kubeconfig')
  await writeFile(kubeconfig, plane.kubeconfig)
  await fill(client)
  const { 'kube-proxy': upstream } = await upstreamPrograms(['kube-proxy'], say)
  const shared = [`--kubeconfig=${kubeconfig}`, '--hostname-override=node-1', '--conntrack-max-per-core=0']
  const modes = [...shared, '--oom-score-adj=0', '--proxy-mode=iptables']
  let failures = 0
  for (const [index, flags] of [...VARIANTS, VARIANTS[0] ?? []].entries()) {
    if (index === VARIANTS.length) await fillUp(client)
    say(`${flags.join(' ')}${index === VARIANTS.length ? ', more than 1,000 endpoints' : ''}`)
    const programs = { upstream: [upstream, ...modes, ...flags], ours: [HYPERKUBE, 'kube-proxy', ...modes, ...flags] }
    failures += await compare(programs, before)
  }
  failures += await changeModes([HYPERKUBE, 'kube-proxy', ...shared, '--oom-score-adj=0'])
  await rm(folder, { recursive: true })
  process.stdout.write(`${VARIANTS.length + 2} comparisons, ${failures} with differences\n`)
  process.exitCode = failures === 0 ? 0 : 1
}

async function outside(): Promise<void> {
  // Built here, because the namespace has no network.
  await upstreamPrograms(['kube-proxy'], say)
  const name = `hk-proxy-rules-${pick(secureRandom, '0123456789abcdef', 6)}`
  await run('ip', ['netns', 'add', name])
  try {
    await run('ip', ['-n', name, 'link', 'set', 'lo', 'up'])
    const args = ['netns', 'exec', name, process.execPath, import.meta.filename]
    const child = spawn('ip', args, { stdio: 'inherit', env: { ...process.env, [INSIDE]: '1' } })
    const [code] = (await once(child, 'exit')) as [number | null]
    process.exitCode = code ?? 1
  } finally {
    await run('ip', ['netns', 'delete', name])
  }
}

await (process.env[INSIDE] === undefined ? outside() : inside())
