/**
 * Tests SCTP through Services and network policies: `node test/upstream/sctp.ts`, as root. Client and server are a
 * small program on raw sockets (`sctp/main.go`, built with Go once), so that the kernel needs only connection tracking
 * of SCTP. It tests Services of each type in both modes of kube-proxy, session affinity, and a removed endpoint.
 * Associations must survive lost rules and a restart. Exits with 1 if a step fails.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'

import { Namespaces, Nodes, type Service, Services, type ServiceSpec } from '#apis/core/v1.ts'
import { EndpointSlices } from '#apis/discovery/v1.ts'
import { NetworkPolicies } from '#apis/networking/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { realClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { startEnforcer } from '#network/policies/enforcer.ts'
import { type ControlPlane, errorLog, startControlPlane } from '#testing/control-plane.ts'

import { createBed, NODE as POLICY_NODE, RANGES } from '../integration/network/pods.ts'
import type { Host, NetworkNamespace } from '../integration/proxy/network-bed.ts'
import { createProxyBed, type Mode, MODES, NODE, type ProxyBed } from '../integration/proxy/proxy-bed.ts'
import { ownGoProgram } from './go-program.ts'
import { mustBe, Shown, untilSo } from './shown.ts'

const PROGRAM = ownGoProgram('sctp', join(import.meta.dirname, 'sctp', 'main.go'))
const MASTERS = { name: 'sctp', uid: '', groups: ['system:masters', 'system:authenticated'], extra: {} }
const [PORT, TARGET, NODE_PORT] = [7000, 9000, 30_900]
const OUTSIDE = '192.0.2.7'
const EXTERNAL = '198.51.100.7'
const BALANCED = '203.0.113.9'
const shown = new Shown()

type Child = ChildProcessByStdio<Writable, Readable, null>
type Within = Pick<NetworkNamespace, 'within'>

/** Both ends of associations, each in a namespace; all end with it. */
class Talkers implements Disposable {
  readonly #children = new Set<Child>()

  async serve(where: Within, name: string): Promise<void> {
    await linesOf(this.#start(where, 'serve', name, String(TARGET))).next()
  }

  async ask(where: Within, address: string, port: number, times = 1): Promise<string[]> {
    const answers: string[] = []
    for await (const line of linesOf(this.#start(where, 'ask', address, String(port), String(times))))
      answers.push(line)
    return answers
  }

  /** Asks through one association that stays. */
  async hold(where: Within, address: string, port: number): Promise<() => Promise<string>> {
    const child = this.#start(where, 'hold', address, String(port))
    const lines = linesOf(child)
    mustBe((await lines.next()).value === 'ready', 'there is no association')
    return async () => {
      child.stdin.write('\n')
      return (await lines.next()).value ?? 'ended'
    }
  }

  [Symbol.dispose](): void {
    for (const child of this.#children) child.kill('SIGKILL')
  }

  #start({ within: [first = '', ...rest] }: Within, ...args: readonly string[]): Child {
    const child = spawn(first, [...rest, PROGRAM, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#children.add(child)
    child.on('exit', () => this.#children.delete(child))
    return child
  }
}

async function* linesOf({ stdout }: Child): AsyncGenerator<string, undefined> {
  for await (const line of createInterface({ input: stdout })) yield JSON.parse(line) as string
  return undefined
}

async function serviceOf({ client }: ProxyBed, name: string, spec: Partial<ServiceSpec>): Promise<Service> {
  const ports = [{ name: 'sctp', protocol: 'SCTP', port: PORT, targetPort: TARGET, ...spec.ports?.[0] }]
  return await client.create(Services, { metadata: { namespace: 'default', name }, spec: { ...spec, ports } })
}

async function endpointsOf({ client }: ProxyBed, name: string, addresses: readonly string[]): Promise<void> {
  const metadata = { namespace: 'default', name, labels: { 'kubernetes.io/service-name': name } }
  const ports = [{ name: 'sctp', protocol: 'SCTP', port: TARGET }]
  const endpoints = addresses.map((address) => ({ addresses: [address], conditions: {}, nodeName: NODE }))
  const slice = { metadata, addressType: 'IPv4', ports, endpoints }
  await client.apply(EndpointSlices, slice, { fieldManager: 'test', force: true })
}

const [ONE, TWO] = ['10.244.1.2', '10.244.2.2']

/** The inputs of each step. */
interface Trial {
  readonly bed: ProxyBed
  readonly talkers: Talkers
  readonly one: Host
  readonly two: Host
  readonly outside: Host
  /** Of the Service. */
  readonly ip: string
  readonly step: (what: string, deed: () => Promise<string>) => Promise<void>
  readonly ask: (host: Host, address: string, port?: number, times?: number) => Promise<string[]>
  /** The hosts that respond to a dozen associations. */
  readonly whom: (host: Host, address: string, port?: number) => Promise<string>
}

async function tryServices(mode: Mode): Promise<void> {
  await using bed = await createProxyBed(mode)
  using talkers = new Talkers()
  const { network } = bed
  const one = await network.add('pod-1', ONE)
  const two = await network.add('pod-2', TWO)
  const outside = await network.add('outside', OUTSIDE)
  await talkers.serve(one.namespace, 'one')
  await talkers.serve(two.namespace, 'two')
  const nodePort = { nodePort: NODE_PORT } as NonNullable<ServiceSpec['ports']>[number]
  const wanted = { type: 'LoadBalancer', externalIPs: [EXTERNAL], ports: [nodePort] }
  const { spec } = await serviceOf(bed, 'web', wanted)
  const value = { status: { loadBalancer: { ingress: [{ ip: BALANCED }] } } }
  const where = { namespace: 'default', name: 'web', subresource: 'status' }
  await bed.client.patch(Services, where, { type: 'merge', value })
  await endpointsOf(bed, 'web', [ONE, TWO])
  const ask: Trial['ask'] = (host, address, port = PORT, times = 1) => talkers.ask(host.namespace, address, port, times)
  const trial: Trial = {
    bed,
    talkers,
    one,
    two,
    outside,
    ip: spec.clusterIP ?? '',
    step: (what, deed) => shown.step(`${mode}: ${what}`, deed),
    ask,
    whom: async (host, address, port) => [...new Set(await ask(host, address, port, 12))].sort().join(', '),
  }
  await tryWays(trial)
  await tryLosses(trial)
}

function is(seen: string, wanted: string): string {
  mustBe(seen === wanted, seen)
  return seen
}

async function tryWays({ bed, one, two, outside, ip, step, ask, whom }: Trial): Promise<void> {
  await using _proxy = await bed.proxy()
  await step('a cluster IP leads to both endpoints, which see who asks', async () => {
    // A pod that reaches itself does so as its node, whose address for it is the first of its range.
    is(await whom(one, ip), 'one 10.244.1.1, two 10.244.1.2')
    return is(await whom(two, ip), 'one 10.244.2.2, two 10.244.2.1')
  })
  for (const [what, address, port] of [
    ['a node port', '192.0.2.1', NODE_PORT],
    ['an external address', EXTERNAL, PORT],
    ['the address of a load balancer', BALANCED, PORT],
  ] as const)
    await step(`${what}, from outside`, async () => {
      const seen = await whom(outside, address, port)
      mustBe(/^one \S+, two \S+$/.test(seen) && !seen.includes(OUTSIDE), seen)
      return seen
    })
  await step('affinity of clients', async () => {
    const { spec } = await serviceOf(bed, 'sticky', { sessionAffinity: 'ClientIP' })
    await endpointsOf(bed, 'sticky', [ONE, TWO])
    const address = spec.clusterIP ?? ''
    await untilSo(
      async () => (await ask(outside, address))[0],
      (answer) => answer !== 'timeout',
    )
    const seen = await whom(outside, address)
    mustBe(/^(?:one|two) \S+$/.test(seen), seen)
    return seen
  })
}

async function tryLosses({ bed, talkers, one, two, outside, ip, step, ask, whom }: Trial): Promise<void> {
  let proxy = await bed.proxy()
  await step('an association goes on while rules are lost and kube-proxy starts anew', async () => {
    const held = await talkers.hold(outside.namespace, ip, PORT)
    const before = await held()
    await bed.network.node.namespace.run('nft', 'flush', 'ruleset')
    const healed = await untilSo(
      async () => (await ask(two, ip))[0] ?? '',
      (answer) => /^(?:one|two) /.test(answer),
    )
    is(await held(), before)
    await proxy[Symbol.asyncDispose]()
    proxy = await bed.proxy()
    is(await held(), before)
    return `${before}; rules were back after ${healed.toFixed(1)} s`
  })
  await step('new associations leave an endpoint that has gone', async () => {
    await endpointsOf(bed, 'web', [TWO])
    await untilSo(
      () => whom(one, ip),
      (seen) => seen === 'two 10.244.1.2',
    )
    return await whom(one, ip)
  })
  await step('without endpoints nobody answers', async () => {
    await endpointsOf(bed, 'web', [])
    await untilSo(
      async () => (await ask(one, ip))[0] ?? '',
      (answer) => !answer.startsWith('two'),
    )
    return (await ask(one, ip)).join()
  })
  await proxy[Symbol.asyncDispose]()
}

/** Of a cluster with one node. */
async function policyClient({ running }: ControlPlane): Promise<ApiClient> {
  const transport = running.server.clientAs(MASTERS)
  const client = new ApiClient({ transport, clock: realClock, userAgent: 'test' })
  const spec = { podCIDRs: RANGES, podCIDR: RANGES[0] ?? '' }
  await client.create(Nodes, { metadata: { name: POLICY_NODE }, spec })
  await client.create(Namespaces, { metadata: { name: 'a' } })
  return client
}

async function tryPolicies(): Promise<void> {
  await using plane = await startControlPlane({ settings: { 'disable-admission-plugins': ['ServiceAccount'] } })
  const client = await policyClient(plane)
  await using bed = await createBed(client)
  using talkers = new Talkers()
  const tools = { clock: realClock, random: secureRandom, log: errorLog() }
  const enforcer = startEnforcer({
    ...tools,
    client,
    node: POLICY_NODE,
    table: 'hk-sctp-policies',
    within: bed.node.within,
  })
  await using _stopping = { [Symbol.asyncDispose]: () => enforcer.stop() }
  await enforcer.ready
  const web = await bed.pod('a', 'web', { app: 'web' })
  const db = await bed.pod('a', 'db', { app: 'db' })
  const other = await bed.pod('a', 'other', { app: 'other' })
  await talkers.serve(db, 'db')
  const reaches = (from: Within & { ip: string }, isReached: boolean): Promise<number> =>
    untilSo(
      async () => (await talkers.ask(from, db.ip, TARGET))[0],
      (answer) => answer === (isReached ? `db ${from.ip}` : 'timeout'),
    )
  const policy = (name: string, ingress: object[]): Promise<unknown> =>
    client.create(NetworkPolicies, {
      metadata: { namespace: 'a', name },
      spec: { podSelector: { matchLabels: { app: 'db' } }, policyTypes: ['Ingress'], ingress },
    })
  const from = [{ podSelector: { matchLabels: { app: 'web' } } }]
  await shown.step('policies: SCTP is let through where a rule names it, and only from there', async () => {
    for (const one of [web, other]) await reaches(one, true)
    await policy('tcp', [{ from, ports: [{ protocol: 'TCP', port: TARGET }] }])
    for (const one of [web, other]) await reaches(one, false)
    await policy('sctp', [{ from, ports: [{ protocol: 'SCTP', port: TARGET }] }])
    await reaches(web, true)
    await reaches(other, false)
    return 'TCP of that port lets none through, SCTP the one that is named'
  })
  await shown.step('policies: an association that was let through goes on', async () => {
    const held = await talkers.hold(web, db.ip, TARGET)
    const before = await held()
    await client.delete(NetworkPolicies, { namespace: 'a', name: 'sctp' })
    await reaches(web, false)
    return is(await held(), before)
  })
}

for (const mode of MODES) await tryServices(mode)
await tryPolicies()
process.exitCode = shown.end()
