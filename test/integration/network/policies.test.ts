/** Tests network policies from API objects to packets between network namespaces. */
import assert from 'node:assert/strict'
import process from 'node:process'
import { after, before, beforeEach, describe, it } from 'node:test'

import { Namespaces, Nodes, Pods } from '#apis/core/v1.ts'
import { NetworkPolicies, type NetworkPolicy, type NetworkPolicySpec } from '#apis/networking/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { eventually } from '#kits/lib/eventually.ts'
import { realClock } from '#lib/clock.ts'
import { applyNft, listNftTable, listNftTables, type NftObject } from '#lib/net/nft.ts'
import { createSeededRandom, type Random, secureRandom } from '#lib/random.ts'
import { isIntact } from '#network/policies/check.ts'
import { type Enforcer, removePolicies, startEnforcer } from '#network/policies/enforcer.ts'
import { PolicyModel } from '#network/policies/model.ts'
import { podFacts } from '#network/policies/pod-facts.ts'
import { readPolicy } from '#network/policies/policy.ts'
import { changeScript, wholeScript } from '#network/policies/script.ts'
import { type ControlPlane, errorLog, startControlPlane } from '#testing/control-plane.ts'

import { createNamespace, whyNoNetworks } from '../proxy/network-bed.ts'
import { type Bed, createBed, NODE, OUTSIDE, RANGES, type Speaker } from './pods.ts'

const TABLE = 'hk-test-policies'
const MASTERS = { name: 'policies', uid: '', groups: ['system:masters', 'system:authenticated'], extra: {} }
const skip = (await whyNoNetworks()) ?? false
/**
 * A router advertisement to all neighbours. Node has no raw sockets, so the pod sends a UDP datagram and a rule
 * changes its protocol to ICMPv6. The source port becomes type and code, the checksum the router's lifetime, and
 * eight zero bytes the timers. A virtual cable does not verify checksums.
 */
const ROUTER_PORT = 134 << 8
const FORGE = [
  'add table ip6 forge',
  'add chain ip6 forge out { type filter hook output priority 0; }',
  `add rule ip6 forge out udp sport ${ROUTER_PORT} @nh,48,8 set 58`,
].join('\n')
const ADVERTISE = `
const socket = require('node:dgram').createSocket('udp6')
socket.bind(${ROUTER_PORT}, '::', () => {
  socket.setMulticastTTL(255)
  socket.setMulticastInterface('::%eth0')
  socket.send(new Uint8Array(8), 9, 'ff02::1%eth0', () => socket.close())
})
`

describe('network policies', { skip }, () => {
  let plane: ControlPlane
  let client: ApiClient
  let bed: Bed
  let enforcer: Enforcer
  let [web, db, other] = [] as unknown as [Speaker, Speaker, Speaker]

  before(async () => {
    plane = await startControlPlane({ settings: { 'disable-admission-plugins': ['ServiceAccount'] } })
    client = new ApiClient({ transport: plane.running.server.clientAs(MASTERS), clock: realClock, userAgent: 'test' })
    await client.create(Nodes, { metadata: { name: NODE }, spec: { podCIDRs: RANGES, podCIDR: RANGES[0] ?? '' } })
    for (const name of ['a', 'b']) await client.create(Namespaces, { metadata: { name, labels: { team: name } } })
    bed = await createBed(client)
    enforcer = enforce()
    await enforcer.ready
    web = await bed.pod('a', 'web', { app: 'web' })
    db = await bed.pod('a', 'db', { app: 'db' }, 90)
    other = await bed.pod('b', 'other', { app: 'other' })
  })
  after(async () => {
    await enforcer?.stop()
    await bed?.[Symbol.asyncDispose]()
    await plane?.stop()
  })
  beforeEach(async () => {
    for (const { metadata } of (await client.list(NetworkPolicies, {})).items)
      await client.delete(NetworkPolicies, { namespace: metadata.namespace ?? '', name: metadata.name ?? '' })
    for (const from of [web, db, other]) for (const to of [web, db, other]) await from.reaches(to, 80, true)
  })

  function enforce(): Enforcer {
    const { within } = bed.node
    const tools = { clock: realClock, random: secureRandom, log: errorLog() }
    return startEnforcer({ ...tools, client, node: NODE, table: TABLE, within, lookMs: 200 })
  }

  function policy(name: string, spec: NetworkPolicySpec, namespace = 'a'): Promise<NetworkPolicy> {
    return client.create(NetworkPolicies, { metadata: { namespace, name }, spec })
  }

  const listed = (): Promise<readonly NftObject[] | undefined> =>
    listNftTable('inet', TABLE, { within: bed.node.within })

  const DB = { matchLabels: { app: 'db' } }
  const WEB = { matchLabels: { app: 'web' } }

  it('restrict an isolated pod to its node and itself as clients, but not as servers', async () => {
    await policy('deny', { podSelector: DB, policyTypes: ['Ingress'] })
    await web.reaches(db, 80, false)
    for (const from of [other, bed.outside]) {
      await from.reaches(db, 80, false)
      await from.reaches(db.ip6, 80, false)
      await from.reaches(db, 80, false, 'udp')
    }
    for (const to of [web, other, bed.outside]) {
      await db.reaches(to, 80, true)
      await db.reaches(to.ip6, 80, true)
    }
    for (const host of [db.ip, db.ip6]) {
      await bed.onNode.reaches(host, 80, true)
      await db.reaches(host, 80, true)
    }
    await client.delete(NetworkPolicies, { namespace: 'a', name: 'deny' })
    await web.reaches(db, 80, true)
    await other.reaches(db.ip6, 80, true, 'udp')
  })

  it('do not affect established connections', async () => {
    assert.equal(await web.tell('open', db.ip, 80), 'db')
    await policy('deny', { podSelector: {}, policyTypes: ['Ingress', 'Egress'] })
    await web.reaches(db, 80, false)
    assert.equal(await web.tell('echo', db.ip, 80), 'still there')
  })

  it('select peers by labels, in the same or in selected namespaces', async () => {
    await policy('pods', { podSelector: DB, ingress: [{ from: [{ podSelector: WEB }] }], policyTypes: ['Ingress'] })
    await other.reaches(db, 80, false)
    await web.reaches(db, 80, true)
    const from = [{ namespaceSelector: { matchLabels: { team: 'b' } }, podSelector: { matchLabels: { app: 'other' } } }]
    await policy('both', { podSelector: DB, ingress: [{ from }], policyTypes: ['Ingress'] })
    await other.reaches(db, 80, true)
    await other.reaches(db.ip6, 80, true)
    const { metadata, ...rest } = await client.get(Namespaces, { name: 'b' })
    await client.update(Namespaces, { ...rest, metadata: { ...metadata, labels: { team: 'c' } } })
    await other.reaches(db, 80, false)
    const again = await client.get(Namespaces, { name: 'b' })
    await client.update(Namespaces, { ...again, metadata: { ...again.metadata, labels: { team: 'b' } } })
    await other.reaches(db, 80, true)
    const pod = await client.get(Pods, { namespace: 'b', name: 'other' })
    await client.update(Pods, { ...pod, metadata: { ...pod.metadata, labels: { app: 'else' } } })
    await other.reaches(db, 80, false)
    const back = await client.get(Pods, { namespace: 'b', name: 'other' })
    await client.update(Pods, { ...back, metadata: { ...back.metadata, labels: { app: 'other' } } })
  })

  it('select ports by protocol, number, range and name', async () => {
    const ports = [{ port: 80, endPort: 81, protocol: 'TCP' }, { port: 443, protocol: 'UDP' }, { port: 'web' }]
    await policy('ports', { podSelector: DB, ingress: [{ ports }], policyTypes: ['Ingress'] })
    await web.reaches(db, 443, false)
    await web.reaches(db, 80, true)
    await web.reaches(db.ip6, 81, true)
    await web.reaches(db, 80, false, 'udp')
    await web.reaches(db, 443, true, 'udp')
    // "web" is 90 there, and 80 elsewhere.
    await web.reaches(db, 90, true)
    await web.reaches(db.ip6, 90, true)
    await policy('named', { podSelector: WEB, egress: [{ ports: [{ port: 'web' }] }], policyTypes: ['Egress'] })
    await web.reaches(db, 80, false)
    await web.reaches(db, 90, true)
    await web.reaches(other, 80, true)
    await web.reaches(other, 90, false)
  })

  it('select IP blocks with exceptions, in both directions', async () => {
    const block = { cidr: '192.0.2.0/24', except: ['192.0.2.0/29'] }
    await policy('block', { podSelector: WEB, egress: [{ to: [{ ipBlock: block }] }], policyTypes: ['Egress'] })
    await web.reaches(bed.outside, 80, false)
    const open = [{ ipBlock: { cidr: '0.0.0.0/0', except: ['10.0.0.0/8'] } }, { ipBlock: { cidr: '2001:db8::/32' } }]
    await policy('open', { podSelector: WEB, egress: [{ to: open }], policyTypes: ['Egress'] })
    await web.reaches(bed.outside, 80, true)
    await web.reaches(OUTSIDE.ip6, 80, true)
    await web.reaches(db, 80, false)
    await web.reaches(db.ip6, 80, false)
    await policy('in', { podSelector: DB, ingress: [{ from: open }], policyTypes: ['Ingress'] })
    await other.reaches(db, 80, false)
    await bed.outside.reaches(db, 80, true)
  })

  it('apply to the endpoints of Services', async () => {
    const { within } = bed.node
    await applyNft(
      `add table ip services\nadd chain ip services to { type nat hook prerouting priority dstnat; }\n` +
        `add rule ip services to ip daddr 10.98.0.1 tcp dport 1080 dnat to ${db.ip}:80\n` +
        'add chain ip services back { type nat hook postrouting priority srcnat; }\n' +
        `add rule ip services back ip saddr ${db.ip} ip daddr ${db.ip} masquerade\n`,
      { within },
    )
    await web.reaches('10.98.0.1', 1080, true)
    await policy('out', { podSelector: WEB, egress: [{ to: [{ podSelector: DB }] }], policyTypes: ['Egress'] })
    const from = [{ podSelector: WEB }]
    await policy('in', { podSelector: DB, ingress: [{ from, ports: [{ port: 80 }] }], policyTypes: ['Ingress'] })
    await web.reaches(other, 80, false)
    await other.reaches('10.98.0.1', 1080, false)
    await web.reaches('10.98.0.1', 1080, true)
    await bed.node.run('bridge', 'link', 'set', 'dev', 'v3', 'hairpin', 'on')
    await db.reaches('10.98.0.1', 1080, true)
  })

  it('drop router advertisements of pods (CVE-2020-10749)', async () => {
    await other.run('sysctl', '-qw', 'net.ipv6.conf.eth0.accept_ra=2')
    await web.run('nft', FORGE)
    const advertise = (): Promise<string> => web.run(process.execPath, '-e', ADVERTISE)
    const routes = await other.run('ip', '-6', 'route', 'show', 'default')
    const heard = async (): Promise<string> => other.run('ip', '-6', 'route', 'show', 'default', 'proto', 'ra')
    // Without policies the neighbour accepts the packet, so the forged packet is valid.
    await enforcer.stop()
    await removePolicies(TABLE, { within: bed.node.within })
    await eventually(
      async () => (await advertise(), heard()),
      (found) => found !== '',
    )
    await other.run('ip', '-6', 'route', 'delete', 'default', 'proto', 'ra')
    enforcer = enforce()
    await enforcer.ready
    for (let times = 0; times < 20; times++) await advertise()
    assert.equal(await heard(), '')
    assert.equal(await other.run('ip', '-6', 'route', 'show', 'default'), routes)
  })

  it('are restored after other programs change the table', async () => {
    await policy('deny', { podSelector: DB, policyTypes: ['Ingress'] })
    await web.reaches(db, 80, false)
    const { within } = bed.node
    for (const script of [
      `delete table inet ${TABLE}`,
      `flush chain inet ${TABLE} ingress`,
      `delete element inet ${TABLE} ingress4 { ${db.ip} }`,
      `add rule inet ${TABLE} ingress accept`,
    ]) {
      const whole = JSON.stringify(await listed(), withoutHandles)
      await applyNft(`${script}\n`, { within })
      await eventually(
        async () => JSON.stringify(await listed(), withoutHandles),
        (now) => now === whole,
      )
    }
    await bed.node.run('sysctl', '-qw', 'net.bridge.bridge-nf-call-iptables=0')
    await web.reaches(db, 80, false)
  })

  it('stay in force without the program, and the next one keeps the table', async () => {
    await policy('deny', { podSelector: DB, policyTypes: ['Ingress'] })
    await web.reaches(db, 80, false)
    await enforcer.stop()
    await web.reaches(db, 80, false)
    await client.delete(NetworkPolicies, { namespace: 'a', name: 'deny' })
    enforcer = enforce()
    await web.reaches(db, 80, true)
    await enforcer.stop()
    await removePolicies(TABLE, { within: bed.node.within })
    assert.deepEqual(
      (await listNftTables({ within: bed.node.within })).filter((name) => name.includes(TABLE)),
      [],
    )
    enforcer = enforce()
    await enforcer.ready
  })
})

/** Which number a rule has says nothing. */
function withoutHandles(name: string, value: unknown): unknown {
  return name === 'handle' ? undefined : value
}

describe('incremental changes of network policies', { skip }, () => {
  it('lead to the same table as a complete rewrite', async () => {
    await using where = await createNamespace('pol-diff')
    const { within } = where
    const random = createSeededRandom(7)
    const model = new PolicyModel()
    for (const name of ['a', 'b']) model.setNamespace(name, { team: name })
    await applyNft(wholeScript(TABLE, model.settle()), { within })
    model.table.take()
    for (let round = 0; round < 60; round++) {
      for (let times = random.int(4); times >= 0; times--) changeSomething(model, random)
      const table = model.settle()
      await applyNft(changeScript(TABLE, table, table.take()), { within })
      assert.ok(isIntact(await listNftTable('inet', TABLE, { within }), table), `round ${round}`)
    }
    const changed = await where.run('nft', '-s', 'list', 'table', 'inet', TABLE)
    await applyNft(wholeScript(TABLE, model.table), { within })
    const whole = await where.run('nft', '-s', 'list', 'table', 'inet', TABLE)
    assert.deepEqual(inOrder(changed), inOrder(whole))
  })
})

/** Chains and sets have the order in which they were made. */
function inOrder(text: string): readonly string[] {
  const words = (block: string): string =>
    block
      .split(/[\s,]+/)
      .filter((word) => word !== '')
      .sort()
      .join(' ')
  return text
    .split(/\n\t}\n/)
    .map(words)
    .sort()
}

function changeSomething(model: PolicyModel, random: Random): void {
  const pick = <T>(from: readonly T[]): T => from[random.int(from.length)] as T
  const namespace = pick(['a', 'b'])
  const number = 2 + random.int(8)
  if (random.float() < 0.5) {
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace, name: `pod-${number}`, labels: { app: pick(['web', 'db']) } },
      spec: {
        nodeName: pick([NODE, NODE, 'elsewhere']),
        containers: [{ name: 'c', resources: {}, ports: [{ name: 'web', containerPort: pick([80, 81]) }] }],
      },
      status: { podIPs: [{ ip: `10.99.0.${number}` }, { ip: `fd99::${number}` }] },
    }
    model.setPod(`${namespace}/pod-${number}`, random.float() < 0.3 ? undefined : podFacts(pod, NODE))
    return
  }
  const peers = [
    { podSelector: { matchLabels: { app: pick(['web', 'db']) } } },
    { namespaceSelector: { matchLabels: { team: pick(['a', 'b']) } } },
    { ipBlock: { cidr: '0.0.0.0/0', except: ['10.99.0.0/24', '10.99.0.4/30'] } },
  ]
  const ports = [{ port: pick([80, 81]) }, { port: 'web' }, { port: 100, endPort: 200, protocol: 'UDP' }]
  const name = `policy-${random.int(4)}`
  const policy = {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { namespace, name },
    spec: {
      podSelector: pick([{}, { matchLabels: { app: 'web' } }]),
      ingress: [{ from: [pick(peers), pick(peers)], ports: [pick(ports), pick(ports)] }],
      egress: [{ to: [pick(peers)], ports: [pick(ports)] }],
      policyTypes: pick([['Ingress'], ['Ingress', 'Egress']]),
    },
  }
  model.setPolicy(`${namespace}/${name}`, random.float() < 0.4 ? undefined : readPolicy(policy))
}
