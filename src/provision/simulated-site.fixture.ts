/** Machines in memory with an etcd and an API server that follow from their services, and somebody who can be killed while driving them. */
import { type Clock, realClock } from '#lib/clock.ts'

import type { Site } from './actions.ts'
import type { ClusterApi } from './cluster-api.ts'
import type { DesiredCluster, DesiredHost, DesiredNode, DesiredService, DesiredTaint, Plane } from './desired.ts'
import type { HttpAnswer, Machine } from './machine.ts'
import { emptyState, simulatedMachine, type SimulatedState } from './machines/simulated.ts'
import type { Sight } from './observe.ts'
import type { ObservedNode } from './observed.ts'
import { CORDONED } from './plan.ts'

export class Killed extends Error {
  override readonly name = 'Killed'
}

const HEALTH = { url: 'https://127.0.0.1:2379/health' }

export interface HostDraft {
  readonly name: string
  readonly roles: readonly Plane[]
}

/** A cluster whose services say `version`, and whose machines are called as told. */
export function desiredCluster(drafts: readonly HostDraft[], version = '1'): DesiredCluster {
  const hosts = drafts.map(({ name, roles }): DesiredHost => {
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
        service('worker', 'kubelet'),
        service('worker', 'kube-proxy'),
      ],
      node: {
        labels: Object.fromEntries(roles.map((role) => [`node-role.kubernetes.io/${role}`, 'true'])),
        annotations: {},
        taints: roles.includes('worker') ? [] : [{ key: 'no-work', value: 'true', effect: 'NoSchedule' }],
        roleTaints: ['no-work'],
      },
    }
  })
  return {
    hosts,
    etcd: {
      health: () => HEALTH,
      joiningFile: JOINING_FILE,
      memberName: ({ name }) => `etcd-${name}`,
      peerUrl: ({ address }) => `https://${address}:2380`,
    },
    home: '/opt/hyperkube',
    upgrade: { workers: 1, controlPlanes: 1, drains: true },
    access: [{ name: 'access', manifest: document('access', version) }],
    addons: [{ name: 'dns', manifest: document(`dns-${version}`, version) }],
    state: `state ${version}`,
    needs: { programs: ['containerd'], freeBytes: 1, memoryBytes: 1, skewMs: 60_000, allowsSwap: true },
  }
}

const JOINING_FILE = '/etc/kubernetes/etcd.env'

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

/** What was done to all of it, and is compared. */
export class SimulatedSite {
  readonly machines: Map<string, SimulatedState> = new Map()
  readonly clock: Clock = realClock
  /** Members by their address, with the name of those that have started. */
  readonly members: Map<string, string> = new Map()
  readonly nodes: Map<string, ObservedNode> = new Map()
  readonly addons: Map<string, string> = new Map()
  /** Objects of addons, by name. */
  readonly objects: Map<string, string> = new Map()
  readonly calls: string[] = []
  state: string | undefined
  #left = Number.POSITIVE_INFINITY
  #moment: 'before' | 'after' = 'before'

  constructor(drafts: readonly HostDraft[]) {
    for (const { name } of drafts) this.machines.set(name, emptyState())
  }

  /** Whoever drives ends at the call of this number, when it was done or just before. Infinity: never. */
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

  site(): Site & Sight {
    const machines = new Map<string, Machine>()
    for (const [name, state] of this.machines)
      machines.set(
        name,
        simulatedMachine({
          name,
          state,
          now: () => this.clock.now(),
          turn: this.#turn,
          http: (url, body) => this.#answer(name, url, body),
        }),
      )
    const machine = (name: string): Promise<Machine> => Promise.resolve(machines.get(name) as Machine)
    return { machine, reach: machine, api: this.#api(), clock: this.clock }
  }

  #runs(name: string, service: string): boolean {
    return this.machines.get(name)?.services.get(service)?.isRunning === true
  }

  #answer(name: string, url: string, body: string): HttpAnswer {
    const { pathname, port } = new URL(url)
    if (port !== '2379') return { status: this.#runs(name, pathname.slice(1)) ? 200 : 0, text: '' }
    if (!this.#runs(name, 'etcd')) return { status: 0, text: 'refused' }
    if (!this.#hasQuorum()) return { status: 503, text: '{"health":"false"}' }
    const { peerURLs: [added] = [] } = JSON.parse(body || '{}') as { peerURLs?: string[] }
    if (pathname.endsWith('/add') && added !== undefined) this.members.set(added, '')
    const members = [...this.members].map(([url_, own]) => ({ ID: url_, name: own, peerURLs: [url_] }))
    return { status: 200, text: JSON.stringify({ members }) }
  }

  /** A new cluster has all members that its first one was told of, and does nothing before most of them are there. */
  #hasQuorum(): boolean {
    const running = [...this.machines.keys()].filter((each) => this.#runs(each, 'etcd'))
    if (this.members.size === 0) {
      const [first = ''] = running
      const told = this.machines.get(first)?.files.get(JOINING_FILE)?.content ?? ''
      for (const [, own = '', url = ''] of told.matchAll(/(etcd-\w+)=(https:[^,\n]+)/g)) this.members.set(url, own)
    }
    const started = running.map((each) => [`https://10.0.0.${each}:2380`, `etcd-${each}`] as const)
    const present = started.filter(([url]) => this.members.has(url))
    for (const [url, own] of present) this.members.set(url, own)
    return present.length > this.members.size / 2
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
      savedState: async () => this.state,
      saveState: (state) => counted('saveState', () => void (this.state = state)),
    }
  }

  /** All that is there, without how often it was started. */
  snapshot(): object {
    return {
      machines: [...this.machines].map(([name, { files, services, claims }]) => ({
        name,
        files: [...files].toSorted(([a], [b]) => (a < b ? -1 : 1)),
        services: [...services].map(([own, { spec, isRunning }]) => ({ own, spec, isRunning })),
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

function settled(before: ObservedNode, desired: DesiredNode, dropped: readonly DesiredTaint[]): Partial<ObservedNode> {
  const { labels, annotations, taints } = desired
  const kept = before.taints.filter((taint) => ![...dropped, ...taints].some((each) => each.key === taint.key))
  return {
    labels: { ...before.labels, ...labels },
    annotations: { ...before.annotations, ...annotations },
    taints: [...kept, ...taints],
  }
}

function nameIn(manifest: string): string {
  return /name: (\S+)/.exec(manifest)?.[1] ?? ''
}

const NEW_NODE: ObservedNode = { isReady: true, isSchedulable: true, labels: {}, annotations: {}, taints: [] }
