/** Operations on the built cluster of the management-builds test, and the expected state after each. */
import { X509Certificate } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect } from 'node:tls'

import { realClock, sleep } from '#lib/clock.ts'

import { type NodeJson, type PodJson, QUIET } from '../build/bed.ts'
import { filesOf, runIn, type TestMachine } from '../build/machines.ts'
import { type BuiltCluster, check, fileFor, say } from '../built-cluster.ts'

export interface Site {
  readonly cluster: BuiltCluster
  readonly machines: readonly TestMachine[]
  /** By machine. */
  readonly roles: readonly (readonly string[])[]
  /** The paths that each machine had at first. */
  readonly before: ReadonlyMap<string, readonly string[]>
  /** Fields of the cluster file beside its nodes. Steps add some. */
  top: Readonly<Record<string, unknown>>
  /** All machines are nodes. */
  isBuilt: boolean
}

interface Life {
  /** The row in the printed table. */
  readonly what: string
  readonly live: (site: Site) => Promise<void>
}

export type LifeName = 'snapshot' | 'certificates' | 'encryption' | 'upgrade' | 'removal'

export const LIFE: Readonly<Record<LifeName, Life>> = {
  snapshot: { what: 'restores a snapshot of etcd', live: restoreSnapshot },
  certificates: { what: 'rotates certificates, then the authorities too', live: rotateCertificates },
  encryption: { what: 'encrypts Secrets and rotates the key', live: rotateKey },
  upgrade: { what: 'upgrades programs one node at a time with drains', live: upgrade },
  removal: { what: 'removes a machine from the cluster', live: removeMachine },
}

const SNAPSHOT_FOLDER = '/opt/rke/etcd-snapshots/'

/** Files that the cluster has left on a machine. Snapshots stay on purpose. */
export async function leftOn(machine: TestMachine, { before }: Site): Promise<readonly string[]> {
  const old = new Set(before.get(machine.name))
  return (await filesOf(machine)).filter((path) => !old.has(path) && !path.startsWith(SNAPSHOT_FOLDER))
}

async function configMaps(cluster: BuiltCluster): Promise<readonly string[]> {
  return (await cluster.list<PodJson>('configmaps')).map(({ metadata }) => metadata.name)
}

/** Without those that are being deleted. */
async function podsOf(cluster: BuiltCluster): Promise<readonly PodJson[]> {
  const pods = await cluster.list<PodJson>('pods', '-l', 'app=quiet')
  return pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
}

function isReady({ status }: Pick<PodJson, 'status'>): boolean {
  return status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true
}

/** Pods that the later steps observe. */
export async function deployPods(cluster: BuiltCluster): Promise<void> {
  const file = join(cluster.folder, 'quiet.json')
  await writeFile(file, JSON.stringify(QUIET))
  await cluster.kubectl('apply', '-f', file)
  await rolledOut(cluster)
}

async function rolledOut(cluster: BuiltCluster): Promise<void> {
  await cluster.kubectl('rollout', 'status', 'deployment/quiet', '--timeout=180s')
}

/** Objects that were created after the snapshot are gone, deleted ones are back, and pods continue. */
async function restoreSnapshot({ cluster, machines }: Site): Promise<void> {
  const pods = await podsOf(cluster)
  await cluster.kubectl('create', 'configmap', 'before', '--from-literal=a=b')
  await cluster.perform('SaveSnapshot', { snapshot: 'life' })
  const { items } = (await cluster.server.request('GET', `${cluster.path}/snapshots`)) as { items: { name: string }[] }
  check(items.map(({ name }) => name).includes('life'), 'the snapshot is listed')
  await cluster.kubectl('create', 'configmap', 'after', '--from-literal=a=b')
  await cluster.kubectl('delete', 'configmap', 'before')
  await cluster.perform('RestoreSnapshot', { snapshot: 'life' })
  await cluster.ready(machines.length)
  const names = await cluster.until('ConfigMaps are listed', () => configMaps(cluster))
  check(names.includes('before') && !names.includes('after'), `ConfigMaps are of the snapshot: ${names.join(' ')}`)
  const now = new Map((await podsOf(cluster)).map((pod) => [pod.metadata.uid, pod]))
  for (const { metadata } of pods) {
    const restarts = now.get(metadata.uid)?.status.containerStatuses?.[0]?.restartCount
    check(restarts === 0, `pod ${metadata.name} continues`)
  }
}

const CERTIFICATES = '/etc/kubernetes/ssl'

/** Serial numbers by machine and file. */
async function serialsOf(machines: readonly TestMachine[]): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>()
  for (const machine of machines) {
    const paths = (await runIn(machine, 'find', CERTIFICATES, '-name', '*.pem', '-not', '-name', '*-key.pem')).trim()
    // The authority of the management server is not the cluster's.
    for (const path of paths.split('\n').filter((one) => !one.endsWith('/management-server-ca.pem'))) {
      const { serialNumber } = new X509Certificate(await runIn(machine, 'cat', path))
      found.set(`${machine.name} ${path.slice(CERTIFICATES.length + 1)}`, serialNumber)
    }
  }
  return found
}

/** Of the certificate that a port serves. */
function servedSerial(host: string, port: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  // Only the certificate is read, and nothing is sent.
  const socket = connect({ host, port, rejectUnauthorized: false }, () => {
    resolve(socket.getPeerX509Certificate()?.serialNumber ?? '')
    socket.destroy()
  })
  socket.on('error', reject)
  return promise
}

const AUTHORITY = / (?:kube-ca|kube-apiserver-requestheader-ca|kube-etcd-ca)\.pem$/
/** Its key signs the tokens of ServiceAccounts and stays, so it is renewed only when its authority is. */
const SERVICE_ACCOUNT = / kube-service-account-token\.pem$/

/** New serial numbers in files and on ports. After a rotation of the authorities, old kubeconfigs are refused. */
async function rotateCertificates({ cluster, machines }: Site): Promise<void> {
  const [first] = machines
  if (first === undefined) throw new Error('There is no machine')
  let serials = await serialsOf(machines)
  const rotate = async (more: object): Promise<readonly string[]> => {
    const before = serials
    await cluster.perform('RotateCertificates', more)
    await cluster.ready(machines.length)
    serials = await serialsOf(machines)
    return [...serials].flatMap(([name, serial]) => (before.get(name) === serial ? [] : [name]))
  }
  const kubelets = await rotate({ service: 'kubelet' })
  say(`  new: ${kubelets.join(', ')}`)
  check(kubelets.length >= machines.length, 'each machine has a new certificate of its kubelet')
  check(
    kubelets.every((name) => / kube(?:let|-node)/.test(name)),
    'no other certificate is new',
  )
  const leaves = [...serials.keys()].filter((name) => !AUTHORITY.test(name) && !SERVICE_ACCOUNT.test(name))
  sameNames(await rotate({}), leaves, 'all certificates are new, and no authority')
  const old = await cluster.server.text('POST', `${cluster.path}/files`, { file: 'kube_config_cluster.yml' })
  sameNames(await rotate({ rotatesAuthorities: true }), [...serials.keys()], 'all certificates and authorities are new')
  const served = await servedSerial(first.address, 6443)
  check(served === serials.get(`${first.name} kube-apiserver.pem`), 'the API server serves the new certificate')
  await checkRefused(cluster, old)
  check((await podsOf(cluster)).every(isReady), 'pods are ready')
}

function sameNames(found: readonly string[], wanted: readonly string[], what: string): void {
  const [missing, more] = [
    [...new Set(wanted).difference(new Set(found))],
    [...new Set(found).difference(new Set(wanted))],
  ]
  const differences = [...missing.map((name) => `-${name}`), ...more.map((name) => `+${name}`)].join(' ')
  check(differences === '', `${what} (${found.length}) ${differences}`)
}

/** The kubeconfig of the administrator from before the rotation. */
async function checkRefused(cluster: BuiltCluster, kubeconfig: string): Promise<void> {
  const file = join(cluster.folder, 'old.kubeconfig')
  await writeFile(file, kubeconfig, { mode: 0o600 })
  const ended = cluster.kubectlWith(file, 'get', 'nodes', '--request-timeout=5s')
  const outcome = await ended.catch((error: unknown) => String((error as { stderr?: string }).stderr))
  check(/certificate|unauthorized/i.test(outcome), `the old kubeconfig is refused: ${outcome.trim().slice(0, 120)}`)
}

/** `moon` in base64, as objects in JSON have it. */
const WORD = 'bW9vbg=='
const ENCRYPTED = { 'kube-api': { secrets_encryption_config: { enabled: true } } }

/** In etcd a Secret has the name of the current key, and it stays readable. */
async function rotateKey(site: Site): Promise<void> {
  const { cluster, machines, roles } = site
  await cluster.kubectl('create', 'secret', 'generic', 'kept', '--from-literal=word=moon')
  const plain = await storedSecret(site)
  check(keyName(plain) === '' && plain.includes(WORD), 'the Secret is not encrypted at first')
  await applyTop(site, { services: ENCRYPTED })
  const first = keyName(await storedSecret(site))
  check(first !== '', `the Secret is encrypted with ${first}`)
  check((await readSecret(cluster)) === 'moon', 'the Secret is readable')
  await cluster.perform('RotateEncryptionKey')
  await cluster.ready(machines.length)
  const second = keyName(await storedSecret(site))
  check(second !== '' && second !== first, `the Secret is encrypted with ${second}`)
  check((await readSecret(cluster)) === 'moon', 'the Secret is readable with the new key')
  for (const [at, machine] of machines.entries()) {
    if (roles[at]?.includes('controlplane') !== true) continue
    const config = await runIn(machine, 'cat', `${CERTIFICATES}/encryption.yaml`)
    check(config.includes(second) && !config.includes(first), `${machine.name} has only the new key`)
  }
}

/** Its value in etcd, on the first machine. */
async function storedSecret({ machines: [first] }: Site): Promise<string> {
  if (first === undefined) throw new Error('There is no machine with etcd')
  const stem = `${CERTIFICATES}/kube-etcd-${first.address.replaceAll('.', '-')}`
  const access = [`--cacert=${CERTIFICATES}/kube-etcd-ca.pem`, `--cert=${stem}.pem`, `--key=${stem}-key.pem`]
  const key = '/registry/secrets/default/kept'
  return runIn(
    first,
    'etcdctl',
    `--endpoints=https://${first.address}:2379`,
    ...access,
    'get',
    key,
    '--print-value-only',
  )
}

function keyName(stored: string): string {
  return /^k8s:enc:aescbc:v1:([^:]+):/.exec(stored)?.[1] ?? ''
}

async function readSecret(cluster: BuiltCluster): Promise<string> {
  const text = await cluster.kubectl('get', 'secret', 'kept', '-o', 'jsonpath={.data.word}')
  return Buffer.from(text, 'base64').toString()
}

async function applyTop(site: Site, top: Site['top']): Promise<void> {
  site.top = { ...site.top, ...top }
  await site.cluster.apply(fileFor(site.machines, site.roles, site.top))
  await site.cluster.ready(site.machines.length)
}

const UPGRADED = {
  upgrade_strategy: { drain: true, max_unavailable_worker: '1', node_drain_input: { timeout: 60 } },
  services: { ...ENCRYPTED, kubelet: { extra_args: { 'max-pods': '99' } } },
}

/** New flags of the kubelets: never more than one node is cordoned, and pods move. */
async function upgrade(site: Site): Promise<void> {
  const { cluster } = site
  const before = new Set((await podsOf(cluster)).map(({ metadata }) => metadata.uid))
  const stop = new AbortController()
  const watching = watchNodes(cluster, stop.signal)
  await applyTop(site, UPGRADED).finally(() => stop.abort())
  const { looks, mostCordoned, fewestReady } = await watching
  say(`  ${looks} looks, at most ${mostCordoned} nodes cordoned, at least ${fewestReady} pods ready`)
  check(looks > 0 && mostCordoned === 1 && fewestReady >= 1, 'one node is cordoned at a time, and pods are ready')
  await rolledOut(cluster)
  const moved = (await podsOf(cluster)).filter(({ metadata }) => !before.has(metadata.uid))
  check(moved.length > 0, `drains replaced ${moved.length} pods`)
  for (const { metadata, spec } of await cluster.list<NodeJson>('nodes')) {
    const config = await cluster.kubectl('get', '--raw', `/api/v1/nodes/${metadata.name}/proxy/configz`)
    check(config.includes('"maxPods":99') && spec.unschedulable !== true, `${metadata.name} has the new flag`)
  }
}

interface Watched {
  readonly looks: number
  readonly mostCordoned: number
  readonly fewestReady: number
}

async function watchNodes(cluster: BuiltCluster, signal: AbortSignal): Promise<Watched> {
  let [looks, mostCordoned, fewestReady] = [0, 0, Infinity]
  while (!signal.aborted) {
    const seen = await Promise.all([cluster.list<NodeJson>('nodes'), podsOf(cluster)]).catch(() => undefined)
    if (seen !== undefined) {
      const [nodes, pods] = seen
      looks++
      mostCordoned = Math.max(mostCordoned, nodes.filter(({ spec }) => spec.unschedulable === true).length)
      fewestReady = Math.min(fewestReady, pods.filter(isReady).length)
    }
    await sleep(realClock, 1500)
  }
  return { looks, mostCordoned, fewestReady }
}

/** Its pods move, its Node is deleted, and it keeps no files. */
async function removeMachine(site: Site): Promise<void> {
  const { cluster, machines, roles, top } = site
  const last = machines.at(-1)
  if (last === undefined) throw new Error('There is no machine')
  const rest = machines.slice(0, -1)
  await cluster.apply(fileFor(rest, roles, top))
  await cluster.ready(rest.length)
  const nodes = await cluster.list<NodeJson>('nodes')
  check(!nodes.some(({ metadata }) => metadata.name === last.name), `${last.name} is no node`)
  await rolledOut(cluster)
  const left = await leftOn(last, site)
  check(left.length === 0, `${last.name} has no files of the cluster ${left.slice(0, 5).join(' ')}`)
}
