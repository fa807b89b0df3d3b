import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Node } from '#apis/core/v1.ts'
import type { LinkState } from '#lib/net/iproute.ts'

import { chooseInterface } from './interface.ts'
import { annotationNames, type Lease, leasesOf, ownAnnotations, subnetEnv } from './lease.ts'
import { planVxlan, vxlanMtu } from './link.ts'
import { masqueradeRules } from './masquerade.ts'
import { NetConfError, parseNetConf, type VxlanBackend } from './net-conf.ts'
import { planPaths, ROUTE_PROTOCOL } from './peers.ts'
import { planRemoval } from './removal.ts'

const VXLAN: VxlanBackend = { type: 'vxlan', vni: 1, port: 8472, directRouting: false, learning: false, gbp: false }
const EXTERNAL = { name: 'eth0', mtu: 1500, networks: ['192.168.1.7/24'] }
const NOTHING = { overlayRoutes: [], neighbours: [], forwarding: [], directRoutes: [] }

const link = (fields: Partial<LinkState>): LinkState => ({
  ifindex: 1,
  ifname: 'eth0',
  flags: ['UP'],
  mtu: 1500,
  addr_info: [],
  ...fields,
})

describe('net-conf.json of flannel', () => {
  it("has flannel's defaults", () => {
    const conf = parseNetConf('{"Network":"10.244.0.0/16","Backend":{"Type":"vxlan"}}')
    assert.deepEqual(conf, { network: '10.244.0.0/16', backend: VXLAN })
  })

  it('sets the values that Windows nodes need', () => {
    const text = '{"Network":"10.244.0.0/16","Backend":{"Type":"vxlan","VNI":4096,"Port":4789}}'
    assert.deepEqual(parseNetConf(text).backend, { ...VXLAN, vni: 4096, port: 4789 })
  })

  it('has two networks in dual stack', () => {
    const text =
      '{"Network":"10.244.0.0/16","EnableIPv6":true,"IPv6Network":"fd00:10::/56","Backend":{"Type":"host-gw","MTU":1400}}'
    assert.deepEqual(parseNetConf(text), {
      network: '10.244.0.0/16',
      ipv6Network: 'fd00:10::/56',
      backend: { type: 'host-gw', mtu: 1400 },
    })
  })

  for (const text of [
    '{',
    '[]',
    '{"Network":"10.244.0.0/16"}',
    '{"Network":"fd00::/56","Backend":{"Type":"vxlan"}}',
    '{"Network":"10.244.0.0/16","Backend":{"Type":"vxlan","VNI":"1"}}',
    '{"EnableIPv4":false,"Network":"10.244.0.0/16","Backend":{"Type":"vxlan"}}',
  ])
    it(`is refused: ${text}`, () => assert.throws(() => parseNetConf(text), NetConfError))
})

describe('flannel node annotations', () => {
  const nameOf = annotationNames()
  const node = (annotations: Record<string, string>, podCIDRs = ['10.244.2.0/24']): Node =>
    ({ metadata: { name: 'b', annotations }, spec: { podCIDRs }, status: {} }) as unknown as Node

  it('are written as upstream writes them, and parsed again', () => {
    const data = { vni: 1, mac: '02:00:00:00:00:0b' }
    const annotations = ownAnnotations(
      { backendType: 'vxlan', families: [{ family: 4, publicIp: '192.168.1.8', data }] },
      nameOf,
    )
    assert.deepEqual(annotations, {
      'flannel.alpha.coreos.com/backend-data': '{"VNI":1,"VtepMAC":"02:00:00:00:00:0b"}',
      'flannel.alpha.coreos.com/backend-type': 'vxlan',
      'flannel.alpha.coreos.com/kube-subnet-manager': 'true',
      'flannel.alpha.coreos.com/public-ip': '192.168.1.8',
    })
    assert.deepEqual(leasesOf(node(annotations), nameOf), [{ ...LEASE_B }])
  })

  it('are ignored if they are invalid, and never become part of a command', () => {
    assert.deepEqual(leasesOf(node({}), nameOf), [])
    const annotations = { [nameOf('kube-subnet-manager')]: 'true', [nameOf('backend-type')]: 'vxlan' }
    assert.deepEqual(leasesOf(node({ ...annotations, [nameOf('public-ip')]: '1.2.3.4 dev lo' }), nameOf), [])
    const [lease] = leasesOf(
      node({ ...annotations, [nameOf('public-ip')]: '1.2.3.4', [nameOf('backend-data')]: '{"VtepMAC":"x; reboot"}' }),
      nameOf,
    )
    assert.equal(lease?.mac, undefined)
  })

  it('determine subnet.env', () => {
    const facts = { network: '10.244.0.0/16', subnets: ['10.244.2.0/24'], mtu: 1450, masquerades: true }
    assert.equal(
      subnetEnv(facts),
      'FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.2.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n',
    )
  })
})

const LEASE_B: Lease = {
  node: 'b',
  family: 4,
  subnet: '10.244.2.0/24',
  gateway: '10.244.2.0',
  publicIp: '192.168.1.8',
  backendType: 'vxlan',
  vni: 1,
  mac: '02:00:00:00:00:0b',
}

describe('VXLAN link of flannel', () => {
  const spec = {
    name: 'flannel.1',
    family: 4 as const,
    backend: VXLAN,
    external: EXTERNAL,
    local: '192.168.1.7',
    address: '10.244.1.0',
    mac: '02:00:00:00:00:0a',
  }
  const found = link({
    ifname: 'flannel.1',
    mtu: 1450,
    address: '02:00:00:00:00:0a',
    linkinfo: {
      info_kind: 'vxlan',
      info_data: { id: 1, port: 8472, local: '192.168.1.7', link: 'eth0', learning: false },
    },
    addr_info: [{ family: 'inet', local: '10.244.1.0', prefixlen: 32, scope: 'global' }],
  })

  it('is created with the MAC address in the node annotation', () => {
    const [made] = planVxlan(spec, undefined)
    assert.equal(
      made?.join(' '),
      'link add name flannel.1 address 02:00:00:00:00:0a mtu 1450 type vxlan id 1 local 192.168.1.7 dev eth0 dstport 8472 nolearning',
    )
  })

  it('is kept if its settings are right', () => assert.deepEqual(planVxlan(spec, found), []))

  it('is replaced if its settings differ', () => {
    const commands = planVxlan({ ...spec, backend: { ...VXLAN, vni: 7 } }, found)
    assert.deepEqual(commands[0], ['link', 'delete', 'dev', 'flannel.1'])
  })

  it('gets missing addresses and settings', () => {
    const commands = planVxlan(spec, { ...found, mtu: 1500, addr_info: [], flags: [] })
    assert.deepEqual(commands, [
      ['link', 'set', 'dev', 'flannel.1', 'mtu', '1450'],
      ['address', 'add', '10.244.1.0/32', 'dev', 'flannel.1'],
      ['link', 'set', 'dev', 'flannel.1', 'up'],
    ])
  })

  it('has an MTU that leaves room for the VXLAN header', () => {
    assert.equal(vxlanMtu({ family: 6, backend: VXLAN, external: EXTERNAL }), 1430)
    assert.equal(vxlanMtu({ family: 4, backend: { ...VXLAN, mtu: 1300 }, external: EXTERNAL }), 1300)
  })
})

describe('flannel routes to other nodes', () => {
  const around = { node: 'a', backend: VXLAN, external: EXTERNAL, overlay: 'flannel.1' }
  const whole = {
    overlayRoutes: [{ dst: '10.244.2.0/24', gateway: '10.244.2.0', flags: ['onlink'] }],
    neighbours: [{ dst: '10.244.2.0', lladdr: '02:00:00:00:00:0b', state: ['PERMANENT'] }],
    forwarding: [{ mac: '02:00:00:00:00:0b', dst: '192.168.1.8' }],
    directRoutes: [],
  }

  it('consist of a route, a neighbour and a forwarding entry with VXLAN', () => {
    assert.deepEqual(planPaths(around, [{ ...LEASE_B, node: 'a' }, LEASE_B], NOTHING), {
      ip: [
        ['neigh', 'replace', '10.244.2.0', 'lladdr', '02:00:00:00:00:0b', 'dev', 'flannel.1', 'nud', 'permanent'],
        ['route', 'replace', '10.244.2.0/24', 'via', '10.244.2.0', 'dev', 'flannel.1', 'onlink'],
      ],
      bridge: [['fdb', 'append', '02:00:00:00:00:0b', 'dev', 'flannel.1', 'dst', '192.168.1.8', 'self', 'permanent']],
    })
  })

  it('stay unchanged if they are complete', () =>
    assert.deepEqual(planPaths(around, [LEASE_B], whole), { ip: [], bridge: [] }))

  it('are removed with the node', () => {
    assert.deepEqual(planPaths(around, [], whole), {
      ip: [
        ['neigh', 'delete', '10.244.2.0', 'dev', 'flannel.1'],
        ['route', 'delete', '10.244.2.0/24', 'dev', 'flannel.1'],
      ],
      bridge: [['fdb', 'delete', '02:00:00:00:00:0b', 'dev', 'flannel.1', 'dst', '192.168.1.8', 'self']],
    })
  })

  it('lead directly to the node with DirectRouting in the same subnet', () => {
    const direct = { ...around, backend: { ...VXLAN, directRouting: true } }
    const far = { ...LEASE_B, node: 'c', subnet: '10.244.3.0/24', gateway: '10.244.3.0', publicIp: '192.168.9.9' }
    const { ip } = planPaths(direct, [LEASE_B, far], NOTHING)
    assert.deepEqual(ip.at(-1), [
      'route',
      'replace',
      '10.244.2.0/24',
      'via',
      '192.168.1.8',
      'dev',
      'eth0',
      'proto',
      '84',
    ])
    assert.ok(ip.some((words) => words.includes('10.244.3.0/24') && words.includes('onlink')))
  })

  it('lead to the nodes with host-gw, and keep routes of other programs', () => {
    const plain = { ...around, backend: { type: 'host-gw' as const } }
    const directRoutes = [
      { dst: '10.244.9.0/24', gateway: '192.168.1.9', protocol: '84' },
      { dst: '10.1.0.0/16', gateway: '192.168.1.1', protocol: 'static' },
    ]
    assert.deepEqual(planPaths(plain, [{ ...LEASE_B, backendType: 'host-gw' }], { ...NOTHING, directRoutes }), {
      ip: [
        ['route', 'replace', '10.244.2.0/24', 'via', '192.168.1.8', 'dev', 'eth0', 'proto', '84'],
        ['route', 'delete', '10.244.9.0/24', 'dev', 'eth0', 'proto', '84'],
      ],
      bridge: [],
    })
  })

  it('skip nodes with another backend or VNI', () => {
    const others = [
      { ...LEASE_B, vni: 2 },
      { ...LEASE_B, backendType: 'host-gw' },
    ]
    for (const lease of others) assert.deepEqual(planPaths(around, [lease], NOTHING), { ip: [], bridge: [] })
  })
})

describe('external interface of flannel', () => {
  const spec = { iface: [], ifaceRegex: [], publicIp: '', publicIpv6: '', families: [4 as const] }
  const links = [
    link({ ifname: 'lo' }),
    link({ addr_info: [{ family: 'inet', local: '192.168.1.7', prefixlen: 24, scope: 'global' }] }),
    link({
      ifname: 'eth1',
      mtu: 9000,
      addr_info: [{ family: 'inet', local: '10.9.0.7', prefixlen: 16, scope: 'global' }],
    }),
  ]
  const routes = [{ dst: 'default', gateway: '192.168.1.1', dev: 'eth0' }]

  it('is the one with the default route', () => {
    const chosen = chooseInterface(spec, links, routes)
    assert.deepEqual(chosen, { external: EXTERNAL, publicIps: { 4: '192.168.1.7' } })
  })

  it('is chosen by name, address or pattern', () => {
    for (const choice of [{ iface: ['nope', 'eth1'] }, { iface: ['10.9.0.7'] }, { ifaceRegex: [/^10\.9\./] }]) {
      assert.equal(chooseInterface({ ...spec, ...choice }, links, routes).external.name, 'eth1')
    }
    assert.throws(() => chooseInterface({ ...spec, iface: ['nope'] }, links, routes), /Could not find valid interface/)
    assert.throws(() => chooseInterface(spec, links, []), /no default route/)
  })
})

it('flannel masquerades packets that leave the pod network, and keeps pod addresses inside', () => {
  const table = { family: 'ip' as const, name: 'flannel-ipv4' }
  const rules = masqueradeRules({ table, family: 4, network: '10.244.0.0/16', subnet: '10.244.1.0/24' })
  assert.match(rules, /ip saddr 10\.244\.1\.0\/24 ip daddr 10\.244\.0\.0\/16 return/)
  assert.match(rules, /ip saddr 10\.244\.0\.0\/16 ip daddr != 224\.0\.0\.0\/4 masquerade fully-random/)
})

describe('removal of flannel from a node', () => {
  it('deletes its links and routes, and no others', () => {
    const vxlan = { linkinfo: { info_kind: 'vxlan' } }
    const links = [
      link({}),
      link({ ifname: 'flannel.4096', ...vxlan }),
      link({ ifname: 'flannel-v6.1', ...vxlan }),
      link({ ifname: 'flannel.7' }),
      link({ ifname: 'vxlan.calico', ...vxlan }),
    ]
    const routes = [
      { dst: 'default', gateway: '192.168.1.1', dev: 'eth0' },
      { dst: '10.244.1.0/24', gateway: '192.168.1.8', dev: 'eth0', protocol: ROUTE_PROTOCOL },
      { dst: '10.244.2.0/24', dev: 'flannel.4096', protocol: ROUTE_PROTOCOL },
    ]
    assert.deepEqual(planRemoval(links, routes), [
      ['route', 'delete', '10.244.1.0/24', 'dev', 'eth0', 'proto', ROUTE_PROTOCOL],
      ['link', 'delete', 'dev', 'flannel.4096'],
      ['link', 'delete', 'dev', 'flannel-v6.1'],
    ])
  })
})
