import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { sha256 } from '#kits/supervisor/simulated-windows.ts'
import { SimulatedWorker, type SimulatedWorkerOptions } from '#kits/supervisor/simulated-worker.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { KUBERNETES_VERSION } from '#model/version.ts'

import { setupContext } from './context.ts'
import { SETUP_DEFAULTS, type SetupSettings } from './settings.ts'
import { reset, setUp } from './setup.ts'

const FILES = { 'c:\\k': '', 'c:\\k\\kubeconfig': 'kind: Config' }
const ADAPTERS = [{ name: 'Ethernet0', index: 4, address: '10.1.2.3', prefixLength: 24, gateway: '10.1.2.1' }]
const PATH = 'C:\\Windows;C:\\Windows\\System32'

const KUBERNETES = 'https://dl.k8s.io/v1.21.5/kubernetes-node-windows-amd64.tar.gz'
const FLANNELD = 'https://github.com/flannel-io/flannel/releases/download/v0.11.0/flanneld.exe'

class Bed {
  readonly clock: VirtualClock = createVirtualClock()
  readonly machine: SimulatedWorker
  readonly settings: SetupSettings

  constructor(settings: Partial<SetupSettings> = {}, options: Omit<Partial<SimulatedWorkerOptions>, 'clock'> = {}) {
    this.machine = new SimulatedWorker({
      clock: this.clock,
      files: FILES,
      adapters: ADAPTERS,
      environment: { Path: PATH },
      ...options,
    })
    for (const path of this.machine.files.keys()) if (path.startsWith('C:\\etc')) this.machine.files.delete(path)
    this.settings = { ...SETUP_DEFAULTS, release: '1.21.5', digests: { flanneld: sha256(FLANNELD) }, ...settings }
  }

  setUp(): Promise<readonly string[]> {
    return this.#do((context) => setUp(context))
  }

  async reset(): Promise<void> {
    await this.#do((context) => reset(context))
  }

  /** The actions since the last call. */
  done(): string[] {
    return this.machine.journal.splice(0).filter((line) => !/^\S+ say /.test(line))
  }

  /** The complete visible state of the machine. */
  state(): object {
    const { files, machineEnvironment, networks, services, rules, nodes, accounts, containers } = this.machine
    return {
      files: Object.fromEntries(files),
      environment: Object.fromEntries(machineEnvironment),
      networks: networks.map(({ Name, Type }) => `${Name} ${Type}`),
      services: Object.fromEntries(services),
      rules: [...rules].sort(),
      nodes: [...nodes],
      accounts: [...accounts].sort(),
      containers,
    }
  }

  async #do<T>(work: (context: ReturnType<typeof setupContext>) => Promise<T>): Promise<T> {
    const { worker: host, cluster } = this.machine
    const { signal } = new AbortController()
    const over: (() => T)[] = []
    void work(setupContext({ host, cluster, settings: this.settings, signal })).then(
      (value) => over.push(() => value),
      (error: unknown) =>
        over.push(() => {
          throw error
        }),
    )
    while (over.length === 0 && (await this.clock.next()));
    const [outcome] = over
    assert.ok(outcome)
    return outcome()
  }
}

describe('setup of a Windows worker', () => {
  it('performs all steps in order and in time', async () => {
    const bed = new Bed()
    const steps = await bed.setUp()
    assert.deepEqual(steps, [
      'access to the base folder',
      'authority of clients',
      'bootstrap kubeconfig of kubelet',
      'kubeconfig of kube-proxy',
      'kubeconfig of flannel',
      'image nanoserver',
      'image servercore',
      'image kubeletwin/pause',
      'programs of Kubernetes',
      'PATH of the machine',
      'flanneld',
      'plugins of CNI',
      'net-conf.json',
      'cni.conf',
      'service FlannelD',
      'service Kubelet',
      'TCP 10250 through the firewall',
      'Kubelet runs',
      'registration of the node',
      'UDP 4789 through the firewall',
      'network External',
      'FlannelD runs',
      'network of pods',
      'source VIP',
      'service Kubeproxy',
      'Kubeproxy runs',
      'resolv.conf',
    ])
    const done = bed.done()
    assert.deepEqual(done.slice(done.indexOf('0 service install FlannelD')), [
      '0 service install FlannelD',
      '0 write c:\\k\\FlannelDSvc.json',
      '0 service install Kubelet',
      '0 write c:\\k\\KubeletSvc.json',
      '0 firewall allow Kubelet allow 10250',
      '0 service start Kubelet',
      '3 firewall allow Overlay allow 4789',
      '3 hns network External Overlay',
      '3 virtual switch: connections are cut, routes are gone',
      '23 service start FlannelD',
      '26 hns network vxlan0 Overlay',
      '28 run host-local.exe',
      '28 run host-local.exe',
      '28 write c:\\k\\sourceVip.json',
      '28 service install Kubeproxy',
      '28 write c:\\k\\KubeproxySvc.json',
      '28 service start Kubeproxy',
      '28 write C:\\etc\\resolv.conf',
    ])
    assert.deepEqual(done.slice(0, 8), [
      '0 run icacls.exe c:\\k /inheritance:r /grant:r',
      '0 write c:\\k\\access',
      '0 write c:\\k\\client-ca.crt',
      '0 write c:\\k\\bootstrap.kubeconfig',
      '0 account create kube-proxy-win-1',
      '0 write c:\\k\\kube-proxy.kubeconfig',
      '0 account create flannel-win-1',
      '0 write c:\\k\\flannel.kubeconfig',
    ])
    assert.deepEqual(done.slice(8, 16), [
      '0 run docker pull mcr.microsoft.com/windows/nanoserver:10.0.17763.802',
      '0 run docker run --rm mcr.microsoft.com/windows/nanoserver:10.0.17763.802',
      '0 run docker tag mcr.microsoft.com/windows/nanoserver:10.0.17763.802 mcr.microsoft.com/windows/nanoserver:latest',
      '0 run docker pull mcr.microsoft.com/windows/servercore:ltsc2019',
      '0 run docker run --rm mcr.microsoft.com/windows/servercore:ltsc2019',
      '0 run docker tag mcr.microsoft.com/windows/servercore:ltsc2019 mcr.microsoft.com/windows/servercore:latest',
      '0 write c:\\k\\pause\\Dockerfile',
      '0 run docker build -t kubeletwin/pause',
    ])
    assert.ok(done.includes('0 download https://dl.k8s.io/v1.21.5/kubernetes-node-windows-amd64.tar.gz'))
    assert.equal(bed.machine.machineEnvironment.get('Path'), `${PATH};c:\\k\\kubernetes\\node\\bin`)
  })

  it("passes the administrator's credentials to no service, file or variable", async () => {
    const secret = 'kind: Config # of the administrator'
    const environment = { Path: PATH, KUBECONFIG: 'c:\\k\\kubeconfig' }
    const bed = new Bed({}, { files: { ...FILES, 'c:\\k\\kubeconfig': secret }, environment })
    await bed.setUp()
    const { files, ...rest } = bed.state() as { files: Record<string, string> }
    assert.ok(!JSON.stringify(rest).includes('c:\\\\k\\\\kubeconfig'), JSON.stringify(rest))
    const holders = Object.entries(files).filter(([, text]) => /administrator|c:\\+k\\+kubeconfig/.test(text))
    assert.deepEqual(holders.map(([path]) => path).sort(), ['c:\\k\\access', 'c:\\k\\kubeconfig'])
    const users = ['bootstrap', 'kube-proxy', 'flannel'].map((name) => {
      const text = files[`c:\\k\\${name}.kubeconfig`] ?? '{}'
      return (JSON.parse(text) as { users: { user: object }[] }).users[0]?.user
    })
    assert.deepEqual(users, [
      { token: 'abcdef.0123456789abcdef' },
      { token: 'token of kube-proxy-win-1' },
      { token: 'token of flannel-win-1' },
    ])
  })

  it("removes the administrator's kubeconfig from services of an earlier setup", async () => {
    const bed = new Bed()
    await bed.setUp()
    const { services, files } = bed.machine
    const old = services.get('Kubelet')?.plan
    assert.ok(old)
    files.set('c:\\k\\KubeletSvc.json', JSON.stringify({ ...old, args: ['--kubeconfig=c:\\k\\kubeconfig'] }))
    assert.deepEqual(await bed.setUp(), ['service Kubelet', 'Kubelet runs'])
  })

  it('writes a new bootstrap token until the kubelet has a certificate', async () => {
    const bed = new Bed({}, { registersAfterMs: Infinity })
    await assert.rejects(bed.setUp(), { message: 'kubelet did not register the node within 10 s' })
    bed.done()
    await assert.rejects(bed.setUp(), { message: 'kubelet did not register the node within 10 s' })
    const done = bed.done().map((line) => line.slice(line.indexOf(' ') + 1))
    assert.deepEqual(done, ['service stop Kubelet', 'write c:\\k\\bootstrap.kubeconfig', 'service start Kubelet'])
  })

  it('passes the flags to each program', async () => {
    const bed = new Bed()
    await bed.setUp()
    const plan = (name: string): unknown => bed.machine.services.get(name)?.plan
    assert.deepEqual(plan('FlannelD'), {
      name: 'FlannelD',
      description: 'flanneld of Kubernetes, set up by hyperkube',
      wrapper: 'c:\\k\\FlannelDSvc.exe',
      logFile: 'c:\\k\\logs\\flanneld\\flanneldsvc.log',
      program: 'c:\\k\\flanneld.exe',
      args: ['--kubeconfig-file=c:\\k\\flannel.kubeconfig', '--iface=10.1.2.3', '--ip-masq=1', '--kube-subnet-mgr=1'],
      env: { NODE_NAME: 'win-1' },
    })
    assert.deepEqual((plan('Kubelet') as { args: string[] }).args, [
      '--hostname-override=win-1',
      '--v=6',
      '--cluster-dns=10.10.0.10',
      '--bootstrap-kubeconfig=c:\\k\\bootstrap.kubeconfig',
      '--kubeconfig=c:\\k\\kubelet.kubeconfig',
      '--cert-dir=c:\\k\\pki',
      '--rotate-certificates=true',
      '--anonymous-auth=false',
      '--authentication-token-webhook=true',
      '--authorization-mode=Webhook',
      '--read-only-port=0',
      '--client-ca-file=c:\\k\\client-ca.crt',
      '--cgroups-per-qos=false',
      '--enforce-node-allocatable=',
      '--node-ip=10.1.2.3',
      '--pod-infra-container-image=kubeletwin/pause',
      '--image-pull-progress-deadline=20m',
      '--network-plugin=cni',
      '--cni-bin-dir=c:\\k\\cni',
      '--cni-conf-dir=c:\\k\\cni\\config',
      '--log-dir=c:\\k\\logs\\kubelet',
      '--logtostderr=false',
    ])
    assert.deepEqual((plan('Kubeproxy') as { args: string[] }).args, [
      '--v=4',
      '--proxy-mode=kernelspace',
      '--hostname-override=win-1',
      '--kubeconfig=c:\\k\\kube-proxy.kubeconfig',
      '--network-name=vxlan0',
      '--cluster-cidr=10.244.0.0/16',
      '--source-vip=10.244.0.2',
      '--feature-gates=WinOverlay=true,IPv6DualStack=false',
    ])
  })

  it('writes the files of flannel and the runtime', async () => {
    const bed = new Bed()
    await bed.setUp()
    const read = (path: string): unknown => JSON.parse(bed.machine.files.get(path) ?? '')
    assert.deepEqual(read('C:\\etc\\kube-flannel\\net-conf.json'), {
      Network: '10.244.0.0/16',
      Backend: { Name: 'vxlan0', Type: 'vxlan', VNI: 4096, Port: 4789 },
    })
    assert.deepEqual(read('c:\\k\\cni\\config\\cni.conf'), {
      cniVersion: '0.3.0',
      name: 'vxlan0',
      type: 'flannel',
      capabilities: { dns: true },
      delegate: {
        type: 'win-overlay',
        policies: [
          {
            Name: 'EndpointPolicy',
            Value: { Type: 'OutBoundNAT', ExceptionList: ['10.244.0.0/16', '10.10.0.0/16'] },
          },
          { Name: 'EndpointPolicy', Value: { Type: 'ROUTE', DestinationPrefix: '10.10.0.0/16', NeedEncap: true } },
        ],
      },
    })
  })

  it('creates a network without tunnel and source VIP for l2bridge', async () => {
    const bed = new Bed({ networkMode: 'l2bridge' })
    const steps = await bed.setUp()
    assert.ok(!steps.includes('source VIP') && !steps.includes('UDP 4789 through the firewall'))
    assert.deepEqual(
      bed.machine.networks.map(({ Name, Type }) => `${Name} ${Type}`),
      ['External L2Bridge', 'cbr0 L2Bridge'],
    )
    const args = bed.machine.services.get('Kubeproxy')?.plan?.args ?? []
    assert.ok(args.includes('--network-name=cbr0') && !args.some((arg) => arg.startsWith('--source-vip')))
    const { delegate } = JSON.parse(bed.machine.files.get('c:\\k\\cni\\config\\cni.conf') ?? '') as {
      delegate: { type: string; policies: { Value: { ExceptionList?: string[]; DestinationPrefix?: string } }[] }
    }
    assert.equal(delegate.type, 'win-bridge')
    assert.deepEqual(
      delegate.policies.map(({ Value }) => Value.ExceptionList ?? Value.DestinationPrefix),
      [['10.244.0.0/16', '10.10.0.0/16', '10.1.2.0/24'], '10.10.0.0/16', '10.1.2.3/32'],
    )
  })

  it('uses containerd and current kubelet flags with a current Kubernetes release', async () => {
    const bed = new Bed({ release: '1.36.4' }, { services: { containerd: 'running' } })
    const steps = await bed.setUp()
    assert.ok(!steps.some((name) => name.startsWith('image')))
    const args = bed.machine.services.get('Kubelet')?.plan?.args ?? []
    assert.ok(args.includes('--container-runtime-endpoint=npipe:////./pipe/containerd-containerd'))
    assert.ok(!args.some((arg) => /network-plugin|cni|pod-infra|log-dir/.test(arg)))
    assert.ok(bed.machine.services.get('Kubeproxy')?.plan?.args.includes('--feature-gates=WinOverlay=true'))
  })

  it('installs the release of hyperkube by default', () => {
    assert.equal(SETUP_DEFAULTS.release, KUBERNETES_VERSION.slice(1))
  })

  it('rejects a download with another checksum', async () => {
    const cases: readonly (readonly [string, (bed: Bed) => void])[] = [
      ['a body that was changed', ({ machine }) => machine.downloads.set(KUBERNETES, 'changed')],
      ['a checksum of another file', ({ machine }) => machine.downloads.set(`${KUBERNETES}.sha256`, sha256('other'))],
      ['a flanneld that was changed', ({ machine }) => machine.downloads.set(FLANNELD, 'changed')],
    ]
    for (const [what, prepare] of cases) {
      const bed = new Bed()
      prepare(bed)
      await assert.rejects(bed.setUp(), { name: 'CrashError', message: /has the SHA-256 [0-9a-f]{64}, not / }, what)
      const left = [...bed.machine.files.keys()].filter((path) => /tar\.gz|flanneld\.exe|sha256/.test(path))
      assert.deepEqual(left, [], what)
      assert.ok(!bed.done().some((line) => line.includes('service install')), what)
    }
  })

  it('rejects an error page of a proxy instead of a checksum', async () => {
    const bed = new Bed()
    bed.machine.downloads.set(`${KUBERNETES}.sha256`, '<html>sign in</html>')
    await assert.rejects(bed.setUp(), {
      name: 'CrashError',
      message: /does not contain a SHA-256; set the digest with a flag$/,
    })
  })

  it('uses a given digest and downloads no checksum', async () => {
    const digests = { kubernetes: sha256(KUBERNETES).toUpperCase(), flanneld: sha256(FLANNELD) }
    const bed = new Bed({ digests })
    await bed.setUp()
    assert.ok(!bed.done().includes(`0 download ${KUBERNETES}.sha256`))
    const other = new Bed({ digests: { ...digests, kubernetes: sha256('other') } })
    await assert.rejects(other.setUp(), /has the SHA-256/)
  })

  it("changes nothing when it runs again, even though the virtual switch has the adapter's name", async () => {
    const bed = new Bed()
    await bed.setUp()
    bed.done()
    const before = bed.state()
    assert.deepEqual(await bed.setUp(), [])
    assert.deepEqual(bed.done(), [])
    assert.deepEqual(bed.state(), before)
  })

  it('performs only the steps of a changed setting', async () => {
    const bed = new Bed()
    await bed.setUp()
    bed.done()
    const other = Object.assign(bed, { settings: { ...bed.settings, release: '1.22.0' } })
    assert.deepEqual(await other.setUp(), ['programs of Kubernetes', 'Kubelet runs', 'Kubeproxy runs'])
  })

  it('reaches the same state after an interruption at any point', async () => {
    const whole = new Bed()
    await whole.setUp()
    const changes = whole.machine.changesMade
    const expected = whole.state()
    for (let cut = 0; cut < changes; cut++) {
      const bed = new Bed()
      bed.machine.changesLeft = cut
      await assert.rejects(bed.setUp(), /The machine was interrupted/, `cut after ${cut} changes`)
      bed.machine.changesLeft = Infinity
      await bed.clock.advance(60_000)
      await bed.setUp()
      assert.deepEqual(bed.state(), expected, `cut after ${cut} changes`)
    }
  })

  it('retries the start of a service, and fails after the timeout', async () => {
    const slow = new Bed({}, { startsAfter: { Kubelet: 4 } })
    await slow.setUp()
    assert.deepEqual(
      slow.done().filter((line) => line.includes('start Kubelet')),
      ['0 service start Kubelet', '1 service start Kubelet', '2 service start Kubelet', '3 service start Kubelet'],
    )
    const never = new Bed({}, { startsAfter: { Kubelet: 100 } })
    await assert.rejects(never.setUp(), { message: 'The service Kubelet did not start within 5 s' })
    assert.equal(never.clock.elapsed(), 5000)
    const unregistered = new Bed({}, { registersAfterMs: Infinity })
    await assert.rejects(unregistered.setUp(), { message: 'kubelet did not register the node within 10 s' })
    assert.equal(unregistered.clock.elapsed(), 10_000)
    const unconnected = new Bed({}, { networkAfterMs: Infinity })
    await assert.rejects(unconnected.setUp(), { message: 'flanneld created no network vxlan0 within 60 s' })
    assert.equal(unconnected.clock.elapsed(), 3000 + 20_000 + 60_000)
  })

  it('removes a pod network of another type, so that the next run creates it', async () => {
    const bed = new Bed({}, { networkType: 'L2Bridge' })
    await assert.rejects(bed.setUp(), /was of type l2bridge, not overlay, and was removed: try again/)
    assert.deepEqual(
      bed.machine.networks.map(({ Name }) => Name),
      ['External'],
    )
  })
})

describe('preconditions of the setup of a Windows worker', () => {
  const fails = async (bed: Bed, message: string | RegExp): Promise<void> => {
    await assert.rejects(bed.setUp(), { name: 'CrashError', message })
    assert.deepEqual(bed.done(), [], 'nothing is touched')
  }

  it('are reported all at once', async () => {
    const bed = new Bed(
      { clusterCidr: '10.244.0.0', vni: 1, port: 8472, release: 'v1.21', interfaceName: 'Wi-Fi' },
      { files: { 'c:\\k': '' }, services: { docker: 'stopped' } },
    )
    await fails(
      bed,
      '"10.244.0.0" is not an IPv4 range (cluster CIDR); "v1.21" is not a Kubernetes release; use one like 1.36.4; ' +
        'VNI 1 is too small: Windows supports networks from 4096 on; Port 8472 is not possible: Windows supports VXLAN on port 4789 only; ' +
        'c:\\k\\kubeconfig does not exist: put the kubeconfig of an administrator there, and delete it after the set-up; ' +
        'The service docker is not running: Start-Service docker; ' +
        'No adapter is called "Wi-Fi"; the adapters are "Ethernet0": set --interface-name',
    )
  })

  it('include an administrator, a folder and a container runtime', async () => {
    await fails(new Bed({}, { isElevated: false }), /^This command needs an administrator/)
    await fails(new Bed({}, { files: {} }), /^c:\\k does not exist: create it/)
    await fails(new Bed({}, { services: {} }), /^There is no service docker: install it/)
    await fails(new Bed({ release: '1.30.0' }), /^There is no service containerd/)
  })

  it('include a digest if the checksum is not published', async () => {
    const ownFlanneld = { program: 'node.exe', args: ['flanneld'] }
    await fails(new Bed({ digests: {} }), /^flannel publishes no checksum of flanneld\.exe/)
    await fails(
      new Bed({ digests: { flanneld: 'abc' } }),
      /^"abc" is not a SHA-256 of flanneld; use 64 hexadecimal digits$/,
    )
    await fails(
      new Bed({ ownFlanneld, networkMode: 'l2bridge' }),
      /^"hyperkube flanneld" supports only the network mode overlay/,
    )
  })
})

describe('reset of a Windows worker', () => {
  const bare = (): object => new Bed().state()

  it('restores the state before the setup', async () => {
    for (const networkMode of ['overlay', 'l2bridge'] as const) {
      const bed = new Bed({ networkMode })
      await bed.setUp()
      bed.machine.containers = ['a', 'b']
      bed.machine.policyLists.add('old')
      await bed.reset()
      assert.deepEqual(bed.state(), bare())
      assert.equal(bed.machine.policyLists.size, 0)
    }
  })

  it('stops services that would recreate removed objects first, and then undoes each step', async () => {
    const bed = new Bed()
    await bed.setUp()
    bed.done()
    await bed.reset()
    const lines = bed.done().map((line) => line.slice(line.indexOf(' ') + 1))
    assert.deepEqual(
      lines.filter((line) => /^(service|hns|node|firewall)/.test(line)),
      [
        'service stop Kubeproxy',
        'service stop Kubelet',
        'service stop FlannelD',
        'service remove Kubeproxy',
        'hns delete /networks/net-2',
        'hns delete /networks/net-1',
        'firewall remove Overlay allow 4789',
        'node delete win-1',
        'firewall remove Kubelet allow 10250',
        'service remove Kubelet',
        'service remove FlannelD',
      ],
    )
  })

  it('completes after an interrupted setup, and when it runs twice', async () => {
    const whole = new Bed()
    await whole.setUp()
    const changes = whole.machine.changesMade
    for (let cut = 0; cut < changes; cut++) {
      const bed = new Bed()
      bed.machine.changesLeft = cut
      await assert.rejects(bed.setUp(), /interrupted/)
      bed.machine.changesLeft = Infinity
      await bed.reset()
      await bed.clock.advance(60_000)
      await bed.reset()
      assert.deepEqual(bed.state(), bare(), `cut after ${cut} changes`)
    }
  })

  it('reports failures and continues', async () => {
    const bed = new Bed()
    await bed.setUp()
    const { cluster } = bed.machine
    Object.defineProperty(bed.machine, 'cluster', {
      get: () => ({ ...cluster, deleteNode: () => Promise.reject(new Error('no answer')) }),
    })
    await assert.rejects(bed.reset(), /Some steps could not be undone/)
    assert.match(bed.machine.journal.join('\n'), /registration of the node stays: no answer/)
    assert.equal(bed.machine.networks.length, 0)
  })
})
