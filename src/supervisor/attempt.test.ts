import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { SimulatedWindows, type SimulatedWindowsOptions } from '#kits/supervisor/simulated-windows.ts'
import { createVirtualClock } from '#lib/clock.ts'

import { attempt } from './attempt.ts'
import { describeOutcome, EXIT_CODES, type Outcome } from './outcome.ts'
import { WINDOWS_SETTINGS } from './settings.fixture.ts'
import { type NodeSettings, tidySettings } from './settings.ts'
import { timingsOf } from './timings.ts'

type Bed = Omit<SimulatedWindowsOptions, 'clock'> & { readonly settings?: Partial<NodeSettings> }

class Node {
  readonly clock = createVirtualClock()
  readonly machine: SimulatedWindows
  readonly settings: NodeSettings

  constructor({ settings, ...machine }: Bed = {}) {
    this.machine = new SimulatedWindows({ clock: this.clock, ...machine })
    this.settings = tidySettings({ ...WINDOWS_SETTINGS, ...settings })
  }

  /** Runs one attempt to its end and returns the actions since the last. */
  async look(): Promise<{ outcome: Outcome; tookMs: number; done: string[] }> {
    const { host } = this.machine
    const [before, startedMs] = [this.machine.journal.length, this.clock.elapsed()]
    const { signal } = new AbortController()
    const over: Outcome[] = []
    void attempt({ host, layout: host.layout, timings: timingsOf(host), settings: this.settings, signal }).then(
      (outcome) => over.push(outcome),
    )
    while (over.length === 0 && (await this.clock.next()));
    const [outcome] = over
    assert.ok(outcome)
    const done = this.machine.journal.slice(before).filter((line) => !/^\S+ (write|say|variable|remove) /.test(line))
    return { outcome, tookMs: this.clock.elapsed() - startedMs, done }
  }

  names(): string[] {
    return this.machine
      .running()
      .map(({ name }) => name)
      .sort()
  }
}

const ALL = ['flanneld', 'kube-proxy', 'kubelet']

describe('start of a Windows worker', () => {
  it('starts all processes in order and in time if none runs', async () => {
    const node = new Node({ policyLists: ['old'] })
    const { outcome, tookMs, done } = await node.look()
    assert.deepEqual(outcome, { kind: 'ok', started: ['kubelet', 'flanneld', 'kube-proxy'] })
    assert.deepEqual(done, [
      '0 kill kubelet',
      '6 launch kubelet',
      '21 kill flanneld',
      '27 launch flanneld',
      '30 hns network vxlan0 Overlay',
      '30 virtual switch: connections are cut, routes are gone',
      '57 restart proxy',
      '62 kill kube-proxy',
      '98 hns delete /policylists/old',
      '98 launch kube-proxy',
      '113 restart proxy',
    ])
    assert.equal(tookMs, 118_000)
    assert.deepEqual(node.names(), ALL)
    assert.ok(node.machine.isProxyGood)
    assert.equal(node.machine.machineEnvironment.get('NODE_NAME'), 'win-1')
    assert.equal(node.machine.machineEnvironment.get('KUBE_NETWORK'), 'vxlan0')
  })

  it('does nothing if all processes run', async () => {
    const node = new Node()
    await node.look()
    assert.deepEqual(await node.look(), { outcome: { kind: 'ok', started: [] }, tookMs: 0, done: [] })
  })

  it('restarts only a process that exited, and flanneld together with kubelet', async () => {
    const node = new Node()
    await node.look()
    const launched = async (...dead: ('kubelet' | 'flanneld' | 'kube-proxy')[]): Promise<string[]> => {
      node.machine.kill(...dead)
      const { done } = await node.look()
      assert.deepEqual(node.names(), ALL, `after ${dead.join(' and ')}`)
      return done.flatMap((line) => /launch (\S+)/.exec(line)?.[1] ?? [])
    }
    assert.deepEqual(await launched('kubelet'), ['kubelet', 'flanneld'])
    assert.deepEqual(await launched('flanneld'), ['flanneld'])
    assert.deepEqual(await launched('kube-proxy'), ['kube-proxy'])
    assert.deepEqual(await launched('kubelet', 'flanneld'), ['kubelet', 'flanneld'])
    assert.deepEqual(await launched('kubelet', 'kube-proxy'), ['kubelet', 'flanneld', 'kube-proxy'])
    assert.deepEqual(await launched('flanneld', 'kube-proxy'), ['flanneld', 'kube-proxy'])
  })

  it('starts flanneld also for canal', async () => {
    const node = new Node({ settings: { cniComponent: 'canal' } })
    await node.look()
    assert.deepEqual(node.names(), ALL)
    node.machine.kill('flanneld')
    await node.look()
    assert.deepEqual(node.names(), ALL)
  })

  it('prefers built-in flags to user flags, and user flags to flags of the server', async () => {
    const environment = { CATTLE_CUSTOMIZE_KUBELET_OPTIONS: '"--v=4";"--register-schedulable=false"' }
    const node = new Node({ environment })
    await node.look()
    const args = (wanted: string): readonly string[] | undefined =>
      node.machine.running().find(({ name }) => name === wanted)?.launch.args
    assert.deepEqual(args('kubelet'), [
      '--register-schedulable=true',
      '--network-plugin=cni',
      '--cni-bin-dir=C:\\etc\\cni\\bin',
      '--cni-conf-dir=C:\\etc\\cni\\conf',
      '--v=4',
    ])
    assert.deepEqual(args('kube-proxy'), ['--cluster-cidr=10.42.0.0/16', '--v=2', '--proxy-mode=kernelspace'])
    assert.deepEqual(args('flanneld'), [
      '--kubeconfig-file=C:\\etc\\kubernetes\\ssl\\kubecfg-kube-node.yaml',
      '--iface=10.1.2.3',
      '--ip-masq',
      '--kube-subnet-mgr',
      '--iptables-forward-rules=false',
    ])
  })
})

describe('a process of a Windows worker that keeps exiting', () => {
  it('is started six times, the last time with its output recorded, and then an error is reported', async () => {
    const node = new Node({ livesMs: { kubelet: [1000] } })
    const { outcome, tookMs, done } = await node.look()
    assert.deepEqual(outcome, { kind: 'retry', message: 'kubelet does not stay' })
    assert.equal(describeOutcome(outcome), 'kubelet does not stay, agent retry')
    assert.equal(EXIT_CODES[outcome.kind], 2)
    const launches = done.filter((line) => line.includes('launch'))
    assert.equal(launches.length, 6)
    assert.equal(launches.at(-1), '81 launch kubelet 2> C:\\var\\log\\rancher\\20260101\\kubelet.log')
    assert.equal(done.at(-1), '101 restart proxy', 'before it is said')
    assert.equal(tookMs, 106_000)
  })

  it('counts as started if a later attempt succeeds', async () => {
    const node = new Node({ livesMs: { 'kube-proxy': [500, 9000, Infinity] } })
    const { outcome, tookMs } = await node.look()
    assert.equal(outcome.kind, 'ok')
    assert.equal(tookMs, 138_000)
  })

  it('causes a restart of the proxy before the fourth start of flanneld', async () => {
    const node = new Node({ livesMs: { flanneld: [1000] } })
    const { outcome, tookMs, done } = await node.look()
    assert.deepEqual(outcome, { kind: 'retry', message: 'flanneld does not stay' })
    const flanneld = done.slice(done.indexOf('27 launch flanneld'))
    assert.deepEqual(flanneld.slice(0, 5), [
      '27 launch flanneld',
      '47 launch flanneld',
      '67 launch flanneld',
      '92 restart proxy',
      '97 launch flanneld',
    ])
    assert.equal(tookMs, 27_000 + 6 * 20_000 + 10_000 + 10_000)
  })

  it('is started by the next attempt, without restarts of the others', async () => {
    const node = new Node({ livesMs: { flanneld: [1000, 1000, 1000, 1000, 1000, 1000, Infinity] } })
    await node.look()
    assert.deepEqual(node.names(), ['kubelet'])
    const { outcome } = await node.look()
    assert.deepEqual(outcome, { kind: 'ok', started: ['flanneld', 'kube-proxy'] })
  })
})

describe('missing files of a Windows worker', () => {
  it('fail the start after half a minute', async () => {
    const node = new Node()
    node.machine.files.delete('C:\\etc\\kubernetes\\bin\\kubelet.exe')
    const { outcome, tookMs } = await node.look()
    assert.equal(outcome.kind, 'crash')
    assert.equal(EXIT_CODES[outcome.kind], 1)
    assert.match(describeOutcome(outcome), /kubelet\.exe did not come within 30 s/)
    assert.equal(tookMs, 30_000)
  })

  it('may appear within half a minute', async () => {
    const node = new Node()
    const path = 'C:\\etc\\kubernetes\\bin\\kubelet.exe'
    node.machine.files.delete(path)
    node.clock.after(10_000, () => node.machine.files.set(path, 'kubelet'))
    const { outcome, done } = await node.look()
    assert.equal(outcome.kind, 'ok')
    assert.equal(done[1], '16 launch kubelet', 'in the sixth round, and five seconds for the copy')
  })

  it('are deleted after stopping their processes if they could not be replaced', async () => {
    const node = new Node()
    await node.look()
    node.machine.files.set('C:\\etc\\kubernetes\\bin\\need_clean.tip', '')
    const { outcome, done } = await node.look()
    assert.deepEqual(outcome, { kind: 'retry', message: 'Old programs were removed' })
    assert.deepEqual(
      done.map((line) => line.slice(line.indexOf(' ') + 1)),
      ['kill kube-proxy', 'kill kubelet', 'empty C:\\etc\\kubernetes\\bin', 'restart proxy'],
    )
    assert.deepEqual(node.names(), ['flanneld'], 'containers keep their network')
    for (const name of ['kubelet', 'kube-proxy']) node.machine.files.set(`C:\\etc\\kubernetes\\bin\\${name}.exe`, name)
    assert.equal((await node.look()).outcome.kind, 'ok')
    assert.deepEqual(node.names(), ALL)
  })
})

describe('pod network of a Windows worker', () => {
  it('is kept if it matches; others of its type are removed, and the proxy restarts', async () => {
    const networks = [
      { ID: 'a', Name: 'vxlan0', Type: 'Overlay' },
      { ID: 'b', Name: 'cbr0', Type: 'L2Bridge' },
      { ID: 'c', Name: 'vxlan0', Type: 'L2Bridge' },
      { ID: 'd', Name: 'nat', Type: 'NAT' },
    ]
    const node = new Node({ networks })
    const { outcome, done } = await node.look()
    assert.equal(outcome.kind, 'ok')
    assert.deepEqual(
      node.machine.networks.map(({ ID }) => ID),
      ['a', 'd'],
    )
    assert.deepEqual(done.slice(1, 5), [
      '6 hns delete /networks/b',
      '6 hns delete /networks/c',
      '11 restart proxy',
      '16 launch kubelet',
    ])
  })

  it('is created again if it does not appear', async () => {
    const { outcome, tookMs } = await new Node({ networkAfterMs: Infinity }).look()
    assert.deepEqual(outcome, { kind: 'retry', message: 'flanneld created no network vxlan0' })
    assert.equal(tookMs, 47_000 + 6 * 5000 + 10_000)
  })

  it('stops flanneld if it has another type', async () => {
    const node = new Node({ networkType: 'L2Bridge' })
    const { outcome } = await node.look()
    assert.deepEqual(outcome, { kind: 'retry', message: 'The network vxlan0 is of type l2bridge, not overlay' })
    assert.deepEqual(node.names(), ['kubelet'])
  })

  it('is written to the configuration of flannel and the runtime', async () => {
    const node = new Node()
    await node.look()
    const read = (path: string): unknown => JSON.parse(node.machine.files.get(path) ?? '')
    const network = { Network: '10.42.0.0/16', Backend: { Name: 'vxlan0', Type: 'vxlan' } }
    assert.deepEqual(read('C:\\etc\\kube-flannel\\net-conf.json'), network)
    assert.deepEqual(read('C:\\etc\\cni\\conf\\cni.conf'), {
      cniVersion: '0.2.0',
      name: 'vxlan0',
      type: 'flannel',
      capabilities: { dns: true },
      delegate: {
        type: 'win-overlay',
        dns: { Nameservers: ['10.43.0.10'], Search: ['svc.cluster.local'] },
        policies: [
          {
            Name: 'EndpointPolicy',
            Value: { Type: 'OutBoundNAT', ExceptionList: ['10.42.0.0/16', '10.43.0.0/16'] },
          },
          { Name: 'EndpointPolicy', Value: { Type: 'ROUTE', DestinationPrefix: '10.43.0.0/16', NeedEncap: true } },
        ],
      },
    })
  })

  it('of type l2bridge has the subnet of the machine, and kube-proxy waits less', async () => {
    const node = new Node({ settings: { cniMode: 'WIN-BRIDGE' } })
    const { tookMs } = await node.look()
    assert.equal(tookMs, 98_000)
    const { delegate } = JSON.parse(node.machine.files.get('C:\\etc\\cni\\conf\\cni.conf') ?? '') as {
      delegate: { policies: { Value: { Type: string; ExceptionList?: string[]; DestinationPrefix?: string } }[] }
    }
    assert.deepEqual(
      delegate.policies.map(({ Value }) => Value.ExceptionList ?? Value.DestinationPrefix),
      [['10.42.0.0/16', '10.43.0.0/16', '10.1.2.0/24'], '10.43.0.0/16', '10.1.2.3/32'],
    )
  })

  it('fails the start at once if its type is unknown', async () => {
    for (const settings of [{ cniComponent: 'calico' }, { cniMode: 'win-l2tunnel' }]) {
      const { outcome, done } = await new Node({ settings }).look()
      assert.equal(outcome.kind, 'crash')
      assert.deepEqual(done, [])
    }
  })

  it('requires the network adapter of the node', async () => {
    const adapters = [{ name: 'Loopback', index: 1, address: '127.0.0.1', prefixLength: 8 }]
    const { outcome } = await new Node({ adapters }).look()
    assert.deepEqual(outcome, { kind: 'crash', message: 'No network adapter has the address 10.1.2.3' })
  })
})

describe('a Windows worker in a cloud', () => {
  const NAME = 'http://169.254.169.254/latest/meta-data/hostname'

  it('gets its name from AWS, even after the virtual switch removed the routes', async () => {
    const node = new Node({ settings: { cloudProvider: 'aws' }, metadata: { [NAME]: 'IP-10-1-2-3.Internal\n' } })
    const { outcome } = await node.look()
    assert.equal(outcome.kind, 'ok')
    assert.equal(node.machine.machineEnvironment.get('NODE_NAME'), 'ip-10-1-2-3.internal')
    assert.deepEqual(
      node.machine.routes.map(({ prefix, interfaceIndex }) => [prefix, interfaceIndex]),
      ['254', '250', '251'].map((last) => [`169.254.169.${last}/32`, 14]),
    )
    node.machine.routes.length = 0
    assert.equal((await node.look()).outcome.kind, 'ok')
    assert.equal(node.machine.routes.length, 3)
  })

  it('gets its name from GCE with the required header', async () => {
    const url = 'http://169.254.169.254/computeMetadata/v1/instance/hostname'
    const node = new Node({ settings: { cloudProvider: 'gce' }, metadata: { [url]: 'w1.c.project.internal' } })
    await node.look()
    assert.equal(node.machine.machineEnvironment.get('NODE_NAME'), 'w1.c.project.internal')
  })

  const COMPUTE = { resourceGroupName: 'rg', subscriptionId: 'sub', location: 'westus', name: 'vm' }
  const azureUrl = 'http://169.254.169.254/metadata/instance/compute?api-version=2017-08-01'
  const config = { aadClientId: 'id', aadClientSecret: 'very secret', tenantId: 'tenant' }
  const installer = 'https://aka.ms/installazurecliwindows'
  const microsoft = 'CN=Microsoft Corporation, O=Microsoft Corporation, L=Redmond, S=Washington, C=US'
  const azure = (cloudConfig: object, outputs: Bed['outputs'], signer: string | undefined = microsoft): Node => {
    const node = new Node({
      settings: { cloudProvider: 'azure', cloudConfig: JSON.stringify(cloudConfig) },
      metadata: { [azureUrl]: JSON.stringify(COMPUTE) },
      ...(outputs && { outputs }),
    })
    if (signer !== '') node.machine.signers.set(installer, signer)
    return node
  }
  const written = (node: Node): unknown => JSON.parse(node.machine.files.get('C:\\etc\\kubernetes\\cloud-config') ?? '')

  it('completes the Azure configuration without secrets in process arguments', async () => {
    const ran: string[] = []
    const node = azure(config, (_, args) => {
      ran.push(args.join(' '))
      if (args[1] === 'nic' && args[0] === 'vm') return '/nics/nic-1\n'
      if (args[0] !== 'network') return ''
      const subnetId =
        '/subscriptions/sub/resourceGroups/net-rg/providers/Microsoft.Network/virtualNetworks/vn/subnets/sn'
      return JSON.stringify({ subnetId, securityGroupId: '/x/networkSecurityGroups/nsg' })
    })
    const { done } = await node.look()
    assert.match(done.join('\n'), /download .*azurecli/)
    assert.deepEqual(written(node), {
      ...config,
      subscriptionId: 'sub',
      location: 'westus',
      resourceGroup: 'rg',
      vnetResourceGroup: 'net-rg',
      vnetName: 'vn',
      subnetName: 'sn',
      securityGroupName: 'nsg',
      useInstanceMetadata: true,
    })
    assert.ok(!ran.join('\n').includes('very secret'))
    assert.ok(ran.includes('cloud set --name AzureCloud'))
    assert.equal(node.machine.files.get('C:\\etc\\rancher\\azure-password'), undefined)
  })

  it('keeps the given Azure configuration if Azure does not provide all values', async () => {
    const node = azure(config, (_, args) => (args[0] === 'network' ? '{}' : ''))
    assert.equal((await node.look()).outcome.kind, 'ok')
    assert.deepEqual(written(node), config)
  })

  it('fails if Azure lacks required values or its tools are unavailable', async () => {
    const lacking = await azure({ aadClientId: 'id' }, () => '').look()
    assert.deepEqual(lacking.outcome, {
      kind: 'crash',
      message: 'The cloud configuration for Azure lacks aadClientSecret, tenantId',
    })
    const { outcome } = await azure(config, undefined).look()
    assert.match(describeOutcome(outcome), /Azure's command line cannot be installed/)
  })

  for (const [signer, named] of [
    ['', 'an unknown signer'],
    ['CN=Microsoft Corporation, O=Somebody else', 'CN=Microsoft Corporation, O=Somebody else'],
  ] as const)
    it(`installs no Azure tools signed by ${named}`, async () => {
      const ran: string[] = []
      const node = azure(config, (program) => (ran.push(program), ''), signer)
      const { outcome } = await node.look()
      assert.match(
        describeOutcome(outcome),
        new RegExp(`the installer is signed by ${named}, not by O=Microsoft Corporation`),
      )
      assert.ok(!ran.includes('msiexec.exe'))
      assert.equal(node.machine.files.get('C:\\etc\\rancher\\azure-cli.msi'), undefined)
    })
})
