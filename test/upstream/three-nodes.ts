/**
 * Tests three nodes in network namespaces of this machine: `node test/upstream/three-nodes.ts`, as root, with
 * containers, upstream's kubectl and agnhost. Pods must communicate over VXLAN as configured; packets are captured. It
 * also tests Services of every type, DNS, a lost node with evicted pods, its return, and a drain. Prints each step with
 * its time. Exits with 0 only if all passed, and leaves nothing.
 */
import { extraNode } from '#cluster/machine/node-namespace.ts'

import { createNamespace } from '../integration/proxy/network-bed.ts'
import { at, type NamespacedCluster, type NamespacedNode, startNamespacedCluster } from './namespaced-cluster.ts'
import { mustBe, Shown, untilSo } from './shown.ts'
import { appOf, budgetOf, podsOf, servicesOf, webOf } from './three-nodes-objects.ts'
import { capture } from './vxlan-capture.ts'

const CONFIGURED = [
  { VNI: 1, Port: 8472 },
  { VNI: 4096, Port: 4789 },
] as const
const confOf = (backend: object): object => ({ Network: '10.244.0.0/16', Backend: { Type: 'vxlan', ...backend } })
const EXTERNAL_IP = '203.0.113.7'
/** Of upstream's kube-controller-manager: `--node-monitor-grace-period`, and how often it looks. */
const GRACE_SECONDS = 50
const LOOK_SECONDS = 5
/** Of kubelets: how often they renew their lease. */
const RENEW_SECONDS = 10
/** The toleration of our pods; upstream's default is 300. */
const TOLERATED_SECONDS = 5

const shown = new Shown()

interface Pod {
  readonly name: string
  readonly ip: string
  readonly node: string
}

async function listPods(cluster: NamespacedCluster, app: string): Promise<readonly Pod[]> {
  const said = await cluster.kubectl('get', 'pods', '--selector', `app=${app}`, '--output', 'json')
  return podsOf(said)
}

const get = (url: string): string[] => ['curl', '--silent', '--max-time', '3', '--fail', url]

/** For a shell: asks so often, a line for each answer. */
const ASKING = 'for i in $(seq $1); do curl --silent --max-time 3 --fail "$2" || echo -n nobody; echo; done'
const asking = (times: number, address: string): string[] => [
  'sh',
  '-c',
  ASKING,
  'sh',
  String(times),
  `http://${address}/hostname`,
]

/** The names of the pods that responded. */
const namesIn = (said: string | undefined): ReadonlySet<string> => new Set(said?.trim().split('\n') ?? ['nobody'])

const podAsks = async (cluster: NamespacedCluster, pod: string, address: string): Promise<ReadonlySet<string>> =>
  namesIn(await cluster.exec(pod, ...asking(15, address)))

async function podToPod(cluster: NamespacedCluster, pods: readonly Pod[]): Promise<string> {
  let many = 0
  for (const from of pods)
    for (const to of pods) {
      if (from === to) continue
      const source = await cluster.exec(from.name, ...get(`http://${to.ip}:8080/clientip`))
      mustBe(source?.startsWith(`${from.ip}:`) === true, `${from.node} to ${to.node}: ${source}`)
      many++
    }
  return `${many} pairs, each seen with its own address`
}

async function captured(cluster: NamespacedCluster, pods: readonly Pod[], vni: number, port: number): Promise<string> {
  const [one, two] = pods.filter(({ node }) => node !== cluster.nodes[0]?.name)
  const [from, to] = [one, two].map((pod) => cluster.nodes.find(({ name }) => name === pod?.node))
  if (one === undefined || two === undefined || from === undefined || to === undefined) throw new Error('no two nodes')
  const packets = await capture(to, port, 20, () => cluster.exec(one.name, ...get(`http://${two.ip}:8080/hostname`)))
  const wanted = `${from.addresses[0]}`
  const right = packets.filter(
    (packet) =>
      packet.includes(wanted) && packet.includes(`${to.addresses[0]}.${port}: VXLAN`) && packet.includes(`vni ${vni}`),
  )
  mustBe(right.length > 0, `${packets.length} packets, none of VNI ${vni}: ${packets[0]}`)
  return `VNI ${vni}, port ${port}, ${packets.length} packets`
}

/** One on each node, ready, after it was started so often: a cluster that is started again remembers how pods were before. */
async function started(cluster: NamespacedCluster, starts: number): Promise<readonly Pod[]> {
  const facts = '{range .items[*].status.containerStatuses[*]}{.restartCount} {.ready},{end}'
  const wanted = cluster.nodes.map(() => `${starts - 1} true`).join()
  const told = (): Promise<string> => cluster.kubectl('get', 'pods', '--selector=app=web', `--output=jsonpath=${facts}`)
  await untilSo(told, (text) => text === `${wanted},`, 180)
  return await listPods(cluster, 'web')
}

async function tryNetwork(
  cluster: NamespacedCluster,
  backend: (typeof CONFIGURED)[number],
  starts: number,
): Promise<readonly Pod[]> {
  const { VNI, Port } = backend
  const pods = await started(cluster, starts)
  await shown.step(`pod to pod over VXLAN ${VNI}/${Port}`, () => podToPod(cluster, pods))
  await shown.step(`packets are VXLAN ${VNI}/${Port}`, () => captured(cluster, pods, VNI, Port))
  return pods
}

/** A field of a Service. */
async function field(cluster: NamespacedCluster, service: string, path: string): Promise<string> {
  return await cluster.kubectl('get', 'service', service, '--output', `jsonpath={${path}}`)
}

/** Checks that all pods respond to requests from every pod. */
async function fromEverywhere(cluster: NamespacedCluster, pods: readonly Pod[], address: string): Promise<string> {
  for (const { name, node } of pods) {
    const seen = await podAsks(cluster, name, address)
    mustBe(
      pods.every((pod) => seen.has(pod.name)),
      `from ${node} only: ${[...seen].join(', ')}`,
    )
  }
  return `${address} from pods of ${pods.length} nodes, ${pods.length} endpoints`
}

/** From this machine, which is outside of the cluster. */
async function outsideAsks(address: string): Promise<ReadonlySet<string>> {
  return namesIn(await at({ within: [] }, ...asking(20, address)))
}

async function neighbourAsks({ neighbour }: NamespacedCluster, address: string): Promise<ReadonlySet<string>> {
  const [program = '', ...args] = asking(20, address)
  return namesIn(await neighbour.run(program, ...args))
}

async function nodePort(cluster: NamespacedCluster, pods: readonly Pod[]): Promise<string> {
  const port = await field(cluster, 'node-port', '.spec.ports[0].nodePort')
  const all = (seen: ReadonlySet<string>, where: string): void =>
    mustBe(
      pods.every(({ name }) => seen.has(name)),
      `${where}: ${[...seen].join(', ')}`,
    )
  all(await outsideAsks(`${cluster.outer}:${port}`), 'from outside')
  for (const { addresses, name } of cluster.nodes)
    all(await neighbourAsks(cluster, `${addresses[0]}:${port}`), `at ${name}`)
  return `port ${port}, from this machine and from a neighbour at each of ${cluster.nodes.length} nodes`
}

async function loadBalancer(cluster: NamespacedCluster, pods: readonly Pod[]): Promise<string> {
  const addresses = cluster.nodes.map((node) => node.addresses[0] ?? '').toSorted()
  const told = (): Promise<string> => field(cluster, 'balanced', '.status.loadBalancer.ingress[*].ip')
  await untilSo(told, (text) => text === addresses.join(' '), 30)
  for (const address of addresses) {
    const seen = await neighbourAsks(cluster, `${address}:8090`)
    mustBe(seen.size === pods.length && !seen.has('nobody'), `${address}: ${[...seen].join(', ')}`)
  }
  return `addresses ${addresses.join(', ')}; each answers on port 8090`
}

async function externalIp(cluster: NamespacedCluster, pods: readonly Pod[]): Promise<string> {
  await fromEverywhere(cluster, pods, `${EXTERNAL_IP}:80`)
  for (const { addresses, name } of cluster.nodes) {
    await cluster.neighbour.run('ip', 'route', 'replace', EXTERNAL_IP, 'via', addresses[0] ?? '')
    const seen = await neighbourAsks(cluster, `${EXTERNAL_IP}:80`)
    mustBe(seen.size === pods.length && !seen.has('nobody'), `by ${name}: ${[...seen].join(', ')}`)
  }
  return `${EXTERNAL_IP} from pods, and from a neighbour by way of each node`
}

/** For a shell: a line with each question, then its answers. */
const DIGGING = 'for question; do echo "? $question"; dig +short +search $question | sort; done'

async function names(cluster: NamespacedCluster, pods: readonly Pod[]): Promise<string> {
  const address = await field(cluster, 'cluster-ip', '.spec.clusterIP')
  const wanted = {
    'cluster-ip': address,
    'cluster-ip.default.svc.cluster.local': address,
    'kubernetes.default': await field(cluster, 'kubernetes', '.spec.clusterIP'),
    [`-x ${address}`]: 'cluster-ip.default.svc.cluster.local.',
    '_web._tcp.cluster-ip SRV': '0 100 80 cluster-ip.default.svc.cluster.local.',
    'away CNAME': 'kubernetes.default.svc.cluster.local.',
    headless: pods
      .map(({ ip }) => ip)
      .toSorted()
      .join('\n'),
    'not-there': '',
  }
  const expected = Object.entries(wanted).flatMap(([question, answer]) => [
    `? ${question}`,
    ...(answer === '' ? [] : [answer]),
  ])
  for (const { name } of pods) {
    const said = await cluster.exec(name, 'sh', '-c', DIGGING, 'sh', ...Object.keys(wanted))
    mustBe(said?.trim() === expected.join('\n'), `${name}: ${said}`)
  }
  return `A, SRV, PTR, CNAME, headless, absent; search path; from ${pods.length} nodes`
}

/** Programs choose one address of a headless Service; DNS returns all of them, and each is reachable. */
async function headless(cluster: NamespacedCluster, pods: readonly Pod[]): Promise<string> {
  for (const { name, node } of pods) {
    const seen = await podAsks(cluster, name, 'headless:8080')
    mustBe(!seen.has('nobody') && [...seen].every((one) => pods.some((pod) => pod.name === one)), `from ${node}`)
  }
  return `by name from pods of ${pods.length} nodes, straight to a pod`
}

async function tryServices(cluster: NamespacedCluster, pods: readonly Pod[]): Promise<void> {
  await cluster.apply(...servicesOf(EXTERNAL_IP))
  const address = await field(cluster, 'cluster-ip', '.spec.clusterIP')
  const inside = (host: string) => (): Promise<string> => fromEverywhere(cluster, pods, host)
  await shown.step('ClusterIP', inside(`${address}:80`))
  await shown.step('headless', () => headless(cluster, pods))
  await shown.step('NodePort', () => nodePort(cluster, pods))
  await shown.step('LoadBalancer', () => loadBalancer(cluster, pods))
  await shown.step('ExternalIPs', () => externalIp(cluster, pods))
  await shown.step('ExternalName', async () => {
    const said = await cluster.exec(pods[0]?.name ?? '', 'curl', '--silent', '--insecure', 'https://away/livez')
    mustBe(said === 'ok', `${said}`)
    return 'away is kubernetes.default.svc.cluster.local, which answers'
  })
  await shown.step('names from pods', () => names(cluster, pods))
}

/** Nothing goes in or out any more, as when a cable is cut. */
async function cut(node: NamespacedNode): Promise<void> {
  await at(node, 'nft', 'add', 'table', 'inet', CUT)
  const rule = ['type', 'filter', 'hook']
  await at(node, 'nft', 'add', 'chain', 'inet', CUT, 'in', `{ ${rule.join(' ')} prerouting priority -400; }`)
  await at(node, 'nft', 'add', 'chain', 'inet', CUT, 'out', `{ ${rule.join(' ')} postrouting priority 400; }`)
  await at(node, 'nft', 'add', 'rule', 'inet', CUT, 'in', 'iifname', node.link, 'drop')
  await at(node, 'nft', 'add', 'rule', 'inet', CUT, 'out', 'oifname', node.link, 'drop')
}
const CUT = 'cable-is-cut'

const readyOf = (cluster: NamespacedCluster, node: string) => (): Promise<string> =>
  cluster.kubectl('get', 'node', node, '--output', 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')

const within = (seconds: number, from: number, to: number): string => {
  mustBe(seconds >= from && seconds <= to, `${seconds.toFixed(1)} s, not between ${from} and ${to}`)
  return `${seconds.toFixed(1)} s`
}

async function loseNode(cluster: NamespacedCluster, lost: NamespacedNode): Promise<void> {
  await cluster.apply(appOf(TOLERATED_SECONDS))
  await cluster.kubectl('rollout', 'status', 'deployment/app', '--timeout=60s')
  const before = await listPods(cluster, 'app')
  const doomed = before.find(({ node }) => node === lost.name)?.name ?? ''
  const survivor = (await listPods(cluster, 'web')).find(({ node }) => node !== lost.name)?.name ?? ''
  await cut(lost)
  await shown.step(`node lost: not ready after its grace of ${GRACE_SECONDS} s`, async () => {
    const seconds = await untilSo(readyOf(cluster, lost.name), (status) => status === 'Unknown', 120)
    return within(seconds, GRACE_SECONDS - RENEW_SECONDS - 1, GRACE_SECONDS + 2 * LOOK_SECONDS)
  })
  await shown.step('its endpoints are left', async () => {
    const address = await field(cluster, 'cluster-ip', '.spec.clusterIP')
    const seconds = await untilSo(
      () => podAsks(cluster, survivor, `${address}:80`),
      (seen) => seen.size === 2 && !seen.has('nobody'),
      20,
    )
    return `after ${seconds.toFixed(1)} s only the two that can be reached answer`
  })
  await shown.step(`its pods are evicted, ${TOLERATED_SECONDS} s after the taint`, () => evicted(cluster, lost, doomed))
  await shown.step('what tolerates it for 300 s stays', async () => {
    const web = (await listPods(cluster, 'web')).find(({ node }) => node === lost.name)?.name ?? 'none'
    const mark = await cluster.kubectl('get', 'pod', web, '--output', 'jsonpath={.metadata.deletionTimestamp}')
    mustBe(mark === '', `${web} is to go since ${mark}`)
    return web
  })
  await shown.step('another takes its place', async () => {
    const ready = (): Promise<string> =>
      cluster.kubectl('get', 'deployment', 'app', '--output', 'jsonpath={.status.readyReplicas}')
    return `${(await untilSo(ready, (many) => many === '3', 60)).toFixed(1)} s`
  })
}

/** By the times that the API server wrote down. */
async function evicted(cluster: NamespacedCluster, lost: NamespacedNode, pod: string): Promise<string> {
  const taint = '.spec.taints[?(@.effect=="NoExecute")].timeAdded'
  let added = ''
  await untilSo(
    async () => (added = await cluster.kubectl('get', 'node', lost.name, '--output', `jsonpath={${taint}}`)),
    (text) => text !== '',
  )
  let [deleted, grace] = ['', '']
  const marks = '{.metadata.deletionTimestamp} {.metadata.deletionGracePeriodSeconds}'
  await untilSo(
    async () => {
      const said = await cluster.kubectl('get', 'pod', pod, '--output', `jsonpath=${marks}`)
      ;[deleted = '', grace = ''] = said.trim().split(' ')
      return deleted
    },
    (text) => text !== '',
  )
  const seconds = (Date.parse(deleted) - Date.parse(added)) / 1000 - Number(grace)
  // The timestamps have whole seconds.
  return within(seconds, TOLERATED_SECONDS - 1, TOLERATED_SECONDS + 3)
}

async function rejoin(cluster: NamespacedCluster, back: NamespacedNode): Promise<void> {
  await at(back, 'nft', 'delete', 'table', 'inet', CUT)
  await shown.step('the node comes back', async () => {
    const seconds = await untilSo(readyOf(cluster, back.name), (status) => status === 'True', 60)
    const taints = (): Promise<string> => cluster.kubectl('get', 'node', back.name, '--output=jsonpath={.spec.taints}')
    await untilSo(taints, (text) => text === '', 30)
    return `ready after ${seconds.toFixed(1)} s`
  })
  await shown.step('what was evicted ends there', async () => {
    const phases = (): Promise<string> =>
      cluster.kubectl('get', 'pods', '--selector=app=app', '--output=jsonpath={.items[*].status.phase}')
    return `${(await untilSo(phases, (text) => text === 'Running Running Running', 90)).toFixed(1)} s`
  })
  await shown.step('its pods are reached again', async () => podToPod(cluster, await listPods(cluster, 'web')))
}

async function drain(cluster: NamespacedCluster, node: NamespacedNode): Promise<void> {
  await cluster.kubectl('delete', 'deployment', 'app', '--wait=true')
  await cluster.apply(appOf(TOLERATED_SECONDS), ...budgetOf())
  await cluster.kubectl('rollout', 'status', 'deployment/app', '--timeout=60s')
  const address = await field(cluster, 'app', '.spec.clusterIP')
  const asker = (await listPods(cluster, 'web')).find(({ node: on }) => on !== node.name)?.name ?? ''
  const asking = cluster.keepAsking(asker, `http://${address}/hostname`)
  await shown.step('drain: a budget holds, pods move', async () => {
    const options = ['--ignore-daemonsets', '--delete-emptydir-data', '--timeout=120s']
    await cluster.kubectl('drain', node.name, ...options).catch(async (error: unknown) => {
      await asking.stop()
      throw error
    })
    const { asked, failed } = await asking.stop()
    await cluster.kubectl('rollout', 'status', 'deployment/app', '--timeout=60s')
    const left = (await listPods(cluster, 'app')).filter(({ node: on }) => on === node.name)
    mustBe(left.length === 0, `still there: ${left.map(({ name }) => name).join(', ')}`)
    mustBe(asked > 0 && failed === 0, `${failed} of ${asked} requests failed meanwhile`)
    return `${asked} requests meanwhile, none failed`
  })
  await shown.step('uncordon: pods may come again', async () => {
    await cluster.kubectl('uncordon', node.name)
    const many = `--replicas=6`
    await cluster.kubectl('scale', 'deployment/app', many)
    await cluster.kubectl('rollout', 'status', 'deployment/app', '--timeout=60s')
    const there = (await listPods(cluster, 'app')).filter(({ node: on }) => on === node.name)
    mustBe(there.length > 0, 'nobody came')
    return `${there.length} of 6`
  })
}

/** One with a way to the pods of the first node, by another cable. */
async function stranger(cluster: NamespacedCluster, pods: readonly Pod[]): Promise<string> {
  const [first] = cluster.nodes
  const pod = pods.find(({ node }) => node === first?.name)
  if (first === undefined || pod === undefined) throw new Error('there is no pod on the first node')
  await using host = await createNamespace('stranger')
  await at(first, 'ip', 'link', 'add', 'str0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', host.name)
  await at(first, 'ip', 'address', 'add', '192.0.2.1/24', 'dev', 'str0')
  await at(first, 'ip', 'link', 'set', 'str0', 'up')
  await host.run('ip', 'address', 'add', '192.0.2.2/24', 'dev', 'eth0')
  await host.run('ip', 'link', 'set', 'eth0', 'up')
  await host.run('ip', 'route', 'add', 'default', 'via', '192.0.2.1')
  const asks = (url: string): Promise<string> => host.run('curl', ...get(url).slice(1)).catch(() => 'nobody')
  mustBe((await asks(`http://${pod.ip}:8080/hostname`)) === pod.name, 'the pod is not reached')
  const gateway = pod.ip.replace(/\d+$/, '1')
  const metrics = `http://${gateway}:9153/metrics`
  mustBe((await cluster.exec(pod.name, ...get(metrics)))?.includes('coredns') === true, 'pods do not reach it either')
  mustBe((await asks(metrics)) === 'nobody', 'the gateway of pods answers')
  return `${pod.ip} answers, ${gateway}, where names are served to pods, does not`
}

async function fewer(cluster: NamespacedCluster, gone: NamespacedNode): Promise<string> {
  await cluster.restart(undefined, ['--nodes=2'])
  const nodes = (await cluster.kubectl('get', 'nodes', '--output=name')).trim().split('\n')
  mustBe(nodes.length === 2 && !nodes.includes(`node/${gone.name}`), nodes.join(', '))
  mustBe(
    !(await at({ within: [] }, 'ip', 'netns')).includes(extraNode(cluster.dataDir, 3).netns),
    'its namespace stays',
  )
  return nodes.join(', ')
}

async function main(): Promise<void> {
  const [first, second] = CONFIGURED
  await using cluster = await startNamespacedCluster({ many: 3, conf: confOf(first) })
  const [, two, three] = cluster.nodes
  if (two === undefined || three === undefined) throw new Error('three nodes were asked for')
  await cluster.apply(webOf())
  await tryNetwork(cluster, first, 1)
  await cluster.restart(confOf(second))
  const pods = await tryNetwork(cluster, second, 2)
  await tryServices(cluster, pods)
  await shown.step('who is routed to pods does not reach what is for pods only', () => stranger(cluster, pods))
  await loseNode(cluster, three)
  await rejoin(cluster, three)
  await drain(cluster, two)
  await shown.step('started again with two nodes, there are two', () => fewer(cluster, three))
}

await shown.step('all of it, and nothing is left', async () => {
  await main()
  return ''
})
process.exitCode = shown.end()
