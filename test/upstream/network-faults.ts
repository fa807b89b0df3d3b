/**
 * Tests the cluster network under faults: `node test/upstream/network-faults.ts`, as root. Nodes in network namespaces
 * run `hyperkube flanneld` and `hyperkube kube-proxy`, in each mode with default settings. The test kills both
 * repeatedly under traffic (`KILLS`, 20 by default). It removes links, routes and rules, creates hostile Services and
 * EndpointSlices, and cleans up our rules beside foreign ones. Exits with 0 only if all steps passed, and leaves
 * nothing.
 */
import { type ChildProcess, spawn } from 'node:child_process'

import { Services } from '#apis/core/v1.ts'
import { type EndpointSlice, EndpointSlices } from '#apis/discovery/v1.ts'
import type { Draft } from '#client/api-client.ts'
import { StatusError } from '#meta/status.ts'

import { createFlannelBed, type FlannelBed, type FlannelNode } from '../integration/network/flannel-bed.ts'
import type { Held } from '../integration/proxy/network-bed.ts'
import { type Mode, MODES } from '../integration/proxy/proxy-bed.ts'
import { end } from './kube-apiserver.ts'
import { HYPERKUBE } from './ours.ts'
import { mustBe, Shown, untilSo } from './shown.ts'

const KILLS = Number(process.env['KILLS'] ?? 20)
const HEALED_SECONDS = 15
const PORT = 8080
const LINK = 'flannel.1'
const shown = new Shown()

/** Questions on a connection that stays, and on new ones, for as long as something is done. */
class Traffic {
  readonly #from: FlannelNode
  readonly #address: string
  readonly #port: number
  readonly #wanted: string
  #held: Held | undefined
  #isOn = true
  #told = 0
  #asked = 0
  readonly #wrong: string[] = []

  constructor(from: FlannelNode, address: string, port: number, wanted: string) {
    this.#from = from
    this.#address = address
    this.#port = port
    this.#wanted = wanted
  }

  /** How many answers there were. Rejects when one was wrong. */
  async during(deed: () => Promise<void>): Promise<string> {
    this.#held = await this.#from.pod.hold(this.#address, this.#port)
    const going = Promise.all([this.#hold(), this.#ask()])
    try {
      await deed()
    } finally {
      this.#isOn = false
      await going
    }
    mustBe(this.#wrong.length === 0, `${this.#wrong.length} went wrong: ${this.#wrong[0]}`)
    return `${this.#told} answers on one connection, ${this.#asked} on new ones, none missing`
  }

  async #hold(): Promise<void> {
    while (this.#isOn) {
      this.#judge((await this.#held?.ask()) ?? '')
      this.#told++
    }
  }

  async #ask(): Promise<void> {
    while (this.#isOn) {
      const answers = await this.#from.pod.ask('tcp', this.#address, this.#port, 20)
      for (const answer of answers) this.#judge(answer)
      this.#asked += answers.length
    }
  }

  #judge(answer: string): void {
    if (answer !== this.#wanted) this.#wrong.push(answer)
  }
}

/** A client, its target and the expected response. */
interface Way {
  readonly from: FlannelNode
  readonly address: string
  readonly port: number
  readonly wanted: string
}

/** Until new connections are answered again; the one that was there must be too. */
async function healing({ from, address, port, wanted }: Way, held: Held): Promise<string> {
  const seconds = await untilSo(
    async () => (await from.pod.ask('tcp', address, port))[0],
    (answer) => answer === wanted,
    HEALED_SECONDS,
  )
  mustBe((await held.ask()) === wanted, 'the connection that was there has ended')
  return `${seconds.toFixed(1)} s, and a connection went on`
}

async function tryFlannel([a, b]: readonly [FlannelNode, FlannelNode]): Promise<void> {
  const wanted = `b ${a.podIp}`
  await shown.step(`flanneld killed ${KILLS} times under traffic`, () =>
    new Traffic(a, b.podIp, PORT, wanted).during(async () => {
      for (let count = 0; count < KILLS; count++) {
        const node = count % 2 === 0 ? a : b
        await node.stop('SIGKILL')
        await node.start()
      }
    }),
  )
  const held = await a.pod.hold(b.podIp, PORT)
  for (const loss of [
    ['ip', 'route', 'flush', 'dev', LINK],
    ['ip', 'neigh', 'flush', 'dev', LINK, 'nud', 'permanent'],
    ['bridge', 'fdb', 'flush', 'dev', LINK],
    ['ip', 'link', 'set', 'dev', LINK, 'down'],
    ['ip', 'link', 'delete', 'dev', LINK],
  ])
    await shown.step(`${loss.join(' ')}: healed`, async () => {
      const [program = '', ...args] = loss
      await a.host.namespace.run(program, ...args)
      return await healing({ from: a, address: b.podIp, port: PORT, wanted }, held)
    })
}

/** The program in the namespace of a node; resolves when it is healthy, which it is when its rules are there. */
async function startProxy(
  { kubeconfig }: FlannelBed,
  { host, name, address }: FlannelNode,
  mode: Mode,
): Promise<ChildProcess> {
  const flags = [
    `--kubeconfig=${kubeconfig}`,
    `--hostname-override=${name}`,
    `--proxy-mode=${mode}`,
    '--cluster-cidr=10.244.0.0/16',
    '--conntrack-max-per-core=0',
    `--healthz-bind-address=${address}:10256`,
    `--metrics-bind-address=${address}:10249`,
  ]
  const enter = `--net=/run/netns/${host.namespace.name}`
  const child = spawn('nsenter', [enter, HYPERKUBE, 'kube-proxy', ...flags], { stdio: ['ignore', 'ignore', 'pipe'] })
  child.stderr.resume()
  const healthy = async (): Promise<number> =>
    fetch(`http://${address}:10256/healthz`, { signal: AbortSignal.timeout(1000) }).then(
      ({ status }) => status,
      () => 0,
    )
  // A start may take long on a machine that others use too; how long is no matter here.
  await untilSo(healthy, (status) => status === 200, 300)
  return child
}

/** The commands that remove rules, by mode. */
const LOSSES: Readonly<Record<Mode, readonly string[]>> = {
  nftables: ['nft flush table ip kube-proxy', 'nft delete table ip kube-proxy', 'nft flush ruleset'],
  iptables: ['iptables -t nat -F KUBE-SERVICES', 'iptables -t nat -F', 'nft flush ruleset'],
}

async function tryProxy(bed: FlannelBed, [a, b]: readonly [FlannelNode, FlannelNode], mode: Mode): Promise<void> {
  const address = await serviceTo(bed, `web-${mode}`, b.podIp, PORT)
  const way = { from: a, address, port: 80, wanted: `b ${a.podIp}` }
  let proxy = await startProxy(bed, a, mode)
  try {
    await untilSo(
      async () => (await a.pod.ask('tcp', address, way.port))[0],
      (answer) => answer === way.wanted,
    )
    await shown.step(`kube-proxy in mode ${mode} killed ${KILLS} times under traffic`, () =>
      new Traffic(a, address, way.port, way.wanted).during(async () => {
        for (let count = 0; count < KILLS; count++) {
          await end(proxy, 'SIGKILL')
          proxy = await startProxy(bed, a, mode)
        }
      }),
    )
    const held = await a.pod.hold(address, way.port)
    for (const loss of LOSSES[mode])
      await shown.step(`${loss}: healed`, async () => {
        const [program = '', ...args] = loss.split(' ')
        await a.host.namespace.run(program, ...args)
        return await healing(way, held)
      })
    if (mode === 'nftables') await tryHostile(bed, a)
  } finally {
    await end(proxy, 'SIGKILL')
  }
  await shown.step(`kube-proxy --cleanup after mode ${mode} leaves what others have`, () => tryCleanup(a))
}

const FOREIGN = [
  ['nft', 'add', 'table', 'inet', 'foreign'],
  ['nft', 'add', 'chain', 'inet', 'foreign', 'in', '{ type filter hook input priority 0; }'],
  ['nft', 'add', 'rule', 'inet', 'foreign', 'in', 'tcp', 'dport', '9', 'drop'],
  ['iptables', '-t', 'nat', '-N', 'OTHER'],
  ['iptables', '-t', 'nat', '-A', 'PREROUTING', '-j', 'OTHER'],
  ['iptables', '-t', 'nat', '-A', 'OTHER', '-p', 'tcp', '--dport', '9', '-j', 'RETURN'],
] as const

async function tryCleanup({ host: { namespace } }: FlannelNode): Promise<string> {
  for (const [program, ...args] of FOREIGN) await namespace.run(program, ...args)
  const others = async (): Promise<string> => {
    const table = await namespace.run('nft', 'list', 'table', 'inet', 'foreign')
    const rules = await namespace.run('iptables', '-t', 'nat', '-S')
    return [table, ...rules.split('\n').filter((line) => line.includes('OTHER'))].join('\n')
  }
  const before = await others()
  await namespace.run(HYPERKUBE, 'kube-proxy', '--cleanup')
  mustBe((await others()) === before, `what others have is: ${await others()}`)
  const all = await namespace.run('nft', 'list', 'ruleset')
  const left = all.split('\n').filter((line) => /kube-proxy|KUBE-(?!FIREWALL|KUBELET)/.test(line))
  mustBe(left.length === 0, left.join())
  await namespace.run('nft', 'delete', 'table', 'inet', 'foreign')
  await namespace.run('iptables', '-t', 'nat', '-D', 'PREROUTING', '-j', 'OTHER')
  for (const verb of ['-F', '-X']) await namespace.run('iptables', '-t', 'nat', verb, 'OTHER')
  return `${before.split('\n').length} lines of others as they were, none of kube-proxy's`
}

/** Its address. */
async function serviceTo({ client }: FlannelBed, name: string, endpoint: string, port: number): Promise<string> {
  const ports = [{ name: 'tcp', protocol: 'TCP', port: 80, targetPort: port }]
  const { spec } = await client.create(Services, { metadata: { namespace: 'default', name }, spec: { ports } })
  await client.create(EndpointSlices, sliceOf(name, endpoint, port))
  return spec.clusterIP ?? ''
}

function sliceOf(name: string, address: string, port: number): Draft<EndpointSlice> {
  return {
    metadata: { namespace: 'default', name, labels: { 'kubernetes.io/service-name': name } },
    addressType: address.includes(':') ? 'IPv6' : 'IPv4',
    ports: [{ name: 'tcp', protocol: 'TCP', port }],
    endpoints: [{ addresses: [address], conditions: {} }],
  }
}

const HOSTILE = ['127.0.0.1', '127.8.8.8', '169.254.169.254', '224.0.0.1', '0.0.0.0', '::1', 'fe80::1', 'ff02::1', '::']

/** The message of the server's refusal. */
async function refusal(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt
    return 'taken'
  } catch (error) {
    if (error instanceof StatusError) return `${error.status.code}`
    throw error
  }
}

async function tryHostile(bed: FlannelBed, a: FlannelNode): Promise<void> {
  const { client } = bed
  await shown.step('endpoints of loopback, link-local, multicast and nobody: refused', async () => {
    for (const address of HOSTILE) {
      const said = await refusal(client.create(EndpointSlices, sliceOf('hostile', address, 22)))
      mustBe(said === '422', `${address}: ${said}`)
    }
    return `${HOSTILE.length} addresses, 422 each`
  })
  await shown.step('Services with such external addresses: refused', async () => {
    const ports = [{ port: 22, targetPort: 22 }]
    for (const ip of HOSTILE) {
      const spec = { ports, externalIPs: [ip] }
      const said = await refusal(client.create(Services, { metadata: { namespace: 'default', name: 'bad' }, spec }))
      mustBe(said === '422', `${ip}: ${said}`)
    }
    return `${HOSTILE.length} addresses, 422 each`
  })
  await shown.step('an endpoint that is the node leads to nothing of its loopback', async () => {
    await a.host.serve('secret', 9999, '127.0.0.1')
    const address = await serviceTo(bed, 'to-node', a.address, 9999)
    const direct = (await a.pod.ask('tcp', a.address, 9999))[0]
    await untilSo(
      async () => (await a.pod.ask('tcp', address, 80))[0],
      (answer) => answer === direct && answer === 'ECONNREFUSED',
    )
    return 'refused, as it is without a Service'
  })
}

async function main(): Promise<void> {
  await using bed = await createFlannelBed({ Type: 'vxlan' }, ['a', 'b'], { resyncSeconds: 5 })
  const [a, b] = bed.nodes as readonly [FlannelNode, FlannelNode]
  for (const node of bed.nodes) await bed.register(node)
  await Promise.all(bed.nodes.map((node) => node.start()))
  for (const node of bed.nodes) await node.pod.serve(node.name, PORT)
  await untilSo(
    async () => (await a.pod.ask('tcp', b.podIp, PORT))[0],
    (answer) => answer === `b ${a.podIp}`,
  )
  await tryFlannel([a, b])
  for (const mode of MODES) await tryProxy(bed, [a, b], mode)
}

await shown.step('all of it', async () => {
  await main()
  return ''
})
process.exitCode = shown.end()
