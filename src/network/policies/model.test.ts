/**
 * Property: for every packet the table gives the same verdict as a model that reads the policies as documented, without
 * sets and chains.
 */
import { deepEqual, equal } from 'node:assert/strict'
import { suite, test } from 'node:test'

import fc from 'fast-check'

import type { Pod } from '#apis/core/v1.ts'
import type { NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from '#apis/networking/v1.ts'
import { contains, type Ip, parseCidr, parseIp } from '#lib/net/cidr.ts'
import { asSelector } from '#meta/label-selector.ts'
import { matchesLabels } from '#meta/labels.ts'

import { PolicyModel } from './model.ts'
import { podFacts } from './pod-facts.ts'
import { type Direction, readPolicy } from './policy.ts'
import { changeScript, ruleText, wholeScript } from './script.ts'
import type { Match, Rule, Table } from './table.ts'

interface Cluster {
  readonly namespaces: Readonly<Record<string, Readonly<Record<string, string>>>>
  readonly pods: readonly Pod[]
  readonly policies: readonly NetworkPolicy[]
}

interface Packet {
  readonly from: string
  readonly to: string
  readonly protocol: string
  readonly port: number
}

const NODE = 'here' as const
const RANGES = [
  { family: 4, text: '10.0.0.0/24' },
  { family: 6, text: 'fd00::/64' },
] as const

function modelOf({ namespaces, pods, policies }: Cluster): PolicyModel {
  const model = new PolicyModel()
  model.setRanges(RANGES)
  for (const [name, labels] of Object.entries(namespaces)) model.setNamespace(name, labels)
  for (const pod of pods) model.setPod(keyOf(pod), podFacts(pod, NODE))
  for (const policy of policies) model.setPolicy(keyOf(policy), readPolicy(policy))
  model.settle()
  return model
}

const keyOf = ({ metadata }: { readonly metadata: { readonly namespace?: string; readonly name?: string } }): string =>
  `${metadata.namespace}/${metadata.name}`

// The oracle.

const addressesOf = (pod: Pod): readonly string[] => pod.status?.podIPs?.map(({ ip }) => ip ?? '') ?? []

function isAllowed(cluster: Cluster, packet: Packet): boolean {
  const [from, to] = [packet.from, packet.to].map((ip) => cluster.pods.find((pod) => addressesOf(pod).includes(ip)))
  if (packet.from === packet.to) return true
  const isLetOut = from?.spec.nodeName !== NODE || isAllowedByPolicies(cluster, packet, 'egress', { subject: from, to })
  const isLetIn = to?.spec.nodeName !== NODE || isAllowedByPolicies(cluster, packet, 'ingress', { subject: to, to })
  return isLetOut && isLetIn
}

function isAllowedByPolicies(
  cluster: Cluster,
  packet: Packet,
  direction: Direction,
  { subject, to }: { readonly subject: Pod; readonly to: Pod | undefined },
): boolean {
  const concerned = cluster.policies.filter(
    ({ metadata, spec }) =>
      metadata.namespace === subject.metadata.namespace &&
      matchesLabels(asSelector(spec.podSelector), subject.metadata.labels) &&
      (spec.policyTypes ?? ['Ingress', ...(spec.egress ? ['Egress'] : [])]).some(
        (type) => type.toLowerCase() === direction,
      ),
  )
  if (concerned.length === 0) return true
  return concerned.some(({ metadata, spec }) =>
    (direction === 'ingress'
      ? (spec.ingress ?? []).map(({ from, ports }) => ({ peers: from, ports }))
      : (spec.egress ?? []).map(({ to: peers, ports }) => ({ peers, ports }))
    ).some(
      ({ peers = [], ports = [] }) =>
        (peers.length === 0 ||
          peers.some((peer) =>
            isPeer(cluster, peer, direction === 'ingress' ? packet.from : packet.to, metadata.namespace ?? ''),
          )) &&
        (ports.length === 0 || ports.some((port) => isPort(port, packet, to))),
    ),
  )
}

function isPeer({ pods, namespaces }: Cluster, peer: NetworkPolicyPeer, address: string, home: string): boolean {
  const isIn = (cidr: string): boolean => contains(parseCidr(cidr)!, parseIp(address) as Ip)
  if (peer.ipBlock) return isIn(peer.ipBlock.cidr) && !(peer.ipBlock.except ?? []).some(isIn)
  const pod = pods.find((one) => addressesOf(one).includes(address))
  if (pod === undefined) return false
  const { namespace = '', labels } = pod.metadata
  const isThere = peer.namespaceSelector
    ? matchesLabels(asSelector(peer.namespaceSelector), namespaces[namespace])
    : namespace === home
  return isThere && matchesLabels(asSelector(peer.podSelector ?? {}), labels)
}

function isPort({ protocol = 'TCP', port, endPort }: NetworkPolicyPort, packet: Packet, to: Pod | undefined): boolean {
  if (protocol !== packet.protocol) return false
  if (port === undefined) return true
  if (typeof port === 'number') return packet.port >= port && packet.port <= (endPort ?? port)
  const ports = to?.spec.containers.flatMap((one) => one.ports ?? []) ?? []
  return ports.some(
    (one) => one.name === port && (one.protocol ?? 'TCP') === protocol && one.containerPort === packet.port,
  )
}

// A packet through the table.

function passes(table: Table, packet: Packet): boolean {
  return (['egress', 'ingress'] as const).every((chain) => walk(table, chain, packet) !== 'drop')
}

type PacketOutcome = 'accept' | 'drop' | 'fell through'

function walk(table: Table, chain: string, packet: Packet): PacketOutcome {
  const found = table.chains.get(chain)
  if (found === undefined) throw new Error(`No chain ${chain}`)
  for (const rule of found.rules) {
    if (!rule.matches.every((match) => isMatch(table, match, packet))) continue
    const outcome = follow(table, rule, packet)
    if (outcome !== undefined) return outcome
  }
  return 'fell through'
}

/** Undefined: continue with the next rule. */
function follow(table: Table, { verdict }: Rule, packet: Packet): PacketOutcome | undefined {
  if ('chain' in verdict) {
    const outcome = walk(table, verdict.chain, packet)
    return outcome === 'fell through' && verdict.do === 'jump' ? undefined : outcome
  }
  if (!('map' in verdict)) return verdict.do
  const address = verdict.side === 'source' ? packet.from : packet.to
  const target = table.sets.get(verdict.map)?.elements.get(address)
  if (target === undefined) return undefined
  return target === 'accept' || target === 'drop' ? target : walk(table, target.slice('goto '.length), packet)
}

function isMatch({ sets }: Table, match: Match, { from, to, protocol, port }: Packet): boolean {
  const has = (set: string, element: string): boolean => {
    const found = sets.get(set)
    if (found === undefined) throw new Error(`No set ${set}`)
    if (found.type !== 'blocks') return found.elements.has(element)
    return [...found.elements.keys()].some((block) => contains(parseCidr(block)!, parseIp(element)!))
  }
  const l4 = protocol.toLowerCase()
  switch (match.is) {
    case 'member':
      return has(match.set, match.side === 'source' ? from : to)
    case 'block': {
      const ip = parseIp(match.side === 'source' ? from : to)!
      return contains(match.block, ip) && !match.except.some((hole) => contains(hole, ip))
    }
    case 'ports':
      return (
        match.protocol === l4 &&
        (match.ranges.length === 0 || match.ranges.some(([first, last]) => port >= first && port <= last))
      )
    case 'named':
      return has(match.set, `${to} . ${l4} . ${port}`)
    case 'pair':
      return has(match.set, `${from} . ${to}`)
    case 'established':
    case 'neighbours':
    case 'router':
      return false
  }
}

// Random clusters.

const labels = fc.dictionary(fc.constantFrom('app', 'tier'), fc.constantFrom('x', 'y', 'z'), { maxKeys: 2 })
const namespaceNames = ['a', 'b', 'c']
const selector = fc.oneof(
  fc.constant({}),
  labels.map((matchLabels) => ({ matchLabels })),
  fc.record({
    matchExpressions: fc.array(
      fc.oneof(
        fc.record({
          key: fc.constantFrom('app', 'tier'),
          operator: fc.constantFrom('In' as const, 'NotIn' as const),
          values: fc.array(fc.constantFrom('x', 'y', 'z'), { minLength: 1, maxLength: 2 }),
        }),
        fc.record({
          key: fc.constantFrom('app', 'tier'),
          operator: fc.constantFrom('Exists' as const, 'DoesNotExist' as const),
        }),
      ),
      { maxLength: 2 },
    ),
  }),
)
const block = fc.constantFrom<NonNullable<NetworkPolicyPeer['ipBlock']>[]>(
  { cidr: '10.0.0.0/24', except: ['10.0.0.1/32', '10.0.0.0/30'] },
  { cidr: '0.0.0.0/0', except: ['10.0.0.0/24'] },
  { cidr: '::/0' },
  { cidr: 'fd00::/64', except: ['fd00::2/127'] },
  { cidr: '192.0.2.0/24' },
  { cidr: '10.0.0.3/32', except: ['10.0.0.0/24'] },
)
const peer: fc.Arbitrary<NetworkPolicyPeer> = fc.oneof(
  fc.record({ podSelector: selector }),
  fc.record({ namespaceSelector: selector }),
  fc.record({ namespaceSelector: selector, podSelector: selector }),
  fc.record({ ipBlock: block }),
)
const protocol = fc.constantFrom('TCP', 'UDP', 'SCTP')
const port: fc.Arbitrary<NetworkPolicyPort> = fc.oneof(
  fc.record({ protocol }),
  fc.record({ protocol, port: fc.constantFrom(80, 81, 443) }),
  fc.record({ port: fc.constantFrom(80, 81) }),
  fc.record({ protocol, port: fc.constantFrom(80, 81), endPort: fc.constantFrom(81, 443) }),
  fc.record({ protocol, port: fc.constantFrom('http', 'dns') }),
)
const ports = fc.array(port, { maxLength: 3 })
const peers = fc.array(peer, { maxLength: 3 })
const policy: fc.Arbitrary<NetworkPolicy> = fc.record({
  apiVersion: fc.constant('networking.k8s.io/v1'),
  kind: fc.constant('NetworkPolicy'),
  metadata: fc.record({ namespace: fc.constantFrom(...namespaceNames), name: fc.constantFrom('p', 'q', 'r') }),
  spec: fc.record(
    {
      podSelector: selector,
      ingress: fc.array(fc.record({ from: peers, ports }, { requiredKeys: [] }), { maxLength: 2 }),
      egress: fc.array(fc.record({ to: peers, ports }, { requiredKeys: [] }), { minLength: 1, maxLength: 2 }),
      policyTypes: fc.constantFrom(['Ingress'], ['Egress'], ['Ingress', 'Egress']),
    },
    { requiredKeys: ['podSelector'] },
  ),
})
const NETS = { here: ['10.0.0.', 'fd00::'], there: ['10.0.1.', 'fd00:0:0:1::'] } as const
/** The number is its name and the end of its addresses. */
const pod = (number: number): fc.Arbitrary<Pod> =>
  fc
    .record({
      namespace: fc.constantFrom(...namespaceNames),
      labels,
      nodeName: fc.constantFrom(NODE, NODE, 'there'),
      isDual: fc.boolean(),
      http: fc.constantFrom(80, 81),
      isStarting: fc.constantFrom(false, false, false, true),
    })
    .map(({ namespace, labels: found, nodeName, isDual, http, isStarting }) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace, name: `pod-${number}`, labels: found },
      spec: {
        nodeName,
        containers: [
          {
            name: 'c',
            resources: {},
            ports: [
              { name: 'http', containerPort: http },
              { name: 'dns', protocol: 'UDP', containerPort: 81 },
            ],
          },
        ],
      },
      status: {
        podIPs: isStarting
          ? []
          : [{ ip: `${NETS[nodeName][0]}${number}` }, ...(isDual ? [{ ip: `${NETS[nodeName][1]}${number}` }] : [])],
      },
    }))
const POD_NUMBERS = [1, 2, 3, 4, 5, 6]
const namespaces = fc.record(Object.fromEntries(namespaceNames.map((name) => [name, labels])))
const clusters: fc.Arbitrary<Cluster> = fc.record({
  namespaces,
  pods: fc.tuple(...POD_NUMBERS.map(pod)),
  policies: fc.uniqueArray(policy, { maxLength: 5, selector: keyOf }),
})

const OUTSIDE = ['192.0.2.7', '198.51.100.1', '2001:db8::1']

function packets({ pods }: Cluster): readonly Packet[] {
  const addresses = [...pods.flatMap(addressesOf), ...OUTSIDE]
  return addresses.flatMap((from) =>
    addresses
      .filter((to) => to.includes(':') === from.includes(':'))
      .flatMap((to) =>
        PROTOCOLS.flatMap((name) => PORTS.map((number) => ({ from, to, protocol: name, port: number }))),
      ),
  )
}

const PROTOCOLS = ['TCP', 'UDP', 'SCTP']
const PORTS = [80, 81, 443, 444]

suite('nftables of network policies on a node', () => {
  test('accept exactly the traffic that the policies allow', () => {
    fc.assert(
      fc.property(clusters, (cluster) => {
        const { table } = modelOf(cluster)
        for (const packet of packets(cluster))
          equal(passes(table, packet), isAllowed(cluster, packet), JSON.stringify(packet))
      }),
      { numRuns: 100 },
    )
  })

  test('do not depend on the order of changes', () => {
    const change = fc.oneof(
      fc.record({ policy, isGone: fc.boolean() }),
      fc.constantFrom(...POD_NUMBERS).chain((number) => fc.record({ pod: pod(number), isGone: fc.boolean() })),
      fc.record({ namespace: fc.constantFrom(...namespaceNames), labels }),
      fc.constant({ settle: true }),
    )
    fc.assert(
      fc.property(clusters, fc.array(change, { maxLength: 20 }), (cluster, changes) => {
        const model = modelOf(cluster)
        const now = {
          namespaces: { ...cluster.namespaces },
          pods: new Map(cluster.pods.map((one) => [one.metadata.name, one])),
          policies: new Map(cluster.policies.map((one) => [keyOf(one), one])),
        }
        for (const one of changes) {
          if ('settle' in one) model.settle().take()
          else if ('policy' in one) {
            now.policies.delete(keyOf(one.policy))
            if (!one.isGone) now.policies.set(keyOf(one.policy), one.policy)
            model.setPolicy(keyOf(one.policy), one.isGone ? undefined : readPolicy(one.policy))
          } else if ('pod' in one) {
            const { name } = one.pod.metadata
            const before = now.pods.get(name)
            if (before !== undefined) model.setPod(keyOf(before), undefined)
            now.pods.delete(name)
            if (!one.isGone) now.pods.set(name, one.pod)
            model.setPod(keyOf(one.pod), one.isGone ? undefined : podFacts(one.pod, NODE))
          } else {
            now.namespaces[one.namespace] = one.labels
            model.setNamespace(one.namespace, one.labels)
          }
        }
        const fresh = modelOf({
          namespaces: now.namespaces,
          pods: [...now.pods.values()],
          policies: [...now.policies.values()],
        })
        for (let times = 0; times < 10; times++) model.age()
        deepEqual(shown(model.settle()), shown(fresh.settle()))
      }),
      { numRuns: 100 },
    )
  })
})

function shown({ sets, chains }: Table): unknown {
  return {
    sets: Object.fromEntries(
      [...sets].map(([name, { elements, ...set }]) => [name, { ...set, elements: [...elements].map(String).sort() }]),
    ),
    chains: Object.fromEntries(
      [...chains].map(([name, { rules, comment }]) => [name, { rules: rules.map(ruleText), comment }]),
    ),
  }
}

function podAt(
  name: string,
  { ip, ...fields }: { ip?: string; labels?: Record<string, string>; hostNetwork?: boolean; phase?: string },
): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'a', name, ...(fields.labels && { labels: fields.labels }) },
    spec: { nodeName: NODE, containers: [], ...(fields.hostNetwork && { hostNetwork: true }) },
    status: { ...(ip !== undefined && { podIPs: [{ ip }] }), ...(fields.phase && { phase: fields.phase }) },
  }
}

function denying(name: string, policyTypes: string[] = ['Ingress']): NetworkPolicy {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { namespace: 'a', name },
    spec: { podSelector: {}, policyTypes },
  }
}

suite('nftables for pods', () => {
  const toUnknown = { from: '192.0.2.7', to: '10.0.0.9', protocol: 'TCP', port: 80 }

  test('block a pod that is starting if a policy selects it', () => {
    const starting = { namespaces: {}, pods: [podAt('one', {})], policies: [denying('p')] }
    const model = modelOf(starting)
    equal(passes(model.table, toUnknown), false)
    equal(passes(model.table, { ...toUnknown, from: toUnknown.to, to: toUnknown.from }), true, 'egress is open')
    model.setPod('a/one', podFacts(podAt('one', { ip: '10.0.0.1' }), NODE))
    equal(passes(model.settle(), toUnknown), true)
    equal(passes(modelOf({ ...starting, policies: [] }).table, toUnknown), true)
  })

  test('ignore terminated pods and pods with hostNetwork', () => {
    const pods = [
      podAt('one', { ip: '10.0.0.9', hostNetwork: true }),
      podAt('two', { ip: '10.0.0.9', phase: 'Succeeded' }),
    ]
    equal(passes(modelOf({ namespaces: {}, pods, policies: [denying('p')] }).table, toUnknown), true)
  })

  test('block the address of a deleted isolated pod briefly, or until another pod has it', () => {
    const isolated = { namespaces: {}, pods: [podAt('one', { ip: '10.0.0.9' })], policies: [denying('p')] }
    const model = modelOf(isolated)
    model.setPod('a/one', undefined)
    model.setPolicy('a/p', undefined)
    equal(passes(model.settle(), toUnknown), false)
    for (let times = 0; times < 10; times++) model.age()
    equal(passes(model.settle(), toUnknown), true)
    const other = modelOf(isolated)
    other.setPod('a/one', undefined)
    other.setPod(
      'b/two',
      podFacts({ ...podAt('two', { ip: '10.0.0.9' }), metadata: { namespace: 'b', name: 'two' } }, NODE),
    )
    equal(passes(other.settle(), toUnknown), true)
  })

  test('assign an address to the latest pod that has it, and back to the previous pod afterwards', () => {
    const open = podAt('one', { ip: '10.0.0.9' })
    const model = modelOf({ namespaces: {}, pods: [open], policies: [] })
    const other = podFacts({ ...podAt('two', { ip: '10.0.0.9' }), metadata: { namespace: 'b', name: 'two' } }, NODE)
    model.setPolicy('b/p', { ...readPolicy(denying('p')), namespace: 'b' })
    model.setPod('b/two', other)
    equal(passes(model.settle(), toUnknown), false)
    model.setPod('b/two', undefined)
    equal(passes(model.settle(), toUnknown), true)
  })
})

suite('nft scripts for changes', () => {
  test('are empty if nothing changed', () => {
    const model = modelOf({ namespaces: {}, pods: [podAt('one', { ip: '10.0.0.9' })], policies: [denying('p')] })
    model.settle().take()
    model.setPod('a/one', podFacts({ ...podAt('one', { ip: '10.0.0.9' }), kind: 'Pod' }, NODE))
    model.setPolicy('a/p', readPolicy(denying('p')))
    const table = model.settle()
    equal(changeScript('t', table, table.take()), '')
  })

  test('add a few elements for a new pod', () => {
    const model = modelOf({ namespaces: {}, pods: [], policies: [denying('p')] })
    model.settle().take()
    model.setPod('a/one', podFacts(podAt('one', { ip: '10.0.0.9' }), NODE))
    const table = model.settle()
    const chain = [...table.chains.keys()].find((name) => name.startsWith('pods-ingress'))
    const inner = [...table.chains.keys()].find((name) => name.startsWith('policy-ingress'))
    equal(
      changeScript('t', table, table.take()),
      [
        `add chain inet t ${chain}`,
        `flush chain inet t ${chain}`,
        `add rule inet t ${chain} jump ${inner}`,
        `add rule inet t ${chain} drop`,
        'add element inet t self4 { 10.0.0.9 . 10.0.0.9 }',
        `add element inet t ingress4 { 10.0.0.9 : goto ${chain} }`,
        'add element inet t egress4 { 10.0.0.9 : accept }',
        '',
      ].join('\n'),
    )
  })

  test('contain no text of users except allowed characters of names', () => {
    const hostile = denying('p" ; flush ruleset; #')
    hostile.spec.ingress = [
      { from: [{ ipBlock: { cidr: '10.0.0.0/8 } ; flush ruleset' } }], ports: [{ port: 'a; flush ruleset' }] },
    ]
    const { table } = modelOf({
      namespaces: {},
      pods: [podAt('one', { ip: '10.0.0.9; flush ruleset' })],
      policies: [hostile],
    })
    const script = wholeScript('t', table)
    equal(script.includes('flush ruleset'), false)
    equal(script.includes('comment "a/pflushruleset"'), true)
  })
})
