import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { SimulatedHcn } from '#kits/lib/simulated-hcn.ts'
import { createVirtualClock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'

import type { FamilyNetwork, MachineNetwork } from '../daemon.ts'
import type { Lease } from '../lease.ts'
import { NetConfError } from '../net-conf.ts'
import { windowsNetwork } from './flannel.ts'
import { parseWindowsNetConf } from './net-conf.ts'

const CONF = '{"Network":"10.244.0.0/16","Backend":{"Name":"vxlan0","Type":"vxlan"}}'
const OWN: FamilyNetwork = {
  family: 4,
  network: '10.244.0.0/16',
  publicIp: '10.1.2.3',
  subnet: '10.244.3.0/24',
  first: '10.244.3.0',
}

const lease = (fields: Partial<Lease>): Lease => ({
  node: 'linux-1',
  family: 4,
  subnet: '10.244.1.0/24',
  gateway: '10.244.1.0',
  publicIp: '10.1.2.4',
  backendType: 'vxlan',
  vni: 4096,
  mac: '0e:2a:00:00:00:01',
  ...fields,
})

interface TestNetwork {
  readonly clock: ReturnType<typeof createVirtualClock>
  readonly hcn: SimulatedHcn
  readonly machineNetwork: MachineNetwork
  readonly addresses: Set<string>
  readonly open: (family?: FamilyNetwork) => Promise<unknown>
}

function testNetwork(afterMs?: number): TestNetwork {
  const clock = createVirtualClock()
  const made = { clock, address: '10.1.2.3', mac: '00-15-5D-AB-CD-EF' }
  const hcn = new SimulatedHcn({ ...made, ...(afterMs !== undefined && { afterMs }) })
  const addresses = new Set(['10.1.2.3'])
  const machineNetwork = windowsNetwork({
    clock,
    hcn,
    conf: parseWindowsNetConf(CONF),
    node: 'win-1',
    log: { info: () => undefined } as unknown as Logger,
    adapter: async () => ({ name: 'Ethernet', mtu: 1500 }),
    hasAddress: async (address) => addresses.has(address),
  })
  const open = async (family = OWN): Promise<unknown> => {
    const over: (() => unknown)[] = []
    void machineNetwork
      .open([family], () => undefined)
      .then(
        (value) => over.push(() => value),
        (error: unknown) =>
          over.push(() => {
            throw error
          }),
      )
    while (over.length === 0 && (await clock.next()));
    return over[0]?.()
  }
  return { clock, hcn, machineNetwork, addresses, open }
}

describe('net-conf.json of flannel on Windows', () => {
  it('has default values', () => {
    const { name, backend } = parseWindowsNetConf('{"Network":"10.244.0.0/16","Backend":{"type":"vxlan"}}')
    assert.deepEqual([name, backend.vni, backend.port], ['flannel.4096', 4096, 4789])
  })

  const refused: [string, RegExp][] = [
    ['"VNI":1', /VNI must be greater than or equal to 4096/],
    ['"Port":8472', /Port must be 4789/],
    ['"DirectRouting":true', /DirectRouting/],
    ['"GBP":true', /GBP/],
    ['"MacPrefix":"0E2A"', /MacPrefix/],
  ]
  for (const [field, message] of refused)
    it(`is refused if it contains ${field}`, () => {
      const text = `{"Network":"10.244.0.0/16","Backend":{"Type":"vxlan",${field}}}`
      assert.throws(() => parseWindowsNetConf(text), { message })
    })

  it('is refused with a backend other than overlay and l2bridge', () => {
    const text = '{"Network":"10.244.0.0/16","Backend":{"Type":"host-gw"}}'
    assert.throws(() => parseWindowsNetConf(text), NetConfError)
  })
})

describe('pod network of flannel on Windows', () => {
  it('is created, and its MAC address becomes a node annotation', async () => {
    const { hcn, machineNetwork, open, clock } = testNetwork()
    assert.deepEqual(await open(), [{ family: 4, publicIp: '10.1.2.3', data: { vni: 4096, mac: '00:15:5d:ab:cd:ef' } }])
    assert.deepEqual(hcn.journal, ['create vxlan0', 'add HostRoute'])
    assert.equal(clock.elapsed(), 1000)
    assert.equal(machineNetwork.mtu([OWN]), 1450)
    const [network] = hcn.networks
    assert.deepEqual(network?.Ipams, [
      {
        Type: 'Static',
        Subnets: [
          {
            IpAddressPrefix: '10.244.3.0/24',
            Policies: [{ Type: 'VSID', Settings: { IsolationId: 4096 } }],
            Routes: [{ NextHop: '10.244.3.1', DestinationPrefix: '0.0.0.0/0' }],
          },
        ],
      },
    ])
    assert.deepEqual(network.Policies?.[0], {
      Type: 'NetAdapterName',
      Settings: { NetworkAdapterName: 'Ethernet' },
    })
  })

  it('is kept if it is right, and replaced otherwise', async () => {
    const { hcn, open } = testNetwork()
    await open()
    hcn.journal.length = 0
    await open()
    assert.deepEqual(hcn.journal, [])
    await open({ ...OWN, subnet: '10.244.9.0/24', first: '10.244.9.0' })
    assert.deepEqual(hcn.journal, ['remove vxlan0', 'create vxlan0', 'add HostRoute'])
  })

  it('is polled until the timeout while Windows creates it', async () => {
    const never = testNetwork(Infinity)
    await assert.rejects(never.open(), { message: 'The network has no address within 5 s' })
    assert.equal(never.clock.elapsed(), 5000)
    const gone = testNetwork()
    gone.addresses.clear()
    await assert.rejects(gone.open(), { message: 'No adapter has 10.1.2.3 within 45 s' })
    const late = testNetwork()
    late.addresses.clear()
    late.clock.after(12_000, () => late.addresses.add('10.1.2.3'))
    await late.open()
    assert.equal(late.clock.elapsed(), 16_000)
  })

  it('has a policy for each reachable node, and no other', async () => {
    const { hcn, machineNetwork, open } = testNetwork()
    await open()
    hcn.journal.length = 0
    const others = [
      lease({}),
      lease({ node: 'linux-2', subnet: '10.244.2.0/24', publicIp: '10.1.2.5', mac: '0e:2a:00:00:00:02' }),
      lease({ node: 'win-1', subnet: '10.244.3.0/24' }),
      lease({ node: 'old', subnet: '10.244.4.0/24', vni: 1 }),
      lease({ node: 'flat', subnet: '10.244.5.0/24', backendType: 'host-gw' }),
      { ...lease({ node: 'mute', subnet: '10.244.6.0/24' }), mac: undefined } as unknown as Lease,
    ]
    assert.equal(await machineNetwork.reach(4, others), true)
    assert.deepEqual(hcn.journal, [
      'add RemoteSubnetRoute 10.244.1.0/24 by 10.1.2.4',
      'add RemoteSubnetRoute 10.244.2.0/24 by 10.1.2.5',
    ])
    assert.equal(await machineNetwork.reach(4, others), false, 'nothing is done twice')
    hcn.journal.length = 0
    await machineNetwork.reach(4, [lease({ publicIp: '10.1.2.9' })])
    assert.deepEqual(hcn.journal, [
      'take RemoteSubnetRoute 10.244.1.0/24 by 10.1.2.4',
      'take RemoteSubnetRoute 10.244.2.0/24 by 10.1.2.5',
      'add RemoteSubnetRoute 10.244.1.0/24 by 10.1.2.9',
    ])
    const ways = hcn.networks[0]?.Policies?.filter(({ Type }) => Type === 'RemoteSubnetRoute')
    assert.deepEqual(ways, [
      {
        Type: 'RemoteSubnetRoute',
        Settings: {
          DestinationPrefix: '10.244.1.0/24',
          IsolationId: 4096,
          ProviderAddress: '10.1.2.9',
          DistributedRouterMacAddress: '0e:2a:00:00:00:01',
        },
      },
    ])
  })
})
