/**
 * Simulates machines in memory for tests, with an etcd and an API server that depend on their services. The run under
 * test can be interrupted.
 */
import { emptyState, simulatedMachine, type SimulatedState } from '#kits/provision/simulated-machine.ts'
import { type Clock, realClock } from '#lib/clock.ts'

import type { Site } from './apply/actions.ts'
import type { ClusterApi } from './apply/cluster-api.ts'
import type { ObserveOptions } from './apply/observe.ts'
import type { DesiredCluster, DesiredHost, DesiredNode, DesiredService, Plane } from './desired.ts'
import { type HttpAnswer, type Machine, MachineError, MachineLost } from './machine.ts'
import type { DroppedMarks } from './plan/node-difference.ts'
import { CORDONED } from './plan/node-waves.ts'
import type { ObservedNode } from './plan/observed.ts'

export class Killed extends Error {
  override readonly name = 'Killed'
}

const HEALTH = { url: 'https://127.0.0.1:2379/health' }

export interface HostDraft {
  readonly name: string
  readonly roles: readonly Plane[]
}

const HOME = '/opt/hyperkube'

/** A cluster with services of `version` and the given machines; `before` is the last built one. */
export function desiredCluster(
  drafts: readonly HostDraft[],
  version = '1',
  before?: readonly HostDraft[],
): DesiredCluster {
  const names = new Set(drafts.map(({ name }) => name))
  return {
    hosts: drafts.map((draft) => desiredHost(draft, drafts, version)),
    leaving: (before ?? [])
      .filter(({ name }) => !names.has(name))
      .map(({ name, roles }) => ({ name, roles, address: `10.0.0.${name}`, ending: {} })),
    built: before && new Map(before.map(({ name, roles }) => [name, roles])),
    etcd: {
      service: 'etcd',
      dataDir: '/var/lib/etcd',
      health: () => HEALTH,
      joiningFile: JOINING_FILE,
      memberName: ({ name }) => `etcd-${name}`,
      peerUrl: ({ address }) => `https://${address}:2380`,
    },
    home: HOME,
    upgrade: { workers: 1, controlPlanes: 1, drains: true },
    access: [{ name: 'access', manifest: document('access', version) }],
    addons: [{ name: 'dns', manifest: document(`dns-${version}`, version) }],
    state: `state ${version}`,
    needs: { programs: ['containerd'], freeBytes: 1, memoryBytes: 1, skewMs: 60_000, allowsSwap: true },
  }
}

function desiredHost({ name, roles }: HostDraft, drafts: readonly HostDraft[], version: string): DesiredHost {
  const service = (plane: Plane, own: string): DesiredService => ({
    plane,
    spec: { name: own, description: own, command: [`/opt/hyperkube/${own}`, `--version=${version}`] },
    health: plane === 'etcd' ? HEALTH : { url: `https://127.0.0.1/${own}` },
  })
  return {
    name,
    address: `10.0.0.${name}`,
    roles,
    files: [
      { path: '/etc/kubernetes/ssl/kube-ca.pem', mode: 0o600, content: Buffer.from(`authority ${version}`) },
      { path: `/etc/kubernetes/ssl/${name}.pem`, mode: 0o600, content: Buffer.from(name) },
      ...(roles.includes('etcd') ? [firstMembers(drafts)] : []),
    ],
    uploads: [],
    claims: ['/var/lib/kubelet'],
    services: [
      ...(roles.includes('etcd') ? [service('etcd', 'etcd')] : []),
      ...(roles.includes('controlplane') ? [service('controlplane', 'kube-apiserver')] : []),
      // As on real machines, only one of these two can use the port.
      ...(roles.includes('controlplane') ? [] : [{ ...service('worker', 'api-proxy'), isQuiet: true }]),
      service('worker', 'kubelet'),
      service('worker', 'kube-proxy'),
    ],
    ending: {},
    node: {
      labels: Object.fromEntries(roles.map((role) => [`node-role.kubernetes.io/${role}`, 'true'])),
      annotations: {},
      taints: roles.includes('worker') ? [] : [{ key: 'no-work', value: 'true', effect: 'NoSchedule' }],
      roleTaints: ['no-work'],
      roleLabels: ['etcd', 'controlplane', 'worker'].map((role) => `node-role.kubernetes.io/${role}`),
    },
  }
}

const AT_ONE_PORT = ['api-proxy', 'kube-apiserver']
const DATA_FILE = '/var/lib/etcd/member'
const JOINING_FILE = '/etc/kubernetes/etcd.env'
/** That of a cluster file. */
const REAL_JOINING_FILE = '/etc/kubernetes/etcd-members.env'
/** By the ports of health checks of a cluster file. */
const SERVICE_AT: Readonly<Record<string, string>> = {
  '6443': 'kube-apiserver',
  '10257': 'kube-controller-manager',
  '10259': 'kube-scheduler',
  '10248': 'kubelet',
  '10256': 'kube-proxy',
}

function firstMembers(drafts: readonly HostDraft[]): DesiredHost['files'][number] {
  const members = drafts
    .filter(({ roles }) => roles.includes('etcd'))
    .map(({ name }) => `etcd-${name}=https://10.0.0.${name}:2380`)
  const text = `ETCD_INITIAL_CLUSTER=${members.join(',')}\nETCD_INITIAL_CLUSTER_STATE=new\n`
  return { path: JOINING_FILE, mode: 0o600, content: Buffer.from(text), once: true }
}

function document(name: string, version: string): string {
  return `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\ndata:\n  version: "${version}"\n`
}

/** The actions, for comparison. */
export class SimulatedSite {
  readonly machines: Map<string, SimulatedState> = new Map()
  readonly clock: Clock = realClock
  /** Members by URL, with the names of started ones. */
  readonly members: Map<string, string> = new Map()
  readonly nodes: Map<string, ObservedNode> = new Map()
  readonly addons: Map<string, string> = new Map()
  /** Objects of addons, by name. */
  readonly objects: Map<string, string> = new Map()
  readonly calls: string[] = []
  /** Unreachable machines. */
  readonly lost: Set<string> = new Set()
  /** Machines without any of our files. */
  readonly #bare = new Set<string>()
  /** The number of additions of each member, by URL. */
  readonly #lives = new Map<string, number>()
  state: string | undefined
  #left = Number.POSITIVE_INFINITY
  #moment: 'before' | 'after' = 'before'

  constructor(drafts: readonly HostDraft[]) {
    for (const { name } of drafts) this.machines.set(name, emptyState())
  }

  /** The driver is interrupted at this call, before or after its effect. Infinity: never. */
  killAt(call: number, moment: 'before' | 'after'): void {
    this.calls.length = 0
    this.#left = call
    this.#moment = moment
  }

  #turn = (moment: 'before' | 'after', call: string): void => {
    if (moment === 'before') this.calls.push(call)
    const isOver = this.calls.length > this.#left
    if (isOver || (this.calls.length === this.#left && moment === this.#moment)) throw new Killed('killed')
  }

  site(): Site & ObserveOptions {
    const machines = new Map<string, Machine>()
    for (const [name, state] of this.machines) {
      const machine = simulatedMachine({
        name,
        state,
        now: () => this.clock.now(),
        turn: this.#turn,
        http: (url, body) => this.#answer(name, url, body),
        removed: (path) => {
          if (path === HOME) this.#bare.add(name)
        },
      })
      const serve: Machine['serve'] = async (ask) => {
        const isTaken = AT_ONE_PORT.some((other) => other !== ask.service.name && this.#runs(name, other))
        if (AT_ONE_PORT.includes(ask.service.name) && isTaken) throw new MachineError('address already in use')
        return machine.serve(ask)
      }
      machines.set(name, { ...machine, serve })
    }
    const reach = async (name: string): Promise<Machine | undefined> => {
      if (this.lost.has(name)) throw new MachineLost(`${name}: no route to host`)
      return this.#bare.has(name) ? undefined : machines.get(name)
    }
    const machine = async (name: string): Promise<Machine> => {
      this.#bare.delete(name)
      return (await reach(name)) as Machine
    }
    return { machine, reach, api: this.#api(), clock: this.clock }
  }

  /** Simulates a power failure: services stop, and the machine is unreachable. */
  lose(name: string): void {
    this.lost.add(name)
    for (const service of this.machines.get(name)?.services.values() ?? []) service.isRunning = false
    const node = this.nodes.get(name)
    if (node !== undefined) this.nodes.set(name, { ...node, isReady: false })
  }

  #runs(name: string, service: string): boolean {
    return this.machines.get(name)?.services.get(service)?.isRunning === true
  }

  #answer(name: string, url: string, body: string): HttpAnswer {
    const { pathname, port } = new URL(url)
    const service = SERVICE_AT[port] ?? pathname.slice(1)
    if (port !== '2379') return { status: this.#runs(name, service) ? 200 : 0, text: '' }
    if (!this.#runs(name, 'etcd')) return { status: 0, text: 'refused' }
    if (!this.#hasQuorum()) return { status: 503, text: '{"health":"false"}' }
    const { peerURLs: [added] = [], ID } = JSON.parse(body || '{}') as { peerURLs?: string[]; ID?: string }
    if (pathname.endsWith('/add') && added !== undefined && !this.members.has(added)) {
      this.members.set(added, '')
      this.#lives.set(added, (this.#lives.get(added) ?? 0) + 1)
    }
    if (pathname.endsWith('/remove') && ID !== undefined) this.members.delete(ID)
    const members = [...this.members].map(([url_, own]) => ({ ID: url_, name: own, peerURLs: [url_] }))
    return { status: 200, text: JSON.stringify({ members }) }
  }

  /** A new cluster has the initial members, and works only with a majority. */
  #hasQuorum(): boolean {
    const running = [...this.machines.keys()].filter((each) => this.#runs(each, 'etcd'))
    if (this.members.size === 0) {
      const [first = ''] = running
      const files = this.machines.get(first)?.files
      const joining = (files?.get(JOINING_FILE) ?? files?.get(REAL_JOINING_FILE))?.content ?? ''
      for (const [, own = '', url = ''] of joining.matchAll(/(etcd-\w+)=(https:[^,\n]+)/g)) this.members.set(url, own)
    }
    const started = running.map((each) => [`https://10.0.0.${each}:2380`, `etcd-${each}`] as const)
    const present = started.filter(([url, own]) => this.members.has(url) && this.#hasData(url, own))
    for (const [url, own] of present) this.members.set(url, own)
    return present.length > this.members.size / 2
  }

  /** A member without data creates some at its start; a member with data of a former member never starts. */
  #hasData(url: string, own: string): boolean {
    const files = this.machines.get(own.slice('etcd-'.length))?.files
    const life = String(this.#lives.get(url) ?? 0)
    const found = files?.get(DATA_FILE)?.content
    if (found === undefined) files?.set(DATA_FILE, { content: life, mode: 0o600 })
    return found === undefined || found === life
  }

  #api(): ClusterApi {
    const known = (): Map<string, ObservedNode> => {
      if (![...this.machines.keys()].some((name) => this.#runs(name, 'kube-apiserver'))) throw new Error('refused')
      for (const name of this.machines.keys())
        if (this.#runs(name, 'kubelet') && !this.nodes.has(name)) this.nodes.set(name, NEW_NODE)
      return this.nodes
    }
    const change = (name: string, changes: Partial<ObservedNode>): void => {
      this.nodes.set(name, { ...(known().get(name) ?? NEW_NODE), ...changes })
    }
    const counted = async <T>(call: string, task: () => T): Promise<T> => {
      this.#turn('before', call)
      const answer = task()
      this.#turn('after', call)
      return answer
    }
    const marked = (name: string): Record<string, string> => ({ ...known().get(name)?.annotations })
    return {
      nodes: async () => new Map(known()),
      setNode: (name, desired, dropped) =>
        counted('setNode', () => change(name, settled(known().get(name) ?? NEW_NODE, desired, dropped))),
      drain: (name) =>
        counted('drain', () =>
          change(name, { isSchedulable: false, annotations: { ...marked(name), [CORDONED]: '' } }),
        ),
      ready: (name, uncordons) =>
        counted('ready', () => {
          const { [CORDONED]: _, ...annotations } = marked(name)
          if (uncordons) change(name, { isSchedulable: true, annotations })
        }),
      deleteNode: (name) => counted('deleteNode', () => void this.nodes.delete(name)),
      addons: async () => new Map(this.addons),
      saveAddon: (name, manifest) =>
        counted('saveAddon', () => {
          if (manifest === '') this.addons.delete(name)
          else this.addons.set(name, manifest)
        }),
      apply: (manifest) => counted('apply', () => void this.objects.set(nameIn(manifest), manifest)),
      delete: (manifest) => counted('delete', () => void this.objects.delete(nameIn(manifest))),
      rewriteSecrets: () => counted('rewriteSecrets', () => undefined),
      restartPods: () => counted('restartPods', () => undefined),
      savedState: async () => this.state,
      saveState: (state) => counted('saveState', () => void (this.state = state)),
    }
  }

  /** The complete state, without start counts. */
  snapshot(): object {
    return {
      machines: [...this.machines].map(([name, { files, services, claims }]) => ({
        name,
        files: [...files].toSorted(([a], [b]) => (a < b ? -1 : 1)),
        services: [...services]
          .map(([own, { spec, isRunning }]) => ({ own, spec, isRunning }))
          .toSorted((a, b) => (a.own < b.own ? -1 : 1)),
        claims: [...claims],
      })),
      members: [...this.members].toSorted(([a], [b]) => (a < b ? -1 : 1)),
      nodes: [...this.nodes].toSorted(([a], [b]) => (a < b ? -1 : 1)),
      state: this.state,
      addons: [...this.addons],
      objects: [...this.objects],
    }
  }
}

function settled(before: ObservedNode, desired: DesiredNode, dropped: DroppedMarks): Partial<ObservedNode> {
  const { labels, annotations, taints } = desired
  const kept = before.taints.filter((taint) => ![...dropped.taints, ...taints].some((each) => each.key === taint.key))
  const others = Object.entries(before.labels).filter(([key]) => !dropped.labels.includes(key))
  return {
    labels: { ...Object.fromEntries(others), ...labels },
    annotations: { ...before.annotations, ...annotations },
    taints: [...kept, ...taints],
  }
}

function nameIn(manifest: string): string {
  return /name: (\S+)/.exec(manifest)?.[1] ?? ''
}

const NEW_NODE: ObservedNode = { isReady: true, isSchedulable: true, labels: {}, annotations: {}, taints: [] }
