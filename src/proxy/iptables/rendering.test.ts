import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Endpoint } from '../endpoints.ts'
import { localByCidr } from '../local-detector.ts'
import { type Route, routeOf } from '../routing.ts'
import type { ServicePort } from '../service-port.ts'
import { IptablesLedger } from './ledger.ts'
import { chainName, endpointChainName } from './names.ts'
import { removalOf } from './removal.ts'
import { renderChains, renderPortals } from './rendering.ts'
import type { IptablesSettings } from './skeleton.ts'

const PORT: ServicePort = {
  name: 'ns1/svc1:p80',
  namespace: 'ns1',
  service: 'svc1',
  portName: 'p80',
  protocol: 'tcp',
  clusterIp: '172.30.0.41',
  port: 80,
  nodePort: 0,
  externalIps: [],
  loadBalancerIps: [],
  sourceRanges: [],
  affinitySeconds: 0,
  isInternalLocal: false,
  isExternalLocal: false,
  healthCheckNodePort: 0,
}
const SETTINGS: IptablesSettings = {
  family: 'IPv4',
  masqueradeMark: '0x004000',
  masqueradeAll: false,
  detector: localByCidr('10.0.0.0/8'),
  nodeIp: '192.0.2.1',
  nodePortIps: undefined,
  localhostNodePorts: true,
  isTcpLiberal: false,
  hasRandomFully: true,
}

function at(ip: string, port = 80, isLocal = false): Endpoint {
  return { ip, port, isLocal, isReady: true, isServing: true, isTerminating: false, zoneHints: [], nodeHints: [] }
}

function route(port: Partial<ServicePort>, ...endpoints: readonly Endpoint[]): Route {
  return routeOf({ ...PORT, ...port }, endpoints, { family: 'IPv4', nodeName: 'here', zone: '' })
}

const SVC = chainName('cluster', PORT)
const SEP = endpointChainName(PORT, at('10.180.0.1'))

describe('iptables rules of a Service', () => {
  it("are in chains with upstream's names", () => {
    assert.deepEqual([SVC, SEP], ['KUBE-SVC-XPGD46QRK7WJZT7O', 'KUBE-SEP-SXIVWICOYRO3J4NJ'])
  })

  it('lead from the cluster IP to the endpoints, without comments if there are many endpoints', () => {
    const routes = [route({}, at('10.180.0.1'))]
    const to = '-m tcp -p tcp -d 172.30.0.41 --dport 80'
    assert.deepEqual(renderPortals(routes), {
      nat: [`-A KUBE-SERVICES -m comment --comment "ns1/svc1:p80 cluster IP" ${to} -j ${SVC}`],
      filter: [],
    })
    const chains = renderChains(routes, SETTINGS, true)
    assert.deepEqual(chains.get(SVC), [
      `-A ${SVC} -m comment --comment "ns1/svc1:p80 cluster IP" ${to} ! -s 10.0.0.0/8 -j KUBE-MARK-MASQ`,
      `-A ${SVC} -m comment --comment "ns1/svc1:p80 -> 10.180.0.1:80" -j ${SEP}`,
    ])
    assert.deepEqual(renderChains(routes, SETTINGS, false).get(SEP), [
      `-A ${SEP} -s 10.180.0.1 -j KUBE-MARK-MASQ`,
      `-A ${SEP} -m tcp -p tcp -j DNAT --to-destination 10.180.0.1:80`,
    ])
  })

  it('choose endpoints at random, after session affinity', () => {
    const routes = [
      route({ affinitySeconds: 600, protocol: 'sctp' }, at('10.180.0.1'), at('10.180.0.2'), at('10.180.0.3')),
    ]
    const rules = renderChains(routes, SETTINGS, false).get(chainName('cluster', { ...PORT, protocol: 'sctp' })) ?? []
    assert.match(rules[1] ?? '', /-m recent --name (KUBE-SEP-\w+) --rcheck --seconds 600 --reap -j \1$/)
    const drawn = rules.flatMap((rule) => /--probability (\S+)/.exec(rule)?.[1] ?? [])
    assert.deepEqual([rules.length, drawn], [7, ['0.3333333333', '0.5000000000']])
    const sent = [...renderChains(routes, SETTINGS, false).values()].at(-1)?.[1]
    assert.match(
      sent ?? '',
      /-m recent --name KUBE-SEP-\w+ --set -m sctp -p sctp -j DNAT --to-destination 10\.180\.0\.3:80$/,
    )
  })

  it('reject traffic without endpoints, and drop traffic with policy Local without local endpoints', () => {
    const refused = renderPortals([route({ nodePort: 30_000 })]).filter
    assert.deepEqual(refused.map((rule) => / has no .*endpoints| -j \w+$/g[Symbol.match](rule)), [
      [' has no endpoints', ' -j REJECT'],
      [' has no endpoints', ' -j REJECT'],
    ]) // prettier-ignore
    const dropped = renderPortals([route({ nodePort: 30_000, isExternalLocal: true }, at('10.180.0.1'))])
    assert.equal(dropped.nat.length, 2)
    assert.match(
      dropped.filter.join(),
      /^-A KUBE-EXTERNAL-SERVICES .* has no local endpoints.* --dst-type LOCAL .* -j DROP$/,
    )
  })

  it('contain only chain names that iptables accepts', () => {
    const [line = ''] = renderPortals([route({ name: 'a/b" -j ACCEPT\n-A X' }, at('10.180.0.1'))]).nat
    assert.match(line, /--comment "a\/b__-j_ACCEPT_-A_X cluster IP"/)
  })
})

describe('IptablesLedger', () => {
  const empty = { nat: [], filter: [] }

  it('writes changed chains and deletes obsolete ones', () => {
    const ledger = new IptablesLedger(SETTINGS)
    ledger.set('ns1/svc1', [route({}, at('10.180.0.1'))])
    ledger.set('ns1/svc2', [route({ name: 'ns1/svc2' }, at('10.180.0.1'))])
    const { text, counts } = ledger.everything(empty)
    assert.match(text, /^\*mangle\n:KUBE-PROXY-CANARY - \[0:0\]\nCOMMIT\n\*filter\n/)
    assert.deepEqual(counts, { filter: { written: 4, total: 4 }, nat: { written: 15, total: 15 } })
    ledger.applied()
    assert.equal(ledger.changes(), undefined)
    ledger.set('ns1/svc1', [route({}, at('10.180.0.2'))])
    const changed = ledger.changes()
    assert.deepEqual(changed?.counts.nat, { written: 11, total: 15 })
    assert.match(changed?.text ?? '', new RegExp(`:${SEP} - \\[0:0\\]\n[^]*\n-X ${SEP}\nCOMMIT\n$`))
    assert.doesNotMatch(changed?.text ?? '', new RegExp(chainName('cluster', { ...PORT, name: 'ns1/svc2' }) + ' - '))
  })

  it('adds each jump rule only once, and deletes leftover KUBE-SVC chains, but no others', () => {
    const left = [':KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]', ':OTHER - [0:0]']
    const { text } = new IptablesLedger(SETTINGS).everything({ nat: left, filter: [] })
    assert.match(text, /\n-X KUBE-SVC-AAAAAAAAAAAAAAAA\n/)
    assert.doesNotMatch(text, /OTHER/)
    const jump = '-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES'
    assert.ok(text.includes(`\n${jump.replace('-A', '-I')}\n`))
    assert.ok(!new IptablesLedger(SETTINGS).everything({ nat: [jump], filter: [] }).text.includes('-I PREROUTING'))
  })

  it('does not flush chains shared with the kubelet', () => {
    const ledger = new IptablesLedger({ ...SETTINGS, localhostNodePorts: false })
    const filter = [':KUBE-FIREWALL - [0:0]']
    assert.doesNotMatch(ledger.everything({ nat: [], filter }).text, /:KUBE-FIREWALL/)
    assert.match(ledger.everything(empty).text, /:KUBE-FIREWALL/)
    // Only needed if 127.0.0.0/8 is routed.
    assert.doesNotMatch(ledger.everything(empty).text, /block incoming localnet/)
    assert.match(
      new IptablesLedger(SETTINGS).everything(empty).text,
      /block incoming localnet connections" -d 127\.0\.0\.0\/8/,
    )
  })
})

describe('removalOf() for the iptables rules of kube-proxy', () => {
  it('deletes only the chains of kube-proxy and the rules that jump to them', () => {
    const jump = '-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES'
    const saved = [':PREROUTING ACCEPT [1:2]', ':OTHER - [0:0]', ':KUBE-SERVICES - [0:0]', ':KUBE-MARK-MASQ - [0:0]']
    const rules = [jump, '-A PREROUTING -j OTHER', '-A OTHER -p tcp -j KUBE-MARK-MASQ']
    assert.equal(
      removalOf('nat', [...saved, ...rules]),
      [
        '*nat',
        ':KUBE-SERVICES - [0:0]',
        ':KUBE-MARK-MASQ - [0:0]',
        jump.replace('-A', '-D'),
        '-X KUBE-SERVICES',
        'COMMIT',
        '',
      ].join('\n'),
    )
    assert.equal(removalOf('filter', [':INPUT ACCEPT [0:0]', ':KUBE-FIREWALL - [0:0]']), undefined)
  })
})
