/** Tests Services with packets: kube-proxy's rules in a network namespace, and clients in other namespaces. */
import assert from 'node:assert/strict'
import process from 'node:process'
import { after, before, describe, test } from 'node:test'

import { Services } from '#apis/core/v1.ts'
import { eventually } from '#kits/lib/eventually.ts'
import { restoreIptables, saveIptables } from '#lib/net/iptables.ts'
import { applyNft, listNftTables } from '#lib/net/nft.ts'

import { type Host, type Network, whyNoNetworks } from './network-bed.ts'
import { createProxyBed, MODES, NODE, type ProxyBed, TABLE } from './proxy-bed.ts'

const missing = await whyNoNetworks()
if (missing !== undefined) process.stderr.write(`kube-proxy: skipping, ${missing}\n`)

const names = (answers: readonly string[]): string[] =>
  [...new Set(answers.map((answer) => answer.split(' ')[0] ?? ''))].sort()

/** Rules that another proxy, or an older version, may have left. */
const LEFT_BEHIND = `add table ip ${TABLE}
add map ip ${TABLE} service-ips { type ipv4_addr . inet_service : verdict ; }
add chain ip ${TABLE} nat-prerouting { type nat hook prerouting priority 5 ; }
add chain ip ${TABLE} service-ABC/left/over
add table ip other
add chain ip other kept
`

/** The same in iptables. */
const LEFT_IN_CHAINS = `*nat
:KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]
:KUBE-SERVICES - [0:0]
:OTHER - [0:0]
-A KUBE-SERVICES -d 10.0.0.1/32 -j KUBE-SVC-AAAAAAAAAAAAAAAA
-A OTHER -p tcp -m tcp --dport 9 -j RETURN
-A PREROUTING -j OTHER
COMMIT
`

/**
 * The result of a connection to an unused Service address. Mode nftables knows the Service ranges and drops the
 * packet; in mode iptables the node has no route.
 */
const NOBODY = { nftables: 'timeout', iptables: 'EHOSTUNREACH' }

for (const mode of MODES)
  describe(`kube-proxy in mode ${mode}`, { skip: missing ?? false }, () => {
    let bed: ProxyBed
    let network: Network
    let proxy: AsyncDisposable
    let one: Host, two: Host, outside: Host, other: Host

    before(async () => {
      bed = await createProxyBed(mode, ['IPv4', 'IPv6'])
      network = bed.network
      one = await network.add('pod-1', '10.244.1.2', 'fd00:244:1::2')
      two = await network.add('pod-2', '10.244.2.2', 'fd00:244:2::2')
      outside = await network.add('outside', '192.0.2.2')
      other = await network.add('other', '203.0.113.2')
      await Promise.all([one.serve('one', 8080), two.serve('two', 8080)])
      if (mode === 'nftables') await applyNft(LEFT_BEHIND, network.node.namespace)
      else await restoreIptables(LEFT_IN_CHAINS, { family: 'IPv4', within: network.node.namespace.within })
      proxy = await bed.proxy()
    })
    after(async () => {
      await proxy[Symbol.asyncDispose]()
      await bed[Symbol.asyncDispose]()
    })

    /** Repeats requests until exactly the expected endpoints respond. */
    const until = (ask: () => Promise<string[]>, expected: string): Promise<string[]> =>
      eventually(ask, (all) => names(all).join() === expected)

    test('forwards cluster IPs to every endpoint, over TCP and UDP, from pods, outside and the node', async () => {
      const { spec } = await bed.service('all')
      const ip = spec.clusterIP ?? ''
      await bed.endpoints('all', [
        { address: '10.244.1.2', node: NODE },
        { address: '10.244.2.2', node: NODE },
      ])
      for (const from of [two, outside, network.node])
        for (const protocol of ['tcp', 'udp'] as const) await until(() => from.ask(protocol, ip, 80, 20), 'one,two')
      // A pod keeps its address; who is no pod comes as the node.
      assert.match((await two.ask('tcp', ip, 80, 20)).join(), /one 10\.244\.2\.2/)
      assert.doesNotMatch((await outside.ask('tcp', ip, 80, 10)).join(), /192\.0\.2\.2/)
      // A pod reaches itself too.
      assert.deepEqual(names(await one.ask('tcp', ip, 80, 20)), ['one', 'two'])
      // Mode iptables says nothing of ports that a Service does not have, neither does upstream's.
      assert.deepEqual(await two.ask('tcp', ip, 81), [mode === 'nftables' ? 'ECONNREFUSED' : NOBODY.iptables])
    })

    test('follows changes of endpoints, and rejects traffic to a Service without any', async () => {
      const { spec } = await bed.service('changing')
      const answered = (expected: string): Promise<string[]> =>
        until(() => two.ask('tcp', spec.clusterIP ?? '', 80, 3), expected)
      await answered('ECONNREFUSED')
      await bed.endpoints('changing', [{ address: '10.244.1.2' }])
      await answered('one')
      await bed.endpoints('changing', [{ address: '10.244.2.2', node: NODE }])
      await answered('two')
      const leaving = { ready: false, serving: true, terminating: true }
      await bed.endpoints('changing', [{ address: '10.244.1.2', conditions: leaving }])
      await answered('one')
      await bed.endpoints('changing', [{ address: '10.244.1.2', conditions: { ready: false } }])
      await answered('ECONNREFUSED')
      await bed.client.delete(Services, { namespace: 'default', name: 'changing' })
      // The deleted Service's address belongs to no Service, so no response arrives.
      await answered(NOBODY[mode])
    })

    test('accepts outside traffic to node ports, external IPs and load balancer IPs', async () => {
      const { spec } = await bed.service('outer', {
        type: 'LoadBalancer',
        externalIPs: ['198.51.100.1'],
        loadBalancerSourceRanges: ['192.0.2.0/24'],
      })
      await bed.client.patch(
        Services,
        { namespace: 'default', name: 'outer', subresource: 'status' },
        { type: 'merge', value: { status: { loadBalancer: { ingress: [{ ip: '198.51.100.2' }] } } } },
      )
      await bed.endpoints('outer', [{ address: '10.244.1.2' }])
      const nodePort = spec.ports?.[0]?.nodePort ?? 0
      for (const [address, port] of [
        ['192.0.2.1', nodePort],
        ['198.51.100.1', 80],
        ['198.51.100.2', 80],
      ] as const)
        assert.deepEqual(await until(() => outside.ask('tcp', address, port), 'one'), ['one 10.244.1.1'])
      assert.deepEqual(names(await network.node.ask('tcp', '192.0.2.1', nodePort)), ['one'])
      assert.deepEqual(await other.ask('tcp', '198.51.100.2', 80), ['timeout'])
      assert.deepEqual(names(await other.ask('tcp', '198.51.100.1', 80)), ['one'])
    })

    test('keeps the source address of traffic with policy Local, and drops it without local endpoints', async () => {
      const { spec } = await bed.service('local', { type: 'NodePort', externalTrafficPolicy: 'Local' })
      const port = spec.ports?.[0]?.nodePort ?? 0
      await bed.endpoints('local', [
        { address: '10.244.1.2', node: NODE },
        { address: '10.244.2.2', node: 'other' },
      ])
      const inner = await bed.service('inner', { internalTrafficPolicy: 'Local' })
      await bed.endpoints('inner', [{ address: '10.244.2.2', node: 'other' }])
      const answers = await until(() => outside.ask('tcp', '192.0.2.1', port, 10), 'one')
      assert.deepEqual([...new Set(answers)], ['one 192.0.2.2'])
      // Pods pass by the policy.
      assert.deepEqual(names(await one.ask('tcp', '192.0.2.1', port, 20)), ['one', 'two'])
      await until(() => one.ask('tcp', inner.spec.clusterIP ?? '', 80), 'timeout')
      await bed.endpoints('local', [{ address: '10.244.2.2', node: 'other' }])
      await until(() => outside.ask('tcp', '192.0.2.1', port), 'timeout')
    })

    test('keeps the endpoint of a client with session affinity, also over a restart', async () => {
      const { spec } = await bed.service('sticky', {
        sessionAffinity: 'ClientIP',
        sessionAffinityConfig: { clientIP: { timeoutSeconds: 600 } },
      })
      await bed.endpoints('sticky', [{ address: '10.244.1.2' }, { address: '10.244.2.2' }])
      const stuck = async (host: Host): Promise<string[]> =>
        names(await host.ask('tcp', spec.clusterIP ?? '', 80, 12)).filter((name) => name !== 'ECONNREFUSED')
      const hosts = [outside, other]
      const first = await Promise.all(
        hosts.map((host) =>
          eventually(
            () => stuck(host),
            ({ length }) => length > 0,
          ),
        ),
      )
      assert.deepEqual(first.map(({ length }) => length), [1, 1]) // prettier-ignore
      const held = await outside.hold(spec.clusterIP ?? '', 80)
      await proxy[Symbol.asyncDispose]()
      proxy = await bed.proxy()
      assert.deepEqual(await Promise.all(hosts.map(stuck)), first)
      assert.match(await held.ask(), new RegExp(`^${first[0]?.[0]} `))
    })

    test('restores flushed rules, and keeps rules of other programs', async () => {
      const { spec } = await bed.service('flushed', { type: 'NodePort' })
      const ip = spec.clusterIP ?? ''
      await bed.endpoints('flushed', [{ address: '10.244.1.2' }])
      await until(() => two.ask('tcp', ip, 80), 'one')
      const held = await two.hold(ip, 80)
      assert.equal(await held.ask(), 'one 10.244.2.2')
      for (const flush of flushes[mode]) {
        await flush()
        await until(() => two.ask('tcp', ip, 80), 'one')
      }
      assert.equal(await held.ask(), 'one 10.244.2.2')
      await othersAreAsTheyWere[mode]()
    })

    const iptables =
      (...args: readonly string[]) =>
      async (): Promise<void> => {
        await network.node.namespace.run('iptables', '-w', '5', ...args)
      }
    const nft = (script: string) => (): Promise<void> => applyNft(`${script}\n`, network.node.namespace)
    const flushes = {
      nftables: [nft(`flush table ip ${TABLE}`), nft(`delete table ip ${TABLE}`)],
      iptables: [
        iptables('-t', 'nat', '-F', 'PREROUTING'),
        iptables('-t', 'nat', '-F', 'OUTPUT'),
        iptables('-t', 'nat', '-F', 'KUBE-SERVICES'),
        iptables('-t', 'mangle', '-X', 'KUBE-PROXY-CANARY'),
      ],
    }
    const othersAreAsTheyWere = {
      async nftables() {
        const tables = await listNftTables(network.node.namespace)
        assert.deepEqual(tables.toSorted(), [`ip ${TABLE}`, 'ip other', `ip6 ${TABLE}`])
      },
      async iptables() {
        const where = { family: 'IPv4', within: network.node.namespace.within } as const
        const lines = await saveIptables('nat', (line) => /OTHER|AAAAAAAA/.test(line), where)
        assert.deepEqual(lines, [':OTHER - [0:0]', '-A OTHER -p tcp -m tcp --dport 9 -j RETURN'])
      },
    }

    test('has separate rules for both IP families', async () => {
      const plain = await bed.service('six', { ipFamilyPolicy: 'RequireDualStack' })
      const sticky = await bed.service('sticky-six', {
        ipFamilies: ['IPv6'],
        sessionAffinity: 'ClientIP',
        type: 'NodePort',
      })
      for (const { metadata } of [plain, sticky])
        await bed.endpoints(metadata.name ?? '', [{ address: 'fd00:244:1::2', node: NODE }], 'IPv6')
      for (const ip of [plain.spec.clusterIPs?.[1] ?? '', sticky.spec.clusterIP ?? '']) {
        assert.deepEqual(await until(() => two.ask('tcp', ip, 80), 'one'), ['one fd00:244:2::2'])
        assert.deepEqual(await two.ask('udp', ip, 80), ['one fd00:244:2::2'])
        assert.deepEqual(await one.ask('tcp', ip, 80), ['one fd00:244:1::1'])
      }
    })
  })
