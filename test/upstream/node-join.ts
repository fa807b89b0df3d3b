/**
 * Tests how two machines join a cluster of `hyperkube build` through `hyperkube node agent` and the plan of a minimal
 * server. The supervisor must run kubelet, flanneld, kube-proxy and kube-network-policies. Pods must communicate over
 * VXLAN 4096 on port 4789, which tcpdump captures, and network policies must apply. Then the server rejects the nodes,
 * and they must clean themselves up. All machines are namespaces of this one. Needs root, sshd, etcd, containerd, CNI's
 * plugins, nft and tcpdump.
 *
 *     node test/upstream/node-join.ts [--keep]
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { openSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'

import { containerdPaths } from '#containerd/paths.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { stringifyYaml } from '#lib/yaml/yaml.ts'
import type { ClusterFile, ClusterNode } from '#provision/cluster.ts'
import { argumentsOf, componentFlags } from '#provision/components/component-flags.ts'
import { type Bundle, completeBundle } from '#provision/pki/bundle.ts'
import { certificateFiles, LOCAL_API_SERVER } from '#provision/pki/files.ts'
import { decodeState } from '#provision/state/state.ts'

import { makeImages } from '../images/main.ts'
import { AgentServer } from '../integration/supervisor/agent-server.ts'
import { killAll, makeMachines, type TestMachine } from './build/machines.ts'
import { end } from './kube-apiserver.ts'
import { AGNHOST, type NamespacedNode } from './namespaced-cluster.ts'
import { HYPERKUBE } from './ours.ts'
import { capture } from './vxlan-capture.ts'

const { values: options } = parseArgs({ options: { keep: { type: 'boolean', default: false } } })

const SITE = { prefix: 'hkj', host: 'j', network: '10.197.0' }
const [VNI, PORT] = [4096, 4789]
const POLICIES_KUBECONFIG = '/etc/kubernetes/ssl/kubecfg-kube-network-policies.yaml'
const PATIENCE_MS = 300_000
/** An agent asks for five minutes before it empties its machine. */
const REMOVAL_MS = 600_000

const run = promisify(execFile)
const say = (line: string): void => void process.stdout.write(`${line}\n`)

const faults: string[] = []
function judge(isSo: boolean, text: string): void {
  say(`${isSo ? 'yes' : 'NO '}  ${text}`)
  if (!isSo) faults.push(text)
}

async function until<T>(what: string, ask: () => Promise<T | undefined>, limitMs: number = PATIENCE_MS): Promise<T> {
  const startedMs = realClock.elapsed()
  while (realClock.elapsed() - startedMs < limitMs) {
    const found = await ask().catch(() => undefined)
    if (found !== undefined) return found
    await sleep(realClock, 500)
  }
  throw new Error(`not so within ${limitMs / 1000} s: ${what}`)
}

/** A machine, and how to be on it. */
interface Here extends TestMachine {
  readonly within: readonly string[]
}

function enter(machine: TestMachine): Here {
  const whole = ['--mount', '--uts', '--net', '--root', '--wdns=/']
  return { ...machine, within: ['nsenter', `--target=${machine.pid}`, ...whole, '--'] }
}

async function at({ within }: Here, ...command: readonly string[]): Promise<string> {
  const [first = '', ...args] = [...within, ...command]
  return (await run(first, args, { maxBuffer: 1 << 26 })).stdout
}

/** Its output goes to a file beside the machine's. */
function launchAt({ within, folder }: Here, name: string, ...command: readonly string[]): ChildProcess {
  const log = openSync(`${folder}-${name}.log`, 'a', 0o600)
  const [first = '', ...args] = [...within, ...command]
  return spawn(first, args, { stdio: ['ignore', log, log] })
}

interface Built {
  readonly folder: string
  readonly cluster: ClusterFile
  readonly bundle: Bundle
  readonly kubectl: (...args: readonly string[]) => Promise<string>
  /** Where the API server is reached from the machines. */
  readonly api: string
}

async function build(folder: string, key: string, first: Here, closing: AsyncDisposableStack): Promise<Built> {
  const none = { provider: 'none' }
  const file = {
    ssh_key_path: key,
    nodes: [{ address: first.address, user: 'root', hostname_override: first.name, role: ['controlplane', 'etcd'] }],
    network: {
      plugin: 'flannel',
      options: { flannel_backend_vni: String(VNI), flannel_backend_port: String(PORT) },
    },
    ingress: none,
    monitoring: none,
    dns: none,
  }
  await writeFile(join(folder, 'cluster.yml'), stringifyYaml(file))
  const hyperkube = async (...args: readonly string[]): Promise<string> =>
    (await run(HYPERKUBE, [...args], { cwd: folder, maxBuffer: 1 << 26 })).stdout
  closing.defer(
    async () => void (await hyperkube('build', 'remove', '--force').catch((error: unknown) => say(String(error)))),
  )
  // A slow step is no failure here, and a second run continues.
  await until('the cluster is built', () =>
    hyperkube('build', 'up').catch((error: Error) => {
      say(error.message)
      return undefined
    }),
  )
  const { currentState, desiredState } = decodeState(await readFile(join(folder, 'cluster.rkestate'), 'utf8'))
  const state = currentState ?? desiredState
  if (state === undefined) throw new Error('build has left no state')
  return {
    folder,
    cluster: state.rkeConfig,
    bundle: state.certificatesBundle,
    kubectl: (...args) => hyperkube('kubectl', '--kubeconfig=kube_config_cluster.yml', ...args),
    api: `https://${first.address}:6443`,
  }
}

/** As its documentation says for clusters that are not of `up`. */
async function kubeconfigOfPolicies({ kubectl, api, bundle }: Built): Promise<string> {
  const name = 'kube-network-policies'
  const account = `kube-system:${name}`
  const resources = 'pods,namespaces,nodes,networkpolicies.networking.k8s.io'
  await kubectl('create', 'serviceaccount', '-n', 'kube-system', name)
  await kubectl('create', 'clusterrole', `system:${name}`, '--verb=get,list,watch', `--resource=${resources}`)
  await kubectl(
    'create',
    'clusterrolebinding',
    `system:${name}`,
    `--clusterrole=system:${name}`,
    `--serviceaccount=${account}`,
  )
  const token = (await kubectl('create', 'token', '-n', 'kube-system', name)).trim()
  const authority = Buffer.from(bundle['kube-ca']?.certificatePEM ?? '').toString('base64')
  return stringifyYaml({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'a', cluster: { server: api, 'certificate-authority-data': authority } }],
    users: [{ name: 'a', user: { token } }],
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
    'current-context': 'a',
  })
}

function dataDirOf({ name }: TestMachine): string {
  return `/var/lib/hyperkube/${name}`
}

/** The plan that a server would send to one more worker of the cluster. */
function planFor({ cluster: built, bundle, api }: Built, machine: TestMachine, policies: string): object {
  const [first] = built.nodes
  if (first === undefined) throw new Error('the cluster has no node')
  const { name, address } = machine
  const node: ClusterNode = { ...first, address, internal_address: address, hostname_override: name, role: ['worker'] }
  const cluster = { ...built, nodes: [...built.nodes, node] }
  const complete = completeBundle(cluster, bundle, { clock: realClock, random: secureRandom }).bundle
  const files = certificateFiles(cluster, node, complete).map(({ path, content }) => ({
    name: path,
    contents: Buffer.from(content.replaceAll(LOCAL_API_SERVER, api)).toString('base64'),
  }))
  const { socket, cgroupParent } = containerdPaths(dataDirOf(machine))
  const { kubelet } = cluster.services
  const ofKubelet = {
    'container-runtime-endpoint': `unix://${socket}`,
    'cgroup-root': cgroupParent,
    'fail-cgroupv1': 'false',
    ...componentFlags('kubelet', cluster, node, { cgroupDriver: 'cgroupfs' }),
  }
  return {
    files: [...files, { name: POLICIES_KUBECONFIG, contents: Buffer.from(policies).toString('base64') }],
    node: {
      clusterCidr: cluster.services['kube-controller'].cluster_cidr,
      clusterDomain: kubelet.cluster_domain,
      serviceCidr: cluster.services['kube-controller'].service_cluster_ip_range,
      dnsServiceIp: kubelet.cluster_dns_server,
      cniComponent: 'flannel',
      cniMode: 'vxlan',
      vni: VNI,
      port: PORT,
      nodeIp: address,
      nodeName: name,
      kubeletOptions: argumentsOf(ofKubelet),
      kubeProxyOptions: argumentsOf(componentFlags('kube-proxy', cluster, node)),
      networkPolicyOptions: [`--kubeconfig=${POLICIES_KUBECONFIG}`, `--hostname-override=${name}`],
    },
  }
}

interface Joined {
  readonly server: AgentServer
  readonly agent: ChildProcess
}

const PROGRAMS = ['kubelet', 'flanneld', 'kube-proxy', 'kube-network-policies']
const BIN = '/usr/local/lib/hyperkube/bin'

async function joinCluster(
  built: Built,
  machine: Here,
  policies: string,
  closing: AsyncDisposableStack,
): Promise<Joined> {
  const dataDir = dataDirOf(machine)
  await at(machine, 'mkdir', '-p', BIN)
  for (const name of PROGRAMS) await at(machine, 'ln', '-sf', HYPERKUBE, `${BIN}/${name}`)
  const containerd = launchAt(machine, 'containerd', HYPERKUBE, 'machine', 'containerd', `--data-dir=${dataDir}`)
  closing.defer(async () => {
    await end(containerd, 'SIGTERM')
    await killAll(machine)
    await at(machine, HYPERKUBE, 'machine', 'containerd', `--data-dir=${dataDir}`, '--remove').catch(() => '')
  })
  const server = closing.use(new AgentServer(`${SITE.network}.1`))
  await server.start()
  server.plan = [200, JSON.stringify(planFor(built, machine, policies))]
  const who = [`--node-name=${machine.name}`, `--internal-address=${machine.address}`]
  const where = [`--server=${server.url}`, `--ca-checksum=${server.caChecksum}`, `--token=${server.token}`]
  const agent = launchAt(machine, 'agent', HYPERKUBE, 'node', 'agent', ...where, ...who)
  closing.defer(() => end(agent, 'SIGTERM'))
  return { server, agent }
}

const podOn = ({ name }: TestMachine): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: `on-${name}`, labels: { on: name } },
  spec: {
    nodeSelector: { 'kubernetes.io/hostname': name },
    automountServiceAccountToken: false,
    containers: [{ name: 'main', image: AGNHOST, imagePullPolicy: 'Never', args: ['netexec', '--http-port=8080'] }],
  },
})

const shut = (name: string): object => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name: 'shut' },
  spec: { podSelector: { matchLabels: { on: name } }, policyTypes: ['Ingress'] },
})

async function apply({ kubectl, folder }: Built, ...items: readonly object[]): Promise<void> {
  const file = join(folder, 'objects.json')
  await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
  await kubectl('apply', '-f', file)
}

/** From one pod to the other and back, while the wire is watched. */
async function showTraffic(built: Built, from: Here, to: Here): Promise<void> {
  const { kubectl } = built
  const ipOf = (name: string): Promise<string> => kubectl('get', 'pod', name, '-o', 'jsonpath={.status.podIP}')
  const [source, target] = await Promise.all([ipOf(`on-${from.name}`), ipOf(`on-${to.name}`)])
  const url = `http://${target}:8080/hostname`
  const asks = (): Promise<string> =>
    kubectl('exec', `on-${from.name}`, '--', 'curl', '--silent', '--max-time', '5', url)
  await until('pods reach each other', async () => ((await asks()) === `on-${to.name}` ? true : undefined))
  const node: NamespacedNode = {
    name: from.name,
    addresses: [from.address],
    link: 'eth0',
    within: ['nsenter', `--net=/run/netns/${from.namespace}`],
  }
  const seen = await capture(node, PORT, 8, asks)
  for (const line of seen.slice(0, 2)) say(`     ${line}`)
  const [there, back] = [`${from.address}.* > ${to.address}.${PORT}`, `${to.address}.* > ${from.address}.${PORT}`]
  const isSeen = (way: string): boolean => {
    const pattern = new RegExp(way.replaceAll('.', '\\.').replaceAll('\\.*', '\\.\\d+'))
    return seen.some((line) => pattern.test(line) && line.includes(`vni ${VNI}`))
  }
  judge(isSeen(there) && isSeen(back), `${source} and ${target} talk by VXLAN ${VNI} on port ${PORT}, both ways`)
  judge(
    seen.every((line) => line.includes(`vni ${VNI}`)),
    'and by no other network',
  )
  await apply(built, shut(to.name))
  await until('the policy holds', async () => ((await asks().catch(() => '')) === '' ? true : undefined))
  judge(true, 'a policy that shuts a pod holds')
  await kubectl('delete', 'networkpolicy', 'shut')
  await until('the pod is open again', async () => ((await asks()) === `on-${to.name}` ? true : undefined))
  judge(true, 'and ends with its object')
}

/** The four of a machine, by the names they were called by. */
async function livingOn({ namespace }: TestMachine): Promise<string[]> {
  const { stdout } = await run('ip', ['netns', 'pids', namespace])
  const names = await Promise.all(
    stdout.split('\n').map(async (pid) => {
      const variables = pid === '' ? '' : await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')
      return PROGRAMS.filter((name) => variables.split('\0').includes(`HYPERKUBE_ARGV0=${name}`))
    }),
  )
  return names.flat().sort()
}

async function showRemoval(built: Built, machine: Here, { server, agent }: Joined): Promise<void> {
  const details = { name: machine.name, kind: 'nodes' }
  const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', details, code: 404 }
  server.plan = [404, JSON.stringify(status)]
  server.cut()
  await until('the agent has ended', async () => (agent.exitCode === null ? undefined : true), REMOVAL_MS)
  judge(agent.exitCode === 0, `the agent of ${machine.name} ends when the server does not know its node any more`)
  const left = (await livingOn(machine)).join(', ')
  judge(left === '', `and leaves none of its processes${left === '' ? '' : `: ${left}`}`)
  const files = await at(machine, 'find', '/etc/kubernetes', '/var/lib/kubelet', '-type', 'f').catch(() => '')
  judge(files.trim() === '', `and none of its files${files.trim() === '' ? '' : `: ${files}`}`)
  const links = await at(machine, 'ip', '-o', 'link')
  judge(!links.includes('flannel.'), 'and no network')
  await built.kubectl('delete', 'node', machine.name)
}

async function showJoined(built: Built, machine: Here, archive: string): Promise<void> {
  await until(`${machine.name} is ready`, async () => {
    const ready = await built.kubectl('get', 'node', machine.name, '-o', READY)
    return ready === 'True' ? true : undefined
  })
  await until(`${machine.name} has its image`, () =>
    at(machine, HYPERKUBE, 'image', 'load', `--data-dir=${dataDirOf(machine)}`, archive),
  )
  await until(`${machine.name} is whole`, async () =>
    (await livingOn(machine)).length === PROGRAMS.length ? true : undefined,
  )
  judge(true, `${machine.name} has joined by its agent: ${(await livingOn(machine)).join(', ')}`)
}

async function main(): Promise<number> {
  await using closing = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-join-'))
  closing.defer(() => (options.keep ? undefined : rm(folder, { recursive: true, force: true })))
  const [archive = ''] = await makeImages(join(folder, 'images'), ['agnhost'], say)
  const { machines, key } = await makeMachines(folder, 3, closing, SITE)
  const [first, ...others] = machines.map(enter)
  const [one, two] = others
  if (first === undefined || one === undefined || two === undefined) throw new Error('there are no machines')
  await until(
    'the machine has its SSH server',
    async () => (await run('ssh-keyscan', ['-T', '2', first.address])).stdout || undefined,
  )
  const built = await build(folder, key, first, closing)
  say(await built.kubectl('get', 'nodes', '-o', 'wide'))
  const policies = await kubeconfigOfPolicies(built)
  const joined = [await joinCluster(built, one, policies, closing), await joinCluster(built, two, policies, closing)]
  for (const machine of [one, two]) await showJoined(built, machine, archive)
  say(await built.kubectl('get', 'nodes', '-o', 'wide'))
  await apply(built, podOn(one), podOn(two))
  await built.kubectl('wait', '--for=condition=Ready', 'pod', '--all', '--timeout=180s')
  say(await built.kubectl('get', 'pods', '-o', 'wide'))
  await showTraffic(built, one, two)
  const events = await built.kubectl(
    'get',
    'events',
    '--field-selector=source=hyperkube-node',
    '-o',
    'custom-columns=:.involvedObject.name,:.reason,:.message',
  )
  judge(events.includes('started kubelet, flanneld, kube-proxy'), 'what the supervisors did are Events of the nodes')
  await built.kubectl('delete', 'pod', '--all', '--wait')
  for (const [nth, machine] of [one, two].entries()) {
    const how = joined[nth]
    if (how !== undefined) await showRemoval(built, machine, how)
  }
  if (options.keep)
    say(`logs: ${(await readdir(folder)).filter((name) => name.endsWith('.log')).join(', ')} in ${folder}`)
  say(faults.length === 0 ? 'all checks passed' : `${faults.length} checks failed`)
  return faults.length === 0 ? 0 : 1
}

const READY = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'

process.exitCode = await main()
