/** Combines cluster.yml, certificates and flags into the desired state of each machine. Pure. */
import { posix } from 'node:path'

import type { AddonContext } from '../addons/objects.ts'
import { systemAddons } from '../addons/system-addons.ts'
import { type ClusterFile, type ClusterNode, hasRole, holdsPolicies, nodesOf, ROLES } from '../cluster.ts'
import type {
  Addon,
  DesiredCluster,
  DesiredFile,
  DesiredHost,
  DesiredService,
  CleanupCommands,
  Health,
  Plane,
} from '../desired.ts'
import { certificatePaths, FOLDERS, hostPath } from '../host-paths.ts'
import type { Bundle } from '../pki/bundle.ts'
import { certificateFiles } from '../pki/files.ts'
import * as pki from '../pki/plan.ts'
import { sha256 } from '../service-digest.ts'
import { accessManifest } from './access-rules.ts'
import { AGENT_SERVICE, agentArguments } from './cluster-agent.ts'
import { configFiles } from './component-files.ts'
import {
  argumentsOf,
  componentFlags,
  type ComponentName,
  componentsOf,
  etcdMemberName,
  type FlagFacts,
  roleLabels,
  roleTaints,
  SERVICE_OF,
  urlOf,
} from './component-flags.ts'
import { etcdHealth, etcdProgram, etcdUploads, firstMembers, joiningFile, snapshotArguments } from './etcd-plane.ts'
import { ifaceOf, netConf, usesFlannel } from './network-settings.ts'

/** The path of the private containerd below the folder of the node. */
export interface NodeRuntime {
  readonly dataDir: string
  readonly endpoint: string
  readonly cgroupParent: string
  /** The folder for files that do not survive a reboot. */
  readonly stateFolder: string
}

export interface DesiredInputs {
  readonly bundle: Bundle
  readonly encryption: string
  /** The desired content of the secret. */
  readonly state: string
  /** The path of our program on a machine. */
  readonly program: (node: ClusterNode) => string
  readonly runtime: (node: ClusterNode, dataDir: string) => NodeRuntime
  /** The etcd program to upload; undefined if machines have their own. */
  readonly etcd?: { readonly source: string; readonly sha256: string }
  /** Image archives for every machine. */
  readonly archives: readonly { readonly source: string; readonly sha256: string }[]
  /** Manifests of `addons_include`, by name. */
  readonly includes: ReadonlyMap<string, string>
  /** The last state that was completely built. */
  readonly built?: Pick<ClusterFile, 'nodes'>
  /** Machines that may have parts of the cluster but are not in the file. */
  readonly leaving?: readonly ClusterNode[]
}

/** The builder's folder on machines. */
export function builderHome(cluster: Pick<ClusterFile, 'prefix_path'>): string {
  return hostPath(cluster, '/opt/hyperkube')
}

export function toDesired(cluster: ClusterFile, given: DesiredInputs): DesiredCluster {
  return {
    hosts: cluster.nodes.map((node) => toHost(cluster, node, given)),
    leaving: (given.leaving ?? []).map((node) => ({
      name: node.hostname_override,
      address: node.internal_address,
      roles: node.role,
      ending: endingOf(cluster, node, given),
    })),
    built: given.built && new Map(given.built.nodes.map(({ hostname_override: name, role }) => [name, role])),
    home: builderHome(cluster),
    etcd: {
      service: 'etcd',
      dataDir: hostPath(cluster, FOLDERS.etcdData),
      health: ({ name }) => etcdHealth(cluster, nodeNamed(cluster, name)),
      joiningFile: joiningFile(cluster),
      memberName: ({ name }) => etcdMemberName(nodeNamed(cluster, name)),
      peerUrl: ({ address }) => urlOf(address, 2380),
    },
    upgrade: {
      workers: amount(cluster.upgrade_strategy.max_unavailable_worker, nodesOf(cluster, 'worker').length),
      controlPlanes: amount(
        cluster.upgrade_strategy.max_unavailable_controlplane,
        nodesOf(cluster, 'controlplane').length,
      ),
      drains: cluster.upgrade_strategy.drain,
    },
    access: [{ name: 'hyperkube-access', manifest: accessManifest(cluster) }],
    addons: [...systemAddons(cluster, contextOf(cluster, given)), ...userAddons(cluster, given.includes)],
    state: given.state,
    needs: {
      programs: ['containerd', 'runc', 'ip', 'nft', 'mount', 'umount'],
      freeBytes: 2 * 2 ** 30,
      memoryBytes: 2 ** 30,
      skewMs: 60_000,
      allowsSwap: !cluster.services.kubelet.fail_swap_on,
    },
  }
}

const NET_CONF = '/etc/kube-flannel/net-conf.json'
const SUBNET_FILE = '/run/flannel/subnet.env'

function nodeNamed(cluster: ClusterFile, name: string): ClusterNode {
  const found = cluster.nodes.find((node) => node.hostname_override === name)
  if (found === undefined) throw new RangeError(`There is no node "${name}"`)
  return found
}

/** Percentages are rounded down, with a minimum of one and a maximum of the parallel machines. */
function amount(text: number | string, of: number): number {
  const [, digits, percent] = /^(\d+)(%?)$/.exec(String(text)) ?? []
  const count = percent === '%' ? Math.floor((Number(digits) * of) / 100) : Number(digits ?? 1)
  return Math.min(50, Math.max(1, count))
}

function dataDirOf(cluster: ClusterFile, node: ClusterNode): string {
  return hostPath(cluster, `/var/lib/hyperkube/${node.hostname_override}`)
}

const IMAGES = '/opt/hyperkube/images'

function containerdArguments(dataDir: string): string[] {
  return ['machine', 'containerd', `--data-dir=${dataDir}`, `--subnet-file=${SUBNET_FILE}`]
}

/** Runs the machine's copy of the program. */
function endingOf(cluster: ClusterFile, node: ClusterNode, { program }: DesiredInputs): CleanupCommands {
  const hyperkube = `${program(node)}/bin/hyperkube`
  return {
    containerd: [hyperkube, ...containerdArguments(dataDirOf(cluster, node)), '--remove'],
    'kube-proxy': [hyperkube, 'kube-proxy', '--cleanup'],
    [POLICIES]: [hyperkube, POLICIES, '--cleanup'],
    flanneld: [hyperkube, 'flanneld', '--cleanup'],
  }
}

function toHost(cluster: ClusterFile, node: ClusterNode, given: DesiredInputs): DesiredHost {
  const dataDir = dataDirOf(cluster, node)
  const runtime = given.runtime(node, dataDir)
  const isEtcd = componentsOf(cluster, node).includes('etcd')
  const files = [
    ...certificateFiles(cluster, node, given.bundle),
    ...configFiles(cluster, node, given.encryption),
    ...(usesFlannel(cluster) ? [{ path: hostPath(cluster, NET_CONF), mode: 0o644, content: netConf(cluster) }] : []),
  ].map((file): DesiredFile => ({ ...file, content: Buffer.from(file.content) }))
  const around = { cluster, node, given, runtime, files }
  return {
    name: node.hostname_override,
    address: node.internal_address,
    roles: node.role,
    files: [...files, ...(isEtcd ? [firstMembers(cluster)] : [])],
    uploads: [
      ...(isEtcd ? etcdUploads(cluster, given.etcd) : []),
      ...given.archives.map(({ source, sha256: digest }) => ({
        source,
        sha256: digest,
        path: `${hostPath(cluster, IMAGES)}/${digest}.tar`,
        mode: 0o600,
      })),
    ],
    claims: [
      dataDir,
      runtime.stateFolder,
      ...CLAIMS.map((path) => hostPath(cluster, path)),
      ...SYSTEM_CLAIMS,
      ...(isEtcd ? [hostPath(cluster, FOLDERS.etcdData)] : []),
    ],
    services: [...planeServices(around), ...nodeServices(around)],
    ending: endingOf(cluster, node, given),
    node: desiredNode(node),
  }
}

/** Paths that services create below the prefix and elsewhere. */
const CLAIMS = [FOLDERS.kubelet, '/var/log/kube-audit']
const SYSTEM_CLAIMS = [
  '/run/flannel',
  '/run/hyperkube',
  '/var/log/pods/*',
  '/var/log/containers/*',
  '/var/lib/cni',
  '/run/containerd',
]

interface HostContext {
  readonly cluster: ClusterFile
  readonly node: ClusterNode
  readonly given: DesiredInputs
  readonly runtime: NodeRuntime
  readonly files: readonly DesiredFile[]
}

/**
 * The digest of a service's inputs decides on restarts: the files in its flags, and certificates in kubeconfigs. It
 * includes files that programs reload themselves, because users of RKE expect new certificates to be used at once.
 */
function reads({ files }: HostContext, args: readonly string[]): string {
  const named = files.filter(({ path }) => args.some((arg) => arg.includes(path)))
  const texts = named.filter(({ path }) => path.includes('/kubecfg-')).map(({ content }) => content.toString())
  const read = files.filter((file) => named.includes(file) || texts.some((text) => text.includes(file.path)))
  return sha256(read.map(({ path, content }) => `${path} ${sha256(content)}`).join('\n'))
}

const PLANES: Readonly<Record<ComponentName, Plane>> = {
  etcd: 'etcd',
  'kube-apiserver': 'controlplane',
  'kube-controller-manager': 'controlplane',
  'kube-scheduler': 'controlplane',
  kubelet: 'worker',
  'kube-proxy': 'worker',
}

function planeServices(around: HostContext): DesiredService[] {
  const { cluster, node } = around
  const planes = componentsOf(cluster, node).filter((name) => PLANES[name] !== 'worker')
  return planes.flatMap((name) => [
    component(around, name, {}),
    ...(name === 'etcd' && cluster.services.etcd.backup_config.enabled ? [snapshots(around)] : []),
  ])
}

/** Each machine periodically saves its own member, so that every machine has snapshots. */
function snapshots(around: HostContext): DesiredService {
  const { interval_hours, retention } = around.cluster.services.etcd.backup_config
  const interval = `--interval=${Math.round(interval_hours * 3600)}s`
  const args = [...snapshotArguments(around.cluster, around.node), interval, `--retention=${retention}`]
  return { ...own(around, 'etcd-snapshots', args), plane: 'etcd' }
}

/** In order of dependencies. */
function nodeServices(around: HostContext): DesiredService[] {
  const { cluster, node, runtime } = around
  const ownApi = hasRole(node, 'controlplane')
  return [
    ...(ownApi ? [] : [balancer(around)]),
    own(around, 'containerd', [...containerdArguments(runtime.dataDir), `--images=${hostPath(cluster, IMAGES)}`]),
    component(around, 'kubelet', {
      'container-runtime-endpoint': runtime.endpoint,
      'cgroup-root': runtime.cgroupParent,
      'fail-cgroupv1': 'false',
    }),
    ...(usesFlannel(cluster) ? [flanneld(around)] : []),
    component(around, 'kube-proxy', {}),
    ...(holdsPolicies(cluster) ? [policies(around)] : []),
    // The server uses the newest connection, so that a cluster stays managed when a machine is lost.
    ...(ownApi && cluster.management !== undefined
      ? [{ ...own(around, AGENT_SERVICE, agentArguments(cluster, cluster.management)), isQuiet: true }]
      : []),
  ]
}

function component(around: HostContext, name: ComponentName, added: Readonly<Record<string, string>>): DesiredService {
  const { cluster, node, given } = around
  const flags = { ...added, ...componentFlags(name, cluster, node, FACTS) }
  const args = argumentsOf(flags)
  const command =
    name === 'etcd'
      ? [etcdProgram(cluster, given.etcd), ...args]
      : [`${given.program(node)}/bin/hyperkube`, name, ...args]
  const env = environmentOf(cluster, name)
  const health = healthOf(cluster, node, name)
  return {
    plane: PLANES[name],
    spec: {
      name,
      description: `Kubernetes: ${name}`,
      command,
      ...(Object.keys(env).length > 0 && { env }),
      ...(name === 'etcd' && { envFile: joiningFile(cluster) }),
      ...(name === 'kubelet' && { after: ['containerd'] }),
      reads: reads(around, args),
    },
    ...(health !== undefined && { health }),
  }
}

function environmentOf(cluster: ClusterFile, name: ComponentName): Record<string, string> {
  const lines = cluster.services[SERVICE_OF[name]].extra_env
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]))
}

/** Pods have separate cgroups under any init system. */
const FACTS: FlagFacts = { cgroupDriver: 'cgroupfs' }

function own(around: HostContext, name: string, args: readonly string[]): DesiredService {
  return {
    plane: 'worker',
    spec: {
      name,
      description: `Kubernetes: ${name}`,
      command: [`${around.given.program(around.node)}/bin/hyperkube`, ...args],
      // Containers outlive it, like containerd.
      ...(name === 'containerd' && { leavesChildren: true }),
      reads: reads(around, args),
    },
  }
}

function balancer(around: HostContext): DesiredService {
  const servers = nodesOf(around.cluster, 'controlplane').map(({ internal_address }) =>
    urlOf(internal_address, 6443).slice('https://'.length),
  )
  const args = ['machine', 'proxy', '--listen=127.0.0.1:6443', `--servers=${servers.join(',')}`]
  return { ...own(around, 'api-proxy', args), isQuiet: true }
}

function flanneld(around: HostContext): DesiredService {
  const { cluster, node } = around
  const service = own(around, 'flanneld', [
    'flanneld',
    '--kube-subnet-mgr',
    '--ip-masq',
    `--kubeconfig-file=${certificatePaths(cluster, pki.NODE).kubeconfig}`,
    `--net-config-path=${hostPath(cluster, NET_CONF)}`,
    `--subnet-file=${SUBNET_FILE}`,
    `--iface=${ifaceOf(cluster) ?? node.internal_address}`,
  ])
  return { ...service, spec: { ...service.spec, env: { NODE_NAME: node.hostname_override } } }
}

const POLICIES = pki.NETWORK_POLICIES

/** Rules stay during a restart, so pods are not affected. */
function policies(around: HostContext): DesiredService {
  const { cluster, node } = around
  const args = [
    POLICIES,
    `--kubeconfig=${certificatePaths(cluster, POLICIES).kubeconfig}`,
    `--hostname-override=${node.hostname_override}`,
  ]
  return { ...own(around, POLICIES, args), isQuiet: true }
}

function healthOf(cluster: ClusterFile, node: ClusterNode, name: ComponentName): Health | undefined {
  const { certificate, key } = certificatePaths(cluster, pki.API_SERVER)
  const table: Partial<Record<ComponentName, Health>> = {
    etcd: etcdHealth(cluster, node),
    // It rejects anonymous requests, so health checks use a certificate.
    'kube-apiserver': {
      url: 'https://127.0.0.1:6443/readyz',
      authority: certificatePaths(cluster, pki.KUBE_CA).certificate,
      certificate,
      key,
    },
    'kube-controller-manager': { url: 'https://127.0.0.1:10257/healthz', insecure: true },
    'kube-scheduler': { url: 'https://127.0.0.1:10259/healthz', insecure: true },
    kubelet: { url: 'http://127.0.0.1:10248/healthz' },
    'kube-proxy': { url: 'http://127.0.0.1:10256/healthz' },
  }
  return table[name]
}

function desiredNode(node: ClusterNode): DesiredHost['node'] {
  return {
    labels: { ...roleLabels(node), ...node.labels },
    annotations: {
      'rke.cattle.io/external-ip': node.address,
      'rke.cattle.io/internal-ip': node.internal_address,
    },
    taints: [...roleTaints(node), ...node.taints].map(({ key, value, effect }) => ({ key, value, effect })),
    roleTaints: ['node-role.kubernetes.io/etcd', 'node-role.kubernetes.io/controlplane'],
    roleLabels: Object.keys(roleLabels({ role: ROLES })),
  }
}

/** The copy of the first machine represents all: copies differ only by architecture. */
function contextOf(cluster: ClusterFile, { program }: DesiredInputs): AddonContext {
  const [first] = cluster.nodes
  return { program: first === undefined ? '' : posix.basename(program(first)).slice(0, 20) }
}

/** The user's addons, with RKE's names. */
function userAddons(cluster: ClusterFile, includes: ReadonlyMap<string, string>): Addon[] {
  const included = [...includes.values()].join('\n---\n')
  return [
    ...(cluster.addons.trim() === '' ? [] : [{ name: 'rke-user-addon', manifest: cluster.addons, isOptional: true }]),
    ...(included === '' ? [] : [{ name: 'rke-user-includes-addons', manifest: included, isOptional: true }]),
  ]
}
